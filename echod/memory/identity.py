"""Identify entries and blocks: short ids of entries, keys of blocks, and the pairing of two versions of a file.

An id is computed from role, title, date and source, never from the position. Moving the entry, editing other entries,
and editing its body, layer, confidence or verified date do not change it. Entries that agree in all four are
distinguished by their bodies, and equal bodies by their order. Then a change to one of them can change the id of
another. `entry_matching` recognises them, so that references and pins follow.

Blocks of two versions are paired by their text, then by their key (title, date, source), then by their heading line,
and last where one is a truncated version of the other in the same gap, because a torn write has no complete metadata. A
new title makes a new block, because pairing it with an old entry would mix the words of two writers.
"""

from __future__ import annotations

import unicodedata
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet

from echod.lazy import lazy_imports, lazy_pattern
from echod.memory.model import AnyBlock, Document, Entry

with lazy_imports(__name__):
    import difflib
    import hashlib
    import json

ID_LENGTH = 12
"""Hex digits of an id. Among 10,000 entries of one project two collide by chance once in five million projects."""

# Invisible characters: soft hyphen, zero width, direction marks, variation selectors, tags, byte order mark.
_INVISIBLE = lazy_pattern(
    "[\u00ad\u034f\u061c\u180b-\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff\U000e0000-\U000e01ef]"
)
_MAX_COMPARED_WORDS = 400  # comparing two texts takes time quadratic in their words
_MAX_GAP_CANDIDATES = 32
"""How many blocks between two pairs are compared with one that has no partner. A torn write leaves one."""

_TRAILING_PUNCTUATION = " .,;:\u2026\u3002"
_IdentityKey = tuple[str, str, str]
_Blocks = Sequence[AnyBlock]


class UnknownEntryError(LookupError):
    """No entry has an id that begins with the prefix."""

    def __init__(self, prefix: str) -> None:
        super().__init__(f"No entry has an id that begins with {prefix!r}. List the entries to see their ids.")
        self.prefix = prefix


class AmbiguousEntryError(LookupError):
    """Several entries have an id that begins with the prefix."""

    def __init__(self, prefix: str, candidates: tuple[str, ...]) -> None:
        alternatives = f"{', '.join(candidates[:-1])} or {candidates[-1]}"
        super().__init__(f"{prefix!r} could be {alternatives}. Give more digits of the id.")
        self.prefix = prefix
        self.candidates = candidates


def normalize_title(title: str) -> str:
    """Return the title for comparison: one case, one width, no invisible characters, no marks of emphasis or code.

    White space is collapsed, and full stops, commas and colons at the end are dropped.
    """
    if not title.isascii():
        title = unicodedata.normalize("NFKC", _INVISIBLE.sub("", title))
    folded = title.replace("`", "").replace("*", "").casefold()
    return " ".join(folded.split()).rstrip(_TRAILING_PUNCTUATION)


def entry_ids(role: str, document: Document) -> tuple[str | None, ...]:
    """Return the ids of a document's entries, in the order of its blocks; None for an opaque block.

    Of exact repeats the first in the file has the plain id. The ids of the others also depend on a digest of their body
    and, where an earlier repeat has that body too, on a count.
    """
    ids: list[str | None] = []
    bodies: defaultdict[_IdentityKey, Counter[str]] = defaultdict(Counter)
    for block in document.blocks:
        if block.entry is None:
            ids.append(None)
            continue
        key = _identity_key(block.entry)
        body = block.body.replace("\r\n", "\n")
        salt: list[str | int] = []
        if bodies[key]:
            salt = [_sha256(body)]
            if bodies[key][body]:
                salt.append(bodies[key][body])
        bodies[key][body] += 1
        ids.append(_digest(role, *key, *salt))
    return tuple(ids)


def resolve_id(prefix: str, ids: Iterable[str]) -> str:
    """Return the one id that begins with `prefix` (in any case).

    No id, or an empty prefix, is an `UnknownEntryError`; several are an `AmbiguousEntryError`, which lists them.
    """
    normalized = prefix.strip().lower()
    candidates = sorted({entry_id for entry_id in ids if normalized and entry_id.startswith(normalized)})
    if normalized in candidates:
        return normalized
    if not candidates:
        raise UnknownEntryError(prefix)
    if len(candidates) > 1:
        raise AmbiguousEntryError(prefix, tuple(candidates))
    return candidates[0]


def _identity_key(entry: Entry) -> _IdentityKey:
    day = entry.heading_date.isoformat() if entry.heading_date else ""
    return normalize_title(entry.title), day, " ".join((entry.source or "").split())


def _digest(*parts: str | int) -> str:
    # JSON separates the parts, so that a title is never confused with a title and a date.
    return _sha256(json.dumps(parts))[:ID_LENGTH]


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


BlockKey = tuple[str, ...]
BlockTexts = dict[BlockKey, str]
"""A version as lineage sees it: the key of each block and its text."""


def block_content(block: AnyBlock) -> str:
    """Return a block's text for comparison, without the blank lines that separate it from the next block."""
    return block.text.replace("\r\n", "\n").rstrip()


def block_contents(document: Document) -> list[str]:
    """Return the contents of a document's blocks in order."""
    return [block_content(block) for block in document.blocks]


def block_key(block: AnyBlock) -> BlockKey:
    """Return the key of a block independent of its text: title, date and source of an entry, else the heading."""
    return ("entry", *_identity_key(block.entry)) if block.entry else ("opaque", block_heading(block))


def numbered_keys(document: Document) -> tuple[BlockKey, ...]:
    """Return the blocks' keys in order. The second and later of equal keys are numbered."""
    counts: defaultdict[BlockKey, int] = defaultdict(int)
    keys = []
    for block in document.blocks:
        base_key = block_key(block)
        counts[base_key] += 1
        keys.append(base_key if counts[base_key] == 1 else (*base_key, str(counts[base_key])))
    return tuple(keys)


def block_texts(document: Document) -> BlockTexts:
    """Return the blocks of a document in the form that lineage compares."""
    return dict(zip(numbered_keys(document), map(block_content, document.blocks), strict=True))


def block_heading(block: AnyBlock) -> str:
    """Return a block's first line."""
    return block.text.lstrip().partition("\n")[0].strip()


def is_truncated(part: AnyBlock, whole: AnyBlock) -> bool:
    """Return whether `part` is a proper start of `whole`, as an interrupted write produces it."""
    text, longer = block_content(part), block_content(whole)
    return len(text) < len(longer) and longer.startswith(text)


def align(base: _Blocks, side: _Blocks) -> dict[int, int]:
    """Map positions in `base` to positions in `side`, each at most once. Blocks without a partner are absent."""
    pairs: dict[int, int] = {}
    for key_of in (block_content, block_key, block_heading):
        _pair(base, side, key_of, pairs)
    _pair_in_gaps(base, side, pairs)
    return pairs


def align_additions(one: _Blocks, other: _Blocks) -> dict[int, int]:
    """Pair blocks added on both sides: equal texts, a last block that was cut off, or versions of one block.

    Entries with the same title, date and source are versions of one entry. Of other blocks an equal heading is not
    enough evidence: they must also have more than half of their words in common, in the same order.
    """
    pairs: dict[int, int] = {}
    _pair(one, other, block_content, pairs)
    _pair_truncated_end(one, other, pairs)
    _pair_truncated_end(other, one, back := {j: i for i, j in pairs.items()})
    pairs = {i: j for j, i in back.items()}
    _pair(one, other, lambda block: block_key(block) if block.entry else id(block), pairs)  # opaque ones are unique
    _pair_sections(one, other, pairs)
    return pairs


def _pair_sections(one: _Blocks, other: _Blocks, pairs: dict[int, int]) -> None:
    """Pair opaque blocks whose heading is unique on both sides, if one is an edited version of the other."""
    partners = _unique_sections(other, set(pairs.values()))
    for heading, position in _unique_sections(one, set(pairs)).items():
        partner = partners.get(heading)
        if partner is not None and _is_edited(one[position], other[partner]):
            pairs[position] = partner


def _unique_sections(blocks: _Blocks, paired: AbstractSet[int]) -> dict[str, int]:
    """Return heading -> position of the opaque blocks without a partner that share their heading with no other."""
    sections = [(block_heading(b), i) for i, b in enumerate(blocks) if i not in paired and b.entry is None]
    counts = Counter(heading for heading, _ in sections)
    return {heading: position for heading, position in sections if counts[heading] == 1}


def _is_edited(one: AnyBlock, other: AnyBlock) -> bool:
    """Return whether more than half of the shorter text is in the longer one."""
    words, others = (block_content(block).partition("\n")[2].split()[:_MAX_COMPARED_WORDS] for block in (one, other))
    if not words or not others:
        return True  # a heading that got its text later

    matcher = difflib.SequenceMatcher(None, words, others, autojunk=False)
    common = sum(match.size for match in matcher.get_matching_blocks())
    return 2 * common > min(len(words), len(others))


def _pair_truncated_end(one: _Blocks, other: _Blocks, pairs: dict[int, int]) -> None:
    last = len(one) - 1
    if last < 0 or last in pairs:
        return
    used, part = set(pairs.values()), block_content(one[last])
    for position, block in enumerate(other):
        if position not in used and len(block.text) > len(part):
            whole = block_content(block)
            if len(part) < len(whole) and whole.startswith(part):
                pairs[last] = position
                return


def _pair(base: _Blocks, side: _Blocks, key_of: Callable[[AnyBlock], Hashable], pairs: dict[int, int]) -> None:
    """Pair blocks with equal keys, the first with the first."""
    used = set(pairs.values())
    candidates: defaultdict[Hashable, list[int]] = defaultdict(list)
    for position in reversed(range(len(side))):
        if position not in used:
            candidates[key_of(side[position])].append(position)
    for position, block in enumerate(base):
        if position not in pairs and (partners := candidates.get(key_of(block))):
            pairs[position] = partners.pop()


def _pair_in_gaps(base: _Blocks, side: _Blocks, pairs: dict[int, int]) -> None:
    used = set(pairs.values())
    unpaired = [position for position in range(len(side)) if position not in used]
    if not unpaired:
        return
    contents = {position: block_content(side[position]) for position in unpaired}
    ends = _gap_ends(len(base), len(side), pairs)
    low = -1
    for position, block in enumerate(base):
        if position in pairs:
            low = pairs[position]
            continue
        begin, end = bisect_right(unpaired, low), bisect_left(unpaired, ends[position])
        text = block_content(block) if begin < end else ""
        for index in range(begin, min(end, begin + _MAX_GAP_CANDIDATES)):
            other = contents[unpaired[index]]
            if len(text) != len(other) and (other.startswith(text) or text.startswith(other)):
                low = pairs[position] = unpaired.pop(index)
                break


def _gap_ends(base_length: int, side_length: int, pairs: Mapping[int, int]) -> list[int]:
    """Return for each position in `base` the partner of the next one that has a partner."""
    ends, end = [side_length] * base_length, side_length
    for position in range(base_length - 1, -1, -1):
        ends[position] = end
        end = pairs.get(position, end)
    return ends
