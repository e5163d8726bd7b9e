"""Tells whether two texts about the same thing say different things: another number, a negation, an opposite, a name.

A missed duplicate costs a few lines, a false one costs knowledge. So every doubt here counts as a contradiction; the
tables of words stand in `opposites`.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, combinations

from echod.memory.similarity.numbers import numbers_in, with_plain_numbers
from echod.memory.similarity.opposites import (
    CJK_NEGATIONS,
    DENYING_PREFIXES,
    DIRECTED,
    FILLERS,
    NEGATION_SIGNS,
    NEGATIONS,
    OPPOSITES,
    SWAPPED_PREFIXES,
)
from echod.memory.similarity.swaps import Places, places_of, swapped
from echod.memory.similarity.words import fold, stem, words

_OPERATOR = re.compile(r"(?<![-=<>])(?:<=|>=|==|!=|<|>|\u2264|\u2265|\u2260)(?![-<>])|&&|\|\|")
_QUOTATION = re.compile(r"^[ \t]*>+", re.MULTILINE)
_CALL = re.compile(r"(?<=\w)\(([^()\n]*)\)")
# A clause that begins with "then" tells the order of what it joins.
_STOPS = r"[.;:,!?()\u3001\u3002\uff0c\uff1b]"
_CLAUSE_END = re.compile(rf"(?<!{_STOPS}){_STOPS}++(?:\s(?!(?:and )?then\b)|$)|\n")
_JOINS = frozenset({"and", "but", "while", "whereas"})
_SAME_OPERATOR = {"\u2264": "<=", "\u2265": ">=", "\u2260": "!="}
_REACH = 3  # words on either side of a directed word
_PART_WORDS = 12  # in a longer part two names are not mixed up, and its pairs would be many
_SHORTEST = 3  # letters of a word that a prefix can deny
_DIRECTED_STEMS = frozenset(map(stem, DIRECTED))
_GROUPS = tuple(tuple(frozenset(map(stem, side)) for side in group) for group in OPPOSITES)

Counted = frozenset[tuple[str, int]]
Triple = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class Claims:
    """What two texts must agree on to be the same learning.

    Attributes:
        numbers: every different number with its unit, in order of appearance.
        denied: the words that a negation stands before, and how often.
        signs: operators and signs of negation, and how often.
        stems: all words without endings.
        directed: triples that mean something else when read backwards.
        together: pairs of words that stand in one clause.
        places: what stands between which words.
    """

    numbers: tuple[str, ...]
    denied: Counted
    signs: Counted
    stems: frozenset[str]
    directed: frozenset[Triple]
    together: frozenset[tuple[str, str]]
    places: Places


def claims(title: str, body: str) -> Claims:
    """What a title and the text below it say that must not differ."""
    folded = fold(f"{title}\n{body}")
    in_order = words(folded)
    stems = [stem(word) for word in in_order]
    clauses = [words(clause) for clause in _CLAUSE_END.split(_CALL.sub(r" \1 ", folded))]
    return Claims(
        numbers=tuple(dict.fromkeys(numbers_in(folded))),
        denied=_counted(_denied(in_order)),
        signs=_counted(_signs(folded)),
        stems=frozenset(stems),
        directed=frozenset(chain.from_iterable(map(_directed, clauses))),
        together=frozenset(chain.from_iterable(map(_together, chain.from_iterable(map(_parts, clauses))))),
        places=places_of([words(with_plain_numbers(fold(text))) for text in (title, body)]),
    )


def contradiction(one: Claims, other: Claims) -> str | None:
    """Why two texts cannot be the same learning, in words; None if there is no reason. Symmetric."""
    if one.numbers != other.numbers:
        return _reason("numbers", " ".join(one.numbers), " ".join(other.numbers))
    if one.denied != other.denied:
        return _reason("negations", _shown(one.denied), _shown(other.denied))
    if one.signs != other.signs:
        return _reason("signs", _shown(one.signs), _shown(other.signs))
    opposite = _opposite(one.stems, other.stems)
    if opposite:
        return _reason("opposites", *opposite)
    turned = _turned_round(one.directed, other.directed)
    if turned:
        return _reason("order", " ".join(turned), " ".join(reversed(turned)))
    crossed = _crossed(one, other)
    if crossed:
        return _reason("pairs", *crossed)
    different = swapped(one.places, other.places)
    return _reason("words", *different) if different else None


def _reason(what: str, one: str, other: str) -> str:
    first, second = sorted((one or "none", other or "none"))
    return f"{what}: {first} / {second}"


def _shown(counted: Counted) -> str:
    return " ".join(sorted(word for word, count in counted for _ in range(count)))


def _counted(items: Iterator[str]) -> Counted:
    return frozenset(Counter(items).items())


def _denied(in_order: Sequence[str]) -> Iterator[str]:
    for at, word in enumerate(in_order):
        if word in NEGATIONS:
            yield next((stem(later) for later in in_order[at + 1 : at + 6] if later not in FILLERS), "")


def _signs(folded: str) -> Iterator[str]:
    yield from ("not" for _ in NEGATION_SIGNS.finditer(folded))
    yield from (match[0] for match in CJK_NEGATIONS.finditer(folded))
    for match in _OPERATOR.finditer(_QUOTATION.sub("", folded)):
        yield _SAME_OPERATOR.get(match[0], match[0])


def _directed(clause: Sequence[str]) -> Iterator[Triple]:
    content = [stem(word) for word in clause if word not in FILLERS]
    for at, word in enumerate(content):
        reach = _REACH if word in _DIRECTED_STEMS else 1
        before, after = content[max(0, at - reach) : at], content[at + 1 : at + 1 + reach]
        yield from ((left, word, right) for left in before for right in after if left != right)


def _parts(clause: Sequence[str]) -> Iterator[list[str]]:
    part: list[str] = []
    for word in clause:
        if word in _JOINS:
            yield part
            part = []
        else:
            part.append(word)
    yield part


def _together(part: Sequence[str]) -> Iterator[tuple[str, str]]:
    content = sorted({stem(word) for word in part if word not in FILLERS and word not in DIRECTED})
    if len(content) <= _PART_WORDS:
        yield from combinations(content, 2)


def _opposite(one: frozenset[str], other: frozenset[str]) -> tuple[str, str] | None:
    for group in _GROUPS:
        said = [[side for side in group if side & stems] for stems in (one, other)]
        if said[0] and said[1] and said[0] != said[1]:
            return " ".join(sorted(_any(said[0], one))), " ".join(sorted(_any(said[1], other)))
    for first, second in ((one - other, other - one), (other - one, one - other)):
        for word in sorted(first):
            for opposite in _denials(word):
                if opposite in second:
                    return word, opposite
    return None


def _any(sides: list[frozenset[str]], stems: frozenset[str]) -> set[str]:
    return {word for side in sides for word in side & stems}


def _denials(word: str) -> Iterator[str]:
    if len(word) <= _SHORTEST:
        return
    yield from (prefix + word for prefix in DENYING_PREFIXES)
    for first, second in SWAPPED_PREFIXES:
        for prefix, opposite in ((first, second), (second, first)):
            if word.startswith(prefix) and len(word) - len(prefix) >= _SHORTEST:
                yield opposite + word[len(prefix) :]


def _turned_round(one: frozenset[Triple], other: frozenset[Triple]) -> Triple | None:
    only_other = other - one
    turned = [triple for triple in one - other if triple[::-1] in only_other]
    return min((min(triple, triple[::-1]) for triple in turned), default=None)


def _crossed(one: Claims, other: Claims) -> tuple[str, str] | None:
    """Two names that changed places: `redis for a, postgres for b` against `postgres for a, redis for b`."""
    shared = one.stems & other.stems
    mine = _neighbours(pair for pair in one.together - other.together if shared.issuperset(pair))
    theirs = _neighbours(pair for pair in other.together - one.together if shared.issuperset(pair))
    found: list[tuple[str, str]] = []
    for name in mine.keys() & theirs.keys():
        for role in mine[name]:
            for new_role in theirs[name]:
                found += [(name, rival) for rival in mine.get(new_role, set()) & theirs.get(role, set())]
    return min((min(pair, pair[::-1]) for pair in found), default=None)


def _neighbours(pairs: Iterator[tuple[str, str]]) -> dict[str, set[str]]:
    found: defaultdict[str, set[str]] = defaultdict(set)
    for left, right in pairs:
        found[left].add(right)
        found[right].add(left)
    return found
