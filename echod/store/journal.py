"""Where commits are written down: one directory a role, plain files, fsynced, independent of the database.

    {journal}/{store}/project            the store's path, for people and for `echod log`
    {journal}/{store}/{role}/records/    commits that are not finished with (intent, applied)
    {journal}/{store}/{role}/closed/     commits kept for undo and log
    {journal}/{store}/{role}/images/     contents, named by digest
    {journal}/{store}/{role}/states      known contents of the memory file, oldest first, one JSON line each
    {journal}/{store}/{role}/ledger      findings consumed (+) or given back (-), one line each, by commit
    {journal}/{store}/{role}/undone      findings given back by undos that are forgotten, one digest a line
    {journal}/{store}/{role}/tag         marks the dot-files this journal owns in the store
    {journal}/{store}/{role}/own         modification times of files as echod left them
    {journal}/{store}/{role}/lock        mark of the writers' lock we hold

Only one process may use a journal for writing at a time (the worker lock sees to it).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from echod.paths import PRIVATE_DIR
from echod.store.changeset import digest
from echod.store.images import Images
from echod.store.layout import Role, Store, store_at
from echod.store.private import append_lazily, append_line, lines_of, replace_file, replace_lazily, sync_dir
from echod.store.records import Record, RecordState, RecordUnreadable, decode

_ROOT_ROLE = "+root"


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


@dataclass(slots=True)
class RoleJournal:
    """The journal of one role."""

    root: Path
    _parsed: dict[Path, tuple[tuple[int, int], Record]] = field(default_factory=dict)

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

    def open_records(self) -> tuple[Record, ...]:
        """Commits that are not finished with, oldest first."""
        return self._load("records")

    def closed_records(self) -> tuple[Record, ...]:
        """Commits kept for undo and log, oldest first."""
        return self._load("closed")

    def next_seq(self) -> int:
        """A number no commit of this role has had (the newest closed record is never removed)."""
        names = [*self._names("records"), *self._names("closed")]
        return 1 + max((int(name.stem) for name in names), default=0)

    def save(self, record: Record) -> None:
        """Write an open record durably, replacing its earlier version."""
        replace_file(self._path("records", record), record.encode())

    def forget(self, record: Record) -> None:
        """Remove a record of which nothing was done."""
        self._path("records", record).unlink(missing_ok=True)
        sync_dir(self.root / "records")

    def close(self, record: Record) -> None:
        """Move a record to the history; `record` carries the state CLOSED. Idempotent."""
        replace_file(self._path("closed", record), record.encode())
        self._path("records", record).unlink(missing_ok=True)  # should that be forgotten, it is closed once more

    def amend_closed(self, record: Record) -> None:
        """Write a closed record again (retention thins its images)."""
        replace_file(self._path("closed", record), record.encode())

    def remove_closed(self, record: Record) -> None:
        """Forget a closed record for good, but not what it gave back, if that stays given back."""
        if kept := self.undone() & set(_given_back(record)):
            append_line(self.root / "undone", "\n".join(sorted(kept)))
        self._path("closed", record).unlink(missing_ok=True)

    def states(self) -> tuple[KnownState, ...]:
        """Known contents of the memory file, oldest first, neighbours different."""
        found = [KnownState(s["image"], s["since"], s["head"]) for s in _json_lines(self.root / "states")]
        for record in self.open_records():
            for write in record.writes:
                if write.path.rpartition("/")[2] == "MEMORY.md" and record.state is RecordState.APPLIED:
                    found += [KnownState(i, record.at, record.head) for i in (write.pre, write.post) if i]
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

    def known_keys(self) -> frozenset[str]:
        """The ledger: findings already consumed and not given back, open commits included."""
        keys: set[str] = set()
        lines = [*lines_of(self.root / "ledger"), *(line for r in self.open_records() for line in _ledger_lines(r))]
        for line in sorted(set(lines)):  # by number, and within a commit what was consumed before what was given back
            _, mark, key = line.split(" ", 2)
            (keys.add if mark == "+" else keys.discard)(key)
        return frozenset(keys)

    def undone(self) -> frozenset[str]:
        """Digests of findings files that an undo gave back; consolidating them again is for a person to ask.

        A person asks by undoing the undo.
        """
        records = (*self.open_records(), *self.closed_records())
        redone = {seq for record in records for seq in record.undoes}
        given_back = {name for r in records if r.seq not in redone for name in _given_back(r)}
        return frozenset(given_back.union(lines_of(self.root / "undone")))

    def enter_ledger(self, record: Record) -> None:
        """Carry a record's keys to the ledger, durably, before it is closed. Entering twice changes nothing."""
        lines = _ledger_lines(record)
        if lines:
            append_line(self.root / "ledger", "\n".join(lines))

    def trim_ledger(self, keys: int) -> None:
        """Keep the newest lines of the ledger only."""
        lines = list(lines_of(self.root / "ledger"))
        if len(lines) > keys:
            replace_file(self.root / "ledger", "".join(f"{line}\n" for line in lines[-keys:]).encode())

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

    def _names(self, folder: str) -> list[Path]:
        try:
            return sorted(p for p in (self.root / folder).iterdir() if p.suffix == ".json")
        except FileNotFoundError:
            return []

    def _load(self, folder: str) -> tuple[Record, ...]:
        records = []
        for path in self._names(folder):
            try:
                stat = path.stat()
                version = (stat.st_ino, stat.st_mtime_ns)
                cached = self._parsed.get(path)
                if cached is None or cached[0] != version:
                    cached = (version, _decode_file(path))
                    self._parsed[path] = cached
            except FileNotFoundError:
                continue  # another process closed or forgot it since the names were listed
            records.append(cached[1])
        return tuple(records)

    def _path(self, folder: str, record: Record) -> Path:
        return self.root / folder / f"{record.seq:08d}.json"


@dataclass(slots=True)
class Journal:
    """All roles' journals below one directory."""

    root: Path
    _roles: dict[tuple[str, str], RoleJournal] = field(default_factory=dict)

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
            replace_file(journal.root / "tag", tag.encode())
        return journal

    def roles(self, store: Store) -> tuple[Role, ...]:
        """The roles of a store that have a journal, whether or not their directories still exist."""
        try:
            names = sorted(p.name for p in self._store_dir(store).iterdir() if p.is_dir())
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
        return self.root / digest(store.key.encode())[:16]


def _given_back(record: Record) -> Iterator[str]:
    """Digests of the findings files that an undo gave back."""
    if record.undoes:
        yield from (write.post for write in record.writes if write.path.endswith("-findings.md"))


def _ledger_lines(record: Record) -> list[str]:
    consumed = [f"{record.seq:08d} + {key}" for consume in record.consumes for key in consume.keys]
    return consumed + [f"{record.seq:08d} - {key}" for key in record.released]


def _state_line(state: KnownState) -> str:
    return json.dumps({"image": state.image, "since": state.since, "head": state.head})


def _decode_file(path: Path) -> Record:
    try:
        return decode(path.read_bytes())
    except RecordUnreadable as error:
        raise RecordUnreadable(f"{error} ({path})") from error


def _json_lines(path: Path) -> Iterator[dict[str, Any]]:
    for line in lines_of(path):
        try:
            yield json.loads(line)
        except ValueError:
            continue  # a power cut tore the line; the state it named is unknown to us
