"""Compress a whole knowledge file to one block per topic, dropping the oldest blocks if it is still too long.

Blocks merge only while they fit into five lines, so compressing a compressed file changes nothing. Only the entries
that are passed in are changed. Every other block keeps its bytes and its position.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from typing import NamedTuple

from echod.memory.compose import detect_newline
from echod.memory.document import count_lines, parse_block
from echod.memory.knowledge.blocks import BlockMaterial, compose_block, extract_material, group_by_topic
from echod.memory.model import Block, Document, Entry


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
    merged: tuple[int, ...]  # indexes of the entries whose text was replaced by a block
    dropped: tuple[int, ...]  # indexes of the entries whose text was removed without a replacement


class _Item(NamedTuple):
    """A block of the result: the indexes it comes from, its text, its parts for a larger block."""

    origins: tuple[int, ...]
    text: str
    material: BlockMaterial


def compress_knowledge(document: Document, sources: Sequence[CompressibleEntry], limit: int) -> CompressionResult:
    """Compress these entries of a file, then drop the oldest until it has no more than `limit` lines."""
    newline = detect_newline(document)
    items = _merge_topics([_to_item((s.index,), s.block, s.entry, s.day) for s in sources], newline)
    texts = {index: block.text for index, block in enumerate(document.blocks)}
    before = dict(texts)
    for item in items:
        first, *others = item.origins
        texts[first] = item.text
        for other in others:
            del texts[other]
    lines = sum(count_lines(text) for text in (document.preamble, *texts.values()))
    dropped: list[int] = []
    for item in sorted(items, key=lambda item: (item.material.day, min(item.origins))):
        if lines <= limit or (len(texts) == 1 and not document.preamble.strip()):
            break  # an emptied file looks like a lost one
        lines -= count_lines(texts.pop(min(item.origins)))
        dropped += item.origins
    dropped_indexes = set(dropped)
    merged = [
        origin
        for item in items
        for origin in item.origins
        if origin not in dropped_indexes and before[origin] != texts.get(origin)
    ]
    data = (document.preamble + "".join(texts[index] for index in sorted(texts))).encode()
    return CompressionResult(data, tuple(sorted(merged)), tuple(sorted(dropped)))


def _merge_topics(items: list[_Item], newline: str) -> list[_Item]:
    """Return one item per topic. Repeated until nothing merges; each round has fewer items."""
    while True:
        result = []
        for group in group_by_topic([item.material for item in items]):
            result += _merge_group([items[index] for index in group], newline)
        if [item.text for item in result] == [item.text for item in items]:
            return result
        items = result


def _merge_group(group: list[_Item], newline: str) -> list[_Item]:
    """Return the items of one topic as one block, if that is shorter."""
    if len(group) == 1 and group[0].material.is_compressed:
        return group
    text = compose_block([item.material for item in group])
    if len(text) > sum(len(item.text.rstrip()) + 1 for item in group):
        return sorted(group, key=lambda item: min(item.origins))
    block = parse_block(text)
    origins = tuple(sorted(origin for item in group for origin in item.origins))
    day = max(item.material.day for item in group)
    if block.entry is None:
        raise AssertionError("a knowledge block reads back as an entry")
    return [_Item(origins, (text + "\n").replace("\n", newline), extract_material(block, block.entry, day))]


def _to_item(origins: tuple[int, ...], block: Block, entry: Entry, day: date) -> _Item:
    return _Item(origins, block.text, extract_material(block, entry, day))
