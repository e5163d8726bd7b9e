"""Commit records: everything needed to finish, follow, explain and undo a commit, one file each in a directory.

A record is written before the commit changes anything. It is a value, and the journal stores it. Its field names are
the keys of its JSON file. Contents are named by their digest and stored as blobs beside it.

The thread that holds the role may take it exclusively (`exclusive`). Then the directory is listed once instead of for
each of the dozens of queries of a commit.

The journal orders commits and known contents by times that never go back. So after a job whose clock was a year ahead,
everything would be young for a year. Therefore each of them also has the plain reading of the clock. A reading in the
future is not believed, and neither is one before an earlier reading: the truth is between the readings around it.

Decisions that protect a change while it is young use the earliest possible time. Deleting uses the latest one.
"""

from __future__ import annotations

import json
import os
import threading
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, Final, Generic, NamedTuple, TypeVar

from echod.errors import GARBLED_ERRORS
from echod.files import FileVersion, file_version
from echod.store.changes import LateMerge, PartialConsume
from echod.store.errors import StoreError
from echod.store.journal.files import fsync_directory, read_if_exists, version_of, write_durable
from echod.store.private_directory import PRIVATE_DIRECTORY

RECORD_VERSION = 1


class RecordUnreadableError(StoreError):
    """A record cannot be read. It is left where it is."""


class RecordState(StrEnum):
    """The state of a commit.

    `intent`: may be half done, and is redone. `applied`: done, and its displaced files are followed. `closed`: history.
    """

    INTENT = "intent"
    APPLIED = "applied"
    CLOSED = "closed"


class WriteRecord(NamedTuple):
    """One file that is replaced or created."""

    path: str  # relative to the store
    before_digest: str | None  # the content it was planned from; None if there was no file
    after_digest: str  # the content it becomes
    staged_name: str  # name in the private directory; after the exchange it names the displaced file
    inode: int  # the stage's inode
    merged_digest: str  # the content of the displaced file that is known to be merged (empty if there was no file)
    mtime_ns: int = 0  # the target's modification time after the write; 0 before that
    private: str = PRIVATE_DIRECTORY  # the private directory, relative to the store


class AppendRecord(NamedTuple):
    """Text added to a file at a known offset."""

    path: str
    digest: str
    offset: int


class ConsumeRecord(NamedTuple):
    """A findings file that is claimed by a rename to `claimed_name` in the private directory."""

    path: str
    before_digest: str  # its content as planned
    archived_digest: str  # its content as archived (redacted)
    archive: str  # its archive path, relative to the store
    claimed_name: str
    merged_digest: str  # the content of the claimed file that is known to be merged or restored
    keys: tuple[str, ...]  # the findings in it, for the ledger
    private: str = PRIVATE_DIRECTORY  # the private directory, relative to the store


class CommitRecord(NamedTuple):
    """One commit."""

    seq: int  # increases with each commit of a role
    job: int | None  # the job it was made for; None for healing and late writes
    kind: str
    role: str
    summary: str
    at: float  # the order within a role: Unix seconds that never go back, even if the clock does
    state: RecordState = RecordState.INTENT
    head: str | None = None  # git HEAD of a repository that tracks the memory file; None without one
    writes: tuple[WriteRecord, ...] = ()
    appends: tuple[AppendRecord, ...] = ()
    consumes: tuple[ConsumeRecord, ...] = ()
    late_merges: tuple[LateMerge, ...] = ()
    restored_blocks: tuple[str, ...] = ()  # blocks that this commit restored after a stale overwrite
    unconsumed_keys: tuple[str, ...] = ()  # ledger keys that count as never consumed any more (undo)
    undoes: tuple[int, ...] = ()  # seq of the record that this one undoes
    redacted: bool = False  # whether it removed secrets, so that its exact blobs are kept for a shorter time
    # whether that time is over, so that an undo restores the content without these secrets
    blobs_redacted: bool = False
    # findings that were consumed from files that are kept, because they contain more
    partial_consumes: tuple[PartialConsume, ...] = ()
    # partial consumes that an undo reversed; that content of the files is not consolidated again automatically
    withdrawn_consumes: tuple[PartialConsume, ...] = ()
    clock: float = 0.0  # Unix seconds by the clock, which may be wrong; `at` is only an order
    version: int = RECORD_VERSION

    def blob_digests(self) -> frozenset[str]:
        """Return the digests of all contents that this record names."""
        digests = {w.after_digest for w in self.writes} | {w.before_digest for w in self.writes if w.before_digest}
        digests |= {w.merged_digest for w in self.writes} | {a.digest for a in self.appends}
        for consume in self.consumes:
            digests |= {consume.before_digest, consume.archived_digest, consume.merged_digest}
        return frozenset(digests)

    def with_write(self, changed: WriteRecord) -> CommitRecord:
        """Return this record with one write (found by its stage) replaced."""
        return self._replace(writes=tuple(changed if w.staged_name == changed.staged_name else w for w in self.writes))

    def with_consume(self, changed: ConsumeRecord) -> CommitRecord:
        """Return this record with one consume (found by its claim) replaced."""
        name = changed.claimed_name
        return self._replace(consumes=tuple(changed if c.claimed_name == name else c for c in self.consumes))

    def encode(self) -> bytes:
        """Return the record as one line of JSON."""
        parts = {name: [part._asdict() for part in getattr(self, name)] for name in _PARTS}
        return json.dumps(self._asdict() | parts, sort_keys=True).encode() + b"\n"


_PARTS: Final = ("writes", "appends", "consumes", "late_merges", "partial_consumes", "withdrawn_consumes")
"""The fields of a commit record that are records themselves."""


def decode_record(data: bytes) -> CommitRecord:
    """Return the record that `encode` wrote. `RecordUnreadableError` if it is damaged or of a newer version."""
    try:
        raw: dict[str, Any] = json.loads(data)
        if raw["version"] != RECORD_VERSION:
            raise RecordUnreadableError(f"A journal record is of version {raw['version']}; upgrade echod.")
        return CommitRecord(
            **{
                **raw,
                "state": RecordState(raw["state"]),
                "clock": raw.get("clock", raw["at"]),
                "writes": tuple(WriteRecord(**write) for write in raw["writes"]),
                "appends": tuple(AppendRecord(**append) for append in raw["appends"]),
                "consumes": tuple(_decode_consume(**consume) for consume in raw["consumes"]),
                "late_merges": tuple(LateMerge(**merge) for merge in raw["late_merges"]),
                "restored_blocks": tuple(raw["restored_blocks"]),
                "unconsumed_keys": tuple(raw["unconsumed_keys"]),
                "undoes": tuple(raw["undoes"]),
                "partial_consumes": _decode_partial_consumes(raw.get("partial_consumes", ())),
                "withdrawn_consumes": _decode_partial_consumes(raw.get("withdrawn_consumes", ())),
            }
        )
    except GARBLED_ERRORS as error:
        raise RecordUnreadableError(
            "A journal record is damaged. echod does not change its role until the record is moved away."
        ) from error


def _decode_consume(
    *, before_digest: str, archived_digest: str, merged_digest: str, keys: list[str], **names: str
) -> ConsumeRecord:
    # Usually all three contents are equal. Sharing the string saves memory when very many records are loaded.
    archived_digest = before_digest if archived_digest == before_digest else archived_digest
    merged_digest = before_digest if merged_digest == before_digest else merged_digest
    return ConsumeRecord(
        before_digest=before_digest,
        archived_digest=archived_digest,
        merged_digest=merged_digest,
        keys=tuple(keys),
        **names,
    )


def _decode_partial_consumes(raw: Iterable[dict[str, Any]]) -> tuple[PartialConsume, ...]:
    return tuple(PartialConsume(part["digest"], tuple(part["keys"])) for part in raw)


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


_MAX_SKEW_SECONDS = 60.0
"""A clock is corrected by this much while it is right. Times so little ahead are believed."""

SHORTEST_INTERVAL = 1e-4
"""The seconds between two orders in a journal, at least."""


class Reading(NamedTuple):
    """The position of something in the journal's order, and the clock at that moment (Unix seconds)."""

    order: float
    clock: float


class Timeline:
    """The readings of one journal, as seen at `now` (Unix seconds)."""

    def __init__(self, readings: Iterable[Reading], now: float) -> None:
        believed = sorted(reading for reading in readings if reading.clock <= now + _MAX_SKEW_SECONDS)
        self._orders = [reading.order for reading in believed]
        self._clocks: list[float] = []
        for reading in believed:
            self._clocks.append(max(reading.clock, self._clocks[-1]) if self._clocks else reading.clock)

    def earliest(self, order: float) -> float:
        """Return the earliest time at which something with that order can have happened; -inf if unknown."""
        position = bisect_right(self._orders, order)
        return self._clocks[position - 1] if position else float("-inf")

    def latest(self, order: float) -> float:
        """Return the latest time at which something with that order can have happened; inf if unknown."""
        position = bisect_left(self._orders, order)
        return self._clocks[position] if position < len(self._clocks) else float("inf")

    def estimate(self, order: float, now: float) -> float:
        """Return the most probable time of something with that order, never in the future."""
        latest = self.latest(order)
        return min(latest if latest != float("inf") else max(self.earliest(order), 0.0) or now, now)
