"""Read loop files, which keep a pipeline going from phase to phase.

An `arc-{phase,batch,hierarchy,issues}-loop.local.md` has lines like YAML between two lines of `---`, then a prompt. It
changes between phases only, and those last up to an hour. Deleting one may end with an empty file. An abrupt end leaves
`active: true`, so its checkpoint decides.
"""

from __future__ import annotations

import posixpath
from collections.abc import Mapping
from pathlib import Path

from echod.workflows import files
from echod.workflows.markers.checkpoints import Arc, is_arc_id
from echod.workflows.model import Marker, MarkerKind, MarkerState, ProcessTable

LOOP_KINDS = ("phase", "batch", "hierarchy", "issues")
_KIND_BY_NAME = {f"arc-{kind}-loop.local.md": kind for kind in LOOP_KINDS}
_SIZE_LIMIT = 1 << 16
_FENCE = "---"


def read_markers(project: Path, arcs: Mapping[str, Arc], processes: ProcessTable) -> tuple[Marker, ...]:
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
    file = files.read_file(path, _SIZE_LIMIT)
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
    """Return the `key: value` lines at the top.

    Empty for an empty file (that is a deleted one), None for anything else.
    """
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
