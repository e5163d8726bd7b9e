"""Find the work that a store calls for, from names, sizes and times of files only, and whether it may run now.

Level-triggered: an event only selects the store, and the needs are derived from the disk. The result is the same at
start, after lost events, and in `echod run --once`.

`ProjectGate` decides whether it may run. Its verdict combines the markers on the disk (`echod.workflows`), the last
writes of echod itself (`echod.store`), and the declared and earlier workflows (`echod.state`). Each check also records
the workflows that it finds, each once, because the scores of entries depend on them.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterable, Mapping, Sequence
from os import stat_result
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from echod.errors import left_alone_text, os_reason
from echod.lazy import lazy_imports
from echod.log import get_logger
from echod.projects.settings import MaintenancePolicy
from echod.state.jobs import JobKind, Need
from echod.state.workflow_log import WorkflowLog, WorkflowSnapshot
from echod.store import layout
from echod.store.layout import Role, Store
from echod.workflows import (
    DeclaredWorkflow,
    GateLimits,
    ProcessTable,
    Verdict,
    WorkflowRunState,
    collect_observations,
    find_workflow_runs,
    gate,
    quiet_streak,
)

with lazy_imports(__name__):
    from echod.workflows import collect

if TYPE_CHECKING:
    from echod.store.reader import StoreReader

log = get_logger(__name__)

_MAX_NAMED_AGENTS = 3
NO_OBSERVATIONS: Mapping[str, Sequence[str]] = MappingProxyType({})


class NeedSettings(NamedTuple):
    """The settings that decide which findings on the disk are work.

    Attributes:
        quiet_seconds: the time for which a findings file must be unchanged.
        sync_minutes: the time between two exchanges with the project's remote; 0 for none.
        ingest: whether the reports of workflows become memory.
        mode: "report" or "maintain". It is part of a fingerprint, so that reported work is done when the mode changes.
    """

    quiet_seconds: float
    consolidate: bool
    mode: str
    maintenance: MaintenancePolicy
    sync_minutes: float = 0.0
    ingest: bool = False


class ReadProblem(NamedTuple):
    """A path that could not be read. Unreadable is not empty."""

    path: str
    text: str


class NeedsReport(NamedTuple):
    """The needs of a store, and the problems in finding them."""

    needs: tuple[Need, ...]
    problems: tuple[ReadProblem, ...]


def find_needs(
    store: Store, settings: NeedSettings, now: float, observations: Mapping[str, Sequence[str]] = NO_OBSERVATIONS
) -> NeedsReport:
    """Return the work that `store` needs at `now` (Unix seconds).

    A findings file is ready when it has been unchanged for `settings.quiet_seconds`. The need is due when the first
    file is ready. `observations` are the names of the pending events by role, which are ready at once.
    """
    needs: list[Need] = []
    problems: list[ReadProblem] = []
    try:
        roles = layout.find_roles(store)
    except OSError as error:
        return NeedsReport((), (read_problem(store.root, error),))
    for role in roles:
        try:
            if settings.consolidate and (need := _consolidate_need(role, settings, now)):
                needs.append(need)
        except OSError as error:
            problems.append(read_problem(role.path, error))
        except Exception as error:
            log.exception("role_left_alone", role=str(role.path))
            problems.append(ReadProblem(str(role.path), left_alone_text(str(role.path), error)))
    needs += [_observe_need(store, role, names, settings, now) for role, names in observations.items()]
    if settings.sync_minutes and store == layout.find_stores_in_resolved_root(store.project)[0]:
        needs.append(_sync_need(store, settings.sync_minutes, settings.mode, now))
    try:
        if settings.ingest and roles and (ingest_need := _ingest_need(store, settings, now)):
            needs.append(ingest_need)
    except OSError as error:
        problems.append(read_problem(Path(error.filename or store.project), error))
    return NeedsReport(tuple(needs), tuple(problems))


def last_changed(status: stat_result, now: float) -> float:
    """Return when a file was last changed: for a future modification time the change time, which no tool sets."""
    if status.st_mtime <= now:
        return status.st_mtime
    return status.st_ctime if status.st_ctime <= now else 0.0


def _consolidate_need(role: Role, settings: NeedSettings, now: float) -> Need | None:
    findings = [
        (path, status) for path in layout.list_findings_files(role) if (status := stat_if_present(path)) is not None
    ]
    if not findings:
        return None
    # The list is limited. A change of the files beyond the limit shows in the directory.
    inputs = [*findings, (role.memory, stat_if_present(role.memory))]
    inputs += [(role.path, stat_if_present(role.path))] if len(findings) == layout.MAX_SORTED_FINDINGS else []
    due = min(last_changed(status, now) for _, status in findings) + settings.quiet_seconds
    count = len(findings) if len(findings) < layout.MAX_SORTED_FINDINGS else f"{len(findings)} or more"
    agents = ", ".join(layout.agent_name(path) for path, _ in findings[:_MAX_NAMED_AGENTS])
    agents += ", ..." if len(findings) > _MAX_NAMED_AGENTS else ""
    return Need(
        kind=JobKind.CONSOLIDATE,
        store=role.store.key,
        role=role.name,
        fingerprint=_fingerprint(settings.mode, inputs),
        reason=f"{count} findings {'file' if len(findings) == 1 else 'files'} from {agents}",
        due=due,
    )


def _observe_need(store: Store, role: str, names: Sequence[str], settings: NeedSettings, now: float) -> Need:
    return Need(
        kind=JobKind.OBSERVE,
        store=store.key,
        role=role,
        fingerprint=hashlib.sha256("\n".join([settings.mode, *sorted(names)]).encode()).hexdigest()[:16],
        reason=f"{len(names)} completed {'task' if len(names) == 1 else 'tasks'} reported by agents",
        due=now,
    )


def _sync_need(store: Store, minutes: float, mode: str, now: float) -> Need:
    """Return the need of an exchange with the remote, which is another one in each period."""
    period = int(now // (minutes * 60))
    reason = f"exchanged with its remote every {minutes:g} minutes"
    return Need(JobKind.SYNC, store.key, "", f"{mode} {minutes:g} {period}", reason, now)


def _ingest_need(store: Store, settings: NeedSettings, now: float) -> Need | None:
    """Return the need to read the reports of the project. The first of its stores takes them."""
    found = collect.find_reports(store.project)
    if not found or store != layout.find_stores_in_resolved_root(store.project)[0]:
        return None
    inputs = [settings.mode, *(f"{each.path}\0{each.inode}\0{each.size}\0{each.modified}" for each in found)]
    return Need(
        kind=JobKind.INGEST,
        store=store.key,
        role="",
        fingerprint=hashlib.sha256("\n".join(inputs).encode(errors="surrogateescape")).hexdigest()[:16],
        reason=f"{len(found)} {'report' if len(found) == 1 else 'reports'} of workflows",
        due=min(found[0].modified, now) + settings.quiet_seconds,
    )


def _fingerprint(mode: str, files: Iterable[tuple[Path, stat_result | None]]) -> str:
    parts = [mode] + [
        f"{path.name}\0absent"
        if status is None
        else f"{path.name}\0{status.st_ino}\0{status.st_size}\0{status.st_mtime_ns}\0{status.st_mode:o}"
        for path, status in files
    ]
    return hashlib.sha256("\n".join(parts).encode(errors="surrogateescape")).hexdigest()[:16]


def stat_if_present(path: Path) -> stat_result | None:
    """Return the status of a path without following a link; None if it does not exist."""
    try:
        return path.lstat()
    except FileNotFoundError:
        return None


def read_problem(path: Path, error: OSError, action: str = "listed") -> ReadProblem:
    """Return the problem for an error of the operating system."""
    return ReadProblem(str(path), f"{path} cannot be {action}: {os_reason(error)}")


_MAX_CHECK_GAP_SECONDS = 60.0
"""Two checks with a larger gap do not show that the project was quiet in between."""


class _QuietStreak(NamedTuple):
    since: float | None
    checked_at: float


class ProjectGate:
    """The gate of all projects, with the time since which each has been quiet. One for each process. Thread-safe.

    Args:
        reader: reports the last writes of echod itself.
        workflows: the declared and ended workflows; None if nothing was ever recorded.
        recorder: records the workflows that are found; None for read-only callers.
        claude_home: Claude Code's directory with its sessions.
        processes: the table of processes.
        limits: how long each kind of marker is believed.
    """

    def __init__(
        self,
        *,
        reader: StoreReader,
        workflows: WorkflowLog | None,
        recorder: WorkflowLog | None,
        claude_home: Path | None,
        processes: ProcessTable,
        limits: GateLimits,
    ) -> None:
        self._reader = reader
        self._workflows = workflows
        self._recorder = recorder
        self._claude_home = claude_home
        self._processes = processes
        self._limits = limits
        self._quiet_streaks: dict[Path, _QuietStreak] = {}
        self._lock = threading.Lock()

    def check(self, project: Path, stores: Sequence[Store], now: float) -> Verdict:
        """Return the verdict on a project at `now` (Unix seconds)."""
        declared = self._workflows.list_declared(str(project), now) if self._workflows else ()
        observations = collect_observations(
            project,
            [store.root for store in stores],
            claude_home=self._claude_home,
            processes=self._processes,
            changed_since=now - self._limits.quiet_seconds,
            own_mtime=self._reader.own_mtime,
            declared=[DeclaredWorkflow(d.name, d.pid, d.pid_started, d.started_at, d.until) for d in declared],
            last_ended=self._workflows.last_ended(str(project)) if self._workflows else None,
        )
        with self._lock:
            streak = self._quiet_streaks.get(project)
            since = streak.since if streak is not None and now - streak.checked_at <= _MAX_CHECK_GAP_SECONDS else None
            # If it was not quiet before, it is from now on, and at most for the longest quiet.
            verdict = gate(observations, now, self._limits, quiet_since=now if since is None else since)
            self._quiet_streaks[project] = _QuietStreak(quiet_streak(verdict, since, now), now)
        if self._recorder is not None and not observations.inaccessible:
            runs = find_workflow_runs(observations, now, self._limits)
            running = WorkflowRunState.RUNNING
            snapshots = [
                WorkflowSnapshot(r.key, r.kind, r.name, r.started, running=r.state is running, ended_at=r.ended_at)
                for r in runs
            ]
            self._recorder.record(str(project), snapshots, now)
        return verdict


def describe_verdict(verdict: Verdict) -> str:
    """Return why a job has to wait, for its row in the queue."""
    blocking = [f"{reason.marker}: {reason.text}" for reason in verdict.reasons if reason.blocking]
    return "; ".join(blocking) or f"the project is {verdict.state.value}"
