"""Read arc checkpoints: `arc/{arc-id}/checkpoint.json`, the record of a pipeline of phases.

A finished pipeline and an abandoned one both keep `completed_at: null` and pending phases, so only a phase in progress
means anything.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from echod.workflows import files
from echod.workflows.markers.locks import unlistable_marker
from echod.workflows.model import Marker, MarkerKind, MarkerState, ProcessTable

ARC_DIRECTORIES = (".rune/arc", ".claude/arc", "tmp/arc")
"""After a compaction a checkpoint may be in `tmp`. Deeper copies and other directories are archives."""
_ARC_ID = re.compile(r"arc-[0-9]{1,24}")
_SIZE_LIMIT = 4 << 20
_COUNT_LIMIT = 64


class Arc(NamedTuple):
    """A pipeline: its checkpoint as a marker, and whether it is over (no phase can follow)."""

    marker: Marker
    finished: bool


def is_arc_id(name: str) -> bool:
    """Return whether a directory's name is a pipeline's id."""
    return _ARC_ID.fullmatch(name) is not None


def read_markers(project: Path, processes: ProcessTable) -> tuple[dict[str, Arc], tuple[Marker, ...]]:
    """Return the pipelines of a project by id, and the directories that could not be listed."""
    arcs: dict[str, Arc] = {}
    problems: list[Marker] = []
    for root in ARC_DIRECTORIES:
        base = project / root
        if not all(files.is_directory(parent) for parent in (base.parent, base)):
            continue
        listing = files.list_names(base, is_arc_id)
        if not listing.readable:
            problems.append(unlistable_marker(project, base, listing.modified_at))
        inside = (base / name / "checkpoint.json" for name in listing.names if files.is_directory(base / name))
        for path in files.newest(inside, _COUNT_LIMIT):
            arc = _read_checkpoint(path, project, processes)
            if arc is not None:
                arcs[path.parent.name] = _newer(arcs.get(path.parent.name), arc)
    return arcs, tuple(problems)


def _newer(current: Arc | None, other: Arc) -> Arc:
    """Return the newer of two copies of one pipeline, which it may have left in two directories."""
    if current is None or (other.marker.modified_at or 0) > (current.marker.modified_at or 0):
        return other
    return current


def _read_checkpoint(path: Path, project: Path, processes: ProcessTable) -> Arc | None:
    file = files.read_file(path, _SIZE_LIMIT)
    if file is None:
        return None
    arc_id = path.parent.name
    heartbeat_at = files.modified_time_or_none(project / "tmp" / "arc" / arc_id / "heartbeat.json")
    marker = Marker(
        kind=MarkerKind.CHECKPOINT,
        path=files.relative_path(path, project),
        name=arc_id,
        description=f"the checkpoint of {arc_id} cannot be read, perhaps it is still being written",
        state=MarkerState.UNREADABLE,
        modified_at=file.modified_at,
        last_active=files.latest_time(file.modified_at, heartbeat_at),
        workflow="arc",
    )
    content = files.parse_json_object(file)
    phases = None if content is None else _phases(content)
    if content is None or phases is None:
        return Arc(marker, finished=False)
    marker = replace(
        marker,
        owner=files.find_owner(content, processes),
        started=files.first_time(content, "started_at"),
        ended=files.first_time(content, "completed_at", "cancelled_at"),
        key=f"arc:{arc_id}" if _has_run(phases.values()) else "",
    )
    cancelled = files.parse_flag(content.get("user_cancelled")) or bool(files.text_field(content, "stop_reason"))
    in_progress = () if cancelled else tuple(name for name, status in phases.items() if _is_in_progress(status))
    if in_progress:
        description = f"{arc_id} is in phase {files.printable(', '.join(in_progress))}"
        return Arc(replace(marker, state=MarkerState.RUNNING, description=description), finished=False)
    finished = cancelled or all(status in files.ENDED_STATUSES for status in phases.values())
    return Arc(replace(marker, state=MarkerState.ENDED, description=f"{arc_id} is in no phase"), finished=finished)


def _phases(content: Mapping[str, object]) -> dict[str, str] | None:
    """Return each phase's status; None if this is not a checkpoint."""
    phases = content.get("phases")
    if not isinstance(phases, dict) or not phases:
        return None
    return {str(name): _status(phase) for name, phase in phases.items()}


def _status(phase: object) -> str:
    status = phase.get("status") if isinstance(phase, dict) else phase
    return files.normalize_status(status) if isinstance(status, str) else ""


def _is_in_progress(status: str) -> bool:
    """Return whether a status means work in progress. A new word does: unknown means running, for a bounded time."""
    return bool(status) and status not in files.ENDED_STATUSES and status != "pending"


def _has_run(statuses: Iterable[str]) -> bool:
    return any(status not in {"", "pending", "skipped"} for status in statuses)
