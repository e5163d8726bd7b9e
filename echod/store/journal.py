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
from typing import TYPE_CHECKING, Any

from echod.paths import PRIVATE_DIR
from echod.store.digests import digest
from echod.store.images import Images
from echod.store.layout import MEMORY, Role, Store, store_at
from echod.store.ledger import Ledger
from echod.store.private import append_lazily, append_line, lines_of, replace_file, replace_lazily
from echod.store.reviews import QUESTIONS, REVIEWS
from echod.store.shelf import Shelf

if TYPE_CHECKING:
    from echod.store.records import Record

_ROOT_ROLE = "+root"
_UNDOS, _UNDONE = "undos", "undone"
_FOR_PEOPLE = (REVIEWS, QUESTIONS, _UNDOS, _UNDONE)


@dataclass(frozen=True, slots=True)
class KnownState:
    """A content of the memory file that was really there.

    Attributes:
        image: its digest.
        since: when it became visible (Unix seconds, never going back).
        head: git HEAD at that time, None where no repository tracks the file.
    """

    image: str
    since: float
    head: str | None


@dataclass(frozen=True, slots=True)
class _Undoing:
    """What is wanted of a commit when it is asked what was undone: `gave_back` names findings files by digest."""

    seq: int
    job: int | None
    undoes: tuple[int, ...]
    gave_back: tuple[str, ...] = ()


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
    def _closed(self) -> Shelf[_Undoing]:
        return Shelf(self.root / "closed", _undoing)

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
        if record.undoes:
            self._list_undo(record.seq)
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
        given_back = set(_given_back(record))
        if given_back and (kept := self.undone() & given_back):
            append_line(self.root / _UNDONE, "\n".join(sorted(kept)))
        if record.undoes or any(record.seq in undoing.undoes for undoing in self._undoings()):
            append_line(self.root / "undoings", _undoing_line(_undoing(record)))
        self._closed.drop(record)
        if record.undoes and (listed := self._listed_undos()):
            replace_file(self.root / _UNDOS, _lines(seq for seq in listed if seq != record.seq))

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

    def undone(self) -> frozenset[str]:
        """Digests of findings files that an undo gave back; consolidating them again is for a person to ask.

        A person asks by undoing the undo.
        """
        undoings = tuple(self._undos())
        redone = {seq for undoing in undoings for seq in undoing.undoes}
        given_back = {name for undoing in undoings if undoing.seq not in redone for name in undoing.gave_back}
        return frozenset(given_back.union(lines_of(self.root / _UNDONE)))

    def list_undos(self) -> None:
        """Write down which commits undo one, if an earlier version did not; to be called before anything is committed.

        Whoever looks at a hundred projects then reads those commits only, of all that are kept.
        """
        if self._listed_undos() is None:
            found = (undoing.seq for undoing in self._undoings_kept() if undoing.undoes)
            replace_file(self.root / _UNDOS, _lines(found))

    def for_people(self) -> frozenset[str]:
        """Those files that have something in them which a person may be told: to look in vain at each costs more."""
        try:
            with os.scandir(self.root) as entries:
                found = {entry.name: entry.stat().st_size for entry in entries if entry.name in _FOR_PEOPLE}
        except FileNotFoundError:
            return frozenset()
        # Where it is not listed which commits undo one, the answer is in the commits.
        return frozenset(name for name in _FOR_PEOPLE if found.get(name, name == _UNDOS))

    def undone_jobs(self) -> frozenset[int]:
        """Jobs that were taken back in this role and not done again, however long ago."""
        undoings = sorted(self._undoings(), key=lambda undoing: undoing.seq, reverse=True)
        undone: set[int] = set()
        for undoing in undoings:  # an undo is later than what it takes back
            if undoing.seq not in undone:
                undone.update(undoing.undoes)
        return frozenset(u.job for u in undoings if u.seq in undone and u.job is not None)

    def begun(self) -> frozenset[str]:
        """Digests of findings files of which a part was taken up; all of them may be gone by now."""
        return frozenset(part.image for record in self.open_records() for part in record.begun)

    def enter_ledger(self, record: Record) -> None:
        """Carry a record's keys to the ledger, durably, before it is closed. Entering twice changes nothing."""
        self._ledger.enter(record)

    def trim_ledger(self, keys: int) -> None:
        """Keep the newest lines of the ledger only."""
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

    def _list_undo(self, seq: int) -> None:
        self.list_undos()
        if seq not in (self._listed_undos() or ()):
            append_line(self.root / _UNDOS, str(seq))

    def _listed_undos(self) -> tuple[int, ...] | None:
        """Commits that may undo one, and every one that does; None where that is not written down."""
        try:
            text = (self.root / _UNDOS).read_text()
        except FileNotFoundError:
            return None
        return tuple(int(line) for line in text.split() if line.isdecimal())

    def _undos(self) -> Iterator[_Undoing]:
        """Every commit that undoes one and is kept, and maybe others."""
        listed = self._listed_undos()
        if listed is None:
            yield from self._undoings_kept()
            return
        for seq in listed:
            # A commit that is being closed is in both places for a while; open first, so that it is found in one.
            record = self._open.gist_of(seq)
            undoing = self._closed.gist_of(seq) if record is None else _undoing(record)
            if undoing is not None:
                yield undoing

    def _undoings_kept(self) -> Iterator[_Undoing]:
        yield from map(_undoing, self.open_records())
        yield from self._closed.gists()

    def _undoings(self) -> Iterator[_Undoing]:
        """What is known of every commit, and of those that are forgotten and have to do with an undo."""
        yield from self._undoings_kept()
        kept = _json_lines(self.root / "undoings")
        yield from (_Undoing(line["seq"], line["job"], tuple(line["undoes"])) for line in kept)

    def _noted_states(self) -> tuple[KnownState, ...]:
        """The states of closed commits and of what others wrote; read anew where the file has changed."""
        try:
            status = (self.root / "states").stat()
        except FileNotFoundError:
            return ()
        version = (status.st_ino, status.st_size, status.st_mtime_ns)
        if self._noted is None or self._noted[0] != version:
            read = (KnownState(s["image"], s["since"], s["head"]) for s in _json_lines(self.root / "states"))
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
            journal.list_undos()
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


def _given_back(record: Record) -> Iterator[str]:
    """Digests of the findings files that an undo gave back, or of which it took back a part."""
    if record.undoes:
        yield from (write.post for write in record.writes if write.path.endswith("-findings.md"))
        yield from (part.image for part in record.withheld)


def _undoing(record: Record) -> _Undoing:
    return _Undoing(record.seq, record.job, record.undoes, tuple(_given_back(record)))


def _lines(numbers: Iterable[int]) -> bytes:
    return "".join(f"{number}\n" for number in numbers).encode()


def _undoing_line(undoing: _Undoing) -> str:
    return json.dumps({"seq": undoing.seq, "job": undoing.job, "undoes": undoing.undoes})


def _states_of(record: Record) -> list[KnownState]:
    """The contents of the memory file before and after a commit that is done."""
    from echod.store.records import RecordState  # noqa: PLC0415  slow to load; most looks read no record

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


def _json_lines(path: Path) -> Iterator[dict[str, Any]]:
    for line in lines_of(path):
        try:
            yield json.loads(line)
        except ValueError:
            continue  # a power cut tore the line; what it told is unknown to us, or was written once more
