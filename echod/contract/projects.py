"""What `echod projects` prints as JSON."""

from __future__ import annotations

from dataclasses import dataclass

from echod.contract.status import SCHEMA


@dataclass(frozen=True, slots=True)
class ProjectInfo:
    """A row of `echod projects`; not `registered` means that a glob in the settings matches it."""

    path: str
    registered: bool
    missing: bool
    paused: bool


@dataclass(frozen=True, slots=True)
class ProjectsReport:
    """`echod projects`."""

    projects: tuple[ProjectInfo, ...] = ()
    schema: int = SCHEMA
