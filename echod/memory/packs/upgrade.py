"""Replace an installed pack by its new version and keep the user's edits.

The three versions are the pack as it was installed (the base), the file as it is, and the new pack. An entry of a new
version has another date and source, so entries are first matched by their titles. The rest is an ordinary merge.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from echod.memory.document import parse, parse_block
from echod.memory.identity import align, block_content, normalize_title
from echod.memory.merge import MergeFailure, merge
from echod.memory.model import Block, Document, Field
from echod.memory.packs.elevation import is_from_pack


class UpgradeResult(NamedTuple):
    """The file with the new version."""

    data: bytes
    edited: tuple[str, ...]  # titles of entries that the user added or changed and that keep that state
    deleted: tuple[str, ...]  # titles of entries that the user removed and that stay removed
    # Titles of entries of the new version that gave way to the user's edit of the same lines.
    overridden: tuple[str, ...]


def upgrade_pack(base: Document | None, current: Document, new: Document, stack: str) -> UpgradeResult | MergeFailure:
    """Put `new` in the place of `base`, the pack as it was installed, in `current`.

    If the base is unknown (None), every entry that names the pack as its source counts as unchanged, and everything
    else as the user's own.
    """
    if base is None:
        pack_blocks = tuple(block for block in current.blocks if is_from_pack(block.entry, stack))
        base = Document(current.preamble, pack_blocks)
    successors = _pack_blocks_by_title(new, stack)
    pairs = align(base.blocks, current.blocks)
    replaced = {title: block for title, block in _pack_blocks_by_title(base, stack).items() if title in successors}
    aligned_base = _with_new_headings(base, {i: i for i in range(len(base.blocks))}, base.blocks, replaced, successors)
    aligned_current = _with_new_headings(current, {j: i for i, j in pairs.items()}, base.blocks, replaced, successors)
    merged = merge(aligned_base, aligned_current, new)
    if isinstance(merged, MergeFailure):
        return merged
    base_contents = {block_content(block) for block in aligned_base.blocks}
    edited = [block for block in aligned_current.blocks if block_content(block) not in base_contents]
    deleted = [block for i, block in enumerate(aligned_base.blocks) if i not in pairs]
    upgraded = parse(merged.data)
    present_titles = set(map(_block_title, upgraded.blocks)) if isinstance(upgraded, Document) else set()
    return UpgradeResult(
        data=merged.data,
        edited=tuple(map(_block_title, edited)),
        deleted=tuple(title for title in map(_block_title, deleted) if title not in present_titles),
        overridden=tuple(_block_title(parse_block(text)) for text in merged.overridden),
    )


def _pack_blocks_by_title(document: Document, stack: str) -> Mapping[str, Block]:
    """Return the pack's entries by title, leaving out titles that several entries share."""
    named = [(normalize_title(b.entry.title), b) for b in document.blocks if b.entry and is_from_pack(b.entry, stack)]
    counts = Counter(title for title, _ in named)
    return {title: block for title, block in named if counts[title] == 1}


def _with_new_headings(
    document: Document,
    base_positions: Mapping[int, int],
    base: Sequence[Block],
    replaced: Mapping[str, Block],
    successors: Mapping[str, Block],
) -> Document:
    """Return the document with the new version's heading and source where they were those of the installed one."""
    blocks = list(document.blocks)
    for position, origin in base_positions.items():
        old = base[origin]
        title = normalize_title(old.entry.title) if old.entry else ""
        if replaced.get(title) is old:
            blocks[position] = _with_new_heading(blocks[position], old, successors[title])
    return replace(document, blocks=tuple(blocks))


def _with_new_heading(block: Block, old: Block, new: Block) -> Block:
    text = block.text
    old_source, source = _source_field(old), _source_field(block)
    new_source = _source_field(new)
    if old_source and source and new_source and source.value == old_source.value:
        text = text[: source.span.start] + new_source.value + text[source.span.end :]
    heading, newline, rest = text.partition("\n")
    if heading.rstrip() == old.text.partition("\n")[0].rstrip():
        ending = "\r" if heading.endswith("\r") else ""
        text = new.text.partition("\n")[0].rstrip() + ending + newline + rest
    return parse_block(text)


def _source_field(block: Block) -> Field | None:
    entry = block.entry
    return next((field for field in entry.fields if field.name == "source"), None) if entry else None


def _block_title(block: Block) -> str:
    return block.entry.title if block.entry else block.text.strip().partition("\n")[0].lstrip("# ")
