"""What a job wants to change: a change set, committed as one.

Paths are relative to the store. Every change names the content it was planned from, so that the commit can tell
when someone else was faster.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import PurePosixPath


@dataclass(frozen=True, slots=True)
class Write:
    """Replace a file (`before` is its content's digest) or create it (`before` is None)."""

    path: PurePosixPath
    before: str | None
    after: bytes


@dataclass(frozen=True, slots=True)
class Append:
    """Add to the end of an archive file, creating it if need be."""

    path: PurePosixPath
    text: bytes


@dataclass(frozen=True, slots=True)
class Consume:
    """Take a findings file away: claim it by rename, then keep `kept` (its text, redacted) under `archive`.

    `archive` is the wished name; the commit finds a free one (`-2`, `-3`, ...). `keys` name the findings it held for
    the ledger, so that a stale copy of the file adds none of them twice.
    """

    path: PurePosixPath
    before: str
    archive: PurePosixPath
    kept: bytes
    keys: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Begin:
    """Take findings from a file that stays, since it holds more than can be taken up at once.

    `before` is its content's digest, `keys` name the findings for the ledger: they are passed over from then on.
    """

    before: str
    keys: tuple[str, ...]


class Origin(StrEnum):
    """Who wants a change. Only a person may touch etched, notes and opaque blocks, or empty a file."""

    SERVICE = "service"
    PERSON = "person"


@dataclass(frozen=True, slots=True)
class ChangeSet:
    """All changes of one job in one role, with the sentence that explains them."""

    kind: str
    role: str
    summary: str
    writes: tuple[Write, ...] = ()
    appends: tuple[Append, ...] = ()
    consumes: tuple[Consume, ...] = ()
    begins: tuple[Begin, ...] = ()
    origin: Origin = Origin.SERVICE

    @property
    def empty(self) -> bool:
        """Whether there is nothing to do; an unchanged result writes nothing."""
        return not (self.writes or self.appends or self.consumes or self.begins)
