"""Find the state of cited lines in a present file.

1. The tokens of the lines are in the file: *valid* in the cited line, *moved* elsewhere. Short lines, and lines that
   the file has several times, count only together with what was before or after them.
2. Otherwise the place is found by its surroundings. Nothing left between them is *gone*; something else is *changed*.
3. Without its surroundings, the part of the file that has most of the rare tokens decides: *changed* with half of them,
   else *gone*.
"""

from __future__ import annotations

from collections import Counter
from enum import StrEnum
from typing import Final, NamedTuple

from echod.memory.evidence.fingerprint import CONTEXT_TOKENS, TOKEN_BYTES, Fingerprint, TokenizedFile, Tokens, find_all

_MIN_CONTEXT: Final = 3
"""Equal tokens beside the lines by which a place is recognised."""
_MIN_DISTINCT: Final = 6
"""Tokens that are found again without surroundings, if they were in the file once."""
_ANCHORS: Final = (CONTEXT_TOKENS, 16, 8)
_MIN_REPLACED: Final = 0.22
_MIN_ALIKE: Final = 0.5
_MIN_ALIKE_BESIDE: Final = 0.35
_MAX_GROWTH: Final = 4


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
        if _has_more_on_its_last_line(fingerprint, tokens, found):
            return Located(EvidenceState.CHANGED, first, last)
        state = EvidenceState.VALID if first == fingerprint.first else EvidenceState.MOVED
        return Located(state, first, last)
    place = _find_place(fingerprint, tokens)
    if place is None and fingerprint.tokens in tokens.data:
        return Located(EvidenceState.GONE)  # only other copies of them are left
    return place or _find_alike(fingerprint, tokens)


def contains(fingerprint: Fingerprint, content: TokenizedFile) -> bool:
    """Return whether a file has the cited lines unchanged, anywhere."""
    return not fingerprint.first or _find_exact(fingerprint, content.tokens) is not None


def _has_more_on_its_last_line(fingerprint: Fingerprint, tokens: Tokens, begin: int) -> bool:
    """Return whether something was appended to the last of the lines. The text below them may follow directly."""
    end = begin + len(fingerprint.tokens) // TOKEN_BYTES
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


def _find_place(fingerprint: Fingerprint, tokens: Tokens) -> Located | None:
    """Decide by what is left between the surroundings; None if they cannot be found."""
    begin = _anchor_before(fingerprint, tokens)
    if begin is None:
        return None
    end = _anchor_after(fingerprint, tokens, begin)
    if end is None:
        return None
    length = len(fingerprint.tokens) // TOKEN_BYTES
    if begin == end:
        return Located(EvidenceState.GONE)
    between = _counts(tokens.data[begin * TOKEN_BYTES : end * TOKEN_BYTES])
    wanted = _counts(fingerprint.tokens)
    common = _weight(wanted & between, tokens) / max(_weight(wanted, tokens), 1e-9)
    if end - begin > _MAX_GROWTH * length + CONTEXT_TOKENS:
        return None  # far apart: the anchors are those of other lines
    if common < _MIN_REPLACED and (length >= 2 * _MIN_DISTINCT or end - begin > _MAX_GROWTH * length):
        return None
    return Located(EvidenceState.CHANGED, *_line_span(tokens, begin, end))


def _anchor_before(fingerprint: Fingerprint, tokens: Tokens) -> int | None:
    """Return the number of the token after what was before the cited lines."""
    if not fingerprint.before:
        return 0
    cited, _ = tokens.lines(fingerprint.first, fingerprint.last)
    available = len(fingerprint.before) // TOKEN_BYTES
    for length in _ANCHORS:
        needle = fingerprint.before[-length * TOKEN_BYTES :]
        found = find_all(needle, tokens.data)
        if len(found) == 1 or (found and length == CONTEXT_TOKENS):
            best = min(found, key=lambda at: abs(at - cited))
            return best + len(needle) // TOKEN_BYTES
        if found and length <= available:
            return None  # ambiguous already, and shorter ones are more so
    return None


def _anchor_after(fingerprint: Fingerprint, tokens: Tokens, begin: int) -> int | None:
    """Return the number of the first token of what was after the cited lines, not before `begin`."""
    if not fingerprint.after:
        return tokens.size
    for length in _ANCHORS:
        needle = fingerprint.after[: length * TOKEN_BYTES]
        found = [at for at in find_all(needle, tokens.data) if at >= begin]
        if found:
            return found[0]
    return None


def _counts(data: bytes) -> Counter[bytes]:
    return Counter(data[at : at + TOKEN_BYTES] for at in range(0, len(data), TOKEN_BYTES))


def _weight(counts: Counter[bytes], tokens: Tokens) -> float:
    """Return the sum of the weights of tokens. A token that the file has often weighs little."""
    weights = _weights(counts, tokens)
    return sum(weights[token] * number for token, number in counts.items())


def _weights(counts: Counter[bytes], tokens: Tokens) -> dict[bytes, float]:
    return {token: 1 / (1 + len(find_all(token, tokens.data, 50))) for token in counts}


def _find_alike(fingerprint: Fingerprint, tokens: Tokens) -> Located:
    """Decide by the part of the file that has most of the rare tokens of the cited lines."""
    wanted = _counts(fingerprint.tokens)
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
    if share >= (_MIN_ALIKE_BESIDE if beside else _MIN_ALIKE):
        return Located(EvidenceState.CHANGED, *_line_span(tokens, begin, end))
    return Located(EvidenceState.GONE)
