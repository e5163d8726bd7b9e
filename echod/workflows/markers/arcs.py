"""Read the two markers of an arc, a pipeline of phases: its checkpoint, and the loop file that keeps it going.

The checkpoint is `arc/{arc-id}/checkpoint.json`. A finished pipeline and an abandoned one both keep `completed_at:
null` and pending phases, so only a phase in progress means anything.

An `arc-{phase,batch,hierarchy,issues}-loop.local.md` has lines like YAML between two lines of `---`, then a prompt. It
changes between phases only, and those last up to an hour. Deleting one may end with an empty file. An abrupt end leaves
`active: true`, so its checkpoint decides.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from echod.workflows import files
from echod.workflows.markers.state_files import unlistable_marker
from echod.workflows.model import Marker, MarkerKind, MarkerState, ProcessTable

ARC_DIRECTORIES = (".rune/arc", ".claude/arc", "tmp/arc")
"""After a compaction a checkpoint may be in `tmp`. Deeper copies and other directories are archives."""
_ARC_ID = re.compile(r"arc-[0-9]{1,24}")
_CHECKPOINT_SIZE_LIMIT = 4 << 20
_COUNT_LIMIT = 64


class Arc(NamedTuple):
    """A pipeline: its checkpoint as a marker, and whether it is over (no phase can follow)."""

    marker: Marker
    finished: bool


def is_arc_id(name: str) -> bool:
    """Return whether a directory's name is a pipeline's id."""
    return _ARC_ID.fullmatch(name) is not None


def read_checkpoints(project: Path, processes: ProcessTable) -> tuple[dict[str, Arc], tuple[Marker, ...]]:
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
    file = files.read_file(path, _CHECKPOINT_SIZE_LIMIT)
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
        key="" if {"", "pending", "skipped"}.issuperset(phases.values()) else f"arc:{arc_id}",
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


LOOP_KINDS = ("phase", "batch", "hierarchy", "issues")
_KIND_BY_NAME = {f"arc-{kind}-loop.local.md": kind for kind in LOOP_KINDS}
_LOOP_SIZE_LIMIT = 1 << 16
_FENCE = "---"


def read_loops(project: Path, arcs: Mapping[str, Arc], processes: ProcessTable) -> tuple[Marker, ...]:
    """Return the loop files of a project, judged together with the checkpoints (`arcs`, by id) they name."""
    markers: list[Marker] = []
    for root in files.UPSTREAM_DIRECTORIES:
        directory = project / root
        listing = files.list_names(directory, _KIND_BY_NAME.__contains__)
        # Where names cannot be listed, files may exist all the same.
        for name in listing.names if listing.readable else _KIND_BY_NAME:
            marker = _read_loop(directory / name, _KIND_BY_NAME[name], project, arcs, processes)
            if marker is not None:
                markers.append(marker)
    return tuple(markers)


def _read_loop(path: Path, kind: str, project: Path, arcs: Mapping[str, Arc], processes: ProcessTable) -> Marker | None:
    file = files.read_file(path, _LOOP_SIZE_LIMIT)
    if file is None:
        return None
    front_matter = None if file.data is None else parse_front_matter(file.data)
    fields = front_matter or {}
    arc_id = _arc_id(fields.get("checkpoint_path", ""))
    arc = arcs.get(arc_id)
    state = MarkerState.UNREADABLE if front_matter is None else _loop_state(front_matter, arc)
    return Marker(
        kind=MarkerKind.LOOP,
        path=files.relative_path(path, project),
        name=arc_id or f"arc-{kind}",
        description=_describe(kind, arc_id, state),
        state=state,
        modified_at=file.modified_at,
        last_active=files.latest_time(file.modified_at, arc.marker.last_active if arc else None),
        owner=files.find_owner(fields, processes),
        started=files.first_time(fields, "started_at") or (arc.marker.started if arc else None),
        workflow="arc" if kind == "phase" else f"arc-{kind}",
        key=_workflow_key(kind, arc_id, fields),
    )


def parse_front_matter(data: bytes) -> dict[str, str] | None:
    """Return the `key: value` lines at the top; none for an empty (that is a deleted) file, None for anything else."""
    text = data.decode("utf-8-sig", errors="replace")
    if not text.strip():
        return {}
    lines = [line.rstrip() for line in text.split("\n")]
    if lines[0] != _FENCE or _FENCE not in lines[1:]:
        return None
    fields: dict[str, str] = {}
    for line in lines[1 : lines.index(_FENCE, 1)]:
        key, colon, value = line.partition(":")
        if colon and key.strip() == key and key:
            fields[key] = _unquoted(value.strip())
    return fields


def _unquoted(value: str) -> str:
    if value[:1] in {'"', "'"}:
        return value[1:].partition(value[0])[0]
    value = value.partition(" #")[0].rstrip()
    return "" if value in {"null", "~"} else value


def _loop_state(fields: Mapping[str, str], arc: Arc | None) -> MarkerState:
    stopped = any(files.parse_flag(fields.get(name)) for name in ("user_cancelled", "stop_reason", "group_paused"))
    if stopped or (arc is not None and arc.finished):
        return MarkerState.ENDED
    active, status = fields.get("active", ""), files.normalize_status(fields.get("status", ""))
    if active:
        return MarkerState.RUNNING if files.parse_flag(active) else MarkerState.ENDED
    return MarkerState.RUNNING if status and status not in files.ENDED_STATUSES | {"inactive"} else MarkerState.ENDED


def _arc_id(checkpoint_path: str) -> str:
    """Return the pipeline that a checkpoint's path, relative or absolute, names; "" if it names none."""
    name = posixpath.basename(posixpath.dirname(checkpoint_path))
    return name if is_arc_id(name) else ""


def _workflow_key(kind: str, arc_id: str, fields: Mapping[str, str]) -> str:
    if arc_id:
        return f"arc:{arc_id}"
    # Nothing else distinguishes one batch from the next.
    start = fields.get("started_at", "")
    return f"loop:{kind}:{files.printable(start)}" if start and kind != "phase" else ""


def _describe(kind: str, arc_id: str, state: MarkerState) -> str:
    of = f" of {arc_id}" if arc_id else ""
    if state is MarkerState.UNREADABLE:
        return f"the {kind} loop file cannot be read"
    return f"the {kind} loop{of} is {'active' if state is MarkerState.RUNNING else 'over'}"
