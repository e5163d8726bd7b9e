"""The small files of a role's journal: consumed findings, undone commits, and notices and questions for the user.

The ledger ensures that a stale copy of a findings file adds none of them twice. It has one line for each finding that a
closed commit consumed (+) or restored (-). The findings of open commits are in their records. The set of all known keys
is cached, and new commits are added to it. Threads may share it.

The index of undone commits includes deleted ones. Commits that undo another one are few, and every read needs them, so
their numbers are listed (`UNDO_SEQS`) first. Two facts survive their deletion: findings that remain restored
(`RESTORED_FINDINGS`), and which commit undid which.

Notices and questions do not stop the work. A `Notice` reports an action of the engine. A `Question` is a finding's
request that a job may not fulfil. It is recorded before the job's commit, and counts only once the ledger shows that
the commit was applied. So no kill can lose it.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from echod.files import FileVersion
from echod.lazy import lazy_pattern
from echod.store.journal.files import (
    append_durable,
    read_if_exists,
    read_json_lines,
    read_lines,
    version_of,
    write_durable,
)
from echod.store.journal.records import CommitRecord, RecordDirectory
from echod.store.layout import Role

_LINE = lazy_pattern(r"\d{8,} [-+] .+")
_COMPACT_RATIO = 2
"""The file is rewritten when it has this many times the lines that it needs."""


@dataclass(slots=True)
class Ledger:
    """The ledger of one role. `path` is the part that closed commits wrote."""

    path: Path
    _version: FileVersion | None = None
    _included: frozenset[tuple[int, float]] = frozenset()
    _keys: AbstractSet[str] = frozenset()
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def keys(self, open_records: Sequence[CommitRecord]) -> AbstractSet[str]:
        """Return the keys of consumed findings as of now, without the restored ones. Later commits do not change it."""
        with self._lock:
            # A commit that was rolled back leaves its number to the next one, so the time identifies it too.
            version, included = version_of(self.path), frozenset((record.seq, record.at) for record in open_records)
            newest = max((seq for seq, _ in self._included), default=0)
            new = [record for record in open_records if (record.seq, record.at) not in self._included]
            if version != self._version or not self._included <= included or any(r.seq < newest for r in new):
                self._keys = self._read(open_records)
            elif changes := [change for record in new for change in sorted(_changes(record))]:
                self._keys = _apply(self._keys, changes)
            self._version, self._included = version, included
            return self._keys

    def add(self, record: CommitRecord) -> None:
        """Add a commit's findings to the file, durably. Adding them twice changes nothing."""
        lines = _format_lines(record)
        if lines:
            append_durable(self.path, "\n".join(lines))

    def trim(self, max_keys: int) -> None:
        """Keep the last change of each of the `max_keys` newest findings. Rewrites the file rarely.

        A restored finding is kept like a consumed one, because an older commit may add it again.
        """
        changes = sorted(self._file_changes())
        last = {key: (seq, sign, key) for seq, sign, key in changes}
        if len(last) > max_keys or len(changes) > _COMPACT_RATIO * len(last):
            newest = sorted(last.values())[-max_keys:]
            write_durable(self.path, "".join(f"{_format_line(*change)}\n" for change in newest).encode())

    def _read(self, open_records: Iterable[CommitRecord]) -> AbstractSet[str]:
        changes = set(self._file_changes())
        changes |= {(record.seq, sign, key) for record in open_records for sign, key in _changes(record)}
        return _apply((), ((sign, key) for _, sign, key in sorted(changes)))

    def _file_changes(self) -> Iterator[tuple[int, str, str]]:
        """Yield the lines of the file: the number of the commit, the sign and the key of the finding."""
        for line in read_lines(self.path):
            # The finding of a line torn by a full disk or a power cut is in the record of its commit too.
            if _LINE.fullmatch(line):
                number, sign, key = line.split(" ", 2)
                yield int(number), sign, key


def _apply(keys_before: Iterable[str], changes: Iterable[tuple[str, str]]) -> AbstractSet[str]:
    """Return the keys after changes in order: by commit, and within a commit consumed findings before restored ones."""
    keys = set(keys_before)
    for sign, key in changes:
        (keys.add if sign == "+" else keys.discard)(key)
    return keys


def _format_lines(record: CommitRecord) -> list[str]:
    return [_format_line(record.seq, sign, key) for sign, key in _changes(record)]


def _format_line(seq: int, sign: str, key: str) -> str:
    return f"{seq:08d} {sign} {key}"


def _changes(record: CommitRecord) -> Iterator[tuple[str, str]]:
    yield from (("+", key) for consume in record.consumes for key in consume.keys)
    yield from (("+", key) for part in record.partial_consumes for key in part.keys)
    yield from (("-", key) for key in record.unconsumed_keys)
    yield from (("-", key) for part in record.withdrawn_consumes for key in part.keys)


UNDO_SEQS, RESTORED_FINDINGS = "undo-seqs", "restored-findings"

_DELETED_UNDOS = "deleted-undos"


class UndoInfo(NamedTuple):
    """The part of a commit record that concerns undo. `restored_findings` are digests."""

    seq: int
    job: int | None
    undoes: tuple[int, ...]
    restored_findings: tuple[str, ...] = ()


def undo_info(record: CommitRecord) -> UndoInfo:
    """Return the undo information of a record."""
    return UndoInfo(record.seq, record.job, record.undoes, tuple(_restored_by(record)))


class UndoIndex:
    """The undo information of one role. `root` is its journal's directory."""

    def __init__(
        self, root: Path, open_records: RecordDirectory[CommitRecord], closed: RecordDirectory[UndoInfo]
    ) -> None:
        self._root = root
        self._open = open_records
        self._closed = closed

    def restored_findings(self) -> frozenset[str]:
        """Return the digests of findings files that an undo restored.

        They are consolidated again only at the user's request. Undoing the undo is such a request.
        """
        undos = tuple(self._undo_commits())
        redone = {seq for undo in undos for seq in undo.undoes}
        restored = {name for undo in undos if undo.seq not in redone for name in undo.restored_findings}
        return frozenset(restored.union(read_lines(self._root / RESTORED_FINDINGS)))

    def undone_jobs(self) -> frozenset[int]:
        """Return the jobs that were undone in this role and not redone, however long ago."""
        commits = sorted(self._all_commits(), key=lambda commit: commit.seq, reverse=True)
        undone: set[int] = set()
        for commit in commits:  # an undo is later than the commit that it undoes
            if commit.seq not in undone:
                undone.update(commit.undoes)
        return frozenset(c.job for c in commits if c.seq in undone and c.job is not None)

    def build(self) -> None:
        """Write the list of commits that undo another one, if it is missing. Call this before the first commit.

        A caller that reads a hundred projects then reads these commits only.
        """
        if self._registered() is None:
            write_durable(
                self._root / UNDO_SEQS, _format_seqs(commit.seq for commit in self._known_commits() if commit.undoes)
            )

    def register(self, record: CommitRecord) -> None:
        """Add a commit that undoes another one to the list, durably. Call this before the record is written."""
        if not record.undoes:
            return
        self.build()
        if record.seq not in (self._registered() or ()):
            append_durable(self._root / UNDO_SEQS, str(record.seq))

    def retain(self, record: CommitRecord) -> None:
        """Keep the restored findings and the undo relations of a closed commit. Call this before it is deleted."""
        restored = set(_restored_by(record))
        if restored and (still_restored := self.restored_findings() & restored):
            append_durable(self._root / RESTORED_FINDINGS, "\n".join(sorted(still_restored)))
        if record.undoes or any(record.seq in commit.undoes for commit in self._all_commits()):
            line = json.dumps({"seq": record.seq, "job": record.job, "undoes": record.undoes})
            append_durable(self._root / _DELETED_UNDOS, line)

    def unregister(self, record: CommitRecord) -> None:
        """Remove a deleted commit from the list."""
        if record.undoes and (registered := self._registered()):
            write_durable(self._root / UNDO_SEQS, _format_seqs(seq for seq in registered if seq != record.seq))

    def _registered(self) -> tuple[int, ...] | None:
        """Return the listed commits (every one that undoes another, maybe more), or None if there is no list."""
        data = read_if_exists(self._root / UNDO_SEQS)
        return None if data is None else tuple(int(number) for number in data.split() if number.isdigit())

    def _undo_commits(self) -> Iterator[UndoInfo]:
        """Yield every known commit that undoes another one, and maybe others."""
        registered = self._registered()
        if registered is None:
            yield from self._known_commits()
            return
        for seq in registered:
            # A commit that is being closed is in both directories for a moment. Open first, so that one has it.
            record = self._open.summary_of(seq)
            info = self._closed.summary_of(seq) if record is None else undo_info(record)
            if info is not None:
                yield info

    def _known_commits(self) -> Iterator[UndoInfo]:
        yield from map(undo_info, self._open.summaries())
        yield from self._closed.summaries()

    def _all_commits(self) -> Iterator[UndoInfo]:
        """Yield the undo information of every commit, and of deleted commits that were part of an undo."""
        yield from self._known_commits()
        for line in read_json_lines(self._root / _DELETED_UNDOS):
            yield UndoInfo(line["seq"], line["job"], tuple(line["undoes"]))


def _restored_by(record: CommitRecord) -> Iterator[str]:
    """Yield the digests of the findings files that an undo restored, completely or in part."""
    if record.undoes:
        yield from (write.after_digest for write in record.writes if write.path.endswith("-findings.md"))
        yield from (part.digest for part in record.withdrawn_consumes)


def _format_seqs(seqs: Iterable[int]) -> bytes:
    return "".join(f"{number}\n" for number in seqs).encode()


NOTICES, QUESTIONS = "notices", "questions"
"""The names of their files in a role's journal."""

CLAIM, SUPERSEDES, PROPOSAL = "claim", "supersedes", "proposal"
"""The kinds of questions: a finding claims a layer that only the user may give, or supersedes an unclear entry; the
user's own command proposes one entry in place of others."""


class Notice(NamedTuple):
    """One notice."""

    at: float  # Unix seconds
    # `reverted`, `doubtful`, `emptied`, `restored-too-often`, `git`, `unmergeable`, `forgotten` or `overwritten`
    kind: str
    role: str
    text: str  # a sentence: what happened, what echod did, where the text is
    titles: tuple[str, ...] = ()  # headings of the affected blocks
    entries: tuple[str, ...] = ()  # ids of the entries that left the memory and are in the archive


class Question(NamedTuple):
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
    append_durable(root / NOTICES, json.dumps(notice._asdict()))


def read_notices(root: Path) -> tuple[Notice, ...]:
    """Return the notices of a role's journal, oldest first."""
    return tuple(
        Notice(**{**raw, "titles": tuple(raw["titles"]), "entries": tuple(raw["entries"])})
        for raw in _read_rows(root / NOTICES, Notice._fields)
    )


def add_questions(root: Path, questions: Iterable[Question]) -> None:
    """Add questions to a role's journal, durably, except for those that it contains already."""
    known = {_question_identity(question) for question in read_questions(root)}
    new = [question for question in questions if _question_identity(question) not in known]
    if new:
        append_durable(root / QUESTIONS, "\n".join(json.dumps(question._asdict()) for question in new))


def read_questions(root: Path) -> tuple[Question, ...]:
    """Return the questions of a role's journal, oldest first, including those of findings never consolidated."""
    return tuple(Question(**raw) for raw in _read_rows(root / QUESTIONS, Question._fields))


def _question_identity(question: Question) -> tuple[str, ...]:
    return question.kind, question.key, question.entry, question.target, question.problem


def _read_rows(path: Path, names: Iterable[str]) -> Iterator[dict[str, Any]]:
    """Yield the objects in a file that have exactly these fields, which a line torn by a power cut does not have."""
    expected = set(names)
    yield from (raw for raw in read_json_lines(path) if raw.keys() == expected)
