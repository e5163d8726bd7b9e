"""Collect everything visible of a project: markers, memory files, editors, processes. Read-only.

Workflows that were announced with `echod workflow begin` come in as values; where they are stored is not known here.
`marker_directories` lists the directories in which a change may mean that a workflow began or ended. They are hints for
a watcher; the disk decides.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path

from echod.lazy import lazy_imports
from echod.workflows import files
from echod.workflows.markers import activity, workflow_files
from echod.workflows.markers.workflow_files import ARC_DIRECTORIES, read_checkpoints, read_loops
from echod.workflows.model import (
    NO_OWNER,
    START_TOLERANCE_SECONDS,
    DeclaredWorkflow,
    GateObservations,
    Marker,
    MarkerKind,
    MarkerOwner,
    MarkerState,
    ProcessState,
    ProcessStatus,
    ProcessTable,
)

with lazy_imports(__name__):
    import psutil

# Each is watched by itself, without its subdirectories. So are the newest few of those in the parents.
_PARENT_DIRECTORIES = (*ARC_DIRECTORIES, activity.SIGNALS_DIRECTORY, workflow_files.LOCKS_DIRECTORY)
_MARKER_DIRECTORIES = ("tmp", *files.UPSTREAM_DIRECTORIES, ".rune/audit-state", *_PARENT_DIRECTORIES)
_MAX_WATCHED_CHILDREN = 4


def collect_observations(
    project: Path,
    stores: Sequence[Path],
    *,
    claude_home: Path | None,
    processes: ProcessTable,
    changed_since: float,
    own_mtime: Callable[[Path], int | None],
    declared: Sequence[DeclaredWorkflow],
    last_ended: float | None,
) -> GateObservations:
    """Return everything that is visible of a project now.

    Args:
        project: its root.
        stores: its stores' directories, absolute.
        claude_home: Claude Code's directory, None to leave its sessions out.
        processes: the table of processes.
        changed_since: changes of memory files before this (Unix seconds) are left out.
        own_mtime: for a file that echod wrote last, the modification time (nanoseconds) of that write.
        declared: workflows that were announced for this project and not ended.
        last_ended: when a workflow of this project was last known to end (Unix seconds).
    """
    root = Path(os.path.realpath(project))
    arcs, arc_problems = read_checkpoints(root, processes)
    team_markers, team_activity = activity.read_teams(root)
    markers = (
        *read_declared(declared, processes),
        *workflow_files.read_state_files(root, team_activity, processes),
        *read_loops(root, arcs, processes),
        *(arc.marker for arc in arcs.values()),
        *arc_problems,
        *workflow_files.read_locks(root, processes),
        *team_markers,
        *(activity.read_sessions(claude_home, root, processes) if claude_home else ()),
        *activity.read_git_operations(root, stores),
    )
    changes, editors = activity.read_edits(root, stores, changed_since, own_mtime, processes)
    text = (
        "tmp is a symbolic link, which echod does not follow, so it cannot see most workflows here; "
        "announce them with echod workflow begin"
    )
    inaccessible = (("tmp", text),) if files.is_link(root / "tmp") else ()
    return GateObservations(markers, changes, editors, last_ended, inaccessible)


def read_declared(declared: Sequence[DeclaredWorkflow], processes: ProcessTable) -> tuple[Marker, ...]:
    """Return the announced workflows as markers; each counts until its time is over or its process is gone."""
    return tuple(_declared_marker(workflow, processes) for workflow in declared)


def _declared_marker(workflow: DeclaredWorkflow, processes: ProcessTable) -> Marker:
    name = files.printable(workflow.name)
    return Marker(
        kind=MarkerKind.DECLARED,
        path=name,
        name=name,
        description=f'workflow "{name}" was announced with echod workflow begin',
        state=MarkerState.RUNNING,
        modified_at=workflow.began,
        last_active=workflow.began,
        owner=_declared_owner(workflow, processes),
        started=workflow.began,
        deadline=workflow.until,
        workflow="declared",
        key=f"declared:{workflow.name}:{workflow.began:.0f}",
    )


def _declared_owner(workflow: DeclaredWorkflow, processes: ProcessTable) -> MarkerOwner:
    if workflow.pid is None:
        return NO_OWNER
    process = processes.lookup(workflow.pid)
    then, now = workflow.pid_started, process.started
    if then is not None and now is not None and abs(then - now) > START_TOLERANCE_SECONDS:
        return MarkerOwner(workflow.pid, ProcessStatus(ProcessState.DEAD, now))
    return MarkerOwner(workflow.pid, process)


class SystemProcessTable:
    """The system's table of processes. It only asks about processes and never signals them.

    psutil is loaded only for a process that is alive, so an idle project never pays for it.
    """

    def lookup(self, pid: int) -> ProcessStatus:
        """Return the status of process number `pid` now. EPERM means that it is alive."""
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return ProcessStatus(ProcessState.DEAD)
        except PermissionError:
            pass  # another user's, so it exists
        except (OSError, OverflowError):
            return ProcessStatus(ProcessState.UNKNOWN)
        return _running_process_status(pid)


def _running_process_status(pid: int) -> ProcessStatus:
    try:
        process = psutil.Process(pid)
        # A zombie answers signals and does nothing any more.
        state = ProcessState.DEAD if process.status() == psutil.STATUS_ZOMBIE else ProcessState.ALIVE
        return ProcessStatus(state, process.create_time())
    except psutil.NoSuchProcess:
        return ProcessStatus(ProcessState.DEAD)
    except (psutil.Error, OSError):
        return ProcessStatus(ProcessState.ALIVE)


def marker_directories(project: Path) -> tuple[Path, ...]:
    """Return the directories to watch, each non-recursively, in name order.

    A directory that does not exist yet is represented by its nearest existing ancestor in the project; call this again
    when that one changes. Of pipelines, teams and locks the newest few are included; the others are found by calling
    again.
    """
    root = Path(os.path.realpath(project))
    directories = {_nearest_directory(root / name, root) for name in _MARKER_DIRECTORIES}
    for parent in _PARENT_DIRECTORIES:
        directories |= set(_newest_subdirectories(root / parent, root))
    return tuple(sorted(directories))


def _nearest_directory(path: Path, root: Path) -> Path:
    """Return the deepest directory on the way to `path` before anything that is absent, a link or not a directory."""
    nearest = root
    for part in path.relative_to(root).parts:
        if not files.is_directory(nearest / part):
            break
        nearest /= part
    return nearest


def _newest_subdirectories(base: Path, root: Path) -> tuple[Path, ...]:
    if _nearest_directory(base, root) != base:
        return ()
    names = files.list_names(base, lambda name: not name.startswith(".")).names
    below = (path for path in (base / name for name in names) if files.is_directory(path))
    return files.newest(below, _MAX_WATCHED_CHILDREN)
