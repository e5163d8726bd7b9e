"""Where commits are written down: one directory a role, plain files, fsynced, independent of the database.

    {journal}/{store}/project            the store's path, for people and for `echod log`
    {journal}/{store}/{role}/records/    commits that are not finished with (intent, applied)
    {journal}/{store}/{role}/closed/     commits kept for undo and log
    {journal}/{store}/{role}/images/     contents, named by digest
    {journal}/{store}/{role}/states      known contents of the memory file, oldest first, one JSON line each
    {journal}/{store}/{role}/ledger      findings consumed (+) or given back (-), one line each, by commit
    {journal}/{store}/{role}/undos       numbers of the commits that undo one, one a line
    {journal}/{store}/{role}/undone      findings given back by undos that are forgotten, one digest a line
    {journal}/{store}/{role}/undoings    commits that are forgotten and undid one or were undone, one JSON line each
    {journal}/{store}/{role}/tag         marks the dot-files this journal owns in the store
    {journal}/{store}/{role}/own         modification times of files as echod left them
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

from echod.paths import PRIVATE_DIR
from echod.store.journal.blobs import Images
from echod.store.journal.files import append_lazily, json_lines, replace_file, replace_lazily
from echod.store.journal.ledger import Ledger
from echod.store.journal.notices import QUESTIONS, REVIEWS
from echod.store.journal.record_directory import Shelf
from echod.store.journal.undo_index import UNDONE, UNDOS, Undoing, Undoings, undoing_of
from echod.store.layout import MEMORY, Role, Store, store_at
from echod.store.snapshot import digest

if TYPE_CHECKING:
    from echod.store.journal.records import Record

_ROOT_ROLE = "+root"
_FOR_PEOPLE = (REVIEWS, QUESTIONS, UNDOS, UNDONE)


class KnownState(NamedTuple):
    """A content of the memory file that was really there.

    Attributes:
        image: its digest.
        since: when it became visible (Unix seconds, never going back).
        head: git HEAD at that time, None where no repository tracks the file.
    """

    image: str
    since: float
    head: str | None


@dataclass
class RoleJournal:
    """The journal of one role.

    Attributes:
        root: its directory.
        swept: whether this process has looked for what a killed one may have left beside the memory.
        settled: open commits (number and time) to whose files nobody can write any more, and nothing came late.
    """

    root: Path
    swept: bool = False
    settled: set[tuple[int, float]] = field(default_factory=set)
    _noted: tuple[tuple[int, int, int], tuple[KnownState, ...]] | None = field(init=False, default=None)

    @cached_property
    def _open(self) -> Shelf[Record]:
        return Shelf(self.root / "records", lambda record: record)

    @cached_property
    def _closed(self) -> Shelf[Undoing]:
        return Shelf(self.root / "closed", undoing_of)

    @cached_property
    def undoings(self) -> Undoings:
        """What was taken back in the role."""
        return Undoings(self.root, self._open, self._closed)

    @cached_property
    def _ledger(self) -> Ledger:
        return Ledger(self.root / "ledger")

    @property
    def images(self) -> Images:
        """The contents this journal keeps."""
        return Images(self.root / "images")

    @property
    def tag(self) -> str:
        """Marks our own dot-files in the store, so that another journal's (or a lost one's) are never swept."""
        try:
            return (self.root / "tag").read_text()
        except FileNotFoundError:
            return "none"

    @contextmanager
    def alone(self) -> Iterator[None]:
        """While it lasts nobody but this thread writes here: the role is held."""
        with self._open.alone(), self._closed.alone():
            yield

    def open_records(self) -> tuple[Record, ...]:
        """Commits that are not finished with, oldest first."""
        return self._open.gists()

    def closed_records(self) -> tuple[Record, ...]:
        """Commits kept for undo and log, oldest first."""
        return self._closed.records()

    def next_seq(self) -> int:
        """A number no commit of this role has had (the newest closed record is never removed)."""
        return 1 + max(self._open.highest(), self._closed.highest())

    def save(self, record: Record) -> None:
        """Write an open record durably, replacing its earlier version."""
        self.undoings.list_before_it_is_written(record)
        self._open.put(record)

    def forget(self, record: Record) -> None:
        """Remove a record of which nothing was done."""
        self._open.drop(record)
        self._open.sync()

    def close(self, record: Record) -> None:
        """Move a record to the history; `record` carries the state CLOSED. Idempotent."""
        self._closed.put(record)
        self._open.drop(record)  # should that be forgotten by a power cut, it is closed once more
        self.settled.discard((record.seq, record.at))

    def amend_closed(self, record: Record) -> None:
        """Write a closed record again (retention thins its images)."""
        self._closed.put(record)

    def remove_closed(self, record: Record) -> None:
        """Forget a closed record for good, but not what it gave back, if that stays given back, nor what was undone."""
        self.undoings.keep(record)
        self._closed.drop(record)
        self.undoings.unlist(record)

    def newest_state(self) -> KnownState | None:
        """The last of `states`, found without looking at all of them; None where there is none."""
        noted = _latest(self._noted_states())
        for record in reversed(self.open_records()):
            if states := _states_of(record):
                return states[-1] if noted is None or states[-1].since >= noted.since else noted
        return noted

    def states(self) -> tuple[KnownState, ...]:
        """Known contents of the memory file, oldest first, neighbours different."""
        found = [*self._noted_states(), *(state for record in self.open_records() for state in _states_of(record))]
        found.sort(key=lambda state: state.since)
        kept: list[KnownState] = []
        for state in found:
            if kept and kept[-1].image == state.image:
                kept[-1] = KnownState(state.image, kept[-1].since, state.head)
            else:
                kept.append(state)
        return tuple(kept)

    def note_states(self, states: Iterable[KnownState]) -> None:
        """Remember contents; losing these lines to a power cut only shortens the history."""
        append_lazily(self.root / "states", "\n".join(map(_state_line, states)))

    def keep_states(self, states: Iterable[KnownState]) -> None:
        """Replace the remembered contents by these."""
        replace_file(self.root / "states", "".join(f"{_state_line(s)}\n" for s in states).encode())

    def known_keys(self) -> AbstractSet[str]:
        """The ledger as of now: findings already consumed and not given back, open commits included."""
        return self._ledger.keys(self.open_records())

    def for_people(self) -> frozenset[str]:
        """Those files that have something in them which a person may be told: to look in vain at each costs more."""
        try:
            with os.scandir(self.root) as entries:
                found = {entry.name: entry.stat().st_size for entry in entries if entry.name in _FOR_PEOPLE}
        except FileNotFoundError:
            return frozenset()
        # Where it is not listed which commits undo one, the answer is in the commits.
        return frozenset(name for name in _FOR_PEOPLE if found.get(name, name == UNDOS))

    def begun(self) -> frozenset[str]:
        """Digests of findings files of which a part was taken up; all of them may be gone by now."""
        return frozenset(part.image for record in self.open_records() for part in record.begun)

    def enter_ledger(self, record: Record) -> None:
        """Carry a record's keys to the ledger, durably, before it is closed. Entering twice changes nothing."""
        self._ledger.enter(record)

    def trim_ledger(self, keys: int) -> None:
        """Bound the ledger: of so many findings the last that was done with each."""
        self._ledger.trim(keys)

    def own_writes(self) -> Mapping[str, int]:
        """Files (relative to the store) and their modification time in nanoseconds as echod last left them."""
        try:
            own: dict[str, int] = json.loads((self.root / "own").read_bytes())
        except (FileNotFoundError, ValueError):
            return {}
        return own

    def note_own(self, times: Mapping[str, int]) -> None:
        """Remember modification times; after a power cut they are merely unknown."""
        if times:
            merged = {**self.own_writes(), **times}
            replace_lazily(self.root / "own", json.dumps(merged, sort_keys=True).encode())

    def note_lock(self, mark: str) -> None:
        """Remember the mark of the writers' lock we take, so that recovery can release it at once."""
        replace_lazily(self.root / "lock", mark.encode())

    def noted_lock(self) -> str | None:
        """The mark of a lock we took and did not say to have released."""
        try:
            return (self.root / "lock").read_text()
        except FileNotFoundError:
            return None

    def clear_lock(self) -> None:
        """We hold no lock any more."""
        (self.root / "lock").unlink(missing_ok=True)

    def note_staging(self) -> None:
        """Remember that stages are about to be made, so that whoever comes after a kill looks for them.

        A power cut may forget it; but then every process is a new one, and looks in any case.
        """
        replace_lazily(self.root / "staging", b"")

    def noted_staging(self) -> bool:
        """Whether a process began to stage and did not say how that ended."""
        return (self.root / "staging").exists()

    def clear_staging(self) -> None:
        """Every stage belongs to a commit that is written down, or is gone."""
        (self.root / "staging").unlink(missing_ok=True)

    def _noted_states(self) -> tuple[KnownState, ...]:
        """The states of closed commits and of what others wrote; read anew where the file has changed."""
        try:
            status = (self.root / "states").stat()
        except FileNotFoundError:
            return ()
        version = (status.st_ino, status.st_size, status.st_mtime_ns)
        if self._noted is None or self._noted[0] != version:
            read = (KnownState(s["image"], s["since"], s["head"]) for s in json_lines(self.root / "states"))
            self._noted = (version, tuple(read))
        return self._noted[1]


@dataclass(slots=True)
class Journal:
    """All roles' journals below one directory."""

    root: Path
    _roles: dict[tuple[str, str], RoleJournal] = field(default_factory=dict)
    _stores: dict[str, Path] = field(default_factory=dict)

    def of(self, role: Role) -> RoleJournal:
        """The journal of a role, created when first written."""
        key = (role.store.key, role.name)
        if key not in self._roles:
            self._roles[key] = RoleJournal(self._store_dir(role.store) / (role.name or _ROOT_ROLE))
        return self._roles[key]

    def prepare(self, role: Role) -> RoleJournal:
        """The journal of a role, its directory made."""
        journal = self.of(role)
        if not (journal.root / "tag").exists():
            # Each by itself: parents that mkdir makes on the way would be readable for others.
            journal.root.parent.mkdir(mode=PRIVATE_DIR, parents=True, exist_ok=True)
            journal.root.mkdir(mode=PRIVATE_DIR, exist_ok=True)
            made = journal.root.stat()
            tag = digest(f"{journal.root}:{made.st_ino}:{made.st_mtime_ns}".encode())[:6]
            replace_file(journal.root.parent / "project", role.store.key.encode())
            journal.undoings.list_all()
            replace_file(journal.root / "tag", tag.encode())
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
            named = sorted(self.root.glob("*/project"))
        except FileNotFoundError:
            return ()
        return tuple(store_at(Path(p.read_text())) for p in named)

    def _store_dir(self, store: Store) -> Path:
        if store.key not in self._stores:
            self._stores[store.key] = self.root / digest(store.key.encode())[:16]
        return self._stores[store.key]


def _states_of(record: Record) -> list[KnownState]:
    """The contents of the memory file before and after a commit that is done."""
    from echod.store.journal.records import RecordState  # noqa: PLC0415  slow to load; most looks read no record

    if record.state is not RecordState.APPLIED:
        return []
    writes = [write for write in record.writes if write.path.rpartition("/")[2] == MEMORY]
    return [KnownState(image, record.at, record.head) for write in writes for image in (write.pre, write.post) if image]


def _latest(states: Iterable[KnownState]) -> KnownState | None:
    """The last one of those that became visible last."""
    latest: KnownState | None = None
    for state in states:
        if latest is None or state.since >= latest.since:
            latest = state
    return latest


def _state_line(state: KnownState) -> str:
    return json.dumps({"image": state.image, "since": state.since, "head": state.head})
