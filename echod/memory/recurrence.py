"""Count how often the same task was reported: a remark behind the source of an entry.

    - **source**: `rune-review-7/ward` (5 times in 3 workflows, 2026-03-02 to 2026-03-17)

The remark is prose to other readers of these files. It is no part of the source, so the id of the entry stays.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date
from typing import NamedTuple

from echod.memory.text import LazyPattern

_DAY = r"[0-9]{4}-[0-9]{2}-[0-9]{2}"
_REMARK = LazyPattern(
    rf"(?<![ \t])[ \t]*\(([0-9]{{1,9}}) times in ([0-9]{{1,9}}) workflows?, ({_DAY}) to ({_DAY})\)[ \t]*\Z", re.ASCII
)


class Recurrence(NamedTuple):
    """How often something was reported, in how many workflows at least, and from when to when."""

    times: int
    workflows: int
    first: date
    last: date

    def __str__(self) -> str:
        """Return the remark for a source line."""
        workflows = f"{self.workflows} workflow{'' if self.workflows == 1 else 's'}"
        return f"({self.times} times in {workflows}, {self.first.isoformat()} to {self.last.isoformat()})"


def find_recurrence(value: str) -> Recurrence | None:
    """Return the recurrence in the value of a source line; None without a remark, and for impossible dates."""
    match = _REMARK.compiled.search(value)
    if match is None:
        return None
    try:
        first, last = (date.fromisoformat(text) for text in match.group(3, 4))
    except ValueError:
        return None
    return Recurrence(int(match[1]), int(match[2]), first, last)


def without_recurrence(value: str) -> str:
    """Return the value of a source line without the remark."""
    return _REMARK.compiled.sub("", value) if value.endswith(")") or value.rstrip().endswith(")") else value


def add_recurrences(parts: Sequence[tuple[str, Recurrence]]) -> Recurrence:
    """Return the sum of several reports, each with the workflow of its source.

    The workflows behind an earlier sum are unknown, except for the one that is named. So another workflow only adds to
    a sum if it came on a later day: too few workflows rather than too many.
    """
    recurrences = [recurrence for _, recurrence in parts]
    named = {workflow for workflow, _ in parts}
    sums = {workflow: recurrence for workflow, recurrence in parts if recurrence.times > 1}
    known = max((recurrence.workflows for recurrence in sums.values()), default=0)
    summed_until = max((recurrence.last for recurrence in sums.values()), default=date.min)
    later = {workflow for workflow, recurrence in parts if recurrence.first > summed_until} - sums.keys()
    return Recurrence(
        times=sum(recurrence.times for recurrence in recurrences),
        workflows=max(len(named), known + len(later)),
        first=min(recurrence.first for recurrence in recurrences),
        last=max(recurrence.last for recurrence in recurrences),
    )
