"""The remark that counts an observation: prose to other readers, and no part of the source."""

from __future__ import annotations

from datetime import date

import pytest

from echod.memory.document import parse, parse_block
from echod.memory.edit import with_recurrence
from echod.memory.forms import Recurrence, add_recurrences, find_recurrence, without_recurrence
from echod.memory.identity import entry_ids
from echod.memory.model import Block, Document

MONDAY, FRIDAY, SUNDAY = date(2026, 3, 2), date(2026, 3, 6), date(2026, 3, 8)
OBSERVATION = (
    "## Observations \u2014 Task: Fix it (2026-03-02)\n- **layer**: observations\n{source}\n"
    "- **Confidence**: LOW (auto)\n- Task completed: Fix it\n"
)


def id_of(block: Block) -> str | None:
    return entry_ids("reviewer", Document("", (block,)))[0]


@pytest.mark.parametrize(
    "source", ["**Source**: `rune-a/ward`", "- **source**: `rune-a/ward`", "- **source**: rune:a b"]
)
def test_a_counted_entry_keeps_its_id_source_and_text(source: str) -> None:
    block = parse_block(OBSERVATION.format(source=source))
    assert block.entry is not None

    counted = with_recurrence(block, Recurrence(3, 2, MONDAY, FRIDAY))
    again = counted and with_recurrence(counted, Recurrence(4, 2, MONDAY, SUNDAY))

    assert again is not None
    assert again.entry is not None
    assert f"{source} (4 times in 2 workflows, 2026-03-02 to 2026-03-08)\n" in again.text
    assert (id_of(again), again.entry.source, again.body) == (id_of(block), block.entry.source, block.body)
    assert isinstance(parse(again.text.encode()), Document)


def test_an_entry_without_a_source_is_not_counted() -> None:
    assert (
        with_recurrence(parse_block(OBSERVATION.format(source="- **tags**: a")), Recurrence(2, 1, MONDAY, FRIDAY))
        is None
    )


def test_the_remark_reads_back() -> None:
    remark = Recurrence(5, 1, MONDAY, FRIDAY)

    assert find_recurrence(f"`a/b` {remark}") == remark
    assert without_recurrence(f"a b {remark}") == "a b"
    assert find_recurrence("`a/b` (5 times in 1 workflow, 2026-02-30 to 2026-03-01)") is None
    assert find_recurrence("`a/b` (post-arc review)") is None


def test_counts_add_up_and_workflows_are_rather_too_few() -> None:
    once = [("a", Recurrence(1, 1, MONDAY, MONDAY)), ("b", Recurrence(1, 1, MONDAY, MONDAY))]
    total = add_recurrences(once)
    same_day = add_recurrences([("a", total), ("c", Recurrence(1, 1, MONDAY, MONDAY))])
    later = add_recurrences([("a", total), ("c", Recurrence(1, 1, FRIDAY, FRIDAY))])

    assert total == Recurrence(2, 2, MONDAY, MONDAY)
    assert same_day == Recurrence(3, 2, MONDAY, MONDAY)
    assert later == Recurrence(3, 3, MONDAY, FRIDAY)
