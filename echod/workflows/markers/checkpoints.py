"""Arc checkpoints: `arc/{arc-id}/checkpoint.json`, the record of a pipeline of phases.

A finished pipeline and an abandoned one both keep `completed_at: null` and pending phases, so only a phase that says it
is in progress means anything.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from echod.workflows import files
from echod.workflows.markers.locks import unlistable
from echod.workflows.model import Claim, Kind, Marker

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from echod.workflows.model import Processes

ROOTS = (".rune/arc", ".claude/arc", "tmp/arc")
"""After a compaction a checkpoint may lie in `tmp`. Deeper copies and other directories are archives."""
_ID = re.compile(r"arc-[0-9]{1,24}")
_SIZE_LIMIT = 4 << 20
_COUNT_LIMIT = 64


class Arc(NamedTuple):
    """A pipeline: its checkpoint as a marker, and whether it is over (no phase can follow)."""

    marker: Marker
    over: bool


def is_arc(name: str) -> bool:
    """Whether a directory's name is a pipeline's id."""
    return _ID.fullmatch(name) is not None


def read(project: Path, processes: Processes) -> tuple[dict[str, Arc], tuple[Marker, ...]]:
    """The pipelines of a project by id, and the places that could not be listed."""
    arcs: dict[str, Arc] = {}
    unseen: list[Marker] = []
    for root in ROOTS:
        base = project / root
        if not all(files.is_directory(parent) for parent in (base.parent, base)):
            continue
        listing = files.names_in(base, is_arc)
        if not listing.readable:
            unseen.append(unlistable(project, base, listing.written))
        inside = (base / name / "checkpoint.json" for name in listing.names if files.is_directory(base / name))
        for path in files.newest(inside, _COUNT_LIMIT):
            arc = _read_one(path, project, processes)
            if arc is not None:
                arcs[path.parent.name] = _newer(arcs.get(path.parent.name), arc)
    return arcs, tuple(unseen)


def _newer(known: Arc | None, found: Arc) -> Arc:
    """One pipeline may have left copies in two places: the one written last is the true one."""
    if known is None or (found.marker.written or 0) > (known.marker.written or 0):
        return found
    return known


def _read_one(path: Path, project: Path, processes: Processes) -> Arc | None:
    found = files.read(path, _SIZE_LIMIT)
    if found is None:
        return None
    arc = path.parent.name
    heartbeat = files.look(project / "tmp" / "arc" / arc / "heartbeat.json")
    marker = Marker(
        kind=Kind.CHECKPOINT,
        path=files.relative(path, project),
        name=arc,
        says=f"the checkpoint of {arc} cannot be understood, perhaps it is being written",
        claim=Claim.UNREADABLE,
        written=found.written,
        touched=files.latest(found.written, files.time_of(heartbeat) if heartbeat else None),
        workflow="arc",
    )
    content = files.json_object(found)
    phases = None if content is None else _phases(content)
    if content is None or phases is None:
        return Arc(marker, over=False)
    marker = replace(
        marker,
        owner=files.owner(content, processes),
        started=files.first_moment(content, "started_at"),
        ended=files.first_moment(content, "completed_at", "cancelled_at"),
        key=f"arc:{arc}" if _has_run(phases.values()) else "",
    )
    stopped = files.flag(content.get("user_cancelled")) or bool(files.text(content, "stop_reason"))
    working = () if stopped else tuple(name for name, status in phases.items() if _is_working(status))
    if working:
        says = f"{arc} is in phase {files.shown(', '.join(working))}"
        return Arc(replace(marker, claim=Claim.RUNNING, says=says), over=False)
    over = stopped or all(status in files.ENDED_WORDS for status in phases.values())
    return Arc(replace(marker, claim=Claim.ENDED, says=f"{arc} is in no phase"), over=over)


def _phases(content: Mapping[str, object]) -> dict[str, str] | None:
    """Each phase's status; None if this is no checkpoint."""
    phases = content.get("phases")
    if not isinstance(phases, dict) or not phases:
        return None
    return {str(name): _status(phase) for name, phase in phases.items()}


def _status(phase: object) -> str:
    status = phase.get("status") if isinstance(phase, dict) else phase
    return files.word(status) if isinstance(status, str) else ""


def _is_working(status: str) -> bool:
    """A new word counts as work in progress: unknown means running, for a bounded time."""
    return bool(status) and status not in files.ENDED_WORDS and status != "pending"


def _has_run(statuses: Iterable[str]) -> bool:
    return any(status not in {"", "pending", "skipped"} for status in statuses)
