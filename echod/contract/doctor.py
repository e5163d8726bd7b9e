"""What `echod doctor` prints as JSON."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from echod.contract.status import SCHEMA


class CheckResult(StrEnum):
    """`ok`: as it should be. `note`: worth knowing. `problem`: something does not work or is not as safe here."""

    OK = "ok"
    NOTE = "note"
    PROBLEM = "problem"


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that `echod doctor` looked at: a stable code, how it is, what to do, and the path it is about."""

    code: str
    result: CheckResult
    text: str
    fix: str
    place: str | None = None


@dataclass(frozen=True, slots=True)
class DoctorReport:
    """`echod doctor`; `healthy` if no check found a problem."""

    healthy: bool
    checks: tuple[Check, ...] = ()
    schema: int = SCHEMA
