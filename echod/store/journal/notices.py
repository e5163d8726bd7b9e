"""What a person should look at: it is noted in the journal, and the work goes on; nothing waits for the answer.

What the engine did itself is a `Notice`. What a job was told and may not do is a `Question`: it is noted before the
job's commit, and counts only once the ledger says that the commit was done. So no kill can lose it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

from echod.store.journal.files import append_durable, read_json_lines
from echod.store.layout import Role

NOTICES, QUESTIONS = "notices", "questions"
"""The files of a role's journal that these are in."""

CLAIM, SUPERSEDES = "claim", "supersedes"
"""The kinds of questions: a finding claims a layer that only a person gives; what it replaces is in doubt."""


@dataclass(frozen=True, slots=True)
class Notice:
    """One thing to look at.

    Attributes:
        at: Unix seconds.
        kind: `reverted`, `doubtful`, `restored-too-often`, `git`, `unmergeable` or `forgotten`.
        role: the role's name.
        text: a sentence: what happened, what echod did, where the text is.
        titles: headings of the blocks it is about.
    """

    at: float
    kind: str
    role: str
    text: str
    titles: tuple[str, ...] = ()


def add_notice(root: Path, notice: Notice) -> None:
    """Add a review item to a role's journal."""
    append_durable(root / NOTICES, json.dumps(asdict(notice)))


def read_notices(root: Path) -> tuple[Notice, ...]:
    """The review items of a role's journal, oldest first."""
    return tuple(
        Notice(**{**raw, "titles": tuple(raw["titles"])}) for raw in _read_rows(root / NOTICES, Notice.__slots__)
    )


@dataclass(frozen=True, slots=True)
class Question:
    """What a finding asks for and only a person may do.

    Attributes:
        at: Unix seconds.
        kind: `CLAIM` or `SUPERSEDES`.
        role: the role's name.
        key: the finding's, in the ledger.
        entry: the id of the entry that holds what the finding says.
        target: the layer, or the normalised title of what gives way.
        problem: why nothing gave way; empty for a claim.
    """

    at: float
    kind: str
    role: str
    key: str
    entry: str
    target: str
    problem: str


class Notices(NamedTuple):
    """What a store's journal has for a person.

    Attributes:
        notices: what the engine did itself, oldest first.
        questions: what findings that were folded in ask for, oldest first.
        restored_findings: by role, digests of findings files that undos gave back; not folded in again unasked.
    """

    notices: tuple[Notice, ...]
    questions: tuple[Question, ...]
    restored_findings: Mapping[Role, frozenset[str]]


def add_questions(root: Path, questions: Iterable[Question]) -> None:
    """Add questions to a role's journal, durably, unless they are there."""
    known = {_question_identity(question) for question in read_questions(root)}
    new = [question for question in questions if _question_identity(question) not in known]
    if new:
        append_durable(root / QUESTIONS, "\n".join(json.dumps(asdict(question)) for question in new))


def read_questions(root: Path) -> tuple[Question, ...]:
    """The questions of a role's journal, oldest first, also those of findings that were never folded in."""
    return tuple(Question(**raw) for raw in _read_rows(root / QUESTIONS, Question.__slots__))


def _question_identity(question: Question) -> tuple[str, ...]:
    return question.kind, question.key, question.entry, question.target, question.problem


def _read_rows(path: Path, names: Iterable[str]) -> Iterator[dict[str, Any]]:
    """The objects in a file, one a line, that have these fields and no others; what a power cut tore has not."""
    expected = set(names)
    yield from (raw for raw in read_json_lines(path) if raw.keys() == expected)
