"""What `echod prune --dry-run` and `echod compress --dry-run` prints as JSON."""

from __future__ import annotations

from dataclasses import dataclass

from echod.contract.status import SCHEMA


@dataclass(frozen=True, slots=True)
class PlannedEntry:
    """What prune or compress would do with an entry; `rule` is None where it stays, `score` where none is asked for."""

    id: str
    title: str
    layer: str | None
    score: float | None
    rule: str | None
    action: str
    store: str
    role: str


@dataclass(frozen=True, slots=True)
class PlannedFile:
    """What would become of a file: its lines now and then, its limit; `note` says why it stays too long, or is left."""

    store: str
    role: str
    lines_before: int
    lines_after: int
    limit: int
    note: str | None = None


@dataclass(frozen=True, slots=True)
class PlanReport:
    """`echod prune --dry-run` and `echod compress --dry-run`."""

    entries: tuple[PlannedEntry, ...] = ()
    files: tuple[PlannedFile, ...] = ()
    schema: int = SCHEMA
