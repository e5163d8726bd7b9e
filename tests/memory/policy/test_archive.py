"""The archive gives back what was put into it, whatever it holds, and says so where it cannot."""

from __future__ import annotations

from dataclasses import replace
from datetime import date

from hypothesis import given, settings
from hypothesis import strategies as st

from echod.memory.model import Block, Layer
from echod.memory.policy import ARCHIVE_LIMIT, ArchivedEntry, Terms, archive_name, archive_text, read_archive
from echod.memory.policy.archive import archived_entry
from echod.memory.policy_model import Rule
from tests.memory import strategies
from tests.memory.policy.samples import TODAY, entry, memory

UNIT = st.floats(0, 1)
ENTRIES = st.builds(
    ArchivedEntry,
    id=st.text("0123456789abcdef", min_size=12, max_size=12),
    role=st.sampled_from(["reviewer", "a-b_C"]),
    file=st.sampled_from(["MEMORY.md", "knowledge.md"]),
    rule=st.sampled_from([rule.value for rule in Rule]),
    layer=st.sampled_from([None, *Layer]),
    score=st.none() | UNIT,
    terms=st.none() | st.builds(Terms, UNIT, UNIT, UNIT),
    day=st.dates(),
    text=st.one_of(
        strategies.entries(),
        strategies.broken_files(),
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
    archive = read_archive(before.encode() + archive_text(entries, job))

    assert archive.entries == tuple(replace(entry, job=job) for entry in entries)
    assert archive.damaged == ()


@settings(max_examples=40, deadline=None)
@given(st.binary(max_size=200) | st.lists(ENTRIES, max_size=2).map(lambda entries: archive_text(entries, 1)[:-9]))
def test_no_bytes_make_reading_fail(data: bytes) -> None:
    read_archive(data)


def one(text: str) -> ArchivedEntry:
    return ArchivedEntry("a" * 12, "reviewer", "MEMORY.md", "long", Layer.INSCRIBED, 0.5, None, TODAY, text)


def test_an_entry_that_someone_changed_is_told_and_the_others_are_read() -> None:
    data = archive_text([one("first\n"), one("second\n"), one("third\n")], 7).replace(b"second", b"seXond")

    archive = read_archive(data)

    assert [entry.text for entry in archive.entries] == ["first\n", "third\n"]
    assert [(damaged.id, data[damaged.offset :][:5]) for damaged in archive.damaged] == [("a" * 12, b"<!-- ")]


def test_an_entry_cannot_forge_another_one() -> None:
    forged = archive_text([one("forged\n")], 1).decode()

    assert [entry.text for entry in read_archive(archive_text([one(forged)], 2)).entries] == [forged]


def test_a_rule_of_another_version_is_no_reason_not_to_restore() -> None:
    data = archive_text([replace(one("text\n"), rule="rule-of-tomorrow")], 1)

    assert [entry.rule for entry in read_archive(data).entries] == ["rule-of-tomorrow"]


def test_the_line_above_an_entry_tells_all_that_there_is_to_know() -> None:
    [block] = memory(entry("a")).blocks
    archived = archived_entry(
        block, "b" * 12, "reviewer", Rule.EXPIRED, date(2026, 11, 20), score=0.37, terms=Terms(0.7, 0.0, 0.3)
    )

    header = archive_text([archived], 41).decode().split("\n")[1]

    for said in ("b" * 12, '"job": 41', "expired", "inscribed", "0.37", "0.7", "0.3", "2026-11-20", '"sha256": "'):
        assert said in header
    assert f'"bytes": {len(block.text.encode())}' in header


def test_secrets_do_not_reach_the_archive_and_the_rest_is_verbatim() -> None:
    text = "## Inscribed \u2014 x (2026-11-01)\n**Source**: me\n\nThe password: hunter2hunter2 opens it.\n"

    archived = archived_entry(Block(text, None), "c" * 12, "reviewer", Rule.LONG, TODAY)

    assert archived.redacted
    assert "hunter2" not in archived.text
    assert archived.text.startswith("## Inscribed \u2014 x (2026-11-01)\n**Source**: me\n")


def test_a_full_archive_file_is_followed_by_the_next_number() -> None:
    assert archive_name(2026, {}) == "archive/pruned-2026.md"
    assert archive_name(2026, {"pruned-2026.md": 10}, adding=10) == "archive/pruned-2026.md"
    assert archive_name(2026, {"pruned-2026.md": ARCHIVE_LIMIT}) == "archive/pruned-2026.md"
    assert archive_name(2026, {"pruned-2026.md": ARCHIVE_LIMIT}, adding=1) == "archive/pruned-2026-2.md"
    assert archive_name(2026, {"pruned-2026.md": 5, "pruned-2026-3.md": 5}) == "archive/pruned-2026-3.md"
    assert archive_name(2027, {"pruned-2026.md": 5, "MEMORY-2027-01-01.md": 5}) == "archive/pruned-2027.md"
    assert archive_name(2026, {}, adding=3 * ARCHIVE_LIMIT) == "archive/pruned-2026.md"
