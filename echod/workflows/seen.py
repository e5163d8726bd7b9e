"""Which workflows were seen: each once, under a name that lasts, however often its files are rewritten.

Only what identifies a single run counts: state files, checkpoints, loops that name their pipeline or their start, and
announced workflows. A lock or a team is a part of one of those, and a session is not a workflow.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING

from echod.workflows.belief import reason_of
from echod.workflows.limits import GateLimits

if TYPE_CHECKING:
    from collections.abc import Sequence

    from echod.workflows.model import Marker, Observations

_DEFAULTS = GateLimits()


class SeenState(StrEnum):
    """Whether a workflow still runs, as far as the gate believes it."""

    RUNNING = "running"
    ENDED = "ended"


@dataclass(frozen=True, slots=True)
class SeenWorkflow:
    """One run of a workflow.

    Attributes:
        key: its identity; the same in every look at the same run, unique within a project.
        kind: which workflow: review, work, arc, ...
        name: how its markers call it.
        started: when it began (Unix seconds), if it says so.
        state: running or ended.
        ended_at: when it ended (Unix seconds); its last sign of life if it does not say; None while it runs.
    """

    key: str
    kind: str
    name: str
    started: float | None
    state: SeenState
    ended_at: float | None


def active_workflows(
    observations: Observations, now: float, limits: GateLimits = _DEFAULTS
) -> tuple[SeenWorkflow, ...]:
    """The workflows seen in one look, in the order of their keys.

    One that was seen before and is missing now has had its markers cleaned away: it has ended too.
    """
    counted = sorted((marker for marker in observations.markers if marker.key), key=attrgetter("key"))
    return tuple(_seen(key, list(group), now, limits) for key, group in groupby(counted, attrgetter("key")))


def _seen(key: str, markers: Sequence[Marker], now: float, limits: GateLimits) -> SeenWorkflow:
    reasons = (reason_of(marker, now, limits) for marker in markers)
    runs = any(reason is not None and reason.holds for reason in reasons)
    arc = key.startswith("arc:")
    return SeenWorkflow(
        key=key,
        kind="arc" if arc else markers[0].workflow,
        name=key.removeprefix("arc:") if arc else markers[0].name,
        started=min((m.started for m in markers if m.started is not None), default=None),
        state=SeenState.RUNNING if runs else SeenState.ENDED,
        ended_at=None if runs else _end(markers, now),
    )


def _end(markers: Sequence[Marker], now: float) -> float | None:
    """What the markers say, unless that is still to come; else the last sign of life."""
    said = [marker.ended if marker.ended is not None and marker.ended <= now else marker.touched for marker in markers]
    known = [min(moment, now) for moment in said if moment is not None]
    return max(known, default=None)
