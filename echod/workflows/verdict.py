"""The answer of the gate: may a job write this project's memory now, and if not, why and until when."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class GateState(StrEnum):
    """`active`: a workflow runs. `quiet`: one just ended or someone just wrote. `idle`: go ahead."""

    ACTIVE = "active"
    QUIET = "quiet"
    IDLE = "idle"


@dataclass(frozen=True, slots=True)
class Reason:
    """One marker and what it says, in words for `status` and `echod gate`.

    Attributes:
        marker: the file (relative to the project where it lies inside) or name that was looked at.
        text: a sentence: what it says, since when, whose pid, and when echod would stop believing it.
        holds: whether this marker alone keeps the gate from being idle; other reasons are warnings.
        until: the moment (Unix seconds) after which it no longer counts; None where only its owner ends it.
    """

    marker: str
    text: str
    holds: bool
    until: float | None


@dataclass(frozen=True, slots=True)
class Verdict:
    """One verdict for the worker, `status` and `echod gate`.

    `until` is the earliest moment (Unix seconds) at which asking again can give another answer by time alone.
    """

    state: GateState
    reasons: tuple[Reason, ...]
    until: float | None
