"""The gate: what was seen in a project, and the time -> may a job write its memory now. Pure."""

from __future__ import annotations

from dataclasses import replace

from echod.workflows.belief import quiet_reasons, reason_of
from echod.workflows.limits import GateLimits
from echod.workflows.model import Observations
from echod.workflows.verdict import GateState, Kind, Reason, Verdict


def gate(observations: Observations, now: float, limits: GateLimits, *, quiet_since: float | None = None) -> Verdict:
    """The verdict on a project.

    Args:
        observations: what one look at the project found.
        now: Unix seconds.
        limits: how long which sign is believed.
        quiet_since: when the present unbroken run of quiet verdicts began (`quiet_streak` keeps count); a writer
            without pauses holds no job up for longer than `limits.quiet_cap_minutes`.
    """
    signs = [reason for marker in observations.markers if (reason := reason_of(marker, now, limits))]
    signs += [Reason(path, text, holds=False, until=None, kind=Kind.UNSEEN) for path, text in observations.unseen]
    holding = tuple(sign for sign in signs if sign.holds)
    warnings = tuple(sign for sign in signs if not sign.holds)
    if holding:
        return Verdict(GateState.ACTIVE, holding + warnings, _last(holding))
    quiet = quiet_reasons(observations, now, limits)
    if not quiet:
        return Verdict(GateState.IDLE, warnings, None)
    cap = None if quiet_since is None else quiet_since + limits.quiet_cap_seconds
    if cap is not None and now >= cap:
        spent = tuple(_spent(reason) for reason in quiet)
        return Verdict(GateState.IDLE, spent + warnings, None, restless=True)
    ends = [moment for moment in (_last(quiet), cap) if moment is not None]
    return Verdict(GateState.QUIET, quiet + warnings, min(ends, default=None), restless=True)


def _last(reasons: tuple[Reason, ...]) -> float | None:
    """When the last of the reasons stops holding by itself; None if one of them never does."""
    moments = [reason.until for reason in reasons if reason.until is not None]
    return max(moments) if len(moments) == len(reasons) else None


def _spent(reason: Reason) -> Reason:
    return replace(
        reason, holds=False, until=None, text=f"{reason.text}, but it has been quiet too long for a job to wait more"
    )
