"""The journal: the commits of each role in plain, synced files, independent of the database.

    {journal}/{store}/project            the store's path, for the user and for `echod log`
    {journal}/{store}/{role}/records/    commits that are still followed (intent, applied)
    {journal}/{store}/{role}/closed/     commits kept for undo and log
    {journal}/{store}/{role}/blobs/      contents, named by digest
    {journal}/{store}/{role}/states      known contents of the memory file, oldest first, one JSON line each
    {journal}/{store}/{role}/readings    moments after commits whose clock was wrong, one JSON line each
    {journal}/{store}/{role}/ledger      findings consumed (+) or restored (-), one line each, by commit
    {journal}/{store}/{role}/undo-seqs   numbers of the commits that undo another one, one on each line
    {journal}/{store}/{role}/restored-findings  findings restored by deleted undo commits, one digest on each line
    {journal}/{store}/{role}/deleted-undos  deleted commits that undid another one or were undone, one JSON line each
    {journal}/{store}/{role}/notices, questions  items for the user, one JSON line each
    {journal}/{store}/{role}/journal-id  marks the files in the store's private directory that belong to this journal
    {journal}/{store}/{role}/own-mtimes  modification times of files as echod left them
    {journal}/{store}/{role}/lock        token of the writers' lock that echod holds
    {journal}/{store}/{role}/staging     exists while there may be staged files that no commit knows yet

Only one process may write to a journal at a time (the worker lock ensures it).

A journal is named by the path of its store, so a renamed project would begin without undo. The files that echod wrote
keep their modification times when a directory is moved, to the nanosecond, so they show whose journal it is.

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
from typing import Any, NamedTuple

from echod.errors import GARBLED_ERRORS
from echod.files import FileVersion, content_digest, read_regular
from echod.log import get_logger
from echod.paths import PRIVATE_DIR_MODE, make_private_directory
from echod.store.errors import RefusedError, as_store_error
from echod.store.journal.files import (
    BlobStore,
    append_fast,
    fsync_directory,
    read_if_exists,
    read_json_lines,
    version_of,
    write_durable,
    write_fast,
)
from echod.store.journal.ledger import (
    NOTICES,
    QUESTIONS,
    RESTORED_FINDINGS,
    UNDO_SEQS,
    Ledger,
    UndoIndex,
    UndoInfo,
    undo_info,
)
from echod.store.journal.records import CommitRecord, Reading, RecordDirectory, RecordState, Timeline
from echod.store.layout import MEMORY, Role, Store, store_at

PROJECT_FILE = "project"
"""Contains the path of the store of a journal."""

log = get_logger(__name__)

_ROOT_ROLE = "+root"
_MAX_PATH_BYTES = 4096
_NOTICE_FILES = (NOTICES, QUESTIONS, UNDO_SEQS, RESTORED_FINDINGS)


class KnownState(NamedTuple):
    """A content that the memory file really had."""

    digest: str
    since: float  # when it became visible, as an order (Unix seconds, never going back)
    head: str | None  # git HEAD at that time; None if no repository tracks the file
    clock: float  # when it became visible by the clock, which may be wrong (Unix seconds)


@dataclass
class RoleJournal:
    """The journal of one role."""

    root: Path
    staged_files_swept: bool = False  # whether this process has looked for staged files left by a killed one
    # open commits (number and time) whose files no process can write any more
    quiescent_commits: set[tuple[int, float]] = field(default_factory=set)
    _cached_states: tuple[FileVersion, tuple[KnownState, ...]] | None = field(init=False, default=None)

    @cached_property
    def _open_directory(self) -> RecordDirectory[CommitRecord]:
        return RecordDirectory(self.root / "records", lambda record: record)

    @cached_property
    def _closed_directory(self) -> RecordDirectory[UndoInfo]:
        return RecordDirectory(self.root / "closed", undo_info)

    @cached_property
    def undo_index(self) -> UndoIndex:
        """The undone commits of the role."""
        return UndoIndex(self.root, self._open_directory, self._closed_directory)

    @cached_property
    def ledger(self) -> Ledger:
        """The consumed findings of the role's closed commits."""
        return Ledger(self.root / "ledger")

    @property
    def blobs(self) -> BlobStore:
        """The contents in this journal."""
        return BlobStore(self.root / "blobs")

    @property
    def journal_id(self) -> str:
        """The mark of this journal's files in the private directory, so that those of others are never swept."""
        data = read_if_exists(self.root / "journal-id")
        return "none" if data is None else data.decode()

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        """Declare that only this thread writes here for the length of the block, because it holds the role."""
        with self._open_directory.exclusive(), self._closed_directory.exclusive():
            yield

    def open_records(self) -> tuple[CommitRecord, ...]:
        """Return the commits that are still followed, oldest first."""
        return self._open_directory.summaries()

    def closed_records(self) -> tuple[CommitRecord, ...]:
        """Return the commits kept for undo and log, oldest first."""
        return self._closed_directory.records()

    def next_seq(self) -> int:
        """Return a number that no commit of this role has had (the newest closed record is never removed)."""
        return 1 + max(self._open_directory.max_seq(), self._closed_directory.max_seq())

    def save(self, record: CommitRecord) -> None:
        """Write an open record durably, replacing its earlier version."""
        self.undo_index.register(record)
        self._open_directory.save(record)

    def discard(self, record: CommitRecord) -> None:
        """Remove a record that was not applied at all."""
        self._open_directory.delete(record)
        self._open_directory.sync()

    def close(self, record: CommitRecord) -> None:
        """Move a record, which has the state CLOSED, to the history. Idempotent."""
        self._closed_directory.save(record)
        self._open_directory.delete(record)  # if a power cut loses this, the record is closed once more
        self.quiescent_commits.discard((record.seq, record.at))

    def rewrite_closed(self, record: CommitRecord) -> None:
        """Write a closed record again (retention redacts its blobs)."""
        self._closed_directory.save(record)

    def delete_closed(self, record: CommitRecord) -> None:
        """Delete a closed record, but keep which findings remain restored by it and which commits it undid."""
        self.undo_index.retain(record)
        self._closed_directory.delete(record)
        self.undo_index.unregister(record)

    def newest_state(self) -> KnownState | None:
        """Return the last of `states` without reading all of them, or None if there is no known state."""
        # Reversed, because of equal times the last one counts.
        recorded = max(reversed(self._recorded_states()), key=lambda state: state.since, default=None)
        for record in reversed(self.open_records()):
            if states := _memory_states(record):
                return states[-1] if recorded is None or states[-1].since >= recorded.since else recorded
        return recorded

    def states(self) -> tuple[KnownState, ...]:
        """Return the known contents of the memory file, oldest first, without equal neighbours."""
        applied = [state for record in self.open_records() for state in _memory_states(record)]
        states = sorted((*self._recorded_states(), *applied), key=lambda state: state.since)
        merged: list[KnownState] = []
        for state in states:
            if merged and merged[-1].digest == state.digest:
                merged[-1] = merged[-1]._replace(head=state.head)
            else:
                merged.append(state)
        return tuple(merged)

    def timeline(self, now: float, closed: Iterable[CommitRecord] = ()) -> Timeline:
        """Return the times of the open commits, of `closed` ones and known contents, seen at `now` (Unix seconds)."""
        readings = [Reading(record.at, record.clock) for record in (*self.open_records(), *closed)]
        readings += [Reading(state.since, state.clock) for state in self._recorded_states()]
        readings += [Reading(raw["order"], raw["clock"]) for raw in read_json_lines(self.root / "readings")]
        return Timeline(readings, now)

    def record_reading(self, reading: Reading) -> None:
        """Record the clock at a moment without a commit. Losing it to a power cut only keeps data for longer."""
        append_fast(self.root / "readings", json.dumps(reading._asdict()))

    def record_states(self, states: Iterable[KnownState]) -> None:
        """Record contents. Losing these lines to a power cut only shortens the history."""
        append_fast(self.root / "states", "\n".join(map(_state_line, states)))

    def replace_states(self, states: Iterable[KnownState]) -> None:
        """Replace all recorded contents."""
        write_durable(self.root / "states", "".join(f"{_state_line(s)}\n" for s in states).encode())

    def may_be_outdated(self, memory: Path) -> bool:
        """Return whether a memory file may have changed since its newest known state was recorded.

        Every state is recorded after the file was read, and no program can set back the change time of a file. Equal
        times do not tell which was first: a clock of the kernel ticks every few milliseconds.
        """
        changed = version_of(memory)
        recorded = [version[2] for name in ("states", "records") if (version := version_of(self.root / name))]
        return changed is not None and bool(recorded) and changed[3] >= max(recorded)

    def consumed_keys(self) -> AbstractSet[str]:
        """Return the ledger as of now: the keys of consumed findings without restored ones, with open commits."""
        return self.ledger.keys(self.open_records())

    def notice_files(self) -> frozenset[str]:
        """Return the names of the files that may contain items for the user. Opening each in vain would cost more."""
        try:
            with os.scandir(self.root) as entries:
                sizes = {entry.name: entry.stat().st_size for entry in entries if entry.name in _NOTICE_FILES}
        except FileNotFoundError:
            return frozenset()
        # Without the list of commits that undo another one, the records must be read.
        return frozenset(name for name in _NOTICE_FILES if sizes.get(name, name == UNDO_SEQS))

    def partially_consumed(self) -> frozenset[str]:
        """Return the digests of partially consumed findings files. These files may no longer exist."""
        return frozenset(part.digest for record in self.open_records() for part in record.partial_consumes)

    def own_mtimes(self) -> Mapping[str, int]:
        """Return files (relative to the store) with their modification time in nanoseconds as echod last left them."""
        try:
            mtimes = json.loads(read_if_exists(self.root / "own-mtimes") or b"{}")
            return {str(path): int(mtime) for path, mtime in mtimes.items()}
        except GARBLED_ERRORS:
            return {}  # then they are merely unknown

    def record_own_mtimes(self, mtimes: Mapping[str, int]) -> None:
        """Record modification times. After a power cut they are merely unknown."""
        if mtimes:
            merged = {**self.own_mtimes(), **mtimes}
            write_fast(self.root / "own-mtimes", json.dumps(merged, sort_keys=True).encode())

    def record_lock(self, token: str) -> None:
        """Record the token of the writers' lock, so that recovery can release it at once."""
        write_fast(self.root / "lock", token.encode())

    def recorded_lock(self) -> str | None:
        """Return the token of a lock that was taken and not recorded as released, or None."""
        data = read_if_exists(self.root / "lock")
        return None if data is None else data.decode()

    def clear_lock(self) -> None:
        """Record that no lock is held any more."""
        (self.root / "lock").unlink(missing_ok=True)

    def record_staging(self) -> None:
        """Record that staged files are about to be written, so that recovery looks for them after a kill.

        A power cut may lose this. But then every process is a new one, and looks in any case.
        """
        write_fast(self.root / "staging", b"")

    def staging_recorded(self) -> bool:
        """Return whether a process began to stage files and did not record the end."""
        return (self.root / "staging").exists()

    def clear_staging(self) -> None:
        """Record that every staged file belongs to a written commit, or is removed."""
        (self.root / "staging").unlink(missing_ok=True)

    def _recorded_states(self) -> tuple[KnownState, ...]:
        """Return the states of closed commits and of other programs' writes. Cached while the file is unchanged."""
        version = version_of(self.root / "states")
        if version is None:
            return ()
        if self._cached_states is None or self._cached_states[0] != version:
            states = (_decode_state(s) for s in read_json_lines(self.root / "states"))
            self._cached_states = (version, tuple(states))
        return self._cached_states[1]


@dataclass(slots=True)
class Journal:
    """The journals of all roles below one directory."""

    root: Path
    _roles: dict[tuple[str, str], RoleJournal] = field(default_factory=dict)
    _stores: dict[str, Path] = field(default_factory=dict)

    def role_journal(self, role: Role) -> RoleJournal:
        """Return the journal of a role. Its directory is created by the first write."""
        key = (role.store.key, role.name)
        if key not in self._roles:
            self._roles[key] = RoleJournal(self.store_directory(role.store) / (role.name or _ROOT_ROLE))
        return self._roles[key]

    def create_role_journal(self, role: Role) -> RoleJournal:
        """Return the journal of a role, and create its directory if it is missing."""
        journal = self.role_journal(role)
        if not (journal.root / "journal-id").exists():
            # One by one: parents that mkdir creates itself would be readable for other users.
            make_private_directory(journal.root.parent)
            journal.root.mkdir(mode=PRIVATE_DIR_MODE, exist_ok=True)
            status = journal.root.stat()
            journal_id = content_digest(f"{journal.root}:{status.st_ino}:{status.st_mtime_ns}".encode())[:12]
            write_durable(journal.root.parent / PROJECT_FILE, role.store.key.encode())
            journal.undo_index.build()
            write_durable(journal.root / "journal-id", journal_id.encode())
        return journal

    def roles(self, store: Store) -> tuple[Role, ...]:
        """Return the roles of a store that have a journal, even if their directories no longer exist."""
        try:
            with os.scandir(self.store_directory(store)) as entries:
                names = sorted(entry.name for entry in entries if entry.is_dir(follow_symlinks=False))
        except FileNotFoundError:
            return ()
        return tuple(Role(store, "" if name == _ROOT_ROLE else name) for name in names)

    def stores(self) -> tuple[Store, ...]:
        """Return every store that has a journal. A directory that does not name its store is passed over."""
        files = sorted(self.root.glob(f"*/{PROJECT_FILE}"))
        return tuple(store for file in files if (store := read_store(file)) is not None)

    def store_directory(self, store: Store) -> Path:
        """Return the directory of a store's journals."""
        if store.key not in self._stores:
            self._stores[store.key] = self.root / content_digest(store.key.encode())[:16]
        return self._stores[store.key]


def read_store(file: Path) -> Store | None:
    """Return the store that the file `PROJECT_FILE` of a journal names; None, and a log line, if it names none."""
    try:
        path = Path(os.fsdecode(read_regular(file, _MAX_PATH_BYTES)))
        return store_at(path) if path.is_absolute() else None
    except (OSError, ValueError, LookupError) as error:
        log.warning("journal_skipped", path=str(file.parent), reason=repr(error))
        return None


def _memory_states(record: CommitRecord) -> list[KnownState]:
    """Return the contents of the memory file before and after an applied commit."""
    if record.state is not RecordState.APPLIED:
        return []
    writes = [write for write in record.writes if write.path.rpartition("/")[2] == MEMORY]
    digests = [digest for write in writes for digest in (write.before_digest, write.after_digest)]
    return [KnownState(digest, record.at, record.head, record.clock) for digest in digests if digest]


def _state_line(state: KnownState) -> str:
    return json.dumps(state._asdict())


def _decode_state(raw: Mapping[str, Any]) -> KnownState:
    return KnownState(raw["digest"], raw["since"], raw["head"], raw.get("clock", raw["since"]))


def vanished_stores(journal: Journal) -> tuple[Store, ...]:
    """Return the stores that have a journal and whose directories do not exist any more."""
    return tuple(store for store in journal.stores() if not os.path.lexists(store.root))


def has_journal(journal: Journal, store: Store) -> bool:
    """Return whether echod ever committed something in a store at this path."""
    return journal.store_directory(store).exists()


def left_by_same_store(journal: Journal, old: Store, new: Store) -> bool:
    """Return whether a file lies in `new` as echod left it in `old`."""
    return any(
        _modified_at(new.root / path) == modified_at
        for role in journal.roles(old)
        for path, modified_at in journal.role_journal(role).own_mtimes().items()
    )


def move_journal(journal: Journal, old: Store, new: Store) -> None:
    """Make the journal of `old` that of `new`. Idempotent, also after a kill at any step.

    Raises:
        RefusedError: `new` has a journal of its own.
        StoreError: the file system failed.
    """
    source, target = journal.store_directory(old), journal.store_directory(new)
    with as_store_error("move the journal of", old.root):
        if not source.exists():
            return
        if target.exists():
            raise RefusedError(
                f"echod has changed {new.root} since it is there, so the history of {old.root} cannot be joined to it. "
                "Nothing was changed."
            )
        # The name of the store first: a journal that names another path than its own is completed later.
        write_durable(source / PROJECT_FILE, new.key.encode())
        source.rename(target)
        fsync_directory(journal.root)


def complete_moves(journal: Journal) -> None:
    """Complete the moves of journals that a kill interrupted."""
    for directory, store in _journal_directories(journal):
        target = journal.store_directory(store)
        if directory != target and not target.exists():
            with as_store_error("move the journal of", store.root):
                directory.rename(target)
                fsync_directory(journal.root)


def _journal_directories(journal: Journal) -> Iterator[tuple[Path, Store]]:
    for file in sorted(journal.root.glob(f"*/{PROJECT_FILE}")):
        if (store := read_store(file)) is not None:
            yield file.parent, store


def _modified_at(path: Path) -> int | None:
    try:
        return path.lstat().st_mtime_ns
    except OSError:
        return None
