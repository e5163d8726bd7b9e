"""Collect everything visible of a project: markers, memory files, editors, processes, reports. Read-only.

Workflows that were announced with `echod workflow begin` come in as values; where they are stored is not known here.
`marker_directories` lists the directories in which a change may mean that a workflow began or ended. They are hints for
a watcher; the disk decides.

Reports are searched only where the workflow plugins put them, with a limit for each place. Symbolic links are not
followed. `docs/ingest.md` lists the places.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import stat
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from echod.errors import os_reason
from echod.files import read_regular
from echod.lazy import lazy_imports, lazy_pattern
from echod.memory.reports.model import Report, ReportKind
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

    from echod.memory.reports import reader

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


MAX_REPORTS: Final = 1_000
"""Files that are looked at in a project or a named directory, the newest first."""

MAX_REPORT_BYTES: Final = 5 * 1024 * 1024

_MAX_RUNS: Final = 500
_MAX_DEPTH: Final = 6
_MAX_INSCRIPTION_BYTES: Final = 1024 * 1024
_NONCE: Final = lazy_pattern(r"[A-Za-z0-9-]{4,64}")
_NAMES: Final = lazy_pattern(
    r"(?:tome(?:-[a-z0-9-]+)?\.md|resolution-report(?:-[a-z0-9-]+)?\.md|verdicts?\.md|verdicts\.json"
    r"|(?:gap-analysis|inspect)-verdict\.md|gap-analysis(?:-unified)?\.md|work-summary\.md"
    r"|(?:shard-[a-z]|cross-shard)-findings\.md)",
    re.IGNORECASE,
)
"""The names of reports, whatever their directory."""

_RUN_DIRECTORIES: Final = (
    "tmp/reviews", "tmp/audit", "tmp/arc", "tmp/mend", "tmp/verify", "tmp/inspect", "tmp/work", ".rune/arc-history",
)  # fmt: skip
_SUBDIRECTORIES: Final = ("", "reviews", "verify", "worker-logs")
_LOG_DIRECTORY: Final = "worker-logs"
_KIND_OF_PART: Final = {
    "audit": ReportKind.AUDIT, "reviews": ReportKind.REVIEW, "work": ReportKind.WORK, _LOG_DIRECTORY: ReportKind.WORK,
}  # fmt: skip


class ReportFile(NamedTuple):
    """A file that may be a report, and its modification time (Unix seconds)."""

    path: Path
    size: int
    inode: int
    modified: float


class ReadReport(NamedTuple):
    """A report that was read, and the digest of its content."""

    file: ReportFile
    digest: str
    report: Report


class UnreadableReport(NamedTuple):
    """A file that cannot be read as a report, and why, as a phrase."""

    path: Path
    reason: str


def find_reports(project: Path) -> tuple[ReportFile, ...]:
    """Return the reports of a project, the newest first.

    Raises:
        OSError: a directory that exists cannot be listed.
    """
    found = [file for place in _RUN_DIRECTORIES for file in _reports_of_runs(project, Path(place))]
    return _newest(found)


def find_reports_in(directory: Path) -> tuple[ReportFile, ...]:
    """Return the reports anywhere below a directory that the user named, the newest first.

    Raises:
        OSError: the directory cannot be listed.
    """
    return _newest(list(_walk(directory, _MAX_DEPTH)))


def report_file(path: Path) -> ReportFile:
    """Return a file that the user named. Raises OSError if there is no such regular file."""
    status = path.stat()
    if not stat.S_ISREG(status.st_mode):
        raise FileNotFoundError(2, "No such file", str(path))
    return ReportFile(path, status.st_size, status.st_ino, status.st_mtime)


def read_report_file(file: ReportFile) -> ReadReport | UnreadableReport:
    """Read a report. One that cannot be read has a reason, which is reported, and is not taken for empty."""
    if file.size > MAX_REPORT_BYTES:
        return UnreadableReport(file.path, f"it is larger than {MAX_REPORT_BYTES // 1024 // 1024} MiB")
    try:
        data = read_regular(file.path, MAX_REPORT_BYTES, follow_symlinks=False)
        text = data.decode()
    except UnicodeDecodeError:
        return UnreadableReport(file.path, "it is not UTF-8")
    except OSError as error:
        return UnreadableReport(file.path, f"it cannot be read: {os_reason(error)}")
    report = reader.read_report(text, expected_nonce=_expected_nonce(file.path.parent), kind=kind_of_place(file.path))
    return ReadReport(file, hashlib.sha256(data).hexdigest(), report)


def kind_of_place(path: Path) -> ReportKind:
    """Return what the directories of a report say about its kind."""
    kinds = (_KIND_OF_PART[part] for part in reversed(path.parent.parts) if part in _KIND_OF_PART)
    return next(kinds, ReportKind.UNKNOWN)


def _reports_of_runs(project: Path, place: Path) -> Iterator[ReportFile]:
    directory = project
    for part in place.parts:
        directory /= part
        if directory.is_symlink():
            return
    for run in sorted(_directories(directory), key=lambda entry: entry.name, reverse=True)[:_MAX_RUNS]:
        for name in _SUBDIRECTORIES:
            yield from _reports_of_directory(Path(run.path) / name if name else Path(run.path))


def _reports_of_directory(directory: Path) -> Iterator[ReportFile]:
    is_log = directory.name == _LOG_DIRECTORY
    if directory.is_symlink():
        return
    for entry in _entries(directory):
        is_report = _NAMES.fullmatch(entry.name) or (is_log and entry.name.endswith(".md"))
        if is_report and entry.is_file(follow_symlinks=False):
            status = entry.stat(follow_symlinks=False)
            yield ReportFile(Path(entry.path), status.st_size, status.st_ino, status.st_mtime)


def _walk(directory: Path, depth: int) -> Iterator[ReportFile]:
    yield from _reports_of_directory(directory)
    if depth:
        for child in sorted(_directories(directory), key=lambda entry: entry.name)[:_MAX_RUNS]:
            yield from _walk(Path(child.path), depth - 1)


def _directories(directory: Path) -> Iterator[os.DirEntry[str]]:
    return (entry for entry in _entries(directory) if entry.is_dir(follow_symlinks=False))


def _entries(directory: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(directory) as entries:
            return list(entries)
    except (FileNotFoundError, NotADirectoryError):
        return []


def _newest(files: list[ReportFile]) -> tuple[ReportFile, ...]:
    # tome.md and TOME.md are one file on some file systems.
    unique = {file.inode: file for file in files}
    return tuple(sorted(unique.values(), key=lambda file: (-file.modified, str(file.path)))[:MAX_REPORTS])


def _expected_nonce(directory: Path) -> str:
    """Return the nonce that the run wrote beside its reports; "" if there is none."""
    try:
        fields = json.loads(read_regular(directory / "inscription.json", _MAX_INSCRIPTION_BYTES, follow_symlinks=False))
    except (OSError, ValueError, RecursionError):
        return ""
    nonce = fields.get("session_nonce") if isinstance(fields, dict) else None
    return nonce if isinstance(nonce, str) and _NONCE.fullmatch(nonce) else ""
