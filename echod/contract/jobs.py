"""What `echod jobs` prints as JSON."""

from __future__ import annotations

from dataclasses import dataclass

from echod.contract.status import SCHEMA


@dataclass(frozen=True, slots=True)
class JobReport:
    """A row of `echod jobs`."""

    job: int
    kind: str
    store: str
    role: str
    state: str
    attempts: int
    reason: str
    result: str
    due: float
    queued_at: float
    started_at: float | None
    finished_at: float | None


@dataclass(frozen=True, slots=True)
class JobsReport:
    """`echod jobs`."""

    jobs: tuple[JobReport, ...] = ()
    schema: int = SCHEMA
