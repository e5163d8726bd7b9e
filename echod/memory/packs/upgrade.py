"""A new version of a pack in the place of an installed one, a person's edits kept.

The three versions are the pack as it was installed (the base), the file as it stands, and the new pack. An entry of a
new version has another date and source, so entries are first recognised by their titles; then it is an ordinary merge.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from echod.memory.alignment import align, content
from echod.memory.document import parse, parse_block
from echod.memory.identity import normalise_title
from echod.memory.merge import Unmergeable, merge
from echod.memory.model import Block, Document, Field
from echod.memory.packs.elevation import belongs_to


class Renewed(NamedTuple):
    """The file with the new version.

    Attributes:
        data: its bytes.
        kept: titles of what a person had added or changed, and that is still so.
        removed: titles of entries that a person had taken out, and that are still out.
        gave_way: titles of entries of the new version that gave way to a person's edit of the same lines.
    """

    data: bytes
    kept: tuple[str, ...]
    removed: tuple[str, ...]
    gave_way: tuple[str, ...]


def renewed(base: Document | None, visible: Document, new: Document, stack: str) -> Renewed | Unmergeable:
    """Put `new` in the place of `base` in `visible`.

    Args:
        base: the pack as it was installed. None: it is not known; then every entry that names the pack as its source
            counts as untouched, and everything else as a person's own.
        visible: the file as it stands.
        new: the pack's new version.
        stack: the pack's name.
    """
    if base is None:
        ours = tuple(block for block in visible.blocks if belongs_to(block.entry, stack))
        base = Document(visible.preamble, ours)
    successors = _by_title(new, stack)
    pairs = align(base.blocks, visible.blocks)
    olds = {title: block for title, block in _by_title(base, stack).items() if title in successors}
    moved_base = _moved(base, {i: i for i in range(len(base.blocks))}, base.blocks, olds, successors)
    moved_visible = _moved(visible, {j: i for i, j in pairs.items()}, base.blocks, olds, successors)
    merged = merge(moved_base, moved_visible, new)
    if isinstance(merged, Unmergeable):
        return merged
    own = {content(block) for block in moved_base.blocks}
    edited = [block for block in moved_visible.blocks if content(block) not in own]
    missing = [block for i, block in enumerate(moved_base.blocks) if i not in pairs]
    after = parse(merged.data)
    standing = set(map(_title, after.blocks)) if isinstance(after, Document) else set()
    return Renewed(
        data=merged.data,
        kept=tuple(map(_title, edited)),
        removed=tuple(title for title in map(_title, missing) if title not in standing),
        gave_way=tuple(_title(parse_block(text)) for text in merged.lost),
    )


def _by_title(document: Document, stack: str) -> Mapping[str, Block]:
    """The pack's entries by title, those alone whose title is their own."""
    named = [(normalise_title(b.entry.title), b) for b in document.blocks if b.entry and belongs_to(b.entry, stack)]
    counted = Counter(title for title, _ in named)
    return {title: block for title, block in named if counted[title] == 1}


def _moved(
    document: Document,
    base_of: Mapping[int, int],
    base: Sequence[Block],
    olds: Mapping[str, Block],
    successors: Mapping[str, Block],
) -> Document:
    """The document with the heading and source of the new version where they were still those of the installed one."""
    blocks = list(document.blocks)
    for position, origin in base_of.items():
        old = base[origin]
        title = normalise_title(old.entry.title) if old.entry else ""
        if olds.get(title) is old:
            blocks[position] = _renamed(blocks[position], old, successors[title])
    return replace(document, blocks=tuple(blocks))


def _renamed(block: Block, old: Block, new: Block) -> Block:
    text = block.text
    was, source = _source(old), _source(block)
    becomes = _source(new)
    if was and source and becomes and source.value == was.value:
        text = text[: source.span.start] + becomes.value + text[source.span.end :]
    heading, newline, rest = text.partition("\n")
    if heading.rstrip() == old.text.partition("\n")[0].rstrip():
        ending = "\r" if heading.endswith("\r") else ""
        text = new.text.partition("\n")[0].rstrip() + ending + newline + rest
    return parse_block(text)


def _source(block: Block) -> Field | None:
    entry = block.entry
    return next((field for field in entry.fields if field.name == "source"), None) if entry else None


def _title(block: Block) -> str:
    return block.entry.title if block.entry else block.text.strip().partition("\n")[0].lstrip("# ")
