"""What a commit writes down before it changes anything: enough to finish it, follow it, explain it and undo it.

A record is a value; the journal stores it. Images (contents) are named by their digest and kept beside it.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from typing import Any

from echod.store.errors import StoreError

RECORD_VERSION = 1


class RecordState(StrEnum):
    """`intent`: may be half done, is redone. `applied`: done, its displaced files are followed. `closed`: history."""

    INTENT = "intent"
    APPLIED = "applied"
    CLOSED = "closed"


@dataclass(frozen=True, slots=True)
class WriteRecord:
    """One file that is replaced or created.

    Attributes:
        path: relative to the store.
        before_digest: the content it was planned from; None where there was no file.
        after_digest: the content it becomes.
        staged_name: name beside the target; after the exchange it names the displaced file.
        inode: the stage's inode. Whether the exchange happened is judged by it alone.
        merged_digest: what is known to be merged of the displaced file (the empty content where there was no file).
        mtime_ns: the target's modification time as we left it; 0 before that.
    """

    path: str
    before_digest: str | None
    after_digest: str
    staged_name: str
    inode: int
    merged_digest: str
    mtime_ns: int = 0


@dataclass(frozen=True, slots=True)
class AppendRecord:
    """Text added to a file at a known offset."""

    path: str
    digest: str
    offset: int


@dataclass(frozen=True, slots=True)
class ConsumeRecord:
    """A findings file that is claimed by rename to `claimed_name` beside it.

    Attributes:
        before_digest: its content as planned.
        archived_digest: its content as archived (redacted).
        archive: where it was archived, relative to the store.
        merged_digest: what is known to be merged or offered again of the claimed file.
        keys: the findings in it, for the ledger.
    """

    path: str
    before_digest: str
    archived_digest: str
    archive: str
    claimed_name: str
    merged_digest: str
    keys: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PartialConsumeRecord:
    """Findings (by their keys) of a file that stays; `digest` is that of what it held then."""

    digest: str
    keys: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class LateMerge:
    """This commit merges what came late into `file_name` (a staged or claimed name) of an older record."""

    seq: int
    file_name: str
    digest: str


@dataclass(frozen=True, slots=True)
class CommitRecord:
    """One commit.

    Attributes:
        seq: increases with each commit of a role.
        job: the job it was made for; None for healing and late bytes.
        at: Unix seconds; never goes back within a role, whatever the clock does.
        head: git HEAD of a repository that tracks the memory file, None where there is none.
        partial_consumes: findings that were taken up while their file stays, for there is more in it.
        withdrawn_consumes: the same, taken back by an undo; what the file held then is not taken up again unasked.
        restored_blocks: blocks that this commit put back after a stale overwrite.
        unconsumed_keys: ledger keys that count as never consumed any more (undo).
        undoes: seq of the record that this one undoes.
        redacted: whether it took secrets out, so that its exact images are kept for a shorter time.
        blobs_redacted: whether that time is over: what undo brings back has lost these secrets.
    """

    seq: int
    job: int | None
    kind: str
    role: str
    summary: str
    at: float
    state: RecordState = RecordState.INTENT
    head: str | None = None
    writes: tuple[WriteRecord, ...] = ()
    appends: tuple[AppendRecord, ...] = ()
    consumes: tuple[ConsumeRecord, ...] = ()
    late_merges: tuple[LateMerge, ...] = ()
    restored_blocks: tuple[str, ...] = ()
    unconsumed_keys: tuple[str, ...] = ()
    undoes: tuple[int, ...] = ()
    redacted: bool = False
    blobs_redacted: bool = False
    partial_consumes: tuple[PartialConsumeRecord, ...] = ()
    withdrawn_consumes: tuple[PartialConsumeRecord, ...] = ()
    version: int = field(default=RECORD_VERSION)

    def blob_digests(self) -> frozenset[str]:
        """Digests of every content this record speaks of."""
        digests = {w.after_digest for w in self.writes} | {w.before_digest for w in self.writes if w.before_digest}
        digests |= {w.merged_digest for w in self.writes} | {a.digest for a in self.appends}
        for consume in self.consumes:
            digests |= {consume.before_digest, consume.archived_digest, consume.merged_digest}
        return frozenset(digests)

    def with_write(self, changed: WriteRecord) -> CommitRecord:
        """This record with one write (found by its stage) replaced."""
        return replace(self, writes=tuple(changed if w.staged_name == changed.staged_name else w for w in self.writes))

    def with_consume(self, changed: ConsumeRecord) -> CommitRecord:
        """This record with one consume (found by its claim) replaced."""
        return replace(
            self, consumes=tuple(changed if c.claimed_name == changed.claimed_name else c for c in self.consumes)
        )

    def encode(self) -> bytes:
        """As JSON, one line."""
        return json.dumps(asdict(self), sort_keys=True).encode() + b"\n"


class RecordUnreadableError(StoreError):
    """A record cannot be understood; it is left where it is."""


def _decode_consume(
    *, before_digest: str, archived_digest: str, merged_digest: str, keys: list[str], **names: str
) -> ConsumeRecord:
    # Most often all three contents are one. Of very many records that are kept in memory this is a good part.
    same = {before_digest: before_digest}
    archived_digest, merged_digest = (
        same.setdefault(archived_digest, archived_digest),
        same.setdefault(merged_digest, merged_digest),
    )
    return ConsumeRecord(
        before_digest=before_digest,
        archived_digest=archived_digest,
        merged_digest=merged_digest,
        keys=tuple(keys),
        **names,
    )


def decode_record(data: bytes) -> CommitRecord:
    """The record that `encode` wrote.

    Raises:
        RecordUnreadableError: it is damaged or of a newer version.
    """
    try:
        raw: dict[str, Any] = json.loads(data)
        if raw["version"] != RECORD_VERSION:
            raise RecordUnreadableError(f"A journal record is of version {raw['version']}; upgrade echod.")
        return CommitRecord(
            **{
                **raw,
                "state": RecordState(raw["state"]),
                "writes": tuple(WriteRecord(**w) for w in raw["writes"]),
                "appends": tuple(AppendRecord(**a) for a in raw["appends"]),
                "consumes": tuple(_decode_consume(**consume) for consume in raw["consumes"]),
                "late_merges": tuple(LateMerge(**a) for a in raw["late_merges"]),
                "restored_blocks": tuple(raw["restored_blocks"]),
                "unconsumed_keys": tuple(raw["unconsumed_keys"]),
                "undoes": tuple(raw["undoes"]),
                "partial_consumes": tuple(
                    PartialConsumeRecord(b["digest"], tuple(b["keys"])) for b in raw.get("partial_consumes", ())
                ),
                "withdrawn_consumes": tuple(
                    PartialConsumeRecord(b["digest"], tuple(b["keys"])) for b in raw.get("withdrawn_consumes", ())
                ),
            }
        )
    except (ValueError, KeyError, TypeError) as error:
        raise RecordUnreadableError(
            "A journal record is damaged; echod leaves its role alone until it is moved away."
        ) from error
