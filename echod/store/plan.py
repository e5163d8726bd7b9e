"""What a commit is asked to do and how it ends: values only."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from echod.store.changes import Begin
from echod.store.journal.records import Absorption

Gate = Callable[[], str | None]
"""Asked just before the point of no return: why the commit must wait, or None to go on."""


def open_gate() -> str | None:
    """Nothing holds."""
    return None


@dataclass(frozen=True, slots=True)
class PlannedWrite:
    """Replace `before` (None: no file) by `after`."""

    path: str
    before: bytes | None
    after: bytes


@dataclass(frozen=True, slots=True)
class PlannedConsume:
    """Take a findings file away and keep `kept` at the (free) archive path."""

    path: str
    before: bytes
    kept: bytes
    archive: str
    keys: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Plan:
    """A checked change set, with contents in the place of digests; what `commit` carries out.

    `withholds` is what an undo takes back of `begins`: findings that are in no memory any more, in files that stay.
    """

    job: int | None
    kind: str
    summary: str
    writes: tuple[PlannedWrite, ...] = ()
    appends: tuple[tuple[str, bytes], ...] = ()
    consumes: tuple[PlannedConsume, ...] = ()
    begins: tuple[Begin, ...] = ()
    withholds: tuple[Begin, ...] = ()
    absorbs: tuple[Absorption, ...] = ()
    reapplied: tuple[str, ...] = ()
    released: tuple[str, ...] = ()
    undoes: tuple[int, ...] = ()

    @property
    def empty(self) -> bool:
        """Whether there is nothing to do and nothing to remember."""
        return not (self.writes or self.appends or self.consumes or self.begins)


@dataclass(frozen=True, slots=True)
class Committed:
    """It is done and durable. `seq` is None where the change set changed nothing, and so nothing was written."""

    seq: int | None


@dataclass(frozen=True, slots=True)
class Overtaken:
    """Someone else wrote `path` since it was read: read again and plan again."""

    path: str
