"""Uniting archives: every record of both sides, each once."""

from __future__ import annotations

from datetime import date

from hypothesis import given
from hypothesis import strategies as st

from echod.memory.archive import read_archive, render_archived_entries, to_archived_entry
from echod.memory.branches import unite_archives
from echod.memory.document import parse_block
from echod.memory.policy_model import Rule

TEXTS = [
    "### [2026-01-01] Pattern: one\n- **layer**: traced\n- Do one.\n",
    "### [2026-01-02] Pattern: two\n- **layer**: traced\n- Do two.\n\n<!-- echod:archived {} -->\n<!-- echod: x -->\n",
    "### [2026-01-03] Pattern: three\n- **layer**: traced\n- Do three.\n\n\n- More.\n\n\n",
]


def record(index: int, day: int, job: int) -> bytes:
    entry = to_archived_entry(parse_block(TEXTS[index]), f"id{index}", "reviewer", Rule.FORGOTTEN, date(2026, 1, day))
    return render_archived_entries([entry], job)


RECORDS = st.builds(record, st.integers(0, 2), st.integers(1, 3), st.integers(1, 3)) | st.builds(
    lambda n: f"<!-- echod: replaced by another edit, 2026-01-0{n} -->\n## Text {n}\nOf it.\n\n".encode(),
    st.integers(1, 4),
)
ARCHIVES = st.lists(RECORDS, max_size=5, unique=True).map(b"".join)


@given(ARCHIVES, ARCHIVES)
def test_every_archived_entry_of_both_stays_whole_and_once(one: bytes, other: bytes) -> None:
    united = read_archive(unite_archives(one, other))

    assert united.damaged == ()
    expected = {(e.id, e.day, e.job, e.text) for data in (one, other) for e in read_archive(data).entries}
    found = [(e.id, e.day, e.job, e.text) for e in united.entries]
    assert set(found) == expected
    if one.strip() and other.strip() and one != other:
        assert len(found) == len(expected)


@given(ARCHIVES, ARCHIVES, ARCHIVES)
def test_the_sequence_of_unions_does_not_matter(one: bytes, other: bytes, third: bytes) -> None:
    united = unite_archives(one, other)
    assert united == unite_archives(other, one)
    assert unite_archives(united, united) == united
    entries = read_archive(unite_archives(united, third)).entries
    assert set(entries) == set(read_archive(unite_archives(one, unite_archives(other, third))).entries)


def test_a_line_with_the_reason_stays_with_its_entry() -> None:
    reason = b"<!-- echod: removed by hand, 2026-01-01 -->\n"
    one, other = reason + record(0, 1, 1), reason + record(2, 1, 2)
    assert unite_archives(one, other).count(reason) == 2


def test_text_without_records_is_kept_from_both() -> None:
    assert unite_archives(b"Some words.\n", b"Others.\n") == b"Others.\n\nSome words.\n"
