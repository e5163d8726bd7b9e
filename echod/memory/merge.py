"""Merge another version's changes into the visible file without losing either side's work.

A merge has three versions: the *base* from which both descend, the *visible* file, and the *other* version whose
changes are merged in. Both sides' additions stay, and an edit beats a deletion. Of two edits of one field, and of two
versions of an entry that both sides added, the visible one wins unless it is known to be the older. The losing text is
returned as `overridden`, to be archived verbatim. A block that is the start of the other is a truncated version of it.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from typing import NamedTuple

from echod.lazy import lazy_imports
from echod.memory.document import parse
from echod.memory.identity import (
    BlockKey,
    align,
    align_additions,
    block_content,
    block_contents,
    is_truncated,
    numbered_keys,
)
from echod.memory.model import Block, Document, Unreadable

with lazy_imports(__name__):
    from echod.memory import lineage

_Edit = tuple[int, int, list[str]]
_NO_BLOCK = Block("", None)


class MergeResult(NamedTuple):
    """The visible file with the other version's changes."""

    data: bytes
    added: tuple[Block, ...]  # blocks that came from the other version
    overridden: tuple[str, ...]  # texts of either version that lost


class MergeFailure(NamedTuple):
    """The versions cannot be combined so that every block remains a block; `reason` is a sentence for the user."""

    reason: str


def merge(
    base: Document, visible: Document, other: Document, *, older_texts: Container[str] = frozenset()
) -> MergeResult | MergeFailure:
    """Merge the changes from `base` to `other` into `visible`.

    Without changes the result is the visible bytes. The order of the visible file is kept. An added block is inserted
    behind the block that it follows in the other version. `older_texts` are the contents (`block_content`) of blocks
    before `other` was written. Where two versions of a block conflict, an older text loses to a new one.
    """
    return _ThreeWayMerge(base, visible, other, older_texts).result()


def restrict_removals(base: Document, other: Document, removable: Container[str]) -> Document:
    """Return `base` without the blocks that `other` lacks, except those whose `block_content` is in `removable`.

    With it as base, a merge repeats only trusted removals.
    """
    in_other = align(base.blocks, other.blocks)
    kept = (block for i, block in enumerate(base.blocks) if i in in_other or block_content(block) in removable)
    return base.with_blocks(kept)


def without_blocks(document: Document, keys: Container[BlockKey]) -> Document:
    """Return `document` without the blocks that have one of these (numbered) keys."""
    keyed = zip(numbered_keys(document), document.blocks, strict=True)
    return document.with_blocks(block for key, block in keyed if key not in keys)


def merge_lines(base: str, visible: str, other: str) -> str | None:
    """Return both edits of one block, if they change different lines or agree; None if they contradict each other."""
    # Each last line gets a line break, since the other side may have added a line behind it.
    newline = "\r\n" if "\r\n" in visible else "\n"
    lines, visible_lines, other_lines = (
        (text.rstrip() + newline).splitlines(keepends=True) for text in (base, visible, other)
    )
    visible_edits = _edits(lines, visible_lines)
    other_edits = [edit for edit in _edits(lines, other_lines) if edit not in visible_edits]
    if any(_overlap(a, b) for a in visible_edits for b in other_edits):
        return None
    merged = list(lines)
    for start, end, new in sorted([*visible_edits, *other_edits], reverse=True):
        merged[start:end] = new
    tail = visible[len(visible.rstrip()) :]
    return "".join(merged).rstrip() + tail


class _Piece(NamedTuple):
    """A block of the result, and its position in the visible file (None: added)."""

    block: Block
    visible_index: int | None


class _ThreeWayMerge:
    """One merge in progress."""

    def __init__(self, base: Document, visible: Document, other: Document, older_texts: Container[str]) -> None:
        self._base, self._visible, self._other, self._older_texts = base, visible, other, older_texts
        self._in_visible = align(base.blocks, visible.blocks)
        self._in_other = align(base.blocks, other.blocks)
        self._added: list[Block] = []
        self._overridden: list[str] = []
        self._piece_by_other: dict[int, _Piece] = {}  # position in other -> piece of the result

    def result(self) -> MergeResult | MergeFailure:
        pieces = self._with_additions(self._merge_visible())
        data = (self._preamble() + _join_pieces(pieces, self._visible)).encode()
        problem = _round_trip_problem(data, pieces)
        return MergeFailure(problem) if problem else MergeResult(data, tuple(self._added), tuple(self._overridden))

    def _preamble(self) -> str:
        base, visible, other = (d.preamble for d in (self._base, self._visible, self._other))
        if other.rstrip() in (base.rstrip(), visible.rstrip()):
            return visible
        if visible.rstrip() == base.rstrip():
            return _end_with_blank_line(other, self._visible) if self._visible.blocks else other
        if other.strip():
            self._overridden.append(other)
        return visible

    def _merge_visible(self) -> list[_Piece]:
        base_of = {j: i for i, j in self._in_visible.items()}
        partner = self._pair_with_other(base_of)
        pieces = []
        for position, block in enumerate(self._visible.blocks):
            base_at = base_of.get(position)
            before = None if base_at is None else self._base.blocks[base_at]
            other_at = partner.get(position)
            after = None if other_at is None else self._other.blocks[other_at]
            if (chosen := self._choose_version(before, block, after)) is None:
                continue
            pieces.append(_Piece(chosen, position))
            if other_at is not None:
                self._piece_by_other[other_at] = pieces[-1]
        return pieces

    def _pair_with_other(self, base_of: dict[int, int]) -> dict[int, int]:
        """Return position in visible -> position in other, paired through the base or as the same addition."""
        partner = {j: self._in_other[i] for j, i in base_of.items() if i in self._in_other}
        visible_only = [j for j in range(len(self._visible.blocks)) if j not in base_of]
        used = set(self._in_other.values())
        other_only = [k for k in range(len(self._other.blocks)) if k not in used]
        visible, other = self._visible.blocks, self._other.blocks
        both = align_additions([visible[j] for j in visible_only], [other[k] for k in other_only])
        return partner | {visible_only[a]: other_only[b] for a, b in both.items()}

    def _choose_version(self, base: Block | None, visible: Block, other: Block | None) -> Block | None:
        if other is None:
            # Removed in the other version (or never in it). An edit here beats that, but a truncation is not an edit.
            untouched = base is not None and (_has_same_content(visible, base) or is_truncated(visible, base))
            return None if untouched else visible
        if _has_same_content(visible, other) or (base is not None and _has_same_content(other, base)):
            return visible
        if (base is not None and _has_same_content(visible, base)) or is_truncated(visible, other):
            self._added.append(other)
            return other
        if is_truncated(other, visible):
            return visible
        text = None if base is None else merge_lines(base.text, visible.text, other.text)
        if text is None:
            return self._prefer_newer(visible, other)
        both = Block(text, visible.entry)
        self._added.append(both)
        return both

    def _prefer_newer(self, visible: Block, other: Block) -> Block:
        if block_content(visible) in self._older_texts and block_content(other) not in self._older_texts:
            self._overridden.append(visible.text)
            self._added.append(other)
            return other
        self._overridden.append(other.text)
        return visible

    def _with_additions(self, pieces: list[_Piece]) -> list[_Piece]:
        """Return the pieces with those that only the other version has, each behind the one that it follows there."""
        base_of = {k: i for i, k in self._in_other.items()}
        present = {block_content(piece.block) for piece in pieces}
        first, last = _Piece(_NO_BLOCK, None), _Piece(_NO_BLOCK, None)  # before and behind all others
        followers: dict[int, _Piece] = {}
        for position, block in enumerate(self._other.blocks):
            if position in self._piece_by_other:
                continue
            base_at = base_of.get(position)
            if base_at is not None:
                before = self._base.blocks[base_at]
                if base_at in self._in_visible or _has_same_content(block, before) or is_truncated(block, before):
                    continue
            if block_content(block) in present:
                continue
            piece = _Piece(block, None)
            followers[id(self._previous_piece(position, first, last))] = piece  # each has one at most
            self._piece_by_other[position] = piece
            self._added.append(block)
            present.add(block_content(block))

        chains = (piece for start in (first, *pieces, last) for piece in _chain(start, followers))
        return [piece for piece in chains if piece is not first and piece is not last]

    def _previous_piece(self, position: int, first: _Piece, last: _Piece) -> _Piece:
        for before in range(position - 1, -1, -1):
            if (piece := self._piece_by_other.get(before)) is not None:
                return piece
        is_first = position == 0 and any(k in self._piece_by_other for k in range(1, len(self._other.blocks)))
        return first if is_first else last


def _chain(start: _Piece, followers: Mapping[int, _Piece]) -> Iterator[_Piece]:
    piece: _Piece | None = start
    while piece is not None:
        yield piece
        piece = followers.get(id(piece))


def _has_same_content(one: Block, other: Block) -> bool:
    return block_content(one) == block_content(other)


def _edits(before: list[str], after: list[str]) -> list[_Edit]:
    closed = [line.rstrip("\r\n") for line in before], [line.rstrip("\r\n") for line in after]
    return [
        (change.start, change.end, after[change.new_start : change.new_end]) for change in lineage.diff_lines(*closed)
    ]


def _overlap(one: _Edit, other: _Edit) -> bool:
    (a, b, new), (c, d, _) = one, other
    if a == b or c == d or len(new) != b - a:
        return a <= d and c <= b
    return max(a, c) < min(b, d)


def _end_with_blank_line(text: str, like: Document) -> str:
    """Return `text` ending in a blank line, so that a heading may follow."""
    if not text:
        return text
    start = like.preamble + "".join(block.text for block in like.blocks[:8])
    newline = "\r\n" if "\r\n" in start else "\n"
    ended = text if text.endswith("\n") else text + newline
    return ended if ended.endswith(("\n\n", "\n\r\n")) else ended + newline


def _join_pieces(pieces: list[_Piece], visible: Document) -> str:
    """Return the blocks' texts, with a blank line between two that were not adjacent before."""
    parts: list[str] = []
    for piece, following in zip(pieces, [*pieces, None][1:], strict=True):
        text = piece.block.text
        if following is not None and not _were_adjacent(piece, following, visible):
            text = _end_with_blank_line(text, visible)
        parts.append(text)
    return "".join(parts)


def _were_adjacent(piece: _Piece, following: _Piece, visible: Document) -> bool:
    if piece.visible_index is None or following.visible_index != piece.visible_index + 1:
        return False
    return piece.block is visible.blocks[piece.visible_index]


def _round_trip_problem(data: bytes, pieces: list[_Piece]) -> str | None:
    """Return why the result would not read as the blocks it was made of; None if it does."""
    reparsed = parse(data)
    if isinstance(reparsed, Unreadable):
        return reparsed.reason
    if block_contents(reparsed) != [block_content(piece.block) for piece in pieces]:
        return "The merged file would not read as the same entries."
    return None
