"""Decide whether a job may write a project's memory now, from the observations and the time. Pure.

In reading order: the verdict (`gate`), how long each marker is believed (`marker_reason`, `valid_until`), the signs of
quiet (`quiet_reasons`), the sentences of reasons, and the runs of workflows (`find_workflow_runs`).

Each run is counted once, under a lasting key, however often its files are rewritten. Only markers that identify a
single run count: state files, checkpoints, loops that name their pipeline or their start, and announced workflows. A
lock or a team is a part of one of those, and a session is not a workflow.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from enum import StrEnum
from itertools import groupby
from operator import attrgetter
from typing import NamedTuple

from echod.workflows.model import (
    EditorLock,
    ExternalChange,
    GateLimits,
    GateObservations,
    GateState,
    Marker,
    MarkerKind,
    MarkerState,
    ProcessState,
    Verdict,
    VerdictReason,
)

# Kinds that usually name an owner, so that its absence is reported.
_OWNED_KINDS = frozenset({MarkerKind.STATE_FILE, MarkerKind.LOOP, MarkerKind.CHECKPOINT, MarkerKind.LOCK})
# Kinds that workflows write into the project: a change of one is a sign of work.
_PROJECT_KINDS = _OWNED_KINDS | {MarkerKind.MIGRATION, MarkerKind.SIGNALS}

_DEFAULTS = GateLimits()


class WorkflowRunState(StrEnum):
    """The state of a workflow, as far as the gate believes its markers."""

    RUNNING = "running"
    ENDED = "ended"


class WorkflowRun(NamedTuple):
    """One run of a workflow (`kind`: review, work, arc, ...). Times are Unix seconds.

    `key` is its identity: the same whenever the same run is seen, unique within a project. `started` is None unless it
    is stated. `ended_at` is its last sign of life if no end is stated; None while it runs.
    """

    key: str
    kind: str
    name: str
    started: float | None
    state: WorkflowRunState
    ended_at: float | None


def gate(
    observations: GateObservations, now: float, limits: GateLimits, *, quiet_since: float | None = None
) -> Verdict:
    """Return the verdict on a project at `now` (Unix seconds).

    `quiet_since` is when the present unbroken run of quiet verdicts began (see `quiet_streak`). A writer without pauses
    delays no job for longer than `limits.max_quiet_minutes`.
    """
    reasons = [reason for marker in observations.markers if (reason := marker_reason(marker, now, limits))]
    for path, text in observations.inaccessible:
        reasons.append(VerdictReason(path, text, blocking=False, until=None, kind=MarkerKind.INACCESSIBLE))
    blocking = tuple(reason for reason in reasons if reason.blocking)
    warnings = tuple(reason for reason in reasons if not reason.blocking)
    if blocking:
        return Verdict(GateState.ACTIVE, blocking + warnings, _latest_until(blocking))
    quiet = quiet_reasons(observations, now, limits)
    if not quiet:
        return Verdict(GateState.IDLE, warnings, None)
    cap = (now if quiet_since is None else quiet_since) + limits.max_quiet_seconds
    if now >= cap:
        waited = "but jobs have waited long enough for quiet"
        expired = tuple(r._replace(blocking=False, until=None, text=f"{r.text}, {waited}") for r in quiet)
        return Verdict(GateState.IDLE, expired + warnings, None, had_activity=True)
    end = _latest_until(quiet)
    return Verdict(GateState.QUIET, quiet + warnings, cap if end is None else min(end, cap), had_activity=True)


def _latest_until(reasons: tuple[VerdictReason, ...]) -> float | None:
    """Return when the last of the reasons ends by itself; None if one of them never does."""
    moments = [reason.until for reason in reasons if reason.until is not None]
    return max(moments) if len(moments) == len(reasons) else None


def marker_reason(marker: Marker, now: float, limits: GateLimits) -> VerdictReason | None:
    """Return what a marker means now: it blocks, it is a warning (no longer believed), or None for no meaning.

    A marker whose owner is known to be gone, and one that was not touched for `stale_warning_days`, is the residue of a
    dead session. Every project has some, and they deserve no warning.
    """
    if marker.state is MarkerState.ENDED or (marker.kind is MarkerKind.SESSION and not limits.sessions):
        return None
    owner_state = marker.owner.state_at(marker.modified_at)
    until = valid_until(marker, owner_state, limits)
    blocking = _is_fresh(marker.last_active, until, now, limits)
    if not blocking and not _is_recent_enough_to_report(marker, owner_state, now, limits):
        return None
    return VerdictReason(
        marker=marker.path,
        text=_describe(marker, owner_state, now, until, blocking=blocking),
        blocking=blocking,
        until=until if blocking else None,
        kind=marker.kind,
        name=marker.name,
        since=marker.started or marker.last_active,
        pid=marker.owner.pid,
    )


def valid_until(marker: Marker, owner_state: ProcessState, limits: GateLimits) -> float | None:
    """Return the moment from which the marker no longer counts; None: its age is unknown, so it counts."""
    if marker.deadline is not None:
        return marker.deadline if owner_state is not ProcessState.DEAD else 0.0
    if marker.last_active is None:
        return None
    return marker.last_active + min(_max_age(marker, owner_state, limits), limits.max_silence_seconds)


def _max_age(marker: Marker, owner_state: ProcessState, limits: GateLimits) -> float:
    """Return how many seconds without a sign of life the marker is believed."""
    unlimited = limits.max_silence_seconds
    unknown = limits.unknown_owner_minutes * 60
    # By kind: with a live owner, an unknown one, and a dead one.
    alive_age, unknown_age, dead_age = {
        MarkerKind.STATE_FILE: (unlimited, unknown, limits.dead_owner_minutes * 60),
        MarkerKind.LOOP: (unlimited, limits.loop_minutes * 60, limits.loop_minutes * 60),
        MarkerKind.CHECKPOINT: (unlimited, unknown, unknown),
        MarkerKind.LOCK: (unlimited, limits.new_lock_minutes * 60, 0.0),
        MarkerKind.MIGRATION: (limits.migration_minutes * 60,) * 3,
        MarkerKind.SESSION: (unlimited, unlimited, 0.0),
        MarkerKind.GIT: (unlimited,) * 3,
    }.get(marker.kind, (unknown,) * 3)
    if owner_state is ProcessState.ALIVE:
        return alive_age
    return dead_age if owner_state is ProcessState.DEAD else unknown_age


def _is_fresh(last_active: float | None, until: float | None, now: float, limits: GateLimits) -> bool:
    """Return whether something believed until `until` counts at `now`.

    An unknown time counts as fresh. So does one in the future, unless it is so far ahead that the clock that wrote it
    was plainly wrong: that would be fresh for years.
    """
    plausible = last_active is None or last_active - now <= limits.max_silence_seconds
    return until is None or (now < until and plausible)


def _is_recent_enough_to_report(marker: Marker, owner_state: ProcessState, now: float, limits: GateLimits) -> bool:
    if owner_state is ProcessState.DEAD or marker.deadline is not None:
        return False
    recent = marker.last_active is None or abs(now - marker.last_active) < limits.stale_warning_seconds
    return recent or owner_state is ProcessState.ALIVE


def quiet_reasons(observations: GateObservations, now: float, limits: GateLimits) -> tuple[VerdictReason, ...]:
    """Return the signs of a recent change, a recent end or an open editor; of changes only the newest."""
    if limits.quiet_seconds <= 0:
        return ()
    reasons = [_editor_reason(editor, now, limits) for editor in observations.editor_locks]
    changes = [*observations.changes, *_marker_changes(observations)]
    recent = [c for c in changes if _is_fresh(c.changed_at, c.changed_at + limits.quiet_seconds, now, limits)]
    if recent:
        reasons.append(_change_reason(max(recent, key=lambda change: change.changed_at), limits))
    ended = observations.last_ended
    if ended is not None and _is_fresh(ended, ended + limits.quiet_seconds, now, limits):
        reasons.append(_end_reason(ended, limits))
    return tuple(reason for reason in reasons if reason is not None)


def _marker_changes(observations: GateObservations) -> list[ExternalChange]:
    written = (marker for marker in observations.markers if marker.kind in _PROJECT_KINDS)
    return [ExternalChange(marker.path, marker.last_active) for marker in written if marker.last_active is not None]


def _change_reason(change: ExternalChange, limits: GateLimits) -> VerdictReason:
    path, at = change
    until = at + limits.quiet_seconds
    text = f"{path} was changed at {format_time_of_day(at)}; quiet until {format_time_of_day(until)}"
    return VerdictReason(path, text, blocking=True, until=until, kind=MarkerKind.CHANGED, since=at)


def _end_reason(ended: float, limits: GateLimits) -> VerdictReason:
    until = ended + limits.quiet_seconds
    text = f"a workflow ended at {format_time_of_day(ended)}; quiet until {format_time_of_day(until)}"
    return VerdictReason("workflow", text, blocking=True, until=until, kind=MarkerKind.ENDED, since=ended)


def _editor_reason(lock: EditorLock, now: float, limits: GateLimits) -> VerdictReason | None:
    owner_state = lock.owner.state_at(lock.modified_at)
    if owner_state is ProcessState.DEAD:
        return None  # left behind by a crash
    max_age = limits.max_silence_seconds if owner_state is ProcessState.ALIVE else limits.unknown_owner_minutes * 60
    until = None if lock.modified_at is None else lock.modified_at + max_age
    if not _is_fresh(lock.modified_at, until, now, limits):
        return None
    pid, since = lock.owner.pid, lock.modified_at
    process = f" (process {pid})" if pid else ""
    text = f"an editor{process} has {lock.edited_file} open; believed until {_format_until(until, now)}"
    return VerdictReason(lock.path, text, blocking=True, until=until, kind=MarkerKind.EDITOR, since=since, pid=pid)


def _describe(marker: Marker, owner_state: ProcessState, now: float, until: float | None, *, blocking: bool) -> str:
    parts = [marker.description, _describe_owner(marker, owner_state)]
    if marker.started is not None:
        parts.append(f"started {format_time(marker.started, now)}")
    if marker.last_active is not None and marker.last_active != marker.started:
        parts.append(f"last sign of life {format_time(marker.last_active, now)}")
    parts.append(f"believed until {_format_until(until, now)}" if blocking else "stale, so echod ignores it")
    return "; ".join(part for part in parts if part)


def _describe_owner(marker: Marker, owner_state: ProcessState) -> str:
    number = marker.owner.pid
    if number is None:
        return "its process is unknown" if marker.kind in _OWNED_KINDS else ""
    if marker.owner.pid_was_reused(marker.modified_at):
        return f"its process {number} is gone, its number belongs to a later one"
    words = {ProcessState.ALIVE: "is alive", ProcessState.DEAD: "is gone", ProcessState.UNKNOWN: "may be alive"}
    return f"its process {number} {words[owner_state]}"


def _format_until(until: float | None, now: float) -> str:
    return "its time can be read" if until is None else format_time(until, now)


def format_time(moment: float, now: float) -> str:
    """Return a moment as local time, with the date unless that is today's."""
    today = _format_local("%Y-%m-%d", now)
    return _format_local("%Y-%m-%d %H:%M", moment).removeprefix(f"{today} ")


def format_time_of_day(moment: float) -> str:
    """Return a nearby moment as local time of day."""
    return _format_local("%H:%M:%S", moment)


def _format_local(time_format: str, moment: float) -> str:
    try:
        return time.strftime(time_format, time.localtime(moment))
    except (OverflowError, ValueError, OSError):
        return f"{moment:.0f}"


def find_workflow_runs(
    observations: GateObservations, now: float, limits: GateLimits = _DEFAULTS
) -> tuple[WorkflowRun, ...]:
    """Return the workflows in the observations, in the order of their keys.

    One that was seen before and is missing now has had its markers cleaned away: it has ended too.
    """
    identified = sorted((marker for marker in observations.markers if marker.key), key=attrgetter("key"))
    return tuple(_workflow_run(key, list(group), now, limits) for key, group in groupby(identified, attrgetter("key")))


def _workflow_run(key: str, markers: Sequence[Marker], now: float, limits: GateLimits) -> WorkflowRun:
    reasons = (marker_reason(marker, now, limits) for marker in markers)
    runs = any(reason is not None and reason.blocking for reason in reasons)
    arc = key.startswith("arc:")
    return WorkflowRun(
        key=key,
        kind="arc" if arc else markers[0].workflow,
        name=key.removeprefix("arc:") if arc else markers[0].name,
        started=min((m.started for m in markers if m.started is not None), default=None),
        state=WorkflowRunState.RUNNING if runs else WorkflowRunState.ENDED,
        ended_at=None if runs else _ended_at(markers, now),
    )


def _ended_at(markers: Sequence[Marker], now: float) -> float | None:
    """Return the end that the markers state, unless it is in the future; else the last sign of life."""
    moments = [m.ended if m.ended is not None and m.ended <= now else m.last_active for m in markers]
    return max((min(moment, now) for moment in moments if moment is not None), default=None)


def quiet_streak(verdict: Verdict, since: float | None, now: float) -> float | None:
    """Return when the present unbroken run of quiet began: the `quiet_since` of the next `gate`.

    `verdict` is the newest one, of `now` (Unix seconds). `since` is the previous result; None at first.
    """
    if verdict.state is GateState.ACTIVE or not verdict.had_activity:
        return None
    return now if since is None else since
