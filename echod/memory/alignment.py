"""Which block of one version of a file is which block of another.

Blocks are paired by their text, then by what they are (title, date, source), then by their heading line, and last
by one of them being a half-written start of the other in the same gap: a torn write knows no metadata. A new title
makes a new block, because to take a new entry for an old one would mix what two people wrote.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Sequence

from echod.memory.identity import normalise_title
from echod.memory.model import Block, Document

Key = tuple[str, ...]


def content(block: Block) -> str:
    """A block's text as it is compared: without the blank lines that separate it from the next one."""
    return block.text.replace("\r\n", "\n").rstrip()


def key(block: Block) -> Key:
    """What a block is, whatever its text says: title, date and source of an entry, the heading of another block."""
    entry = block.entry
    if entry is None:
        return ("opaque", heading(block))
    day = entry.heading_date.isoformat() if entry.heading_date else ""
    return ("entry", normalise_title(entry.title), day, " ".join((entry.source or "").split()))


def numbered_keys(document: Document) -> tuple[Key, ...]:
    """The blocks' keys in order; of equal ones the second and later carry their number."""
    seen: defaultdict[Key, int] = defaultdict(int)
    keys = []
    for block in document.blocks:
        own = key(block)
        seen[own] += 1
        keys.append(own if seen[own] == 1 else (*own, str(seen[own])))
    return tuple(keys)


def heading(block: Block) -> str:
    """A block's first line."""
    return block.text.lstrip().partition("\n")[0].strip()


def half_written(part: Block, whole: Block) -> bool:
    """Whether `part` is a proper start of `whole`, as a write that was interrupted leaves it."""
    text, longer = content(part), content(whole)
    return len(text) < len(longer) and longer.startswith(text)


def align(base: Sequence[Block], side: Sequence[Block]) -> dict[int, int]:
    """Positions in `base` mapped to positions in `side`, each at most once. What has no partner is missing."""
    pairs: dict[int, int] = {}
    for same in (content, key, heading):
        _pair(base, side, same, pairs)
    _pair_in_gaps(base, side, pairs)
    return pairs


def align_additions(one: Sequence[Block], other: Sequence[Block]) -> dict[int, int]:
    """The same for blocks that were added on both sides: equal texts, a last block that was cut off, or one entry.

    What agrees in title, date and source is one entry in two versions. Other blocks are what they say, and a heading
    is not enough to take one for the other.
    """
    pairs: dict[int, int] = {}
    _pair(one, other, content, pairs)
    _pair_torn_end(one, other, pairs)
    _pair_torn_end(other, one, back := {j: i for i, j in pairs.items()})
    pairs = {i: j for j, i in back.items()}
    _pair(one, other, _key_of_entry, pairs)
    return pairs


def _key_of_entry(block: Block) -> Hashable:
    """The key of an entry; for another block what agrees with nothing."""
    return key(block) if block.entry else id(block)


def _pair_torn_end(one: Sequence[Block], other: Sequence[Block], pairs: dict[int, int]) -> None:
    last = len(one) - 1
    if last < 0 or last in pairs:
        return
    taken = set(pairs.values())
    whole = (j for j, block in enumerate(other) if j not in taken and half_written(one[last], block))
    pairs.update((last, j) for j in list(whole)[:1])


def _pair(
    base: Sequence[Block], side: Sequence[Block], same: Callable[[Block], Hashable], pairs: dict[int, int]
) -> None:
    """Pair what agrees, first with first."""
    taken = set(pairs.values())
    waiting: defaultdict[Hashable, list[int]] = defaultdict(list)
    for position in reversed(range(len(side))):
        if position not in taken:
            waiting[same(side[position])].append(position)
    for position, block in enumerate(base):
        if position not in pairs and waiting.get(same(block)):
            pairs[position] = waiting[same(block)].pop()


def _pair_in_gaps(base: Sequence[Block], side: Sequence[Block], pairs: dict[int, int]) -> None:
    taken = set(pairs.values())
    loose = [position for position in range(len(side)) if position not in taken]
    if not loose:
        return
    for position, block in enumerate(base):
        if position in pairs:
            continue
        low, high = _gap(position, len(base), len(side), pairs)
        for candidate in loose:
            if low < candidate < high and _one_torn(block, side[candidate]):
                pairs[position] = candidate
                loose.remove(candidate)
                break


def _gap(position: int, base_length: int, side_length: int, pairs: dict[int, int]) -> tuple[int, int]:
    before = next((pairs[p] for p in range(position - 1, -1, -1) if p in pairs), -1)
    after = next((pairs[p] for p in range(position + 1, base_length) if p in pairs), side_length)
    return before, after


def _one_torn(one: Block, other: Block) -> bool:
    return half_written(one, other) or half_written(other, one)
