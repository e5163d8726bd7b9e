"""What a job wants to change: a change set, committed as one.

Paths are relative to the store. Every change names the content it was planned from, so that the commit can tell
when someone else was faster.

What a commit is asked to do and how it ends: values only.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import PurePosixPath
from typing import NamedTuple

from echod.store.journal.records import LateMerge


@dataclass(frozen=True, slots=True)
class Write:
    """Replace a file (`before` is its content's digest) or create it (`before` is None)."""

    path: PurePosixPath
    before: str | None
    after: bytes


class Append(NamedTuple):
    """Add to the end of an archive file, creating it if need be."""

    path: PurePosixPath
    text: bytes


@dataclass(frozen=True, slots=True)
class ConsumeFindings:
    """Take a findings file away: claim it by rename, then keep `archived_text` (its text, redacted) under `archive`.

    `archive` is the wished name; the commit finds a free one (`-2`, `-3`, ...). `keys` name the findings it held for
    the ledger, so that a stale copy of the file adds none of them twice.
    """

    path: PurePosixPath
    before: str
    archive: PurePosixPath
    archived_text: bytes
    keys: tuple[str, ...] = ()


class PartialConsume(NamedTuple):
    """Take findings from a file that stays, since it holds more than can be taken up at once.

    `before` is its content's digest, `keys` name the findings for the ledger: they are passed over from then on.
    """

    before: str
    keys: tuple[str, ...]


class Origin(StrEnum):
    """Who wants a change. Only a person may touch etched, notes and opaque blocks, or empty a file."""

    SERVICE = "service"
    USER = "user"


@dataclass(frozen=True, slots=True)
class ChangeSet:
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
        """Whether there is nothing to do; an unchanged result writes nothing."""
        return not (self.writes or self.appends or self.consumes or self.partial_consumes)


CommitGate = Callable[[], str | None]
"""Asked just before the point of no return: why the commit must wait, or None to go on."""


def no_gate() -> str | None:
    """Nothing holds."""
    return None


class PlannedWrite(NamedTuple):
    """Replace `before` (None: no file) by `after`."""

    path: str
    before: bytes | None
    after: bytes


class PlannedConsume(NamedTuple):
    """Take a findings file away and keep `archived_text` at the (free) archive path."""

    path: str
    before: bytes
    archived_text: bytes
    archive: str
    keys: tuple[str, ...]


class CommitPlan(NamedTuple):
    """A checked change set, with contents in the place of digests; what `commit` carries out.

    `withdrawn_consumes` are the partial consumes that an undo takes back: findings that are in no memory any more.
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
        """Whether there is nothing to do and nothing to remember."""
        return not (self.writes or self.appends or self.consumes or self.partial_consumes)


class CommitResult(NamedTuple):
    """It is done and durable. `seq` is None where the change set changed nothing, and so nothing was written."""

    seq: int | None


class CommitConflict(NamedTuple):
    """Someone else wrote `path` since it was read: read again and plan again."""

    path: str
