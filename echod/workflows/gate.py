"""The gate: what was seen in a project, and the time -> may a job write its memory now. Pure.

How long each sign is believed, and the sentence that says so. Pure: values and `now` in, reasons out.

Which workflows were seen: each once, under a name that lasts, however often its files are rewritten.

Only what identifies a single run counts: state files, checkpoints, loops that name their pipeline or their start, and
announced workflows. A lock or a team is a part of one of those, and a session is not a workflow.
"""

from __future__ import annotations

import time
from dataclasses import replace
from enum import StrEnum
from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple

from echod.workflows.model import (
    Change,
    Claim,
    Editor,
    GateLimits,
    GateState,
    Kind,
    Life,
    Marker,
    Observations,
    Reason,
    Verdict,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from echod.workflows.model import Marker, Observations


# Kinds that name an owner as a rule, so that its absence is worth a word.
_OWNED = frozenset({Kind.STATE_FILE, Kind.LOOP, Kind.CHECKPOINT, Kind.LOCK})
# Kinds that workflows write into the project: a change of one is a sign of somebody at work.
_WRITTEN = _OWNED | {Kind.MIGRATION, Kind.SIGNALS}


def reason_of(marker: Marker, now: float, limits: GateLimits) -> Reason | None:
    """What a marker means now: it holds, it is a warning (no longer believed), or (None) it says nothing.

    A marker whose owner is known to be gone, and one that nobody touched for `mention_days`, is the residue of a dead
    session; every project has some, and they deserve no warning.
    """
    if marker.claim is Claim.ENDED or (marker.kind is Kind.SESSION and not limits.sessions):
        return None
    life = marker.owner.life(marker.written)
    until = believed_until(marker, life, limits)
    holds = _fresh(marker.touched, until, now, limits)
    if not holds and not _worth_mentioning(marker, life, now, limits):
        return None
    return Reason(
        marker=marker.path,
        text=_sentence(marker, life, now, until, holds=holds),
        holds=holds,
        until=until if holds else None,
        kind=marker.kind,
        name=marker.name,
        since=marker.started or marker.touched,
        pid=marker.owner.pid,
    )


def believed_until(marker: Marker, life: Life, limits: GateLimits) -> float | None:
    """The moment from which the marker no longer counts; None: its age is unknown, so it counts."""
    if marker.deadline is not None:
        return marker.deadline if life is not Life.GONE else 0.0
    if marker.touched is None:
        return None
    return marker.touched + min(_patience(marker, life, limits), limits.silent_seconds)


def _patience(marker: Marker, life: Life, limits: GateLimits) -> float:
    """How many seconds without a sign of life the marker is believed."""
    forever = limits.silent_seconds
    unknown = limits.unknown_minutes * 60
    match marker.kind:
        case Kind.STATE_FILE:
            patience = {Life.ALIVE: forever, Life.UNKNOWN: unknown, Life.GONE: limits.gone_minutes * 60}[life]
        case Kind.LOOP:
            patience = forever if life is Life.ALIVE else limits.loop_minutes * 60
        case Kind.CHECKPOINT:
            patience = forever if life is Life.ALIVE else unknown
        case Kind.LOCK:
            patience = {Life.ALIVE: forever, Life.UNKNOWN: limits.young_minutes * 60, Life.GONE: 0.0}[life]
        case Kind.MIGRATION:
            patience = limits.migration_minutes * 60
        case Kind.SESSION:
            patience = 0.0 if life is Life.GONE else forever
        case Kind.GIT:
            patience = forever
        case _:
            patience = unknown
    return patience


def quiet_reasons(observations: Observations, now: float, limits: GateLimits) -> tuple[Reason, ...]:
    """The signs that someone just wrote, just ended, or has a file open; the newest change only."""
    if limits.quiet_seconds <= 0:
        return ()
    reasons = [_of_editor(editor, now, limits) for editor in observations.editors]
    changes = [*observations.changes, *_marker_changes(observations)]
    recent = [c for c in changes if _fresh(c.at, c.at + limits.quiet_seconds, now, limits)]
    if recent:
        reasons.append(_of_change(max(recent, key=lambda change: change.at), limits))
    ended = observations.last_ended
    if ended is not None and _fresh(ended, ended + limits.quiet_seconds, now, limits):
        reasons.append(_of_end(ended, limits))
    return tuple(reason for reason in reasons if reason is not None)


def _marker_changes(observations: Observations) -> list[Change]:
    return [Change(m.path, m.touched) for m in observations.markers if m.touched is not None and m.kind in _WRITTEN]


def _of_change(change: Change, limits: GateLimits) -> Reason:
    until = change.at + limits.quiet_seconds
    text = f"{change.path} was changed at {to_the_second(change.at)}; quiet until {to_the_second(until)}"
    return Reason(change.path, text, holds=True, until=until, kind=Kind.CHANGED, since=change.at)


def _of_end(ended: float, limits: GateLimits) -> Reason:
    until = ended + limits.quiet_seconds
    text = f"a workflow ended at {to_the_second(ended)}; quiet until {to_the_second(until)}"
    return Reason("workflow", text, holds=True, until=until, kind=Kind.ENDED, since=ended)


def _of_editor(editor: Editor, now: float, limits: GateLimits) -> Reason | None:
    life = editor.owner.life(editor.written)
    if life is Life.GONE:
        return None  # left behind by a crash
    patience = limits.silent_seconds if life is Life.ALIVE else limits.unknown_minutes * 60
    until = None if editor.written is None else editor.written + patience
    if not _fresh(editor.written, until, now, limits):
        return None
    whose = f" (process {editor.owner.pid})" if editor.owner.pid else ""
    text = f"an editor{whose} has {editor.edits} open; believed until {_until(until, now)}"
    return Reason(
        marker=editor.path,
        text=text,
        holds=True,
        until=until,
        kind=Kind.EDITOR,
        since=editor.written,
        pid=editor.owner.pid,
    )


def _fresh(touched: float | None, until: float | None, now: float, limits: GateLimits) -> bool:
    """Whether something believed until `until` counts at `now`.

    An unknown time counts as fresh, and so does one in the future, unless it is so far ahead that the clock that wrote
    it was plainly wrong: that would be fresh for years.
    """
    if until is None:
        return True
    return now < until and (touched is None or touched - now <= limits.silent_seconds)


def _worth_mentioning(marker: Marker, life: Life, now: float, limits: GateLimits) -> bool:
    if life is Life.GONE or marker.deadline is not None:
        return False
    return life is Life.ALIVE or marker.touched is None or abs(now - marker.touched) < limits.mention_seconds


def _sentence(marker: Marker, life: Life, now: float, until: float | None, *, holds: bool) -> str:
    parts = [marker.says, _whose(marker, life)]
    if marker.started is not None:
        parts.append(f"started {at(marker.started, now)}")
    if marker.touched is not None and marker.touched != marker.started:
        parts.append(f"last sign of life {at(marker.touched, now)}")
    if holds:
        parts.append(f"believed until {_until(until, now)}")
    else:
        parts.append("that is too long ago to believe it, so echod goes on")
    return "; ".join(part for part in parts if part)


def _whose(marker: Marker, life: Life) -> str:
    number = marker.owner.pid
    if number is None:
        return "its process is not known" if marker.kind in _OWNED else ""
    if marker.owner.recycled(marker.written):
        return f"its process {number} is gone, the number belongs to a later one"
    return (
        f"its process {number} "
        + {
            Life.ALIVE: "is alive",
            Life.GONE: "is gone",
            Life.UNKNOWN: "may be alive",
        }[life]
    )


def _until(until: float | None, now: float) -> str:
    return "its time can be read" if until is None else at(until, now)


def at(moment: float, now: float) -> str:
    """A moment as the clock on the wall shows it, with the date unless that is today's."""
    today = _local("%Y-%m-%d", now)
    return _local("%Y-%m-%d %H:%M", moment).removeprefix(f"{today} ")


def to_the_second(moment: float) -> str:
    """A moment close by as the clock on the wall shows it."""
    return _local("%H:%M:%S", moment)


def _local(shape: str, moment: float) -> str:
    try:
        return time.strftime(shape, time.localtime(moment))
    except (OverflowError, ValueError, OSError):
        return f"{moment:.0f}"


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


_DEFAULTS = GateLimits()


class SeenState(StrEnum):
    """Whether a workflow still runs, as far as the gate believes it."""

    RUNNING = "running"
    ENDED = "ended"


class SeenWorkflow(NamedTuple):
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
