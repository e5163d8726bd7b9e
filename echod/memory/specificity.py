"""Judge a lesson by its words and by who learned it too: how specific it is, and whether other roles confirm it.

The judgement is by words, so it is deterministic and needs no model. It ranks texts of one file against each other and
is never shown as a number with a meaning of its own. Words of advice are known in English and some twenty other
languages; texts in others rank by their names.

Two learnings confirm each other if both name the same rare things in the code, and share some of their other words.
Words alone do not decide: two learnings about the same thing may have few in common, and two in the same jargon many.
Confirmations only protect learnings and are shown. Nothing is merged because of them.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from echod.lazy import lazy_pattern
from echod.memory.edit import learnings, split_body
from echod.memory.identity import entry_ids
from echod.memory.model import Document, Layer
from echod.memory.similarity.words import (
    FLAW_ADVICE,
    REMEDY_ADVICE,
    RULE_ADVICE,
    SEVERE_ADVICE,
    UNSPACED_RUN,
    Advice,
    fold,
    jaccard,
    stem,
    tokenize,
)
from echod.memory.text import normalize_characters

_MAX_SHARE = 0.05  # share of the texts of a file that may contain a telling name
_MAX_NAMES = 8  # names that count in one text; more of them are a list
_MAX_LENGTH = 20_000  # characters of a text that are judged
_MANY_WORDS = 3  # words of one kind beyond which more do not count

_NAME = lazy_pattern(
    r"(?<![\w/.@~-])(?P<plain>(?:[A-Z]?[a-z]*+[\s,;:]++)++)"  # words between names, passed over in one step
    r"|`[^`\n]{2,80}`"  # anything that its writer marked as code
    r"|(?<![\w/.@~-])[\w.@~-]*/[\w./@*~-]{0,400}\w"  # paths
    r"|\b[\w-]{1,100}\.(?:c|cc|cfg|cpp|cs|css|go|h|hpp|html|ini|java|js|json|jsonl|jsx|kt|lock|lua|md|mjs|php|proto|py|rb|rs"
    r"|scss|sh|sql|swift|tf|toml|ts|tsx|txt|vue|xml|ya?ml|zig)\b"
    r"|(?<![\w-])--?[a-zA-Z][\w-]*(?![\w-])"  # flags
    r"|\b[A-Z][A-Z0-9]*-[0-9]{1,6}\b"  # ids of findings
    r"|\bv[0-9]+\.[0-9]+(?:\.[0-9]+)*\b|\b[0-9]+(?:\.[0-9]+){2,}\b"  # versions
    r"|\b[a-z]\w*\(\)?|\b\w+\.\w+\(\)?"  # calls
    r"|\b\w*[a-z0-9]_\w+|\b[A-Z][A-Z0-9]*_\w+|\b_\w+"  # snake_case
    r"|\b[a-z]+[A-Z]\w*|\b[A-Z][a-z0-9]+[A-Z]\w*",  # camelCase
)
_PASSING = lazy_pattern(
    r"^(?:.*/)?(?:tmp|temp)/|^tmp$|[0-9a-f]{7,}|[0-9]{6,}|^/?(?:and|or)/|^(?:e\.g|i\.e)$", re.IGNORECASE
)  # names of one run: temporary paths, hashes, time stamps

_FINDING_ID = lazy_pattern(r"[a-z][a-z0-9]*(?:-[a-z0-9]+)*-[0-9]{1,6}")

_REMEDY = lazy_pattern(
    r"\b(?:always|never|must(?:n't)?|should(?:n't)?|cannot|can't|don't|do not|instead(?: of)?|avoid|ensure|prefer"
    r"|replace[ds]?|rename[ds]?|use|using|add(?:ed)?|remove[ds]?|change[ds]?|update[ds]?|fix(?:ed|es)?|guard|wrap|escape"
    r"|quote|validate|reject|refuse|canonicali[sz]e|normali[sz]e|set|register|extract|move[ds]?|inject(?:ed)?|require[ds]?"
    r"|needs?|keep|make|call|pass|skip|revert|capture|define|enable|disable|convert|compare|strip|check|test|verify|grep|write|run|read|pin|lock|close|reset|retry|initiali[sz]e)\b",
)
_STRONG = lazy_pattern(
    r"\b(?:always|never|must(?:n't)?|should(?:n't)?|don't|do not|cannot|can't|instead|avoid|prefer|ensure|require[ds]?"
    r"|only (?:if|when|after|by|inside)|not (?:on|in|by|as|just)|rather than|fix:|(?<![a-z] )use)\b",
)
_RULE = lazy_pattern(r"\b(?:always|never|must(?:n't)?|should(?:n't)?|don't|do not|avoid)\b")
_FLAW = lazy_pattern(
    r"\b(?:because|since|root cause|wrong(?:ly)?|missing|broken|breaks?|bypass|injection|leaks?|race|deadlocks?"
    r"|orphans?|unvalidated|unescaped|undefined|undocumented|incorrect|stale|drift|fails?|failed|silently|no-op|loses?|lost|wipes?"
    r"|corrupts?|overwrites?|crash(?:es)?|hangs?|blocks?|ignored|skipped|without|does not|doesn't|do not|isn't|never"
    r"|no longer|unsafe|vulnerab\w+|collisions?|mismatch|duplicates?|empty|traversal|overflow|regressions?|bugs?"
    r"|throws?|exceeds?|not (?:found|supported|set|part|validated|applied))\b",
)
_SEVERE = lazy_pattern(r"\b(?:critical|blocker|security|severe|data loss|outage|p0|p1|sec-[0-9]+|cve-[0-9-]+)\b")
# The first word of a task that is work to be done, not something that was found out.
_ASSIGNMENT = lazy_pattern(
    r"\W*(?:you are|your (?:task|job|role)|enrich|research|review|analy[sz]e|investigate|inspect|explore|summari[sz]e"
    r"|audit|report|read|study|scan|evaluate|assess|discuss|plan|perform|conduct|look (?:at|into|for)|find"
    r"|provide|identify|consider|check (?:if|whether))\b",
    re.IGNORECASE,
)


class Specificity(NamedTuple):
    """The marks of a text that a reader can act on."""

    names: frozenset[str]  # names of things in the code that few texts of the file contain
    remedies: int  # words that say what to do
    strong_remedies: int  # words that say it as a rule
    flaws: int  # words that say what went wrong
    is_severe: bool  # it names a high severity
    is_assignment: bool  # it begins as an order to look at something

    @property
    def is_routine(self) -> bool:
        """A reader learns nothing from it but that it happened."""
        return not self.names and not self.strong_remedies and not (self.flaws and self.remedies)

    @property
    def value(self) -> float:
        """The rank among texts of one file, 0 for routine."""
        return 0.0 if self.is_routine else self.sentence_value

    @property
    def sentence_value(self) -> float:
        """The rank among the sentences of one text that is no routine: a flaw or a remedy alone counts too."""
        value = (
            min(self._name_count, _MAX_NAMES)
            + 1.5 * min(self.remedies, 3)
            + 1.5 * min(self.strong_remedies, 3)
            + 1.5 * min(self.flaws, 3)
            + 2.0 * self.is_severe
        )
        return value * (0.4 if self.is_assignment else 1.0)

    @property
    def _name_count(self) -> int:
        """The number of names. All ids of findings count as one, because a list of ids alone is no content."""
        ids = sum(_FINDING_ID.fullmatch(name) is not None for name in self.names)
        return len(self.names) - ids + min(ids, 1)

    @property
    def learning_value(self) -> float:
        """The rank among learnings: a rule to follow counts more than a name."""
        return (
            1.0
            + 0.5 * min(self._name_count, 5)
            + 0.5 * min(self.remedies, 3)
            + 1.5 * min(self.strong_remedies, 2)
            + 0.75 * min(self.flaws, 2)
            + 1.5 * self.is_severe
        )

    @property
    def remedy_value(self) -> float:
        """The rank among the sentences of one learning: what to do counts most."""
        return 3.0 * self.strong_remedies + 1.5 * self.remedies + 0.5 * min(self._name_count, 4) + 0.5 * self.flaws


class NameCounts:
    """How many texts of a file contain each name."""

    def __init__(self, texts: Iterable[str]) -> None:
        found = [(text, find_names(text)) for text in texts]
        self._counts = Counter(name for _, names in found for name in names)
        self._total = len(found)
        self._names = dict(found)

    def is_telling(self, name: str) -> bool:
        """Return whether few texts contain the name."""
        return self._counts[name] <= max(2, _MAX_SHARE * self._total)

    def judge(self, text: str) -> Specificity:
        """Return the specificity of a text among those of its file."""
        plain, _ = normalize_characters(text[:_MAX_LENGTH])
        lower = plain.lower()
        names = self._names.get(plain)
        return Specificity(
            names=frozenset(filter(self.is_telling, find_names(plain) if names is None else names)),
            remedies=_count_words(lower, _REMEDY, REMEDY_ADVICE),
            strong_remedies=_count_words(lower, _STRONG, RULE_ADVICE),
            flaws=_count_words(lower, _FLAW, FLAW_ADVICE),
            is_severe=_has_word(lower, _SEVERE, SEVERE_ADVICE),
            is_assignment=_ASSIGNMENT.match(plain) is not None,
        )


def _count_words(lower: str, english: re.Pattern[str], others: Advice) -> int:
    """Return the number of different words of either kind in a text in lower case."""
    words = set(english.findall(lower))
    if len(words) < _MANY_WORDS:
        words.update(match[0] for match in others.find(lower))
    return len(words)


def find_names(text: str) -> frozenset[str]:
    """Return the names of things in the code that a text contains, without those of one run.

    Text in scripts that put no spaces between words is no part of a name.
    """
    return frozenset(_iter_names(text))


def contains_name(text: str) -> bool:
    """Return whether a text contains the name of a thing in the code."""
    return any(_iter_names(text))


def _iter_names(text: str) -> Iterator[str]:
    text = text[:_MAX_LENGTH]
    if not text.isascii():
        text = UNSPACED_RUN.sub(" ", text)
    for match in _NAME.finditer(text):
        if match.lastgroup is None:
            name = match[0].strip("`*_.,:; ")
            if len(name) > 1 and not _PASSING.search(name):
                yield name.lower()


def states_rule(text: str) -> bool:
    """Return whether a text states a rule, with words such as always and never."""
    return _has_word(text[:_MAX_LENGTH].lower(), _RULE, RULE_ADVICE)


def _has_word(lower: str, english: re.Pattern[str], others: Advice) -> bool:
    return english.search(lower) is not None or any(others.find(lower))


_MAX_ENTRIES_OF_NAME = 6  # entries that may have a name, so that it is rare
_MIN_SHARED_NAMES = 2
_MIN_WORDS = 0.12  # share of the words beside two shared names
_MIN_WORDS_ALONE = 0.5  # share of the words that is enough with one shared name
_MIN_WORD_LENGTH = 4
_CONFIRMING_LAYERS = frozenset({Layer.ETCHED, Layer.NOTES, Layer.INSCRIBED, Layer.TRACED})


class _Lesson(NamedTuple):
    role: str
    id: str
    names: frozenset[str]
    words: frozenset[str]


def find_confirmations(role: str, document: Document, others: Mapping[str, Document]) -> Mapping[str, frozenset[str]]:
    """Return entry id -> the roles in which the same lesson was learned, for the inscribed entries of a role.

    The role itself is among them if another of its entries has the lesson too.
    """
    lessons = [*_lessons(role, document)]
    own = len(lessons)
    for name in sorted(others):
        lessons += _lessons(name, others[name])
    entries_of_name = Counter(
        name for name, _ in {(name, (lesson.role, lesson.id)) for lesson in lessons for name in lesson.names}
    )
    by_name: defaultdict[str, list[int]] = defaultdict(list)
    for number, lesson in enumerate(lessons):
        for name in lesson.names:
            if 1 < entries_of_name[name] <= _MAX_ENTRIES_OF_NAME:
                by_name[name].append(number)
    found: defaultdict[str, set[str]] = defaultdict(set)
    for lesson in lessons[:own]:
        shared = Counter(number for name in lesson.names for number in by_name.get(name, ()))
        for number, names in shared.items():
            other = lessons[number]
            if (other.role, other.id) != (lesson.role, lesson.id) and _confirms(lesson, other, names):
                found[lesson.id].add(other.role)
    return {entry_id: frozenset(roles) for entry_id, roles in found.items()}


def _confirms(one: _Lesson, other: _Lesson, shared_names: int) -> bool:
    words = jaccard(one.words, other.words)
    return words >= (_MIN_WORDS if shared_names >= _MIN_SHARED_NAMES else _MIN_WORDS_ALONE)


def _lessons(role: str, document: Document) -> Sequence[_Lesson]:
    lessons = []
    for block, entry_id in zip(document.blocks, entry_ids(role, document), strict=True):
        if block.entry is None or entry_id is None or block.entry.layer not in _CONFIRMING_LAYERS:
            continue
        for part in learnings(split_body(block.body)):
            words = frozenset(stem(word) for word in tokenize(fold(part.words)) if len(word) >= _MIN_WORD_LENGTH)
            lessons.append(_Lesson(role, entry_id, find_names(part.words), words))
    return lessons
