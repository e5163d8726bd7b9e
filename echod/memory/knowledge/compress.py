"""Compress a knowledge file over its limit, the oldest entries first, and no further than needed.

1. Condense: an entry keeps one line for each learning, whole.
2. Topics: learnings about the same file or under similar titles become one block, each as its lead sentence and the
   most prescriptive one.
3. Drop: the oldest blocks leave.

Only the entries that are passed in are changed. Every other block keeps its bytes and its position. Compressing a
compressed file changes nothing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from typing import NamedTuple

from echod.memory.compose import detect_newline
from echod.memory.document import count_lines, parse_block
from echod.memory.knowledge.blocks import (
    BlockMaterial,
    compose_block,
    extract_materials,
    group_by_topic,
    is_knowledge_block,
)
from echod.memory.model import Block, Document, Entry
from echod.memory.shorten import condense


@dataclass(frozen=True, slots=True)
class CompressibleEntry:
    """An entry that may be compressed: its index among the file's blocks, and the day on which it was last verified."""

    index: int
    block: Block
    entry: Entry
    day: date


class CompressionResult(NamedTuple):
    """A knowledge file after compression."""

    data: bytes
    condensed: tuple[int, ...]  # indexes of the entries that keep one line for each learning
    merged: tuple[int, ...]  # indexes of the entries whose text was replaced by blocks
    dropped: tuple[int, ...]  # indexes of the entries whose text was removed without a replacement


class _Item(NamedTuple):
    """A piece of the result: the indexes it comes from, its text, its learnings for a larger block."""

    origins: tuple[int, ...]
    text: str
    day: date
    materials: tuple[BlockMaterial, ...]


_Composed = dict[tuple[BlockMaterial, ...], tuple[str, tuple[BlockMaterial, ...]]]
"""The block of each group that was composed, with its own learnings. Most groups are composed again and again while the
fewest entries that are enough are looked for."""


def compress_knowledge(document: Document, sources: Sequence[CompressibleEntry], limit: int) -> CompressionResult:
    """Compress these entries of a file, the oldest first, until it has no more than `limit` lines."""
    others = {index: block.text for index, block in enumerate(document.blocks)}
    for source in sources:
        del others[source.index]
    fixed = sum(count_lines(text) for text in (document.preamble, *others.values()))
    oldest_first = sorted(sources, key=lambda source: (source.day, source.index))
    items, condensed = _condense(oldest_first, limit - fixed)
    if _lines(items) + fixed > limit:
        items = _compress_oldest(items, limit - fixed, detect_newline(document))
    kept, dropped_items = _drop_oldest(items, limit - fixed, may_be_empty=bool(others or document.preamble.strip()))
    texts = others | {min(item.origins): "" for item in kept}
    for item in sorted(kept, key=lambda item: (item.origins, item.text)):
        texts[min(item.origins)] += item.text
    remaining = {origin for item in kept for origin in item.origins}
    dropped = {origin for item in dropped_items for origin in item.origins} - remaining
    before = {source.index: source.block.text for source in sources}
    untouched = {item.origins[0] for item in kept if len(item.origins) == 1 and item.text == before[item.origins[0]]}
    changed = before.keys() - dropped - untouched
    merged = {index for index in changed if index not in condensed or _is_rewritten(index, kept, condensed)}
    data = (document.preamble + "".join(texts[index] for index in sorted(texts))).encode()
    return CompressionResult(data, tuple(sorted(changed - merged)), tuple(sorted(merged)), tuple(sorted(dropped)))


def compress_topics(document: Document, sources: Sequence[CompressibleEntry]) -> bytes:
    """Return the file with all of these entries as blocks, one for each topic, at any size."""
    items = _merge_topics([_to_item(source, source.block) for source in sources], detect_newline(document), {})
    texts = {index: block.text for index, block in enumerate(document.blocks)}
    for source in sources:
        texts[source.index] = ""
    for item in sorted(items, key=lambda item: (item.origins, item.text)):
        texts[min(item.origins)] += item.text
    return (document.preamble + "".join(texts[index] for index in sorted(texts))).encode()


def _condense(oldest_first: Sequence[CompressibleEntry], room: int) -> tuple[list[_Item], dict[int, str]]:
    """Return an item for each entry, condensed from the oldest on while they take more than `room` lines."""
    lines = sum(count_lines(source.block.text) for source in oldest_first)
    items: list[_Item] = []
    condensed: dict[int, str] = {}
    for source in oldest_first:
        block = condense(source.block) if lines > room and not is_knowledge_block(source.block) else None
        if block is not None:
            lines -= count_lines(source.block.text) - count_lines(block.text)
            condensed[source.index] = block.text
        items.append(_to_item(source, block or source.block))
    return items, condensed


def _compress_oldest(items: list[_Item], room: int, newline: str) -> list[_Item]:
    """Merge the fewest of the oldest items into topics that are enough to fit; all if none are enough."""
    low, high = 1, len(items)
    known: _Composed = {}
    best = _merge_topics(items, newline, known)
    while low < high:
        middle = (low + high) // 2
        result = [*_merge_topics(items[:middle], newline, known), *items[middle:]]
        if _lines(result) <= room:
            best, high = result, middle
        else:
            low = middle + 1
    return best


def _drop_oldest(items: Sequence[_Item], room: int, *, may_be_empty: bool) -> tuple[list[_Item], list[_Item]]:
    ordered = sorted(items, key=lambda item: (item.day, min(item.origins), item.text))
    lines, dropped = _lines(ordered), 0
    # An emptied file looks like a lost one.
    while dropped < len(ordered) and lines > room and (may_be_empty or dropped + 1 < len(ordered)):
        lines -= count_lines(ordered[dropped].text)
        dropped += 1
    return ordered[dropped:], ordered[:dropped]


def _is_rewritten(index: int, kept: Sequence[_Item], condensed: dict[int, str]) -> bool:
    return not any(item.origins == (index,) and item.text == condensed[index] for item in kept)


def _lines(items: Sequence[_Item]) -> int:
    return sum(count_lines(item.text) for item in items)


def _merge_topics(items: list[_Item], newline: str, known: _Composed) -> list[_Item]:
    """Return the items with their learnings in one block per topic. Repeated until nothing merges."""
    while True:
        result = _merge_once(items, newline, known)
        if sorted(item.text for item in result) == sorted(item.text for item in items):
            return items
        items = result


def _merge_once(items: list[_Item], newline: str, known: _Composed) -> list[_Item]:
    pieces = [(item, material) for item in items for material in item.materials]
    groups = group_by_topic([material for _, material in pieces])
    composed: list[_Item] = []
    for group in groups:
        members = [pieces[index] for index in group]
        materials = tuple(material for _, material in members)
        origins = tuple(sorted({origin for item, _ in members for origin in item.origins}))
        if len(materials) == 1 and materials[0].is_compressed:
            composed.append(members[0][0])
            continue
        if materials not in known:
            known[materials] = _compose(materials)
        text, own = known[materials]
        day = max(material.day for material in materials)
        composed.append(_Item(origins, (text + "\n").replace("\n", newline), day, own))
    return _without_growth(items, composed)


def _compose(materials: tuple[BlockMaterial, ...]) -> tuple[str, tuple[BlockMaterial, ...]]:
    text = compose_block(materials)
    block = parse_block(text)
    if block.entry is None:
        raise AssertionError("a knowledge block reads back as an entry")
    return text, extract_materials(block, block.entry, max(material.day for material in materials))


def _without_growth(items: list[_Item], composed: list[_Item]) -> list[_Item]:
    """Return the blocks, but entries as they are where their blocks would be longer."""
    blocks_of: defaultdict[tuple[int, ...], list[_Item]] = defaultdict(list)
    users: defaultdict[int, set[tuple[int, ...]]] = defaultdict(set)
    for new in composed:
        blocks_of[new.origins].append(new)
        for origin in new.origins:
            users[origin].add(new.origins)
    kept: dict[tuple[int, ...], _Item] = {}
    for item in items:
        own = [kept[item.origins]] if item.origins in kept else blocks_of[item.origins]
        shared = any(users[origin] - {item.origins} for origin in item.origins)
        if own and not shared and sum(len(new.text) for new in own) > len(item.text.rstrip()) + 2:
            kept.pop(item.origins, None)
            kept[item.origins] = item
    return [*(new for new in composed if new.origins not in kept), *kept.values()]


def _to_item(source: CompressibleEntry, block: Block) -> _Item:
    entry = block.entry or source.entry
    return _Item((source.index,), block.text, source.day, extract_materials(block, entry, source.day))
