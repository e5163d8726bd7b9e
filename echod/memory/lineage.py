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

from echod.memory.alignment import BlockKey, block_content, numbered_keys
from echod.memory.model import Document

BlockTexts = dict[BlockKey, str]
"""A state as lineage sees it: what each block is, and what it says."""

_MIN_REVERTED_CHANGES = 2
"""Independent changes that only a stale writer turns back at once."""

_MAX_RENAME_SECONDS = 60.0
"""A file older than our write that replaces it was written aside and renamed; nobody takes longer than this."""


def block_texts(document: Document) -> BlockTexts:
    """The blocks of a document as lineage compares them."""
    return dict(zip(numbered_keys(document), map(block_content, document.blocks), strict=True))


@dataclass(frozen=True, slots=True)
class KnownVersion:
    """A state that was really there.

    Attributes:
        content_hash: the digest of its bytes.
        visible_since: when it became visible, Unix seconds.
    """

    content_hash: str
    visible_since: float
    texts: BlockTexts


@dataclass(frozen=True, slots=True)
class CurrentVersion:
    """The file on disk. `mtime` is its modification time, Unix seconds; None where it means nothing."""

    content_hash: str
    mtime: float | None
    texts: BlockTexts


class StaleReason(StrEnum):
    """What a verdict rests on."""

    OLDER_THAN_OUR_WRITE = "the file is older than our last write"
    SEVERAL_REVERTED = "several changes were turned back at once"
    RECENTLY_REVERTED = "a change was turned back moments after it was made"


@dataclass(frozen=True, slots=True)
class Successor:
    """An ordinary edit of the newest state; what is missing was taken out on purpose."""


@dataclass(frozen=True, slots=True)
class Reversion:
    """An older state, exactly: a person's doing, respected. `missing` are the blocks that went with it."""

    missing: tuple[BlockKey, ...]


@dataclass(frozen=True, slots=True)
class StaleWrite:
    """A stale writer overwrote us.

    Attributes:
        base: position of the state it descends from.
        missing: blocks of the newest state that it does not know.
    """

    base: int
    reason: StaleReason
    missing: tuple[BlockKey, ...]


@dataclass(frozen=True, slots=True)
class SuspectedStaleWrite:
    """It fits an older state, but by one change that is no longer young: respected, and a person should look."""

    missing: tuple[BlockKey, ...]


@dataclass(frozen=True, slots=True)
class InterleavedWrite:
    """It fits no older state better, but these young blocks are gone: they were overwritten."""

    missing: tuple[BlockKey, ...]


Descent = Successor | Reversion | StaleWrite | SuspectedStaleWrite | InterleavedWrite


def classify_descent(
    current: CurrentVersion, known: Sequence[KnownVersion], *, now: float, young_seconds: float
) -> Descent:
    """Where the file on disk comes from.

    Args:
        current: the file on disk.
        known: known states, oldest first; at least one.
        now: Unix seconds.
        young_seconds: what was added less than this ago and is gone was overwritten.
    """
    newest = known[-1]
    if current.content_hash == newest.content_hash:
        return Successor()
    known_texts = _all_texts(known)
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


def _all_texts(known: Sequence[KnownVersion]) -> dict[BlockKey, set[str]]:
    texts: dict[BlockKey, set[str]] = {}
    for state in known:
        for key, text in state.texts.items():
            texts.setdefault(key, set()).add(text)
    return texts


def _undo_distance(current: BlockTexts, state: BlockTexts, known_texts: dict[BlockKey, set[str]]) -> int:
    """How much someone who started from `state` would have had to undo of what is known."""
    missing = sum(1 for key in state if key not in current)
    reverted = sum(
        1 for key, text in state.items() if key in current and current[key] != text and current[key] in known_texts[key]
    )
    foreign = sum(1 for key in current if key in known_texts and key not in state)
    return missing + reverted + foreign
