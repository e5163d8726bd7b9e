"""The values of a commit: the change set of a job, the plan made from it, and the result.

Values only. Paths are relative to the store. Every change names the content it was planned from, so that the commit
detects when another program has written in the meantime.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from pathlib import PurePosixPath
from typing import NamedTuple


class Write(NamedTuple):
    """Replace a file (`before` is the digest of its content) or create it (`before` is None)."""

    path: PurePosixPath
    before: str | None
    after: bytes


class Append(NamedTuple):
    """Add text to the end of an archive file, which is created if it is missing."""

    path: PurePosixPath
    text: bytes


class ConsumeFindings(NamedTuple):
    """Remove a findings file: claim it by rename, then store `archived_text` (its text, redacted) under `archive`.

    `archive` is the preferred name. The commit finds a free one (`-2`, `-3`, ...). `keys` name the findings in the file
    for the ledger, so that a stale copy of the file adds none of them twice.
    """

    path: PurePosixPath
    before: str
    archive: PurePosixPath
    archived_text: bytes
    keys: tuple[str, ...] = ()


class PartialConsume(NamedTuple):
    """Findings consumed from a file that is kept, because it contains more than one job consolidates.

    `digest` identifies the content of the file. `keys` name the findings for the ledger. Later jobs skip them.
    """

    digest: str
    keys: tuple[str, ...]


class LateMerge(NamedTuple):
    """The merge of late writes in `file_name` (a staged or claimed name) of the older commit `seq`."""

    seq: int
    file_name: str
    digest: str


class Origin(StrEnum):
    """Who asks for a change. Only the user may change etched entries, notes and opaque blocks, or empty a file."""

    SERVICE = "service"
    USER = "user"


class ChangeSet(NamedTuple):
    """All changes of one job in one role, with the sentence that explains them."""

    kind: str
    role: str
    summary: str
    writes: tuple[Write, ...] = ()
    appends: tuple[Append, ...] = ()
    consumes: tuple[ConsumeFindings, ...] = ()
    partial_consumes: tuple[PartialConsume, ...] = ()
    origin: Origin = Origin.SERVICE

    @property
    def is_empty(self) -> bool:
        """True if there is nothing to do. An unchanged result writes nothing."""
        return not (self.writes or self.appends or self.consumes or self.partial_consumes)


CommitGate = Callable[[], str | None]
"""Called just before the point of no return. Returns why the commit must wait, or None to continue."""


def no_gate() -> str | None:
    """Return None: nothing holds the commit back."""
    return None


class PlannedWrite(NamedTuple):
    """Replace `before` (None: no file) by `after`."""

    path: str
    before: bytes | None
    after: bytes


class PlannedConsume(NamedTuple):
    """Remove a findings file and store `archived_text` at the (free) archive path."""

    path: str
    before: bytes
    archived_text: bytes
    archive: str
    keys: tuple[str, ...]


class CommitPlan(NamedTuple):
    """A checked change set with contents instead of digests, ready for `commit`.

    `withdrawn_consumes` are the partial consumes that an undo reverses: their findings are in no memory any more.
    """

    job: int | None
    kind: str
    summary: str
    writes: tuple[PlannedWrite, ...] = ()
    appends: tuple[tuple[str, bytes], ...] = ()
    consumes: tuple[PlannedConsume, ...] = ()
    partial_consumes: tuple[PartialConsume, ...] = ()
    withdrawn_consumes: tuple[PartialConsume, ...] = ()
    late_merges: tuple[LateMerge, ...] = ()
    restored_blocks: tuple[str, ...] = ()
    unconsumed_keys: tuple[str, ...] = ()
    undoes: tuple[int, ...] = ()

    @property
    def is_empty(self) -> bool:
        """True if there is nothing to do and nothing to record."""
        return not (self.writes or self.appends or self.consumes or self.partial_consumes)


class CommitResult(NamedTuple):
    """A finished, durable commit. `seq` is None if the change set changed nothing, so that nothing was written."""

    seq: int | None


class CommitConflict(NamedTuple):
    """Another program has written `path` since it was read. The caller reads again and plans again."""

    path: str
