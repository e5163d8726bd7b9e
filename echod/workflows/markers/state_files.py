"""Read state files, one for each run of a workflow, and the incremental audit's checkpoint.

A run's lead writes `tmp/.rune-{type}-{id}.json` at the start, rewrites it in place at the end, and never deletes it, so
most of them are of past runs. It is written by a language model's file tool, not atomically: it can be caught
half-written.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from echod.workflows import files
from echod.workflows.markers.locks import unlistable_marker
from echod.workflows.model import Marker, MarkerKind, MarkerState, ProcessTable

_NAME = re.compile(r"\.rune-(?P<run>[a-zA-Z0-9]+-[a-zA-Z0-9_-]+)\.json")
# Files with such a name that hold no state: requests to stop, compaction notes, cleanup notes, review findings.
_EXCLUDED_PREFIXES = (
    ".rune-shutdown-signal-",
    ".rune-force-shutdown-",
    ".rune-compact-",
    ".rune-cleanup-",
    ".rune-pr-comment-findings-",
)
# Types whose names contain a hyphen; every other type ends at the first hyphen.
_HYPHENATED_TYPES = ("gap-fix", "design-sync", "resolve-todos", "self-audit", "codex-review")
_AUDIT_CHECKPOINT = ("audit-state", "checkpoint.json")
_ARC_ID = re.compile(r"arc-[0-9]+")
_SIZE_LIMIT = 1 << 20
MAX_STATE_FILES = 256


def read_markers(project: Path, teams: Mapping[str, float], processes: ProcessTable) -> tuple[Marker, ...]:
    """Return the state files of a project.

    Args:
        project: its root, without symbolic links.
        teams: the last sign of life (Unix seconds) of each team's signal directory.
        processes: the table of processes.
    """
    directory = project / "tmp"
    listing = files.list_names(directory, is_state_file)
    markers = [] if listing.readable else [unlistable_marker(project, directory, listing.modified_at)]
    paths = files.newest((directory / name for name in listing.names), MAX_STATE_FILES)
    for path in (*paths, *_audit_checkpoints(project)):
        marker = _read_state_file(path, project, teams, processes)
        if marker is not None:
            markers.append(marker)
    return tuple(markers)


def _audit_checkpoints(project: Path) -> Iterator[Path]:
    """Yield the possible paths of the incremental audit's checkpoint."""
    for root in files.UPSTREAM_DIRECTORIES:
        parent = project / root
        if files.is_directory(parent) and files.is_directory(directory := parent / _AUDIT_CHECKPOINT[0]):
            yield directory / _AUDIT_CHECKPOINT[1]


def is_state_file(name: str) -> bool:
    """Return whether a name in `tmp` is a state file's. Unknown types count, because upstream adds new ones."""
    return name.startswith(".rune-") and not name.startswith(_EXCLUDED_PREFIXES) and _NAME.fullmatch(name) is not None


def _read_state_file(path: Path, project: Path, teams: Mapping[str, float], processes: ProcessTable) -> Marker | None:
    file = files.read_file(path, _SIZE_LIMIT)
    if file is None:
        return None
    content = files.parse_json_object(file)
    fields = content or {}
    status = files.text_field(fields, "status")
    run = _run_id(path)
    workflow = _workflow_type(run)
    team = files.text_field(fields, "team_name", "teamName")
    arc = _ARC_ID.search(f"{team} {run}")
    return Marker(
        kind=MarkerKind.STATE_FILE,
        path=files.relative_path(path, project),
        name=run,
        description=_describe(workflow, status, readable=content is not None),
        state=MarkerState.UNREADABLE if content is None else marker_state(status),
        modified_at=file.modified_at,
        last_active=files.latest_time(file.modified_at, teams.get(team)),
        owner=files.find_owner(fields, processes),
        started=files.first_time(fields, "started", "started_at", "startedAt"),
        ended=files.first_time(fields, "completed", "completed_at", "completedAt", "stopped_at"),
        workflow=workflow,
        key=_workflow_key(run, arc[0] if arc else "", readable=content is not None),
    )


def marker_state(status: str) -> MarkerState:
    """Return the meaning of a status: none means nothing (as upstream reads it), and a new word means running."""
    return (
        MarkerState.ENDED
        if not status or files.normalize_status(status) in files.ENDED_STATUSES
        else MarkerState.RUNNING
    )


def _run_id(path: Path) -> str:
    match = _NAME.fullmatch(path.name)
    return match["run"] if match else "audit-incremental"


def _workflow_type(run: str) -> str:
    return next((known for known in _HYPHENATED_TYPES if run.startswith(known + "-")), run.partition("-")[0])


def _workflow_key(run: str, arc: str, *, readable: bool) -> str:
    """Return the identity of a run: its arc's, if it is a phase of one. A file that cannot be read may be either."""
    if not readable:
        return ""
    return f"arc:{arc}" if arc else f"run:{run}"


def _describe(workflow: str, status: str, *, readable: bool) -> str:
    if not readable:
        return f"the state file of the {workflow} workflow cannot be read, perhaps it is still being written"
    return f'the {workflow} workflow has the status "{files.printable(status)}"'
