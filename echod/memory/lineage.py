"""From which known state of a memory file does the file on disk descend? And so: was something overwritten?

A writer that read an older state and wrote the whole file takes our later additions out again without knowing.
A person who deletes an entry does so on purpose. Both can look alike; docs/durability.md says where the line is:

- nothing known is missing or turned back: an ordinary successor;
- byte for byte an older state: a person turned it back;
- it fits an older state better than the newest: a stale writer, if the file is older than our last write, or
  if two changes or more were turned back, or if it happened while those changes were young;
- it fits no older state better, but young blocks are gone: lineages crossed, the young blocks were overwritten.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from echod.memory.alignment import Key, content, numbered_keys
from echod.memory.model import Document

Shape = dict[Key, str]
"""A state as lineage sees it: what each block is, and what it says."""

_STRONG = 2
"""Independent changes that only a stale writer turns back at once."""

_RENAMED_WITHIN_SECONDS = 60.0
"""A file older than our write that replaces it was written aside and renamed; nobody takes longer than this."""


def shape(document: Document) -> Shape:
    """The blocks of a document as lineage compares them."""
    return dict(zip(numbered_keys(document), map(content, document.blocks), strict=True))


@dataclass(frozen=True, slots=True)
class Known:
    """A state that was really there.

    Attributes:
        image: the digest of its bytes.
        since: when it became visible, Unix seconds.
    """

    image: str
    since: float
    shape: Shape


@dataclass(frozen=True, slots=True)
class Found:
    """The file on disk. `mtime` is its modification time, Unix seconds; None where it means nothing."""

    image: str
    mtime: float | None
    shape: Shape


class Why(StrEnum):
    """What a verdict rests on."""

    OLDER_THAN_OUR_WRITE = "the file is older than our last write"
    SEVERAL_REVERTED = "several changes were turned back at once"
    YOUNG = "a change was turned back moments after it was made"


@dataclass(frozen=True, slots=True)
class Successor:
    """An ordinary edit of the newest state; what is missing was taken out on purpose."""


@dataclass(frozen=True, slots=True)
class Reverted:
    """An older state, exactly: a person's doing, respected. `gone` are the blocks that went with it."""

    gone: tuple[Key, ...]


@dataclass(frozen=True, slots=True)
class Stale:
    """A stale writer overwrote us.

    Attributes:
        base: position of the state it descends from.
        gone: blocks of the newest state that it does not know.
    """

    base: int
    why: Why
    gone: tuple[Key, ...]


@dataclass(frozen=True, slots=True)
class Doubtful:
    """It fits an older state, but by one change that is no longer young: respected, and a person should look."""

    gone: tuple[Key, ...]


@dataclass(frozen=True, slots=True)
class Crossed:
    """It fits no older state better, but these young blocks are gone: they were overwritten."""

    gone: tuple[Key, ...]


Descent = Successor | Reverted | Stale | Doubtful | Crossed


def judge(found: Found, known: Sequence[Known], *, now: float, young_seconds: float) -> Descent:
    """Where the file on disk comes from.

    Args:
        found: the file on disk.
        known: known states, oldest first; at least one.
        now: Unix seconds.
        young_seconds: what was added less than this ago and is gone was overwritten.
    """
    newest = known[-1]
    if found.image == newest.image:
        return Successor()
    said = _texts(known)
    distances = [_distance(found.shape, state.shape, said) for state in known]
    best = min(distances)
    if best == distances[-1]:
        return _crossed(found, known, now=now, young_seconds=young_seconds) if best else Successor()
    base = max(i for i, distance in enumerate(distances) if distance == best)
    gone = tuple(k for k in newest.shape if k not in found.shape and k not in known[base].shape)
    if any(found.image == state.image for state in known):
        return Reverted(tuple(k for k in newest.shape if k not in found.shape))
    written = known[base + 1].since
    if found.mtime is not None and written - _RENAMED_WITHIN_SECONDS < found.mtime < written:
        return Stale(base, Why.OLDER_THAN_OUR_WRITE, gone)
    if distances[-1] - best >= _STRONG:
        return Stale(base, Why.SEVERAL_REVERTED, gone)
    if now - written < young_seconds:
        return Stale(base, Why.YOUNG, gone)
    return Doubtful(gone)


def _crossed(found: Found, known: Sequence[Known], *, now: float, young_seconds: float) -> Successor | Crossed:
    first_seen: dict[Key, float] = {}
    for state in known:
        for key in state.shape:
            first_seen.setdefault(key, state.since)
    gone = tuple(k for k in known[-1].shape if k not in found.shape and now - first_seen[k] < young_seconds)
    return Crossed(gone) if gone else Successor()


def _texts(known: Sequence[Known]) -> dict[Key, set[str]]:
    said: dict[Key, set[str]] = {}
    for state in known:
        for key, text in state.shape.items():
            said.setdefault(key, set()).add(text)
    return said


def _distance(found: Shape, state: Shape, said: dict[Key, set[str]]) -> int:
    """How much someone who started from `state` would have had to undo of what is known."""
    missing = sum(1 for key in state if key not in found)
    reverted = sum(1 for key, text in state.items() if key in found and found[key] != text and found[key] in said[key])
    foreign = sum(1 for key in found if key in said and key not in state)
    return missing + reverted + foreign
