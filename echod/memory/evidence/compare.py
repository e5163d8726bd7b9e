"""Find the state of cited lines in a present file.

1. The tokens of the lines are in the file: *valid* in the cited line, *moved* elsewhere. Short lines, and lines that
   the file has several times, count only together with what was before or after them.
2. Otherwise the lines around them are aligned with the file, as a diff does, and what is between them decides: some of
   the lines, edited ones, or others instead of them are *changed*. Lines that were moved there replace nothing.
3. Where nothing is between them, the lines may be among the new ones of the file: *moved* as they were, or *changed*.
4. Without that place, lines that are in the file once, or the part that has most of their words, are *changed*.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from difflib import SequenceMatcher
from enum import StrEnum
from typing import Final, NamedTuple

from echod.memory.evidence.fingerprint import (
    CHECKSUM_BYTES,
    CONTEXT_LINES,
    CONTEXT_TOKENS,
    SIGNS,
    TOKEN_BYTES,
    CodeLine,
    Fingerprint,
    TokenizedFile,
    Tokens,
    checksum,
    find_all,
)

_MIN_CONTEXT: Final = 3
"""Equal tokens beside the lines by which a place is recognised."""
_MIN_DISTINCT: Final = 6
"""Tokens that are found again without surroundings, if they were in the file once."""
_MIN_CONTEXT_LINES: Final = 4
"""Lines above and below by which the place of edited lines is recognised, if they are not near them."""
_MAX_GAP: Final = 2
_LARGE_GAP: Final = 8
_MIN_SAME_LINE, _MIN_COMMON, _MIN_CONTAINED = 0.5, 2, 0.75
_MIN_SAME_ELSEWHERE, _MIN_COMMON_ELSEWHERE, _MIN_EDITED_ELSEWHERE = 0.6, 3, 0.5
_MIN_MOVED_TOKENS: Final = 4
"""Tokens by which cited lines are recognised among the new ones of a file."""
_NEAR: Final = 8
"""New lines so near to the place of removed ones may be the edited ones, even without a rare word."""
_MAX_RARE: Final = 3
"""How often a rare word is in a file."""
_MIN_REPLACED: Final = 0.5
_MAX_COMPARED: Final = 40_000
_MAX_GROWTH, _MAX_ADDED = 4, 10
_MIN_WORDS, _MIN_KEPT, _MIN_KEPT_LINES = 3, 0.12, 0.25
_MIN_ALIKE: Final = 0.6
_MIN_ALIKE_BESIDE: Final = 0.35
_MIN_ALIKE_ELSEWHERE, _MIN_WORDS_ELSEWHERE = 0.75, 10


class EvidenceState(StrEnum):
    """The fate of a citation since its base.

    `valid`: the lines are as they were. `moved`: they are elsewhere in the file, or the file has another name.
    `changed`: they were edited. `gone`: they, or the file, were removed. `unknown`: it cannot be decided.
    """

    VALID = "valid"
    MOVED = "moved"
    CHANGED = "changed"
    GONE = "gone"
    UNKNOWN = "unknown"


class Located(NamedTuple):
    """The state of cited lines in a file, and the lines where they are now (0 without lines)."""

    state: EvidenceState
    first: int = 0
    last: int = 0


def locate(fingerprint: Fingerprint, content: TokenizedFile) -> Located:
    """Return what became of cited lines in a file. A whole file is valid."""
    if not fingerprint.first:
        return Located(EvidenceState.VALID)
    tokens = content.tokens
    found = _find_exact(fingerprint, tokens)
    if found is not None:
        first, last = _line_span(tokens, found, found + len(fingerprint.tokens) // TOKEN_BYTES)
        if _has_more_on_its_lines(fingerprint, tokens, found):
            return Located(EvidenceState.CHANGED, first, last)
        state = EvidenceState.VALID if first == fingerprint.first else EvidenceState.MOVED
        return Located(state, first, last)
    around = _align_around(fingerprint, content)
    place = _find_place(fingerprint, content, around)
    if place is not None and place.state is not EvidenceState.GONE:
        return place
    if place is not None:
        elsewhere = _find_moved(fingerprint, content, around) or _find_edited(content, around)
        if elsewhere is not None:
            return elsewhere
    if fingerprint.tokens in tokens.data:
        return Located(EvidenceState.GONE)  # only other copies of them are left
    return _find_lines(fingerprint, content) or _find_alike(fingerprint, tokens, place)


def contains(fingerprint: Fingerprint, content: TokenizedFile) -> bool:
    """Return whether a file has the cited lines unchanged, anywhere."""
    return not fingerprint.first or _find_exact(fingerprint, content.tokens) is not None


def _has_more_on_its_lines(fingerprint: Fingerprint, tokens: Tokens, begin: int) -> bool:
    """Return whether their first line has more before it, or the last one after it. Lines may have been joined."""
    end = begin + len(fingerprint.tokens) // TOKEN_BYTES
    if begin > 0 and tokens.line_of(begin - 1) == tokens.line_of(begin):
        here = tokens.data[(begin - 1) * TOKEN_BYTES : begin * TOKEN_BYTES]
        if here != fingerprint.before[-TOKEN_BYTES:]:
            return True
    if end >= tokens.size or tokens.line_of(end) != tokens.line_of(end - 1):
        return False
    return tokens.data[end * TOKEN_BYTES : (end + 1) * TOKEN_BYTES] != fingerprint.after[:TOKEN_BYTES]


def _find_exact(fingerprint: Fingerprint, tokens: Tokens) -> int | None:
    """Return the number of the token at which the cited lines begin; None if they are not in the file."""
    found = find_all(fingerprint.tokens, tokens.data)
    if not found:
        return None
    length = len(fingerprint.tokens) // TOKEN_BYTES
    cited, _ = tokens.lines(fingerprint.first, fingerprint.last)

    def context(at: int) -> tuple[int, int]:
        return _context(fingerprint, tokens, at, at + length)

    best = max(found, key=lambda at: (sum(context(at)), at == cited, -abs(at - cited)))
    is_distinct = fingerprint.copies == 1 and length >= _MIN_DISTINCT
    if best == cited or (is_distinct and len(found) == 1):
        return best
    if length >= _MIN_DISTINCT and len(found) >= fingerprint.copies > 1:
        return best  # no copy is missing
    # Where one of several copies is missing, one side is not enough: it may be the copy that was beside this one.
    sides = max if len(found) >= fingerprint.copies else min
    return best if sides(context(best)) >= _MIN_CONTEXT else None


def _context(fingerprint: Fingerprint, tokens: Tokens, begin: int, end: int) -> tuple[int, int]:
    """Return how many tokens directly before, and directly after, a place are those around the cited lines."""
    before = _equal_suffix(fingerprint.before, tokens.data[: begin * TOKEN_BYTES])
    after = _equal_prefix(fingerprint.after, tokens.data[end * TOKEN_BYTES : (end + CONTEXT_TOKENS) * TOKEN_BYTES])
    if not fingerprint.before and begin == 0:
        before = _MIN_CONTEXT  # the beginning of a file is a surrounding too
    if not fingerprint.after and end == tokens.size:
        after = _MIN_CONTEXT
    return before, after


def _equal_suffix(one: bytes, other: bytes) -> int:
    count = 0
    while (count + 1) * TOKEN_BYTES <= min(len(one), len(other)):
        here = slice(-(count + 1) * TOKEN_BYTES, -count * TOKEN_BYTES or None)
        if one[here] != other[here]:
            break
        count += 1
    return count


def _equal_prefix(one: bytes, other: bytes) -> int:
    count = 0
    while (count + 1) * TOKEN_BYTES <= min(len(one), len(other)):
        here = slice(count * TOKEN_BYTES, (count + 1) * TOKEN_BYTES)
        if one[here] != other[here]:
            break
        count += 1
    return count


def _line_span(tokens: Tokens, begin: int, end: int) -> tuple[int, int]:
    return tokens.line_of(begin), tokens.line_of(max(begin, end - 1))


class _Around(NamedTuple):
    """The lines before and after the cited ones, those too, and all pairs of them with lines of the present file.

    The numbers of the lines begin with the first one before. Blank lines do not count.
    """

    before: Sequence[bytes]
    cited: Sequence[bytes]
    after: Sequence[bytes]
    pairs: Sequence[tuple[int, int]]

    def edges(self, count: int) -> tuple[int, int]:
        """Return the present lines directly above and below the place of the cited ones, in a file of so many lines."""
        begin, end = len(self.before), len(self.before) + len(self.cited)
        above = [there for here, there in self.pairs if here < begin]
        below = [there for here, there in self.pairs if here >= end]
        return above[-1] if above else -1, below[0] if below else count

    def new_lines(self, count: int) -> list[int]:
        """Return which lines of a file of so many are new, as far as it is known what was there before."""
        first = self.pairs[0][1] if len(self.before) == CONTEXT_LINES and self.pairs else 0
        last = self.pairs[-1][1] if len(self.after) == CONTEXT_LINES and self.pairs else count
        paired = {there for _, there in self.pairs}
        return [number for number in range(first, last) if number not in paired]


def _align_around(fingerprint: Fingerprint, content: TokenizedFile) -> _Around:
    before, after = (_split(data) for data in (fingerprint.lines_before, fingerprint.lines_after))
    cited = fingerprint.code_lines()
    known = [*before, *map(checksum, cited), *after]
    return _Around(before, cited, after, align(known, [line.checksum for line in content.code_lines]))


def _find_place(fingerprint: Fingerprint, content: TokenizedFile, around: _Around) -> Located | None:
    """Decide by the lines around the cited ones; None if too few of them are left."""
    before, cited, after, pairs = around
    tokens, lines = content.tokens, content.code_lines
    begin, end = len(before), len(before) + len(cited)
    above = [pair for pair in pairs if pair[0] < begin]
    below = [pair for pair in pairs if pair[0] >= end]
    if (len(before) == CONTEXT_LINES and not above) or (len(after) == CONTEXT_LINES and not below):
        return None  # where the file is known to its beginning or end, that is a place too
    upper = above[-1] if above else (-1, -1)
    lower = below[0] if below else (end + len(after), len(lines))
    replaced = lower[0] - upper[0] - 1
    if len(above) + len(below) < min(_MIN_CONTEXT_LINES, len(before) + len(after)) and replaced > _MAX_GAP * len(cited):
        return None
    kept = {number: there for number, there in pairs if begin <= number < end}
    places = [*kept.values()]
    if len(kept) == len(cited) == places[-1] - places[0] + 1:
        first, last = lines[places[0]].number, lines[places[-1]].number
        return Located(EvidenceState.VALID if first == fingerprint.first else EvidenceState.MOVED, first, last)
    # Lines that were moved here from around the cited ones are no edited ones, and replace nothing.
    paired = {number for number, _ in pairs}
    moved = {line for n, line in [*enumerate(before), *enumerate(after, start=end)] if n not in paired}
    there = [n for n in range(upper[1] + 1, lower[1]) if n not in places and lines[n].checksum not in moved]
    if len(there) > _MAX_GROWTH * replaced + _MAX_ADDED:
        there = []  # far apart: most of it has nothing to do with the cited lines
        if not kept:
            return None
    words = {n: _words(_text(tokens, lines[n])) for n in [*places, *there]}
    missing = [_words(line) for n, line in enumerate(cited, start=begin) if n not in kept]
    edited = [n for n in there if any(_are_alike(own, words[n]) for own in missing)]
    found = sorted([*places, *edited])
    if sum(words[n].total() for n in found) < max(1, _MIN_KEPT * _words(fingerprint.tokens).total()):
        edges = [upper] * bool(above) + [lower] * bool(below)
        telling = [n for n in places if words[n]]
        are_many = len(telling) >= max(1, _MIN_KEPT_LINES * sum(map(_is_telling, cited)))
        found = found if are_many or set(telling).intersection(_kept_beside(kept, edges)) else []
    if not found and _is_replaced(len(cited), replaced, len(there)):
        found = there
    if not found:
        return Located(EvidenceState.GONE)
    return Located(EvidenceState.CHANGED, lines[found[0]].number, lines[found[-1]].number)


def _is_replaced(cited: int, replaced: int, added: int) -> bool:
    """Return whether other lines took the place of the cited ones, by the numbers of lines in the gap.

    The lines beside the cited ones that were edited too have a place in the gap as well. Where they are many, the gap
    was rewritten as a whole.
    """
    if replaced > _LARGE_GAP * cited:
        return added >= _MIN_REPLACED * replaced
    return added - (replaced - cited) >= _MIN_REPLACED * cited


def _kept_beside(kept: Mapping[int, int], edges: Iterable[tuple[int, int]]) -> list[int]:
    """Return the places of the kept lines that are directly beside a line around the cited ones, or beside such one."""
    found = []
    for step in (1, -1):
        for number, there in edges:
            distance = step
            while kept.get(number + distance) == there + distance:
                found.append(there + distance)
                distance += step
    return found


def _find_moved(fingerprint: Fingerprint, content: TokenizedFile, around: _Around) -> Located | None:
    """Return where new lines are the cited ones, which are not in their place; None if none are."""
    if fingerprint.copies > 1 or len(fingerprint.tokens) < _MIN_MOVED_TOKENS * TOKEN_BYTES:
        return None
    lines = content.code_lines
    present, sums, length = [line.checksum for line in lines], [*map(checksum, around.cited)], len(around.cited)
    new = around.new_lines(len(lines))
    found = [n for n in new if present[n : n + length] == sums]
    if len(found) != 1 or not {*new}.issuperset(range(found[0], found[0] + length)):
        return None
    return Located(EvidenceState.MOVED, lines[found[0]].number, lines[found[0] + length - 1].number)


def _find_edited(content: TokenizedFile, around: _Around) -> Located | None:
    """Return where new lines are like the cited ones, which are not in their place; None if too few are.

    Lines that are not near it must also share a rare word, since code repeats itself.
    """
    tokens, lines = content.tokens, content.code_lines
    upper, lower = around.edges(len(lines))
    counts = _counts(tokens.data)
    near: list[int] = []
    with_word: dict[bytes, list[int]] = {}
    texts = {n: _text(tokens, lines[n]) for n in around.new_lines(len(lines))}
    words = {n: _words(text) for n, text in texts.items()}
    for n in texts:
        if upper - _NEAR <= n <= upper or lower <= n <= lower + _NEAR:
            near.append(n)
        for word in words[n]:
            if counts[word] <= _MAX_RARE:
                with_word.setdefault(word, []).append(n)
    found: list[int] = []
    edited = total = 0
    for line in around.cited:
        own = _words(line)
        total += own.total()
        for n in [*near, *(n for word in own for n in with_word.get(word, ()))]:
            least = _MIN_COMMON if texts[n] == line else _MIN_COMMON_ELSEWHERE
            if _are_alike(own, words[n], _MIN_SAME_ELSEWHERE, least):
                found.append(n)
                edited += own.total()
                break
    if edited < max(1, _MIN_EDITED_ELSEWHERE * total):
        return None
    return Located(EvidenceState.CHANGED, lines[min(found)].number, lines[max(found)].number)


def _find_lines(fingerprint: Fingerprint, content: TokenizedFile) -> Located | None:
    """Return where some of the lines are, unchanged; None if too few of them are distinct."""
    others = {*_split(fingerprint.lines_before), *_split(fingerprint.lines_after)}
    cited = [line for line in fingerprint.code_lines() if _is_telling(line)]
    distinct = {checksum(line) for line in cited if _words(line).total() >= _MIN_WORDS} - others
    lines = content.code_lines
    counts = Counter(line.checksum for line in lines)
    found = [line for line in lines if line.checksum in distinct and counts[line.checksum] == 1]
    if len(found) < max(1, _MIN_KEPT * len(cited)):
        return None
    return Located(EvidenceState.CHANGED, found[0].number, found[-1].number)


def _words(line: bytes) -> Counter[bytes]:
    return Counter({token: number for token, number in _counts(line).items() if token not in SIGNS})


def _text(tokens: Tokens, line: CodeLine) -> bytes:
    return tokens.data[line.begin * TOKEN_BYTES : line.end * TOKEN_BYTES]


def _split(data: bytes) -> list[bytes]:
    return [data[at : at + CHECKSUM_BYTES] for at in range(0, len(data), CHECKSUM_BYTES)]


def _is_telling(line: bytes) -> bool:
    """Return whether a line has more than brackets and other signs."""
    return bool(_words(line))


def _are_alike(
    one: Counter[bytes], other: Counter[bytes], share: float = _MIN_SAME_LINE, least: int = _MIN_COMMON
) -> bool:
    """Return whether a line may be another one after an edit, by their words.

    Much of their words is the same, or the other one has more but also most of the words of the first.
    """
    common = sum(min(number, other[word]) for word, number in one.items() if word in other)
    if common < least:
        return False
    total = one.total()
    return 2 * common >= share * (total + other.total()) or common >= _MIN_CONTAINED * total


def align(one: Sequence[bytes], other: Sequence[bytes]) -> list[tuple[int, int]]:
    """Return the pairs of equal lines of two texts that belong together, as a diff does: both numbers only grow.

    Lines that each text has once are paired first, then what is between those pairs.
    """
    pairs: list[tuple[int, int]] = []
    pending = [(0, len(one), 0, len(other))]
    while pending:
        a, a_end, b, b_end = pending.pop()
        while a < a_end and b < b_end and one[a] == other[b]:
            pairs.append((a, b))
            a, b = a + 1, b + 1
        while a < a_end and b < b_end and one[a_end - 1] == other[b_end - 1]:
            a_end, b_end = a_end - 1, b_end - 1
            pairs.append((a_end, b_end))
        if a == a_end or b == b_end:
            continue
        anchors = _unique_pairs(one, other, (a, a_end, b, b_end))
        if not anchors and (a_end - a) * (b_end - b) <= _MAX_COMPARED:
            matcher = SequenceMatcher(None, one[a:a_end], other[b:b_end], autojunk=False)
            pairs += [(a + m.a + n, b + m.b + n) for m in matcher.get_matching_blocks() for n in range(m.size)]
        last = (a - 1, b - 1)
        for anchor in [*anchors, (a_end, b_end)] if anchors else ():
            pending.append((last[0] + 1, anchor[0], last[1] + 1, anchor[1]))
            last = anchor
        pairs += anchors
    return sorted(pairs)


def _unique_pairs(
    one: Sequence[bytes], other: Sequence[bytes], part: tuple[int, int, int, int]
) -> list[tuple[int, int]]:
    """Return the longest growing series of pairs of lines that both parts have exactly once."""
    a, a_end, b, b_end = part
    here, there = Counter(one[a:a_end]), Counter(other[b:b_end])
    places = {line: n for n, line in enumerate(other[b:b_end], start=b) if there[line] == 1}
    found = [(n, places[line]) for n, line in enumerate(one[a:a_end], start=a) if here[line] == 1 and line in places]
    ends: list[int] = []
    chains: list[tuple[tuple[int, int], int]] = []  # each pair with the one before it in the best series
    tails: list[int] = []
    for pair in found:
        at = bisect_left(ends, pair[1])
        chains.append((pair, tails[at - 1] if at else -1))
        ends[at : at + 1] = [pair[1]]
        tails[at : at + 1] = [len(chains) - 1]
    series = []
    at = tails[-1] if tails else -1
    while at >= 0:
        pair, at = chains[at]
        series.append(pair)
    return series[::-1]


def _counts(data: bytes) -> Counter[bytes]:
    return Counter(data[at : at + TOKEN_BYTES] for at in range(0, len(data), TOKEN_BYTES))


def _weights(counts: Counter[bytes], tokens: Tokens) -> dict[bytes, float]:
    return {token: 1 / (1 + max(1, len(find_all(token, tokens.data, 50)))) for token in counts}


def _find_alike(fingerprint: Fingerprint, tokens: Tokens, place: Located | None) -> Located:
    """Decide by the part of the file that has most of the rare tokens of the cited lines.

    Where their place is known and they are not there (`place`), only much of a long text is found elsewhere.
    """
    wanted = _words(fingerprint.tokens) or _counts(fingerprint.tokens)
    weights = _weights(wanted, tokens)
    total = sum(weights[token] * number for token, number in wanted.items())
    length = len(fingerprint.tokens) // TOKEN_BYTES
    positions = sorted((at, token) for token in wanted for at in find_all(token, tokens.data, 2_000))
    window = length + max(4, length // 2)
    inside: Counter[bytes] = Counter()
    score, best, best_at, left = 0.0, 0.0, 0, 0
    for at, token in positions:
        inside[token] += 1
        if inside[token] <= wanted[token]:
            score += weights[token]
        while positions[left][0] <= at - window:
            old = positions[left][1]
            if inside[old] <= wanted[old]:
                score -= weights[old]
            inside[old] -= 1
            left += 1
        if score > best:
            best, best_at = score, left
    share = best / total if total else 0.0
    if not positions:
        return Located(EvidenceState.GONE)
    begin = positions[best_at][0]
    end = min(tokens.size, begin + length)
    beside = sum(_context(fingerprint, tokens, begin, end)) >= 2 * _MIN_CONTEXT
    if place is not None:
        is_alike = share >= _MIN_ALIKE_ELSEWHERE and wanted.total() >= _MIN_WORDS_ELSEWHERE
    else:
        is_alike = share >= (_MIN_ALIKE_BESIDE if beside else _MIN_ALIKE)
    if is_alike:
        return Located(EvidenceState.CHANGED, *_line_span(tokens, begin, end))
    return Located(EvidenceState.GONE)
