"""Find lessons that were learned more than once: in other roles, or again in the same one.

Two learnings confirm each other if both name the same rare things in the code, and share some of their other words.
Words alone do not decide: two learnings about the same thing may have few in common, and two in the same jargon many.
Confirmations only protect learnings and are shown. Nothing is merged because of them.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from echod.memory.entry_parts import learnings, split_body
from echod.memory.identity import entry_ids
from echod.memory.model import Document, Layer
from echod.memory.similarity.words import fold, jaccard, stem, tokenize
from echod.memory.specificity import find_names

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
