"""The answer of the gate: may a job write this project's memory now, and if not, why and until when."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class GateState(StrEnum):
    """`active`: a workflow runs. `quiet`: one just ended or someone just wrote. `idle`: go ahead."""

    ACTIVE = "active"
    QUIET = "quiet"
    IDLE = "idle"


class Kind(StrEnum):
    """What kind of sign a reason speaks of. The last three make `quiet`, all others `active`."""

    STATE_FILE = "state_file"
    LOOP = "loop"
    CHECKPOINT = "checkpoint"
    LOCK = "lock"
    MIGRATION = "migration"
    SIGNALS = "signals"
    SESSION = "session"
    GIT = "git"
    DECLARED = "declared"
    UNSEEN = "unseen"
    CHANGED = "changed"
    ENDED = "ended"
    EDITOR = "editor"


@dataclass(frozen=True, slots=True)
class Reason:
    """One marker and what it says, in words for `status` and `echod gate`.

    Attributes:
        marker: the file (relative to the project where it lies inside) or name that was looked at.
        text: a sentence: what it says, since when, whose pid, and when echod would stop believing it.
        holds: whether this marker alone keeps the gate from being idle; other reasons are warnings.
        until: the moment (Unix seconds) after which it no longer counts; None where only its owner ends it.
        kind: what kind of sign it is.
        name: the workflow, team or program that left it, as far as the marker says.
        since: its start where it says so, else its last sign of life (Unix seconds).
        pid: the process it names.
    """

    marker: str
    text: str
    holds: bool
    until: float | None
    kind: Kind = Kind.STATE_FILE
    name: str = ""
    since: float | None = None
    pid: int | None = None


@dataclass(frozen=True, slots=True)
class Verdict:
    """One verdict for the worker, `status` and `echod gate`.

    `until` is the earliest moment (Unix seconds) at which asking again can give another answer by time alone.
    `restless` is true while there are signs that make `quiet`, also when their time is used up and the state is
    idle; `quiet_streak` needs it.
    """

    state: GateState
    reasons: tuple[Reason, ...]
    until: float | None
    restless: bool = False


def quiet_streak(verdict: Verdict, since: float | None, now: float) -> float | None:
    """When the present unbroken run of quiet began: what to hand to the next `gate` as `quiet_since`.

    Args:
        verdict: the newest verdict.
        since: what this function said last time; None at first.
        now: Unix seconds of the verdict.
    """
    if verdict.state is GateState.ACTIVE or not verdict.restless:
        return None
    return now if since is None else since
