"""Classify a file on disk by the known version it descends from, to detect overwritten changes.

A writer that read an older version and wrote the whole file removes our later additions unknowingly. The user deletes
an entry on purpose. Both can look alike. docs/durability.md describes the rules:

- nothing known is missing or reverted: an ordinary successor;
- byte for byte an older version: the user reverted the file;
- closer to an older version than to the newest: a stale writer, if the file is older than our last write, or if two or
  more changes were reverted, or if it happened while those changes were young;
- not closer to an older version, but young blocks are missing: interleaved writes, the young blocks were overwritten.

A general comparison takes time that grows with the square of the number of lines, for example where many lines are
equal. This one finds the smallest set of changes (the greedy algorithm of Myers) up to a number of changed lines that
real edits of one entry stay below. Beyond it, everything between the first and the last difference is one change.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from echod.memory.identity import BlockKey, BlockTexts

_MIN_REVERTED_CHANGES = 2  # the number of independent changes that only a stale writer reverts at once
# A file older than our write that it replaces was written aside and renamed. No writer takes longer than this.
_MAX_RENAME_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class KnownVersion:
    """A version that existed on disk."""

    content_hash: str  # the digest of its bytes
    visible_since: float  # the time at which it became visible, Unix seconds
    texts: BlockTexts


@dataclass(frozen=True, slots=True)
class CurrentVersion:
    """The file on disk. `mtime` is its modification time, Unix seconds; None where it is meaningless."""

    content_hash: str
    mtime: float | None
    texts: BlockTexts


class StaleReason(StrEnum):
    """The evidence for a stale write."""

    OLDER_THAN_OUR_WRITE = "the file is older than our last write"
    SEVERAL_REVERTED = "several changes were reverted at once"
    RECENTLY_REVERTED = "a change was reverted moments after it was made"


@dataclass(frozen=True, slots=True)
class Successor:
    """An ordinary edit of the newest version. Missing blocks were removed on purpose."""


@dataclass(frozen=True, slots=True)
class Reversion:
    """Exactly an older version. The user did this, so it is respected. `missing` are the blocks that vanished."""

    missing: tuple[BlockKey, ...]


@dataclass(frozen=True, slots=True)
class StaleWrite:
    """A stale writer overwrote our changes."""

    base: int  # position of the version it descends from
    reason: StaleReason
    missing: tuple[BlockKey, ...]  # blocks of the newest version that it does not know


@dataclass(frozen=True, slots=True)
class SuspectedStaleWrite:
    """Closer to an older version, but by one change that is no longer young. Respected, and reported to the user."""

    missing: tuple[BlockKey, ...]


@dataclass(frozen=True, slots=True)
class InterleavedWrite:
    """Not closer to an older version, but these young blocks are missing because they were overwritten."""

    missing: tuple[BlockKey, ...]


Descent = Successor | Reversion | StaleWrite | SuspectedStaleWrite | InterleavedWrite


def classify_descent(
    current: CurrentVersion, known: Sequence[KnownVersion], *, now: float, young_seconds: float
) -> Descent:
    """Return the relation of the file on disk to the known versions (at least one, oldest first).

    `now` is in Unix seconds. Blocks added less than `young_seconds` ago and missing now were overwritten.
    """
    newest = known[-1]
    if current.content_hash == newest.content_hash:
        return Successor()
    known_texts: defaultdict[BlockKey, set[str]] = defaultdict(set)
    for state in known:
        for key, text in state.texts.items():
            known_texts[key].add(text)
    distances = [_undo_distance(current.texts, state.texts, known_texts) for state in known]
    best = min(distances)
    if best == distances[-1]:
        return _find_interleaved(current, known, now=now, young_seconds=young_seconds) if best else Successor()
    base = max(i for i, distance in enumerate(distances) if distance == best)
    missing = tuple(k for k in newest.texts if k not in current.texts and k not in known[base].texts)
    if any(current.content_hash == state.content_hash for state in known):
        return Reversion(tuple(k for k in newest.texts if k not in current.texts))
    next_visible_since = known[base + 1].visible_since
    if current.mtime is not None and next_visible_since - _MAX_RENAME_SECONDS < current.mtime < next_visible_since:
        return StaleWrite(base, StaleReason.OLDER_THAN_OUR_WRITE, missing)
    if distances[-1] - best >= _MIN_REVERTED_CHANGES:
        return StaleWrite(base, StaleReason.SEVERAL_REVERTED, missing)
    if now - next_visible_since < young_seconds:
        return StaleWrite(base, StaleReason.RECENTLY_REVERTED, missing)
    return SuspectedStaleWrite(missing)


def _find_interleaved(
    current: CurrentVersion, known: Sequence[KnownVersion], *, now: float, young_seconds: float
) -> Successor | InterleavedWrite:
    first_seen: dict[BlockKey, float] = {}
    for state in known:
        for key in state.texts:
            first_seen.setdefault(key, state.visible_since)
    missing = tuple(k for k in known[-1].texts if k not in current.texts and now - first_seen[k] < young_seconds)
    return InterleavedWrite(missing) if missing else Successor()


def _undo_distance(current: BlockTexts, state: BlockTexts, known_texts: Mapping[BlockKey, set[str]]) -> int:
    """Return how many known changes a writer who started from `state` would have had to undo."""
    missing = sum(1 for key in state if key not in current)
    shared = ((text, current[key], known_texts[key]) for key, text in state.items() if key in current)
    reverted = sum(now != text and now in texts for text, now, texts in shared)
    foreign = sum(1 for key in current if key in known_texts and key not in state)
    return missing + reverted + foreign


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
