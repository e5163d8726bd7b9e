"""Where commits are written down: one directory a role, plain files, fsynced, independent of the database.

    {journal}/{store}/project            the store's path, for people and for `echod log`
    {journal}/{store}/{role}/records/    commits that are not finished with (intent, applied)
    {journal}/{store}/{role}/closed/     commits kept for undo and log
    {journal}/{store}/{role}/blobs/      contents, named by digest
    {journal}/{store}/{role}/states      known contents of the memory file, oldest first, one JSON line each
    {journal}/{store}/{role}/ledger      findings consumed (+) or given back (-), one line each, by commit
    {journal}/{store}/{role}/undo-seqs   numbers of the commits that undo one, one a line
    {journal}/{store}/{role}/restored-findings  findings given back by undos that are forgotten, one digest a line
    {journal}/{store}/{role}/deleted-undos  commits that are forgotten and undid one or were undone, one JSON line each
    {journal}/{store}/{role}/journal-id  marks the dot-files this journal owns in the store
    {journal}/{store}/{role}/own-mtimes  modification times of files as echod left them
    {journal}/{store}/{role}/lock        mark of the writers' lock we hold
    {journal}/{store}/{role}/staging     there may be files beside the memory that no commit knows of yet

Only one process may use a journal for writing at a time (the worker lock sees to it).
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from echod.paths import PRIVATE_DIR_MODE
from echod.store.journal.blobs import BlobStore
from echod.store.journal.files import append_fast, read_json_lines, write_durable, write_fast
from echod.store.journal.ledger import Ledger
from echod.store.journal.notices import NOTICES, QUESTIONS
from echod.store.journal.record_directory import RecordDirectory
from echod.store.journal.undo_index import RESTORED_FINDINGS, UNDO_SEQS, UndoIndex, UndoInfo, undo_info
from echod.store.layout import MEMORY, Role, Store, store_at
from echod.store.snapshot import content_digest

if TYPE_CHECKING:
    from echod.store.journal.records import CommitRecord

_ROOT_ROLE = "+root"
_NOTICE_FILES = (NOTICES, QUESTIONS, UNDO_SEQS, RESTORED_FINDINGS)


class KnownState(NamedTuple):
    """A content of the memory file that was really there.

    Attributes:
        digest: its digest.
        since: when it became visible (Unix seconds, never going back).
        head: git HEAD at that time, None where no repository tracks the file.
    """

    digest: str
    since: float
    head: str | None


@dataclass
class RoleJournal:
    """The journal of one role.

    Attributes:
        root: its directory.
        staged_files_swept: whether this process has looked for what a killed one may have left beside the memory.
        quiescent_commits: open commits (number and time) whose files nobody can write any more.
    """

    root: Path
    staged_files_swept: bool = False
    quiescent_commits: set[tuple[int, float]] = field(default_factory=set)
    _cached_states: tuple[tuple[int, int, int], tuple[KnownState, ...]] | None = field(init=False, default=None)

    @cached_property
    def _open_directory(self) -> RecordDirectory[CommitRecord]:
        return RecordDirectory(self.root / "records", lambda record: record)

    @cached_property
    def _closed_directory(self) -> RecordDirectory[UndoInfo]:
        return RecordDirectory(self.root / "closed", undo_info)

    @cached_property
    def undo_index(self) -> UndoIndex:
        """What was taken back in the role."""
        return UndoIndex(self.root, self._open_directory, self._closed_directory)

    @cached_property
    def _ledger(self) -> Ledger:
        return Ledger(self.root / "ledger")

    @property
    def blobs(self) -> BlobStore:
        """The contents this journal keeps."""
        return BlobStore(self.root / "blobs")

    @property
    def journal_id(self) -> str:
        """Marks our own dot-files in the store, so that another journal's (or a lost one's) are never swept."""
        try:
            return (self.root / "journal-id").read_text()
        except FileNotFoundError:
            return "none"

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        """While it lasts nobody but this thread writes here: the role is held."""
        with self._open_directory.exclusive(), self._closed_directory.exclusive():
            yield

    def open_records(self) -> tuple[CommitRecord, ...]:
        """Commits that are not finished with, oldest first."""
        return self._open_directory.summaries()

    def closed_records(self) -> tuple[CommitRecord, ...]:
        """Commits kept for undo and log, oldest first."""
        return self._closed_directory.records()

    def next_seq(self) -> int:
        """A number no commit of this role has had (the newest closed record is never removed)."""
        return 1 + max(self._open_directory.max_seq(), self._closed_directory.max_seq())

    def save(self, record: CommitRecord) -> None:
        """Write an open record durably, replacing its earlier version."""
        self.undo_index.register(record)
        self._open_directory.save(record)

    def discard(self, record: CommitRecord) -> None:
        """Remove a record of which nothing was done."""
        self._open_directory.delete(record)
        self._open_directory.sync()

    def close(self, record: CommitRecord) -> None:
        """Move a record to the history; `record` carries the state CLOSED. Idempotent."""
        self._closed_directory.save(record)
        self._open_directory.delete(record)  # should that be forgotten by a power cut, it is closed once more
        self.quiescent_commits.discard((record.seq, record.at))

    def rewrite_closed(self, record: CommitRecord) -> None:
        """Write a closed record again (retention thins its images)."""
        self._closed_directory.save(record)

    def delete_closed(self, record: CommitRecord) -> None:
        """Forget a closed record for good, but not what it gave back, if that stays given back, nor what was undone."""
        self.undo_index.retain(record)
        self._closed_directory.delete(record)
        self.undo_index.unregister(record)

    def newest_state(self) -> KnownState | None:
        """The last of `states`, found without looking at all of them; None where there is none."""
        recorded = _latest(self._recorded_states())
        for record in reversed(self.open_records()):
            if states := _memory_states(record):
                return states[-1] if recorded is None or states[-1].since >= recorded.since else recorded
        return recorded

    def states(self) -> tuple[KnownState, ...]:
        """Known contents of the memory file, oldest first, neighbours different."""
        found = [
            *self._recorded_states(),
            *(state for record in self.open_records() for state in _memory_states(record)),
        ]
        found.sort(key=lambda state: state.since)
        merged: list[KnownState] = []
        for state in found:
            if merged and merged[-1].digest == state.digest:
                merged[-1] = KnownState(state.digest, merged[-1].since, state.head)
            else:
                merged.append(state)
        return tuple(merged)

    def record_states(self, states: Iterable[KnownState]) -> None:
        """Remember contents; losing these lines to a power cut only shortens the history."""
        append_fast(self.root / "states", "\n".join(map(_state_line, states)))

    def replace_states(self, states: Iterable[KnownState]) -> None:
        """Replace the remembered contents by these."""
        write_durable(self.root / "states", "".join(f"{_state_line(s)}\n" for s in states).encode())

    def consumed_keys(self) -> AbstractSet[str]:
        """The ledger as of now: findings already consumed and not given back, open commits included."""
        return self._ledger.keys(self.open_records())

    def notice_files(self) -> frozenset[str]:
        """Those files that have something in them which a person may be told: to look in vain at each costs more."""
        try:
            with os.scandir(self.root) as entries:
                sizes = {entry.name: entry.stat().st_size for entry in entries if entry.name in _NOTICE_FILES}
        except FileNotFoundError:
            return frozenset()
        # Where it is not listed which commits undo one, the answer is in the commits.
        return frozenset(name for name in _NOTICE_FILES if sizes.get(name, name == UNDO_SEQS))

    def partially_consumed(self) -> frozenset[str]:
        """Digests of findings files of which a part was taken up; all of them may be gone by now."""
        return frozenset(part.digest for record in self.open_records() for part in record.partial_consumes)

    def add_to_ledger(self, record: CommitRecord) -> None:
        """Carry a record's keys to the ledger, durably, before it is closed. Entering twice changes nothing."""
        self._ledger.add(record)

    def trim_ledger(self, keys: int) -> None:
        """Bound the ledger: of so many findings the last that was done with each."""
        self._ledger.trim(keys)

    def own_mtimes(self) -> Mapping[str, int]:
        """Files (relative to the store) and their modification time in nanoseconds as echod last left them."""
        try:
            mtimes: dict[str, int] = json.loads((self.root / "own-mtimes").read_bytes())
        except (FileNotFoundError, ValueError):
            return {}
        return mtimes

    def record_own_mtimes(self, mtimes: Mapping[str, int]) -> None:
        """Remember modification times; after a power cut they are merely unknown."""
        if mtimes:
            merged = {**self.own_mtimes(), **mtimes}
            write_fast(self.root / "own-mtimes", json.dumps(merged, sort_keys=True).encode())

    def record_lock(self, token: str) -> None:
        """Remember the mark of the writers' lock we take, so that recovery can release it at once."""
        write_fast(self.root / "lock", token.encode())

    def recorded_lock(self) -> str | None:
        """The mark of a lock we took and did not say to have released."""
        try:
            return (self.root / "lock").read_text()
        except FileNotFoundError:
            return None

    def clear_lock(self) -> None:
        """We hold no lock any more."""
        (self.root / "lock").unlink(missing_ok=True)

    def record_staging(self) -> None:
        """Remember that stages are about to be made, so that whoever comes after a kill looks for them.

        A power cut may forget it; but then every process is a new one, and looks in any case.
        """
        write_fast(self.root / "staging", b"")

    def staging_recorded(self) -> bool:
        """Whether a process began to stage and did not say how that ended."""
        return (self.root / "staging").exists()

    def clear_staging(self) -> None:
        """Every stage belongs to a commit that is written down, or is gone."""
        (self.root / "staging").unlink(missing_ok=True)

    def _recorded_states(self) -> tuple[KnownState, ...]:
        """The states of closed commits and of what others wrote; read anew where the file has changed."""
        try:
            status = (self.root / "states").stat()
        except FileNotFoundError:
            return ()
        version = (status.st_ino, status.st_size, status.st_mtime_ns)
        if self._cached_states is None or self._cached_states[0] != version:
            read = (KnownState(s["digest"], s["since"], s["head"]) for s in read_json_lines(self.root / "states"))
            self._cached_states = (version, tuple(read))
        return self._cached_states[1]


@dataclass(slots=True)
class Journal:
    """All roles' journals below one directory."""

    root: Path
    _roles: dict[tuple[str, str], RoleJournal] = field(default_factory=dict)
    _stores: dict[str, Path] = field(default_factory=dict)

    def role_journal(self, role: Role) -> RoleJournal:
        """The journal of a role, created when first written."""
        key = (role.store.key, role.name)
        if key not in self._roles:
            self._roles[key] = RoleJournal(self._store_dir(role.store) / (role.name or _ROOT_ROLE))
        return self._roles[key]

    def create_role_journal(self, role: Role) -> RoleJournal:
        """The journal of a role, its directory made."""
        journal = self.role_journal(role)
        if not (journal.root / "journal-id").exists():
            # Each by itself: parents that mkdir makes on the way would be readable for others.
            journal.root.parent.mkdir(mode=PRIVATE_DIR_MODE, parents=True, exist_ok=True)
            journal.root.mkdir(mode=PRIVATE_DIR_MODE, exist_ok=True)
            status = journal.root.stat()
            journal_id = content_digest(f"{journal.root}:{status.st_ino}:{status.st_mtime_ns}".encode())[:6]
            write_durable(journal.root.parent / "project", role.store.key.encode())
            journal.undo_index.build()
            write_durable(journal.root / "journal-id", journal_id.encode())
        return journal

    def roles(self, store: Store) -> tuple[Role, ...]:
        """The roles of a store that have a journal, whether or not their directories still exist."""
        try:
            with os.scandir(self._store_dir(store)) as entries:
                names = sorted(entry.name for entry in entries if entry.is_dir())
        except FileNotFoundError:
            return ()
        return tuple(Role(store, "" if name == _ROOT_ROLE else name) for name in names)

    def stores(self) -> tuple[Store, ...]:
        """Every store that has a journal."""
        try:
            files = sorted(self.root.glob("*/project"))
        except FileNotFoundError:
            return ()
        return tuple(store_at(Path(p.read_text())) for p in files)

    def _store_dir(self, store: Store) -> Path:
        if store.key not in self._stores:
            self._stores[store.key] = self.root / content_digest(store.key.encode())[:16]
        return self._stores[store.key]


def _memory_states(record: CommitRecord) -> list[KnownState]:
    """The contents of the memory file before and after a commit that is done."""
    from echod.store.journal.records import RecordState  # noqa: PLC0415  slow to load; most looks read no record

    if record.state is not RecordState.APPLIED:
        return []
    writes = [write for write in record.writes if write.path.rpartition("/")[2] == MEMORY]
    return [
        KnownState(image, record.at, record.head)
        for write in writes
        for image in (write.before_digest, write.after_digest)
        if image
    ]


def _latest(states: Iterable[KnownState]) -> KnownState | None:
    """The last one of those that became visible last."""
    latest: KnownState | None = None
    for state in states:
        if latest is None or state.since >= latest.since:
            latest = state
    return latest


def _state_line(state: KnownState) -> str:
    return json.dumps({"digest": state.digest, "since": state.since, "head": state.head})
