"""The values that `echod picture` prints as JSON. A module of its own, since its names are of no other command."""

from __future__ import annotations

from typing import NamedTuple

from echod.contract.codec import SCHEMA


class DrawnPeriod(NamedTuple):
    """Consecutive days. `lines` (layer: number) is None if unknown; so is `came` where the journal does not reach."""

    first: str
    last: str
    lines: dict[str, int] | None
    came: int | None
    left: int
    undone: int


class DrawnMovement(NamedTuple):
    """An entry that came or left. `cause` is a rule, a kind of job, `another program` or `not known`.

    `shortened`: a part of the entry may have stayed. `reversed`: the job was undone, or the file has the entry again.
    """

    date: str
    cause: str
    id: str | None
    title: str
    layer: str | None
    lines: int
    job: int | None
    shortened: bool
    reversed: bool


class DrawnUndo(NamedTuple):
    """A job that was undone, and the job that undid it."""

    date: str
    job: int | None
    kind: str
    undone_by: int
    summary: str


class DrawnRole(NamedTuple):
    """The picture of a role's memory file. `came_since` is the day from which on additions are known, if any."""

    store: str
    role: str
    limit: int | None
    came_since: str | None
    period_days: int
    periods: tuple[DrawnPeriod, ...]
    came: tuple[DrawnMovement, ...]
    left: tuple[DrawnMovement, ...]
    undone: tuple[DrawnUndo, ...]


class PictureReport(NamedTuple):
    """`echod picture`. `problems` are sentences about what could not be read."""

    roles: tuple[DrawnRole, ...] = ()
    problems: tuple[str, ...] = ()
    schema: int = SCHEMA
