"""Compare two versions of a text line by line, in time that is linear in their length whatever they contain.

A general comparison takes time that grows with the square of the number of lines, for example where many lines are
equal. This one finds the smallest set of changes (the greedy algorithm of Myers) up to a number of changed lines that
real edits of one entry stay below. Beyond it, everything between the first and the last difference is one change.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

MAX_CHANGED_LINES = 64
"""The number of removed and added lines up to which the smallest set of changes is searched."""


class LineChange(NamedTuple):
    """The lines `start` to `end` (exclusive) of the old text were replaced by those from `new_start` to `new_end`."""

    start: int
    end: int
    new_start: int
    new_end: int


def diff_lines(old: Sequence[str], new: Sequence[str]) -> list[LineChange]:
    """Return the changes from `old` to `new` in order, separated by lines that both have."""
    shorter = min(len(old), len(new))
    head = 0
    while head < shorter and old[head] == new[head]:
        head += 1
    tail = 0
    while tail < shorter - head and old[-1 - tail] == new[-1 - tail]:
        tail += 1
    old_end, new_end = len(old) - tail, len(new) - tail
    if head == old_end and head == new_end:
        return []
    matches = _longest_matches(old[head:old_end], new[head:new_end])
    if matches is None:
        return [LineChange(head, old_end, head, new_end)]
    return _changes_between([(x + head, y + head) for x, y in matches], head, old_end, new_end)


def _longest_matches(old: Sequence[str], new: Sequence[str]) -> list[tuple[int, int]] | None:
    """Return the positions of a longest common subsequence; None if more lines changed than the limit."""
    reached = {1: 0}  # diagonal (old position minus new position) -> the furthest old position on it
    history: list[dict[int, int]] = []
    for changed in range(min(MAX_CHANGED_LINES, len(old) + len(new)) + 1):
        history.append(dict(reached))
        for diagonal in range(-changed, changed + 1, 2):
            x = _best_start(reached, diagonal, changed)
            y = x - diagonal
            while x < len(old) and 0 <= y < len(new) and old[x] == new[y]:
                x, y = x + 1, y + 1
            reached[diagonal] = x
            if x >= len(old) and y >= len(new):
                return _trace_back(history, len(old), len(new))
    return None


def _best_start(reached: dict[int, int], diagonal: int, changed: int) -> int:
    if diagonal == -changed or (diagonal != changed and reached[diagonal - 1] < reached[diagonal + 1]):
        return reached[diagonal + 1]  # a line was added
    return reached[diagonal - 1] + 1  # a line was removed


def _trace_back(history: list[dict[int, int]], x: int, y: int) -> list[tuple[int, int]]:
    matches: list[tuple[int, int]] = []
    for changed in range(len(history) - 1, -1, -1):
        reached, diagonal = history[changed], x - y
        start = _best_start(reached, diagonal, changed)
        while x > start:
            x, y = x - 1, y - 1
            matches.append((x, y))
        is_added = diagonal == -changed or (diagonal != changed and reached[diagonal - 1] < reached[diagonal + 1])
        x, y = (start, start - diagonal - 1) if is_added else (start - 1, start - diagonal)
    matches.reverse()
    return matches


def _changes_between(matches: list[tuple[int, int]], head: int, old_end: int, new_end: int) -> list[LineChange]:
    changes = []
    start, new_start = head, head
    for x, y in [*matches, (old_end, new_end)]:
        if (start, new_start) != (x, y):
            changes.append(LineChange(start, x, new_start, y))
        start, new_start = x + 1, y + 1
    return changes
