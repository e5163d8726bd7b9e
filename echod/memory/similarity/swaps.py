"""Finds the one word that another has replaced: `install it with pip` against `install it with npm`.

Which words mean the same nobody can list, and which name two things neither: so any two words in the same place that
are not forms of one word count as different. What follows from that is told in `contradiction`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from heapq import nsmallest
from itertools import chain, product

from echod.memory.similarity.opposites import FILLERS, OPPOSITES, SYNONYMS
from echod.memory.similarity.words import is_unspaced, stem

Place = tuple[str, str]
Places = Mapping[Place, frozenset[tuple[str, ...]]]

_EDGE = ""
_CROWD = 16  # words in one place that are compared
_FORM = 3  # letters that two forms of a word share
_GROUPS: dict[str, set[int]] = defaultdict(set)
for _number, _side in enumerate((*SYNONYMS, *(side for group in OPPOSITES for side in group))):
    for _word in _side:
        _GROUPS[stem(_word)].add(_number)


def places_of(texts: Sequence[Sequence[str]]) -> Places:
    """For every two neighbours in these texts, what stands between them: a word, or a character of an unspaced script.

    Args:
        texts: their words in order; each text begins and ends on its own.
    """
    found: defaultdict[Place, set[tuple[str, ...]]] = defaultdict(set)
    for text in texts:
        content = [_EDGE, *(stem(word) for word in text if word not in FILLERS), _EDGE]
        for left, word, right in zip(content, content[1:], content[2:], strict=False):
            found[left, right].add((word,))
        # Words of unspaced scripts overlap: another character is two other words.
        for left, one, two, right in zip(content, content[1:], content[2:], content[3:], strict=False):
            if is_unspaced(one) and is_unspaced(two):
                found[left, right].add((one, two))
    return {place: frozenset(fillings) for place, fillings in found.items()}


def swapped(one: Places, other: Places) -> tuple[str, str] | None:
    """The first two different words, in alphabetical order, that stand in the same place; None if there are none.

    A word that both texts have there, and one of them beside another, is no excuse for the other.
    """
    found: list[tuple[str, str]] = []
    for place in one.keys() & other.keys():
        here, there = one[place], other[place]
        mine, theirs = _few(here - there), _few(there - here)
        found += [
            (" ".join(word), " ".join(rival))
            for word, rival in chain(product(mine, _few(there)), product(_few(here), theirs))
            if len(word) == len(rival) and not any(map(_mean_the_same, word, rival))
        ]
    return min((min(pair, pair[::-1]) for pair in found), default=None)


def _few(fillings: frozenset[tuple[str, ...]]) -> list[tuple[str, ...]]:
    # A list of thousands has as many words in one place; comparing each to each would take for ever.
    return nsmallest(_CROWD, fillings)


def _mean_the_same(one: str, other: str) -> bool:
    return _are_forms(one, other) or not _GROUPS.get(one, set()).isdisjoint(_GROUPS.get(other, set()))


def _are_forms(one: str, other: str) -> bool:
    """Whether two stems are of one word: `retry` and `retri(es)`, `commit` and `committ(ed)`, `use` and `using`."""
    short, long = sorted((one, other), key=len)
    if len(short) < _FORM:
        return one == other
    if short[:-1] == long[: len(short) - 1] and short[-1] + long[len(short) - 1 :] in {"yi", "iy", "eing"}:
        return True
    return one == other or long == short + short[-1] or (short[-1] == "e" and long == short + "d")
