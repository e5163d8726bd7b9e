"""What `echod log` prints as JSON."""

from __future__ import annotations

from dataclasses import dataclass

from echod.contract.status import SCHEMA


@dataclass(frozen=True, slots=True)
class LogJob:
    """A row of `echod log`: what one job changed. `job` is None for what was put right without one."""

    job: int | None
    kind: str
    store: str
    role: str
    at: float
    summary: str
    undone_by: int | None


@dataclass(frozen=True, slots=True)
class LogReport:
    """`echod log`."""

    jobs: tuple[LogJob, ...] = ()
    schema: int = SCHEMA
