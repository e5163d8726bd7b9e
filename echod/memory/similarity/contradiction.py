"""Tells whether two texts about the same thing say different things: another number, a negation, an opposite, a name.

A missed duplicate costs a few lines, a false one costs knowledge. So every doubt here counts as a contradiction; the
tables of words stand in `opposites`.

Words that deny one another, as tables. What is concluded from them is told in `contradiction`.

Finds the one word that another has replaced: `install it with pip` against `install it with npm`.

Which words mean the same nobody can list, and which name two things neither: so any two words in the same place that
are not forms of one word count as different. What follows from that is told in `contradiction`.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from heapq import nsmallest
from itertools import chain, combinations, product
from typing import NamedTuple

from echod.memory.similarity.words import fold, is_unspaced, numbers_in, stem, with_plain_numbers, words

NEGATIONS = frozenset(
    re.findall(
        r"\S+",
        """
        no not never none nothing nobody nowhere neither nor non without except unless
        avoid avoids avoided avoiding lack lacks lacking fail fails failed failing refuse refuses refused
        forbid forbids forbidden prohibit prohibits prohibited prevent prevents prevented hardly rarely seldom unlike
        dont doesnt didnt isnt arent wasnt werent cant cannot couldnt wont wouldnt shouldnt mustnt neednt hasnt havent
        nicht kein keine keinen niemals nie ohne pas jamais sans nunca sin không chưa đừng chẳng
        """,
    )
)
"""Words after which the next word is denied. English, and the commonest of German, French, Spanish and Vietnamese."""

CJK_NEGATIONS = re.compile("[不没沒無无勿别別非]|ない|ません|ずに|않|못|없|금지|禁止|避免")
NEGATION_SIGNS = re.compile("!(?=[\\w(])|[\u00ac\u274c\u2717\u2718\U0001f6ab\u26d4\U0001f44e]")

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
"""Groups of words of which a text says one side; the words of one side mean the same."""

_SYNONYMS = """
in within inside; because since as; or otherwise else; while during; when whenever; you we one they; can could
also too; with using via; before prior; need needs must; so thus hence therefore; to into onto
"""
SYNONYMS: tuple[frozenset[str], ...] = tuple(
    frozenset(group.split()) for line in _SYNONYMS.strip().splitlines() for group in line.split(";")
)
"""Words of which one may stand for another; those on one side of a group of opposites may as well."""

DENYING_PREFIXES = ("un", "in", "im", "ir", "il", "dis", "non", "de", "anti", "mis", "a")
SWAPPED_PREFIXES = (
    ("en", "dis"),
    ("en", "de"),
    ("in", "de"),
    ("in", "ex"),
    ("im", "ex"),
    ("up", "down"),
    ("pre", "post"),
    ("over", "under"),
    ("inter", "intra"),
)

DIRECTED = frozenset(
    re.findall(
        r"\S+",
        """
        before after over under than to from into onto for by instead rather not then above below until unless without
        requires require overrides override replaces replace calls call imports wraps wrap extends extend depends
        beats precedes follows contains inside outside
        """,
    )
)
"""Words that join two things in one direction: to exchange the things is to say something else."""

FILLERS = frozenset(
    re.findall(r"\S+", "a an the of is are be was were it its this that these those and or do does did ever")
)
"""Words that may come and go without changing what is said."""


Place = tuple[str, str]
Places = Mapping[Place, frozenset[tuple[str, ...]]]

_EDGE = ""
_CROWD = 16  # words in one place that are compared
_FORM = 3  # letters that two forms of a word share
_WORD_GROUPS: dict[str, set[int]] = defaultdict(set)
for _number, _side in enumerate((*SYNONYMS, *(side for group in OPPOSITES for side in group))):
    for _word in _side:
        _WORD_GROUPS[stem(_word)].add(_number)


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
    return _are_forms(one, other) or not _WORD_GROUPS.get(one, set()).isdisjoint(_WORD_GROUPS.get(other, set()))


def _are_forms(one: str, other: str) -> bool:
    """Whether two stems are of one word: `retry` and `retri(es)`, `commit` and `committ(ed)`, `use` and `using`."""
    short, long = sorted((one, other), key=len)
    if len(short) < _FORM:
        return one == other
    if short[:-1] == long[: len(short) - 1] and short[-1] + long[len(short) - 1 :] in {"yi", "iy", "eing"}:
        return True
    return one == other or long == short + short[-1] or (short[-1] == "e" and long == short + "d")


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
_OPPOSITE_STEMS = tuple(tuple(frozenset(map(stem, side)) for side in group) for group in OPPOSITES)

Counted = frozenset[tuple[str, int]]
Triple = tuple[str, str, str]


class Claims(NamedTuple):
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
    for group in _OPPOSITE_STEMS:
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
