"""A directory of commit records, one file each. What is wanted of them is remembered, since they are asked for often.

Whoever holds the role may say so (`exclusive`): then the directory is looked through once and not at every question, of
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

from echod.store.journal.files import fsync_directory, write_durable

if TYPE_CHECKING:
    from echod.store.journal.records import CommitRecord

RecordSummary = TypeVar("RecordSummary")

_SUFFIX = ".json"


@dataclass(slots=True)
class RecordDirectory(Generic[RecordSummary]):
    """The records in `root`; `summarize` makes what is remembered of each."""

    root: Path
    summarize: Callable[[CommitRecord], RecordSummary]
    _cache: dict[str, tuple[tuple[int, int], RecordSummary]] = field(default_factory=dict)
    _exclusive_thread: int | None = None
    _exclusive_summaries: dict[int, RecordSummary] | None = None
    _ordered: tuple[RecordSummary, ...] | None = None

    def records(self) -> tuple[CommitRecord, ...]:
        """Every record in full, by number; read anew.

        Raises:
            RecordUnreadableError: one is damaged.
        """
        found = (self._read(name) for name in sorted(self._file_names()))
        return tuple(record for record in found if record is not None)

    def summaries(self) -> tuple[RecordSummary, ...]:
        """What is remembered of each record, by number.

        Raises:
            RecordUnreadableError: one is damaged.
        """
        if self._exclusive_thread != threading.get_ident():
            return tuple(self._scan().values())
        if self._exclusive_summaries is None:
            self._exclusive_summaries = self._scan()
        if self._ordered is None:
            self._ordered = tuple(self._exclusive_summaries.values())
        return self._ordered

    def summary_of(self, seq: int) -> RecordSummary | None:
        """What is remembered of the record of a number; None where there is none.

        Raises:
            RecordUnreadableError: it is damaged.
        """
        if self._exclusive_summaries is not None and self._exclusive_thread == threading.get_ident():
            return self._exclusive_summaries.get(seq)
        name = f"{seq:08d}{_SUFFIX}"
        try:
            status = (self.root / name).stat(follow_symlinks=False)
        except FileNotFoundError:
            return None
        version, cached = (status.st_ino, status.st_mtime_ns), self._cache.get(name)
        if cached is None or cached[0] != version:
            record = self._read(name)
            if record is None:
                return None
            cached = self._cache[name] = (version, self.summarize(record))
        return cached[1]

    def max_seq(self) -> int:
        """The highest number of a record, readable or not; 0 where there is none."""
        return max((int(name.removesuffix(_SUFFIX)) for name in self._file_names()), default=0)

    def save(self, record: CommitRecord) -> None:
        """Write a record durably, replacing its earlier version."""
        write_durable(self._path(record), record.encode())
        self._cache.pop(self._path(record).name, None)
        if self._exclusive_summaries is not None:
            is_new = record.seq not in self._exclusive_summaries
            self._exclusive_summaries[record.seq] = self.summarize(record)
            if is_new:
                self._exclusive_summaries = dict(sorted(self._exclusive_summaries.items()))
            self._ordered = None

    def delete(self, record: CommitRecord) -> None:
        """Remove a record, if it is there; `sync` makes that durable."""
        self._path(record).unlink(missing_ok=True)
        self._cache.pop(self._path(record).name, None)
        if self._exclusive_summaries is not None:
            self._exclusive_summaries.pop(record.seq, None)
            self._ordered = None

    def sync(self) -> None:
        """Make it durable that records were dropped."""
        fsync_directory(self.root)

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        """While it lasts nobody but this thread writes here."""
        self._exclusive_summaries = self._ordered = None
        self._exclusive_thread = threading.get_ident()
        try:
            yield
        finally:
            self._exclusive_thread = self._exclusive_summaries = self._ordered = None

    def _scan(self) -> dict[int, RecordSummary]:
        versions = self._versions()
        found: dict[int, RecordSummary] = {}
        for name, version in sorted(versions.items()):
            cached = self._cache.get(name)
            if cached is None or cached[0] != version:
                record = self._read(name)
                if record is None:
                    continue
                cached = (version, self.summarize(record))
                self._cache[name] = cached
            found[int(name.removesuffix(_SUFFIX))] = cached[1]
        for stale in self._cache.keys() - versions.keys():
            self._cache.pop(stale, None)
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

    def _read(self, name: str) -> CommitRecord | None:
        from echod.store.journal.records import RecordUnreadableError, decode_record  # noqa: PLC0415  slow to load; most looks read none

        path = self.root / name
        try:
            return decode_record(path.read_bytes())
        except FileNotFoundError:
            return None
        except RecordUnreadableError as error:
            raise RecordUnreadableError(f"{error} ({path})") from error

    def _file_names(self) -> list[str]:
        try:
            return [name for name in os.listdir(self.root) if name.endswith(_SUFFIX)]  # noqa: PTH208 - names, not paths
        except FileNotFoundError:
            return []

    def _path(self, record: CommitRecord) -> Path:
        return self.root / f"{record.seq:08d}{_SUFFIX}"
