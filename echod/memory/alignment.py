"""Pair the blocks of one version of a file with those of another.

Blocks are paired by their text, then by their key (title, date, source), then by their heading line, and last where one
is a truncated version of the other in the same gap, because a torn write has no complete metadata. A new title makes a
new block, because pairing it with an old entry would mix the words of two writers.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Sequence

from echod.memory.identity import normalize_title
from echod.memory.model import Block, Document

BlockKey = tuple[str, ...]


def block_content(block: Block) -> str:
    """Return a block's text for comparison, without the blank lines that separate it from the next block."""
    return block.text.replace("\r\n", "\n").rstrip()


def block_contents(document: Document) -> list[str]:
    """Return the contents of a document's blocks in order."""
    return [block_content(block) for block in document.blocks]


def block_key(block: Block) -> BlockKey:
    """Return the key of a block independent of its text: title, date and source of an entry, else the heading."""
    entry = block.entry
    if entry is None:
        return ("opaque", block_heading(block))
    day = entry.heading_date.isoformat() if entry.heading_date else ""
    return ("entry", normalize_title(entry.title), day, " ".join((entry.source or "").split()))


def numbered_keys(document: Document) -> tuple[BlockKey, ...]:
    """Return the blocks' keys in order. The second and later of equal keys are numbered."""
    counts: defaultdict[BlockKey, int] = defaultdict(int)
    keys = []
    for block in document.blocks:
        base_key = block_key(block)
        counts[base_key] += 1
        keys.append(base_key if counts[base_key] == 1 else (*base_key, str(counts[base_key])))
    return tuple(keys)


def block_heading(block: Block) -> str:
    """Return a block's first line."""
    return block.text.lstrip().partition("\n")[0].strip()


def is_truncated(part: Block, whole: Block) -> bool:
    """Return whether `part` is a proper start of `whole`, as an interrupted write produces it."""
    text, longer = block_content(part), block_content(whole)
    return len(text) < len(longer) and longer.startswith(text)


def align(base: Sequence[Block], side: Sequence[Block]) -> dict[int, int]:
    """Map positions in `base` to positions in `side`, each at most once. Blocks without a partner are absent."""
    pairs: dict[int, int] = {}
    for key_of in (block_content, block_key, block_heading):
        _pair(base, side, key_of, pairs)
    _pair_in_gaps(base, side, pairs)
    return pairs


def align_additions(one: Sequence[Block], other: Sequence[Block]) -> dict[int, int]:
    """Pair blocks added on both sides: equal texts, a last block that was cut off, or versions of one entry.

    Entries with the same title, date and source are versions of one entry. Other blocks must have equal texts, because
    an equal heading is not enough evidence.
    """
    pairs: dict[int, int] = {}
    _pair(one, other, block_content, pairs)
    _pair_truncated_end(one, other, pairs)
    _pair_truncated_end(other, one, back := {j: i for i, j in pairs.items()})
    pairs = {i: j for j, i in back.items()}
    _pair(one, other, _entry_key, pairs)
    return pairs


def _entry_key(block: Block) -> Hashable:
    """Return the key of an entry. For an opaque block return a value that is equal to no other."""
    return block_key(block) if block.entry else id(block)


def _pair_truncated_end(one: Sequence[Block], other: Sequence[Block], pairs: dict[int, int]) -> None:
    last = len(one) - 1
    if last < 0 or last in pairs:
        return
    used = set(pairs.values())
    whole = (j for j, block in enumerate(other) if j not in used and is_truncated(one[last], block))
    pairs.update((last, j) for j in list(whole)[:1])


def _pair(
    base: Sequence[Block], side: Sequence[Block], key_of: Callable[[Block], Hashable], pairs: dict[int, int]
) -> None:
    """Pair blocks with equal keys, the first with the first."""
    used = set(pairs.values())
    candidates: defaultdict[Hashable, list[int]] = defaultdict(list)
    for position in reversed(range(len(side))):
        if position not in used:
            candidates[key_of(side[position])].append(position)
    for position, block in enumerate(base):
        if position not in pairs and candidates.get(key_of(block)):
            pairs[position] = candidates[key_of(block)].pop()


def _pair_in_gaps(base: Sequence[Block], side: Sequence[Block], pairs: dict[int, int]) -> None:
    used = set(pairs.values())
    unpaired = [position for position in range(len(side)) if position not in used]
    if not unpaired:
        return
    for position, block in enumerate(base):
        if position in pairs:
            continue
        low, high = _gap(position, len(base), len(side), pairs)
        for candidate in unpaired:
            if low < candidate < high and _is_either_truncated(block, side[candidate]):
                pairs[position] = candidate
                unpaired.remove(candidate)
                break


def _gap(position: int, base_length: int, side_length: int, pairs: dict[int, int]) -> tuple[int, int]:
    before = next((pairs[p] for p in range(position - 1, -1, -1) if p in pairs), -1)
    after = next((pairs[p] for p in range(position + 1, base_length) if p in pairs), side_length)
    return before, after


def _is_either_truncated(one: Block, other: Block) -> bool:
    return is_truncated(one, other) or is_truncated(other, one)
