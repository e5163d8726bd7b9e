"""Record notices and questions for the user in the journal.

The work continues without an answer. A `Notice` reports an action of the engine. A `Question` is a finding's request
that a job may not fulfil. It is recorded before the job's commit, and counts only once the ledger shows that the
commit was applied. So no kill can lose it.
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
"""The names of their files in a role's journal."""

CLAIM, SUPERSEDES, PROPOSAL = "claim", "supersedes", "proposal"
"""The kinds of questions: a finding claims a layer that only the user may give, or supersedes an unclear entry; the
user's own command proposes one entry in place of others."""


@dataclass(frozen=True, slots=True)
class Notice:
    """One notice."""

    at: float  # Unix seconds
    # `reverted`, `doubtful`, `emptied`, `restored-too-often`, `git`, `unmergeable`, `forgotten` or `overwritten`
    kind: str
    role: str
    text: str  # a sentence: what happened, what echod did, where the text is
    titles: tuple[str, ...] = ()  # headings of the affected blocks
    entries: tuple[str, ...] = ()  # ids of the entries that left the memory and are in the archive


@dataclass(frozen=True, slots=True)
class Question:
    """A request that only the user may fulfil, of a finding or of the user's own command."""

    at: float  # Unix seconds
    kind: str  # `CLAIM`, `SUPERSEDES` or `PROPOSAL`
    role: str
    key: str  # the finding's key in the ledger, or that of the proposal
    entry: str  # the id of the entry with the finding's text, or of the first that is to be merged
    target: str  # the layer, the normalized title of the superseded entry, or the proposal as JSON
    problem: str  # why no entry was superseded; empty for a claim


class Notices(NamedTuple):
    """The items for the user in a store's journal."""

    notices: tuple[Notice, ...]  # actions of the engine, oldest first
    questions: tuple[Question, ...]  # requests of consolidated findings and of the user's command, oldest first
    # by role, digests of findings files that undos restored. They are not consolidated again automatically.
    restored_findings: Mapping[Role, frozenset[str]]


def add_notice(root: Path, notice: Notice) -> None:
    """Add a notice to a role's journal."""
    append_durable(root / NOTICES, json.dumps(asdict(notice)))


def read_notices(root: Path) -> tuple[Notice, ...]:
    """Return the notices of a role's journal, oldest first."""
    return tuple(
        Notice(**{**raw, "titles": tuple(raw["titles"]), "entries": tuple(raw["entries"])})
        for raw in _read_rows(root / NOTICES, Notice.__slots__)
    )


def add_questions(root: Path, questions: Iterable[Question]) -> None:
    """Add questions to a role's journal, durably, except for those that it contains already."""
    known = {_question_identity(question) for question in read_questions(root)}
    new = [question for question in questions if _question_identity(question) not in known]
    if new:
        append_durable(root / QUESTIONS, "\n".join(json.dumps(asdict(question)) for question in new))


def read_questions(root: Path) -> tuple[Question, ...]:
    """Return the questions of a role's journal, oldest first, including those of findings never consolidated."""
    return tuple(Question(**raw) for raw in _read_rows(root / QUESTIONS, Question.__slots__))


def _question_identity(question: Question) -> tuple[str, ...]:
    return question.kind, question.key, question.entry, question.target, question.problem


def _read_rows(path: Path, names: Iterable[str]) -> Iterator[dict[str, Any]]:
    """Yield the objects in a file that have exactly these fields, which a line torn by a power cut does not have."""
    expected = set(names)
    yield from (raw for raw in read_json_lines(path) if raw.keys() == expected)
