"""One look at a project's disk: every family of markers, the memory files, the editors. Reads only; decides nothing.

Workflows that someone announced (`echod workflow begin`): where they are kept is not known here.

Where a change may mean that a workflow began or ended: directories worth watching. Hints only; the disk decides.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from echod.workflows import files
from echod.workflows.markers import checkpoints, edits, git, locks, loops, sessions, signals, state_files
from echod.workflows.model import (
    NOBODY,
    START_SLACK_SECONDS,
    Claim,
    DeclaredWorkflow,
    Kind,
    Life,
    Marker,
    Observations,
    Owner,
    Process,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from echod.workflows.model import Processes


def read(declared: Sequence[DeclaredWorkflow], processes: Processes) -> tuple[Marker, ...]:
    """The announced workflows as markers: each holds until its time is over or its process is gone."""
    return tuple(_marker(workflow, processes) for workflow in declared)


def _marker(workflow: DeclaredWorkflow, processes: Processes) -> Marker:
    name = files.shown(workflow.name)
    return Marker(
        kind=Kind.DECLARED,
        path=name,
        name=name,
        says=f'workflow "{name}" was announced with echod workflow begin',
        claim=Claim.RUNNING,
        written=workflow.began,
        touched=workflow.began,
        owner=_owner(workflow, processes),
        started=workflow.began,
        deadline=workflow.until,
        workflow="announced",
        key=f"declared:{workflow.name}:{workflow.began:.0f}",
    )


def _owner(workflow: DeclaredWorkflow, processes: Processes) -> Owner:
    if workflow.pid is None:
        return NOBODY
    process = processes.look(workflow.pid)
    then, now = workflow.pid_started, process.started
    if then is not None and now is not None and abs(then - now) > START_SLACK_SECONDS:
        return Owner(workflow.pid, Process(Life.GONE, now))
    return Owner(workflow.pid, process)


def observe(
    project: Path,
    stores: Sequence[Path],
    *,
    claude_home: Path | None,
    processes: Processes,
    changed_since: float,
    own_write: Callable[[Path], int | None],
    declared: Sequence[DeclaredWorkflow],
    last_ended: float | None,
) -> Observations:
    """What can be seen of a project now.

    Args:
        project: its root.
        stores: its stores' directories, absolute.
        claude_home: Claude Code's directory, None to leave its sessions out.
        processes: the table of processes.
        changed_since: memory files that changed before (Unix seconds) are not told.
        own_write: for a file that echod wrote last, the modification time (nanoseconds) it left on it.
        declared: workflows that were announced for this project and not ended.
        last_ended: when a workflow of this project was last known to end (Unix seconds).
    """
    root = Path(os.path.realpath(project))
    arcs, unlisted = checkpoints.read(root, processes)
    waiting, teams = signals.read(root)
    markers = (
        *read(declared, processes),
        *state_files.read(root, teams, processes),
        *loops.read(root, arcs, processes),
        *(arc.marker for arc in arcs.values()),
        *unlisted,
        *locks.read(root, processes),
        *waiting,
        *(sessions.read(claude_home, root, processes) if claude_home else ()),
        *git.read(root, stores),
    )
    changes, editors = edits.read(root, stores, changed_since, own_write, processes)
    return Observations(markers, changes, editors, last_ended, _unseen(root))


def _unseen(root: Path) -> tuple[tuple[str, str], ...]:
    if not files.is_link(root / "tmp"):
        return ()
    text = (
        "tmp is a symbolic link and echod does not look behind it, so it cannot see most workflows here; "
        "announce them with echod workflow begin"
    )
    return (("tmp", text),)


# The places where markers appear; each is watched by itself, not with what lies below it.
_PLACES = (
    "tmp",
    "tmp/.rune-signals",
    "tmp/.rune-locks",
    "tmp/arc",
    ".rune",
    ".rune/arc",
    ".rune/audit-state",
    ".claude",
    ".claude/arc",
)
_NEWEST = 4


def marker_directories(project: Path) -> tuple[Path, ...]:
    """The directories to watch, each non-recursively, in name order.

    A place that does not exist yet is stood for by its nearest existing ancestor in the project: ask again when that
    one changes. Of pipelines, teams and locks the newest few are included; what is missed is found by asking again.
    """
    root = Path(os.path.realpath(project))
    places = {_nearest(root / place, root) for place in _PLACES}
    for place in (*checkpoints.ROOTS, "tmp/.rune-signals", "tmp/.rune-locks"):
        places |= set(_newest_below(root / place, root))
    return tuple(sorted(places))


def _nearest(path: Path, root: Path) -> Path:
    """The deepest directory on the way to `path` before anything that is absent, a link or no directory."""
    nearest = root
    for part in path.relative_to(root).parts:
        if not files.is_directory(nearest / part):
            break
        nearest /= part
    return nearest


def _newest_below(base: Path, root: Path) -> tuple[Path, ...]:
    if _nearest(base, root) != base:
        return ()
    names = files.names_in(base, lambda name: not name.startswith(".")).names
    below = (path for path in (base / name for name in names) if files.is_directory(path))
    return files.newest(below, _NEWEST)
