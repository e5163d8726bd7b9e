"""State files: `tmp/.rune-{type}-{id}.json`, one for each run of a workflow, and the incremental audit's checkpoint.

A run's lead writes it at the start, rewrites it in place at the end, and never deletes it; so most of them tell of the
past. It is written by a language model's file tool, not atomically: it can be caught half-written.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from echod.workflows import files
from echod.workflows.markers.locks import unlistable
from echod.workflows.model import Claim, Kind, Marker

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from echod.workflows.model import Processes

_NAME = re.compile(r"\.rune-(?P<run>[a-zA-Z0-9]+-[a-zA-Z0-9_-]+)\.json")
# Files of the same shape that are no state: requests to stop, compaction notes, cleanup notes, review findings.
_NOT_STATE = (
    ".rune-shutdown-signal-",
    ".rune-force-shutdown-",
    ".rune-compact-",
    ".rune-cleanup-",
    ".rune-pr-comment-findings-",
)
# Types whose names hold a hyphen; every other type is what stands before the first hyphen.
_LONG_TYPES = ("gap-fix", "design-sync", "resolve-todos", "self-audit", "codex-review")
_AUDIT = ("audit-state", "checkpoint.json")
_ARC = re.compile(r"arc-[0-9]+")
_SIZE_LIMIT = 1 << 20
COUNT_LIMIT = 256


def read(project: Path, teams: Mapping[str, float], processes: Processes) -> tuple[Marker, ...]:
    """The state files of a project.

    Args:
        project: its root, without symbolic links.
        teams: the last sign of life (Unix seconds) of each team's signal directory.
        processes: the table of processes.
    """
    directory = project / "tmp"
    listing = files.names_in(directory, is_state_file)
    markers = [] if listing.readable else [unlistable(project, directory, listing.written)]
    paths = files.newest((directory / name for name in listing.names), COUNT_LIMIT)
    for path in (*paths, *_audits(project)):
        marker = _read_one(path, project, teams, processes)
        if marker is not None:
            markers.append(marker)
    return tuple(markers)


def _audits(project: Path) -> Iterator[Path]:
    """Where the incremental audit's checkpoint may be."""
    for root in (".rune", ".claude"):
        above = project / root
        if files.is_directory(above) and files.is_directory(directory := above / _AUDIT[0]):
            yield directory / _AUDIT[1]


def is_state_file(name: str) -> bool:
    """Whether a name in `tmp` is a state file's. Unknown types count: upstream adds new ones."""
    return name.startswith(".rune-") and not name.startswith(_NOT_STATE) and _NAME.fullmatch(name) is not None


def _read_one(path: Path, project: Path, teams: Mapping[str, float], processes: Processes) -> Marker | None:
    found = files.read(path, _SIZE_LIMIT)
    if found is None:
        return None
    content = files.json_object(found)
    state = content or {}
    status = files.text(state, "status")
    run = _run(path)
    workflow = _workflow(run)
    team = files.text(state, "team_name", "teamName")
    arc = _ARC.search(f"{team} {run}")
    return Marker(
        kind=Kind.STATE_FILE,
        path=files.relative(path, project),
        name=run,
        says=_says(workflow, status, readable=content is not None),
        claim=Claim.UNREADABLE if content is None else claim(status),
        written=found.written,
        touched=files.latest(found.written, teams.get(team)),
        owner=files.owner(state, processes),
        started=files.first_moment(state, "started", "started_at", "startedAt"),
        ended=files.first_moment(state, "completed", "completed_at", "completedAt", "stopped_at"),
        workflow=workflow,
        key=_key(run, arc[0] if arc else "", readable=content is not None),
    )


def claim(status: str) -> Claim:
    """What a status says. No status at all says nothing (as upstream reads it); a new word means running."""
    return Claim.ENDED if not status or files.word(status) in files.ENDED_WORDS else Claim.RUNNING


def _run(path: Path) -> str:
    match = _NAME.fullmatch(path.name)
    return match["run"] if match else "audit-incremental"


def _workflow(run: str) -> str:
    return next((known for known in _LONG_TYPES if run.startswith(known + "-")), run.partition("-")[0])


def _key(run: str, arc: str, *, readable: bool) -> str:
    """A phase of an arc is a part of the arc, not one more workflow. A file that cannot be read may be either."""
    if not readable:
        return ""
    return f"arc:{arc}" if arc else f"run:{run}"


def _says(workflow: str, status: str, *, readable: bool) -> str:
    if not readable:
        return f"the state file of the {workflow} workflow cannot be understood, perhaps it is being written"
    return f'the {workflow} workflow says "{files.shown(status)}"'
