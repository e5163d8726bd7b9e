"""A directory of commit records, one file each, with a cached summary of each record.

The thread that holds the role may take it exclusively (`exclusive`). Then the directory is listed once instead of for
each of the dozens of queries of a commit.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Generic, TypeVar

from echod.files import FileVersion, file_version
from echod.store.journal.files import fsync_directory, read_if_exists, version_of, write_durable
from echod.store.journal.records import CommitRecord, RecordUnreadableError, decode_record

RecordSummary = TypeVar("RecordSummary")

_SUFFIX = ".json"


@dataclass(slots=True)
class RecordDirectory(Generic[RecordSummary]):
    """The records in `root`. `summarize` returns the part of a record that is cached.

    A damaged record raises `RecordUnreadableError` when it is read.
    """

    root: Path
    summarize: Callable[[CommitRecord], RecordSummary]
    _cache: dict[str, tuple[FileVersion, RecordSummary]] = field(default_factory=dict)
    _exclusive_thread: int | None = None
    _exclusive_summaries: dict[int, RecordSummary] | None = None
    _ordered: tuple[RecordSummary, ...] | None = None

    def records(self) -> tuple[CommitRecord, ...]:
        """Read every record in full, in order of their numbers, without the cache."""
        records = (self._read(name) for name in sorted(self._file_names()))
        return tuple(record for record in records if record is not None)

    def summaries(self) -> tuple[RecordSummary, ...]:
        """Return the summary of each record, in order of their numbers."""
        if self._exclusive_thread != threading.get_ident():
            return tuple(self._scan().values())
        if self._exclusive_summaries is None:
            self._exclusive_summaries = self._scan()
        if self._ordered is None:
            self._ordered = tuple(self._exclusive_summaries.values())
        return self._ordered

    def summary_of(self, seq: int) -> RecordSummary | None:
        """Return the summary of the record with a number, or None if there is no such record."""
        if self._exclusive_summaries is not None and self._exclusive_thread == threading.get_ident():
            return self._exclusive_summaries.get(seq)
        name = f"{seq:08d}{_SUFFIX}"
        version = version_of(self.root / name)
        return None if version is None else self._summarize_file(name, version)

    def max_seq(self) -> int:
        """Return the highest number of a record, readable or not; 0 if there is no record."""
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
        """Remove a record if it exists. `sync` makes that durable."""
        self._path(record).unlink(missing_ok=True)
        self._cache.pop(self._path(record).name, None)
        if self._exclusive_summaries is not None:
            self._exclusive_summaries.pop(record.seq, None)
            self._ordered = None

    def sync(self) -> None:
        """Make the removal of records durable."""
        fsync_directory(self.root)

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        """Declare that only this thread writes here for the length of the block."""
        self._exclusive_summaries = self._ordered = None
        self._exclusive_thread = threading.get_ident()
        try:
            yield
        finally:
            self._exclusive_thread = self._exclusive_summaries = self._ordered = None

    def _scan(self) -> dict[int, RecordSummary]:
        versions = self._versions()
        summaries: dict[int, RecordSummary] = {}
        for name, version in sorted(versions.items()):
            summary = self._summarize_file(name, version)
            if summary is not None:
                summaries[int(name.removesuffix(_SUFFIX))] = summary
        for stale in self._cache.keys() - versions.keys():
            self._cache.pop(stale, None)
        return summaries

    def _summarize_file(self, name: str, version: FileVersion) -> RecordSummary | None:
        cached = self._cache.get(name)
        if cached is None or cached[0] != version:
            record = self._read(name)
            if record is None:
                return None
            cached = self._cache[name] = (version, self.summarize(record))
        return cached[1]

    def _versions(self) -> dict[str, FileVersion]:
        """Return the version of each record's file. Building paths would cost more than the status calls."""
        versions: dict[str, FileVersion] = {}
        try:
            with os.scandir(self.root) as entries:
                for entry in entries:
                    if entry.name.endswith(_SUFFIX):
                        # Another process may close or delete it at any time.
                        with suppress(FileNotFoundError):
                            versions[entry.name] = file_version(entry.stat(follow_symlinks=False))
        except FileNotFoundError:
            return {}
        return versions

    def _read(self, name: str) -> CommitRecord | None:
        path = self.root / name
        data = read_if_exists(path)
        try:
            return None if data is None else decode_record(data)
        except RecordUnreadableError as error:
            raise RecordUnreadableError(f"{error} ({path})") from error

    def _file_names(self) -> list[str]:
        try:
            return [name for name in os.listdir(self.root) if name.endswith(_SUFFIX)]  # noqa: PTH208 - names, not paths
        except FileNotFoundError:
            return []

    def _path(self, record: CommitRecord) -> Path:
        return self.root / f"{record.seq:08d}{_SUFFIX}"
