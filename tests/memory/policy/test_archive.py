"""The archive returns any text that was put into it, and reports damaged entries."""

from __future__ import annotations

from dataclasses import replace
from datetime import date

from hypothesis import given, settings
from hypothesis import strategies as st

from echod.memory.archive import (
    MAX_ARCHIVE_BYTES,
    ArchivedEntry,
    read_archive,
    render_archived_entries,
    select_archive_file,
    to_archived_entry,
)
from echod.memory.model import Block, Layer
from echod.memory.policy_model import Rule, ScoreTerms
from tests.memory import strategies
from tests.memory.policy.samples import TODAY, entry, memory_document

UNIT = st.floats(0, 1)
ENTRIES = st.builds(
    ArchivedEntry,
    id=st.text("0123456789abcdef", min_size=12, max_size=12),
    role=st.sampled_from(["reviewer", "a-b_C"]),
    file=st.sampled_from(["MEMORY.md", "knowledge.md"]),
    rule=st.sampled_from([rule.value for rule in Rule]),
    layer=st.sampled_from([None, *Layer]),
    score=st.none() | UNIT,
    terms=st.none() | st.builds(ScoreTerms, UNIT, UNIT, UNIT),
    day=st.dates(),
    text=st.one_of(
        strategies.entries(),
        strategies.damaged_files(),
        st.text(max_size=60),
        st.just('<!-- echod:archived {"id": "fake", "bytes": 0} -->\nx'),
    ),
    redacted=st.booleans(),
)


@settings(max_examples=40, deadline=None)
@given(
    st.lists(ENTRIES, max_size=5), st.none() | st.integers(1, 10**9), st.sampled_from(["", "torn write", "# Mine\n"])
)
def test_reading_is_the_inverse_of_writing(entries: list[ArchivedEntry], job: int | None, before: str) -> None:
    archive = read_archive(before.encode() + render_archived_entries(entries, job))

    assert archive.entries == tuple(replace(entry, job=job) for entry in entries)
    assert archive.damaged == ()


@settings(max_examples=40, deadline=None)
@given(
    st.binary(max_size=200)
    | st.lists(ENTRIES, max_size=2).map(lambda entries: render_archived_entries(entries, 1)[:-9])
)
def test_no_bytes_make_reading_fail(data: bytes) -> None:
    read_archive(data)


def make_archived(text: str) -> ArchivedEntry:
    return ArchivedEntry("a" * 12, "reviewer", "MEMORY.md", "long", Layer.INSCRIBED, 0.5, None, TODAY, text)


def test_a_changed_entry_is_reported_and_the_others_are_read() -> None:
    data = render_archived_entries(
        [make_archived("first\n"), make_archived("second\n"), make_archived("third\n")], 7
    ).replace(b"second", b"seXond")

    archive = read_archive(data)

    assert [entry.text for entry in archive.entries] == ["first\n", "third\n"]
    assert [(damaged.id, data[damaged.offset :][:5]) for damaged in archive.damaged] == [("a" * 12, b"<!-- ")]


def test_an_entry_cannot_forge_another_one() -> None:
    forged = render_archived_entries([make_archived("forged\n")], 1).decode()

    assert [entry.text for entry in read_archive(render_archived_entries([make_archived(forged)], 2)).entries] == [
        forged
    ]


def test_an_entry_with_a_rule_of_another_version_is_restored() -> None:
    data = render_archived_entries([replace(make_archived("text\n"), rule="rule-of-tomorrow")], 1)

    assert [entry.rule for entry in read_archive(data).entries] == ["rule-of-tomorrow"]


def test_the_header_of_an_archived_entry_is_complete() -> None:
    [block] = memory_document(entry("a")).blocks
    archived = to_archived_entry(
        block, "b" * 12, "reviewer", Rule.EXPIRED, date(2026, 11, 20), score=0.37, terms=ScoreTerms(0.7, 0.0, 0.3)
    )

    header = render_archived_entries([archived], 41).decode().split("\n")[1]

    for said in ("b" * 12, '"job": 41', "expired", "inscribed", "0.37", "0.7", "0.3", "2026-11-20", '"sha256": "'):
        assert said in header
    assert f'"bytes": {len(block.text.encode())}' in header


def test_secrets_do_not_reach_the_archive_and_the_rest_is_verbatim() -> None:
    text = "## Inscribed \u2014 x (2026-11-01)\n**Source**: me\n\nThe password: hunter2hunter2 opens it.\n"

    archived = to_archived_entry(Block(text, None), "c" * 12, "reviewer", Rule.CONDENSED, TODAY)

    assert archived.redacted
    assert "hunter2" not in archived.text
    assert archived.text.startswith("## Inscribed \u2014 x (2026-11-01)\n**Source**: me\n")


def test_a_full_archive_file_is_followed_by_the_next_number() -> None:
    assert select_archive_file(2026, {}) == "archive/pruned-2026.md"
    assert select_archive_file(2026, {"pruned-2026.md": 10}, added_bytes=10) == "archive/pruned-2026.md"
    assert select_archive_file(2026, {"pruned-2026.md": MAX_ARCHIVE_BYTES}) == "archive/pruned-2026.md"
    assert select_archive_file(2026, {"pruned-2026.md": MAX_ARCHIVE_BYTES}, added_bytes=1) == "archive/pruned-2026-2.md"
    assert select_archive_file(2026, {"pruned-2026.md": 5, "pruned-2026-3.md": 5}) == "archive/pruned-2026-3.md"
    assert select_archive_file(2027, {"pruned-2026.md": 5, "MEMORY-2027-01-01.md": 5}) == "archive/pruned-2027.md"
    assert select_archive_file(2026, {}, added_bytes=3 * MAX_ARCHIVE_BYTES) == "archive/pruned-2026.md"
