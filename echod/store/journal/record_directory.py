"""A directory of commit records, one file each. What is wanted of them is remembered, since they are asked for often.

Whoever holds the role may say so (`alone`): then the directory is looked through once and not at every question, of
which a commit has dozens.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Generic, TypeVar

from echod.store.journal.files import replace_file, sync_dir

if TYPE_CHECKING:
    from echod.store.journal.records import Record

Gist = TypeVar("Gist")

_SUFFIX = ".json"


@dataclass(slots=True)
class Shelf(Generic[Gist]):
    """The records in `root`; `gist` is what is remembered of each."""

    root: Path
    gist: Callable[[Record], Gist]
    _known: dict[str, tuple[tuple[int, int], Gist]] = field(default_factory=dict)
    _alone: int | None = None
    _held: dict[int, Gist] | None = None
    _in_order: tuple[Gist, ...] | None = None

    def records(self) -> tuple[Record, ...]:
        """Every record in full, by number; read anew.

        Raises:
            RecordUnreadable: one is damaged.
        """
        found = (self._read(name) for name in sorted(self._names()))
        return tuple(record for record in found if record is not None)

    def gists(self) -> tuple[Gist, ...]:
        """What is remembered of each record, by number.

        Raises:
            RecordUnreadable: one is damaged.
        """
        if self._alone != threading.get_ident():
            return tuple(self._look().values())
        if self._held is None:
            self._held = self._look()
        if self._in_order is None:
            self._in_order = tuple(self._held.values())
        return self._in_order

    def gist_of(self, seq: int) -> Gist | None:
        """What is remembered of the record of a number; None where there is none.

        Raises:
            RecordUnreadable: it is damaged.
        """
        if self._held is not None and self._alone == threading.get_ident():
            return self._held.get(seq)
        name = f"{seq:08d}{_SUFFIX}"
        try:
            status = (self.root / name).stat(follow_symlinks=False)
        except FileNotFoundError:
            return None
        version, known = (status.st_ino, status.st_mtime_ns), self._known.get(name)
        if known is None or known[0] != version:
            record = self._read(name)
            if record is None:
                return None
            known = self._known[name] = (version, self.gist(record))
        return known[1]

    def highest(self) -> int:
        """The highest number of a record, readable or not; 0 where there is none."""
        return max((int(name.removesuffix(_SUFFIX)) for name in self._names()), default=0)

    def put(self, record: Record) -> None:
        """Write a record durably, replacing its earlier version."""
        replace_file(self._path(record), record.encode())
        self._known.pop(self._path(record).name, None)
        if self._held is not None:
            is_new = record.seq not in self._held
            self._held[record.seq] = self.gist(record)
            if is_new:
                self._held = dict(sorted(self._held.items()))
            self._in_order = None

    def drop(self, record: Record) -> None:
        """Remove a record, if it is there; `sync` makes that durable."""
        self._path(record).unlink(missing_ok=True)
        self._known.pop(self._path(record).name, None)
        if self._held is not None:
            self._held.pop(record.seq, None)
            self._in_order = None

    def sync(self) -> None:
        """Make it durable that records were dropped."""
        sync_dir(self.root)

    @contextmanager
    def alone(self) -> Iterator[None]:
        """While it lasts nobody but this thread writes here."""
        self._held = self._in_order = None
        self._alone = threading.get_ident()
        try:
            yield
        finally:
            self._alone = self._held = self._in_order = None

    def _look(self) -> dict[int, Gist]:
        versions = self._versions()
        found: dict[int, Gist] = {}
        for name, version in sorted(versions.items()):
            known = self._known.get(name)
            if known is None or known[0] != version:
                record = self._read(name)
                if record is None:
                    continue
                known = (version, self.gist(record))
                self._known[name] = known
            found[int(name.removesuffix(_SUFFIX))] = known[1]
        for gone in self._known.keys() - versions.keys():
            self._known.pop(gone, None)
        return found

    def _versions(self) -> dict[str, tuple[int, int]]:
        """What tells that a record is the one that was read. Paths would cost more than the looks at the files."""
        found: dict[str, tuple[int, int]] = {}
        try:
            with os.scandir(self.root) as entries:
                for entry in entries:
                    if entry.name.endswith(_SUFFIX):
                        # Another process may close or forget it at any time.
                        with suppress(FileNotFoundError):
                            status = entry.stat(follow_symlinks=False)
                            found[entry.name] = (status.st_ino, status.st_mtime_ns)
        except FileNotFoundError:
            return {}
        return found

    def _read(self, name: str) -> Record | None:
        from echod.store.journal.records import RecordUnreadable, decode  # noqa: PLC0415  slow to load; most looks read none

        path = self.root / name
        try:
            return decode(path.read_bytes())
        except FileNotFoundError:
            return None
        except RecordUnreadable as error:
            raise RecordUnreadable(f"{error} ({path})") from error

    def _names(self) -> list[str]:
        try:
            return [name for name in os.listdir(self.root) if name.endswith(_SUFFIX)]  # noqa: PTH208 - names, not paths
        except FileNotFoundError:
            return []

    def _path(self, record: Record) -> Path:
        return self.root / f"{record.seq:08d}{_SUFFIX}"
