"""Commit records: everything needed to finish, follow, explain and undo a commit.

A record is written before the commit changes anything. It is a value, and the journal stores it. Its field names are
the keys of its JSON file. Contents are named by their digest and stored as blobs beside it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from typing import Any

from echod.errors import GARBLED_ERRORS
from echod.store.changes import LateMerge, PartialConsume
from echod.store.errors import StoreError
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


@dataclass(frozen=True, slots=True)
class WriteRecord:
    """One file that is replaced or created."""

    path: str  # relative to the store
    before_digest: str | None  # the content it was planned from; None if there was no file
    after_digest: str  # the content it becomes
    staged_name: str  # name in the private directory; after the exchange it names the displaced file
    inode: int  # the stage's inode
    merged_digest: str  # the content of the displaced file that is known to be merged (empty if there was no file)
    mtime_ns: int = 0  # the target's modification time after the write; 0 before that
    private: str = PRIVATE_DIRECTORY  # the private directory, relative to the store


@dataclass(frozen=True, slots=True)
class AppendRecord:
    """Text added to a file at a known offset."""

    path: str
    digest: str
    offset: int


@dataclass(frozen=True, slots=True)
class ConsumeRecord:
    """A findings file that is claimed by a rename to `claimed_name` in the private directory."""

    path: str
    before_digest: str  # its content as planned
    archived_digest: str  # its content as archived (redacted)
    archive: str  # its archive path, relative to the store
    claimed_name: str
    merged_digest: str  # the content of the claimed file that is known to be merged or restored
    keys: tuple[str, ...]  # the findings in it, for the ledger
    private: str = PRIVATE_DIRECTORY  # the private directory, relative to the store


@dataclass(frozen=True, slots=True)
class CommitRecord:
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
    version: int = field(default=RECORD_VERSION)

    def blob_digests(self) -> frozenset[str]:
        """Return the digests of all contents that this record names."""
        digests = {w.after_digest for w in self.writes} | {w.before_digest for w in self.writes if w.before_digest}
        digests |= {w.merged_digest for w in self.writes} | {a.digest for a in self.appends}
        for consume in self.consumes:
            digests |= {consume.before_digest, consume.archived_digest, consume.merged_digest}
        return frozenset(digests)

    def with_write(self, changed: WriteRecord) -> CommitRecord:
        """Return this record with one write (found by its stage) replaced."""
        return replace(self, writes=tuple(changed if w.staged_name == changed.staged_name else w for w in self.writes))

    def with_consume(self, changed: ConsumeRecord) -> CommitRecord:
        """Return this record with one consume (found by its claim) replaced."""
        name = changed.claimed_name
        return replace(self, consumes=tuple(changed if c.claimed_name == name else c for c in self.consumes))

    def encode(self) -> bytes:
        """Return the record as one line of JSON."""
        return json.dumps(asdict(self), sort_keys=True).encode() + b"\n"


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
