"""Find a contradiction between two similar texts: a number, a negation, an opposite, a name.

A missed duplicate costs a few lines, a false one costs knowledge. Every doubt here therefore counts as a contradiction.

No list can name all words that mean the same, nor all that name different things. Any two words in the same place
that are not forms of one word therefore count as different, as in `install it with pip` against `install it with npm`.
Negations, opposites and words that can replace one another come from tables.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from heapq import nsmallest
from itertools import chain, combinations, product
from typing import NamedTuple

from echod.lazy import lazy_pattern
from echod.memory.similarity.words import (
    LISTED_NEGATIONS,
    NEGATION_SIGNS,
    RETRACTING_PHRASES,
    RETRACTIONS,
    UNSPACED_NEGATIONS,
    code_identifiers,
    extract_signs,
    find_numbers,
    fold,
    is_unspaced,
    normalize_numbers,
    stem,
    tokenize,
)

NEGATIONS = LISTED_NEGATIONS | {"nobody"}
"""Words that negate the next word."""

_OPPOSITE_LINES = """
always / never / sometimes / often / usually; all every / some / any / none
must shall / may might / optional optionally; should / may might; enable / disable; on / off; true / false
yes / no; before / after; first / last; up / down; in / out; with / without; above / below; more / less fewer
most / least; max maximum / min minimum; high / low; higher / lower; highest / lowest; larger / smaller
large big / small; long / short; longer / shorter; greater / less; faster / slower; fast quick / slow
early / late; earlier / later; start begin / stop end finish; open / close; add insert / remove delete
create / delete destroy drop; allow permit / deny forbid block; accept / reject; grant / revoke
acquire / release; lock / unlock; read / write; push / pull / pop; get / set; client / server; input / output
left / right; front / back; backend / frontend; top / bottom; inside / outside; internal / external
public / private / protected; local / remote / global
sync synchronous synchronously / async asynchronous asynchronously; blocking / nonblocking; mutable / immutable
static / dynamic; strict / lenient loose; eager eagerly / lazy lazily; required mandatory / optional
safe / unsafe; valid / invalid; success / failure; succeed succeeds / fail; pass passes / fail fails
same equal identical / different unequal; include / exclude; increase / decrease; increment / decrement
raise / lower; encode / decode; encrypt / decrypt; serialize / deserialize; import / export; upload / download
upgrade / downgrade; install / uninstall; subscribe / unsubscribe; connect / disconnect; attach / detach
show / hide; expand / collapse; commit / rollback abort; keep / drop discard; keep / remove
prefer use using used uses / avoid; ascending asc / descending desc; oldest / newest; old / new; older / newer
odd / even; positive / negative; absolute / relative; parent / child; upstream / downstream
source / target destination; sender / receiver; producer / consumer; request / response; row / column
horizontal / vertical; forward / backward; next / previous; prefix / suffix; uppercase / lowercase
sequential serial / parallel concurrent; cold / warm / hot; empty / full; present / absent missing
known / unknown; explicit explicitly / implicit implicitly; manual manually / automatic automatically
production prod / staging / development dev; debug / release; primary / replica secondary
whitelist allowlist / blacklist denylist blocklist; good / bad; right / wrong; correct / incorrect
better / worse; best / worst; fixed / broken; cheap / expensive; easy / hard; simple / complex
persistent permanent / ephemeral temporary; supported / unsupported; trusted / untrusted; outer / inner
major / minor; hourly / daily nightly / weekly / monthly / yearly annually
总是 / 从不; 启用 / 禁用; 之前 / 之后; 允许 / 禁止; 常に / 決して; 有効 / 無効; 항상 / 절대
"""
OPPOSITES: tuple[tuple[frozenset[str], ...], ...] = tuple(
    tuple(frozenset(side.split()) for side in group.split("/"))
    for line in _OPPOSITE_LINES.strip().splitlines()
    for group in line.split(";")
)
"""Groups of opposites. A text has one side of each group; the words of one side mean the same."""

_SYNONYMS = """
in within inside; because since as; or otherwise else; while during; when whenever; you we one they; can could
also too; with using via; before prior; need needs must; so thus hence therefore; to into onto
"""
SYNONYMS: tuple[frozenset[str], ...] = tuple(
    frozenset(group.split()) for line in _SYNONYMS.strip().splitlines() for group in line.split(";")
)
"""Words that can replace one another; so can those on one side of a group of opposites."""

NEGATING_PREFIXES = ("un", "in", "im", "ir", "il", "dis", "non", "de", "anti", "mis", "a")
OPPOSITE_PREFIXES = (
    ("en", "dis"), ("en", "de"), ("in", "de"), ("in", "ex"), ("im", "ex"), ("up", "down"), ("pre", "post"),
    ("over", "under"), ("inter", "intra"),
)  # fmt: skip

DIRECTED_WORDS = frozenset(
    re.findall(
        r"\S+",
        """
        before after over under than to from into onto for by instead rather not then above below until unless without
        requires require overrides override replaces replace calls call imports wraps wrap extends extend depends
        beats precedes follows contains inside outside
        """,
    )
)
"""Words that join two things in one direction: exchanging the things changes the meaning."""

FILLER_WORDS = frozenset(
    re.findall(r"\S+", "a an the of is are be was were it its this that these those and or do does did ever")
)
"""Words that can be added or removed without changing the meaning."""

Slot = tuple[str, str]
Slots = Mapping[Slot, frozenset[tuple[str, ...]]]

_LABEL = lazy_pattern(
    r"\s{0,8}(?:[-*+\u2022][ \t]{1,4}){0,2}[*_~`]{0,3}(?:[\[(](?P<bracket>[^\])\n]{1,30})[\])](?![(:])"
    r"|"
    r"(?P<words>[^\W\d_][^\s:\uff1a]{0,30}(?:[ ][^\s:\uff1a]{1,20}){0,2})[*_~`]{0,3}"
    r"(?:[:\uff1a](?=[\s*_])|[ ][-\u2013\u2014](?=[ ])))"
)
_EDGE = ""
_MAX_FILLINGS = 16  # words in one place that are compared
_MIN_SHARED_LETTERS = 3  # letters that two forms of a word share
_WORD_GROUPS: dict[str, set[int]] = defaultdict(set)
for _number, _side in enumerate((*SYNONYMS, *(side for group in OPPOSITES for side in group))):
    for _word in _side:
        _WORD_GROUPS[stem(_word)].add(_number)

_OPERATOR = lazy_pattern(r"(?<![-=<>])(?:<=|>=|==|!=|<|>|\u2264|\u2265|\u2260)(?![-<>])|&&|\|\|")
_BLOCK_QUOTE = lazy_pattern(r"^[ \t]*>+", re.MULTILINE)
_CALL = lazy_pattern(r"(?<=\w)\(([^()\n]*)\)")
# A clause that begins with "then" gives the order of the things it joins.
_PUNCTUATION = r"[.;:,!?()\u3001\u3002\uff0c\uff1b]"
_CLAUSE_END = lazy_pattern(rf"(?<!{_PUNCTUATION}){_PUNCTUATION}++(?:\s(?!(?:and )?then\b)|$)|\n")
_CONJUNCTIONS = frozenset({"and", "but", "while", "whereas"})
_OPERATOR_SPELLINGS = {"\u2264": "<=", "\u2265": ">=", "\u2260": "!="}
_DIRECTED_WINDOW = 3  # words on either side of a directed word
_MAX_PAIRED_WORDS = 12  # in a longer part two names are not mixed up, and its pairs would be many
_MIN_NEGATED_LENGTH = 3  # letters of a word that a prefix can negate
_MAX_ADDED_WORDS = 2
_EMPHASIS = frozenset(
    re.findall(
        r"\S+",
        "stets immer unbedingt toujours siempre sempre altijd alltid zawsze vždy всегда завжди selalu",
    )
)
_ENGLISH_WORDS = frozenset(
    re.findall(
        r"\S+",
        "the and is are of for with when by from it its this that use must should if"
        " have has was were will be because then",
    )
)
_DIRECTED_STEMS = frozenset(map(stem, DIRECTED_WORDS))
_OPPOSITE_STEMS = tuple(tuple(frozenset(map(stem, side)) for side in group) for group in OPPOSITES)

ItemCounts = frozenset[tuple[str, int]]
DirectedTriple = tuple[str, str, str]


class Assertions(NamedTuple):
    """The statements of a text that another text must share to be the same learning."""

    numbers: tuple[str, ...]  # every different number with its unit, in order of appearance
    negated: ItemCounts  # the words that follow a negation, and how often
    operators: ItemCounts  # operators, signs, single letters and words of retraction, and how often
    label: frozenset[str]  # the words before the first colon or dash: `Deprecated: ...`; empty without any
    stems: frozenset[str]  # all words without endings
    directed: frozenset[DirectedTriple]  # triples whose meaning changes when they are read backwards
    cooccurring: frozenset[tuple[str, str]]  # pairs of words in one clause
    slots: Slots  # the words between each pair of neighbors
    identifiers: frozenset[str]  # in code spans, in their own case
    words: ItemCounts  # all words of the body, and how often
    is_english: bool  # whether it has one of the commonest English words


def extract_assertions(title: str, body: str) -> Assertions:
    """Return the statements of a title and the text below it that must not differ."""
    text = f"{title}\n{body}"
    folded, folded_body = fold(text), fold(body)
    in_order, body_words = tokenize(folded), tokenize(folded_body)
    stems = [stem(word) for word in in_order]
    clauses = [tokenize(clause) for clause in _CLAUSE_END.split(_CALL.sub(r" \1 ", folded))]
    parts = chain.from_iterable(map(_split_at_conjunctions, clauses))
    return Assertions(
        numbers=tuple(dict.fromkeys(find_numbers(folded))),
        negated=_counted(_negated(in_order)),
        operators=_counted(chain(_operators(folded), extract_signs(text))),
        label=_label(body),
        stems=frozenset(stems),
        directed=frozenset(chain.from_iterable(map(_directed_triples, clauses))),
        cooccurring=frozenset(chain.from_iterable(map(_cooccurring_pairs, parts))),
        slots=collect_slots([tokenize(normalize_numbers(part)) for part in (fold(title), folded_body)]),
        identifiers=code_identifiers(text),
        words=_counted(stem(word) for word in body_words if word not in _EMPHASIS),
        is_english=folded.isascii() and not _ENGLISH_WORDS.isdisjoint(body_words),
    )


def _counted(items: Iterator[str]) -> ItemCounts:
    return frozenset(Counter(items).items())


def _negated(in_order: Sequence[str]) -> Iterator[str]:
    for at, word in enumerate(in_order):
        if word in NEGATIONS:
            yield next((stem(later) for later in in_order[at + 1 : at + 6] if later not in FILLER_WORDS), "")


def _operators(folded: str) -> Iterator[str]:
    yield from ("not" for _ in NEGATION_SIGNS.finditer(folded))
    yield from (match[0] for match in UNSPACED_NEGATIONS.finditer(folded))
    yield from (match[0] for match in RETRACTING_PHRASES.finditer(folded))
    yield from (word for word in tokenize(folded) if word in RETRACTIONS)
    for match in _OPERATOR.finditer(_BLOCK_QUOTE.sub("", folded)):
        yield _OPERATOR_SPELLINGS.get(match[0], match[0])


def _label(body: str) -> frozenset[str]:
    """Return the words of a label at the start of a text, as in `Correction: ...` or `[FIXED] ...`."""
    match = _LABEL.match(body)
    return (
        frozenset()
        if match is None
        else frozenset(stem(word) for word in tokenize(fold(match["bracket"] or match["words"])))
    )


def _directed_triples(clause: Sequence[str]) -> Iterator[DirectedTriple]:
    content = [stem(word) for word in clause if word not in FILLER_WORDS]
    for at, word in enumerate(content):
        reach = _DIRECTED_WINDOW if word in _DIRECTED_STEMS else 1
        before, after = content[max(0, at - reach) : at], content[at + 1 : at + 1 + reach]
        yield from ((left, word, right) for left in before for right in after if left != right)


def _split_at_conjunctions(clause: Sequence[str]) -> Iterator[list[str]]:
    part: list[str] = []
    for word in clause:
        if word in _CONJUNCTIONS:
            yield part
            part = []
        else:
            part.append(word)
    yield part


def _cooccurring_pairs(part: Sequence[str]) -> Iterator[tuple[str, str]]:
    content = sorted({stem(word) for word in part if word not in FILLER_WORDS and word not in DIRECTED_WORDS})
    if len(content) <= _MAX_PAIRED_WORDS:
        yield from combinations(content, 2)


def collect_slots(texts: Sequence[Sequence[str]]) -> Slots:
    """Return what is between every two neighbors in these texts: a word, or a character of an unspaced script.

    The texts are words in order; each begins and ends on its own.
    """
    slots: defaultdict[Slot, set[tuple[str, ...]]] = defaultdict(set)
    for text in texts:
        content = [_EDGE, *(stem(word) for word in text if word not in FILLER_WORDS), _EDGE]
        for left, word, right in zip(content, content[1:], content[2:], strict=False):
            slots[left, right].add((word,))
        # Words of unspaced scripts overlap: another character is two other words.
        for left, one, two, right in zip(content, content[1:], content[2:], content[3:], strict=False):
            if is_unspaced(one) and is_unspaced(two):
                slots[left, right].add((one, two))
    return {slot: frozenset(fillings) for slot, fillings in slots.items()}


def find_contradiction(one: Assertions, other: Assertions) -> str | None:
    """Return why two texts cannot be the same learning, in words; None if there is no reason. Symmetric."""
    if one.numbers != other.numbers:
        return _describe("numbers", " ".join(one.numbers), " ".join(other.numbers))
    if one.negated != other.negated:
        return _describe("negations", _join_counted(one.negated), _join_counted(other.negated))
    if one.operators != other.operators:
        return _describe("signs", _join_counted(one.operators), _join_counted(other.operators))
    for label, stems in ((one.label, other.stems), (other.label, one.stems)):
        if label and label.isdisjoint(stems):
            return _describe("labels", " ".join(sorted(label)), "")
    opposite = _find_opposite(one.stems, other.stems)
    if opposite:
        return _describe("opposites", *opposite)
    reversed_triple = _find_reversed(one.directed, other.directed)
    if reversed_triple:
        return _describe("order", " ".join(reversed_triple), " ".join(reversed(reversed_triple)))
    crossed = _find_crossed_pair(one, other)
    if crossed:
        return _describe("pairs", *crossed)
    spelled = _find_spelling(one.identifiers, other.identifiers)
    if spelled:
        return _describe("identifiers", *spelled)
    if _is_past(one, other) or _is_past(other, one):
        return _describe("tense", "was", "is")
    inserted = _find_insertion(one, other)
    if inserted:
        return _describe("added words", inserted, "")
    different = find_substitution(one.slots, other.slots)
    return _describe("words", *different) if different else None


def _describe(kind: str, one: str, other: str) -> str:
    first, second = sorted((one or "none", other or "none"))
    return f"{kind}: {first} / {second}"


def _join_counted(counted: ItemCounts) -> str:
    return " ".join(sorted(word for word, count in counted for _ in range(count)))


def _find_opposite(one: frozenset[str], other: frozenset[str]) -> tuple[str, str] | None:
    for group in _OPPOSITE_STEMS:
        sides = [[side for side in group if side & stems] for stems in (one, other)]
        if sides[0] and sides[1] and sides[0] != sides[1]:
            return " ".join(sorted(_stems_on(sides[0], one))), " ".join(sorted(_stems_on(sides[1], other)))
    for first, second in ((one - other, other - one), (other - one, one - other)):
        for word in sorted(first):
            for opposite in _antonym_forms(word):
                if opposite in second:
                    return word, opposite
    return None


def _stems_on(sides: list[frozenset[str]], stems: frozenset[str]) -> set[str]:
    return {word for side in sides for word in side & stems}


def _antonym_forms(word: str) -> Iterator[str]:
    if len(word) <= _MIN_NEGATED_LENGTH:
        return
    yield from (prefix + word for prefix in NEGATING_PREFIXES)
    for first, second in OPPOSITE_PREFIXES:
        for prefix, opposite in ((first, second), (second, first)):
            if word.startswith(prefix) and len(word) - len(prefix) >= _MIN_NEGATED_LENGTH:
                yield opposite + word[len(prefix) :]


def _find_reversed(one: frozenset[DirectedTriple], other: frozenset[DirectedTriple]) -> DirectedTriple | None:
    only_other = other - one
    reversed_triples = [triple for triple in one - other if triple[::-1] in only_other]
    return min((min(triple, triple[::-1]) for triple in reversed_triples), default=None)


def _find_crossed_pair(one: Assertions, other: Assertions) -> tuple[str, str] | None:
    """Return two names that changed places: `redis for a, postgres for b` against `postgres for a, redis for b`."""
    shared = one.stems & other.stems
    one_pairs = _adjacency(pair for pair in one.cooccurring - other.cooccurring if shared.issuperset(pair))
    other_pairs = _adjacency(pair for pair in other.cooccurring - one.cooccurring if shared.issuperset(pair))
    crossed: list[tuple[str, str]] = []
    for name in one_pairs.keys() & other_pairs.keys():
        for role in one_pairs[name]:
            for new_role in other_pairs[name]:
                crossed += [(name, rival) for rival in one_pairs.get(new_role, set()) & other_pairs.get(role, set())]
    return min((min(pair, pair[::-1]) for pair in crossed), default=None)


def _find_spelling(one: frozenset[str], other: frozenset[str]) -> tuple[str, str] | None:
    """Return two identifiers that differ only in case or an ending: `Foo` and `foo`, `user` and `users`."""
    rivals = defaultdict(set)
    for name in other - one:
        rivals[stem(name.casefold())].add(name)
    pairs = [(name, rival) for name in one - other for rival in rivals.get(stem(name.casefold()), ())]
    return min((min(pair, pair[::-1]) for pair in pairs), default=None)


def _is_past(one: Assertions, other: Assertions) -> bool:
    """Return whether one text has "was" where the other one has "is"."""
    counts, rivals = dict(one.words), dict(other.words)
    return (
        sum(counts.get(word, 0) - rivals.get(word, 0) for word in ("was", "were"))
        > 0
        > sum(counts.get(word, 0) - rivals.get(word, 0) for word in ("is", "are"))
    )


def _find_insertion(one: Assertions, other: Assertions) -> str | None:
    """Return one or two words that one text has beyond all words of the other, if they are not English.

    No list has the negations of all languages. To say the same again rarely means to add one word only.
    """
    if one.is_english or other.is_english:
        return None
    for short, long in ((one.words, other.words), (other.words, one.words)):
        added = Counter(dict(long))
        added.subtract(dict(short))
        words = [word for word, count in added.items() if count > 0]
        if words and len(words) <= _MAX_ADDED_WORDS and min(added.values()) >= 0:
            return " ".join(sorted(words))
    return None


def _adjacency(pairs: Iterator[tuple[str, str]]) -> dict[str, set[str]]:
    neighbors: defaultdict[str, set[str]] = defaultdict(set)
    for left, right in pairs:
        neighbors[left].add(right)
        neighbors[right].add(left)
    return neighbors


def find_substitution(one: Slots, other: Slots) -> tuple[str, str] | None:
    """Return the first two different words, in alphabetical order, that are in the same place; None if there are none.

    A word that both texts have there, and one of them beside another, does not excuse the other.
    """
    substitutions: list[tuple[str, str]] = []
    for slot in one.keys() & other.keys():
        one_fillings, other_fillings = one[slot], other[slot]
        one_only, other_only = _limited(one_fillings - other_fillings), _limited(other_fillings - one_fillings)
        substitutions += [
            (" ".join(word), " ".join(rival))
            for word, rival in chain(
                product(one_only, _limited(other_fillings)), product(_limited(one_fillings), other_only)
            )
            if len(word) == len(rival) and not any(map(_are_synonyms, word, rival))
        ]
    return min((min(pair, pair[::-1]) for pair in substitutions), default=None)


def _limited(fillings: frozenset[tuple[str, ...]]) -> list[tuple[str, ...]]:
    # A list of thousands has as many words in one place; comparing all pairs of them would take too long.
    return nsmallest(_MAX_FILLINGS, fillings)


def _are_synonyms(one: str, other: str) -> bool:
    return _are_word_forms(one, other) or not _WORD_GROUPS.get(one, set()).isdisjoint(_WORD_GROUPS.get(other, set()))


def _are_word_forms(one: str, other: str) -> bool:
    """Return whether stems are of one word: `retry` and `retri(es)`, `commit` and `committ(ed)`, `use` and `using`."""
    short, long = sorted((one, other), key=len)
    if len(short) < _MIN_SHARED_LETTERS:
        return one == other
    if short[:-1] == long[: len(short) - 1] and short[-1] + long[len(short) - 1 :] in {"yi", "iy", "eing"}:
        return True
    return one == other or long == short + short[-1] or (short[-1] == "e" and long == short + "d")
