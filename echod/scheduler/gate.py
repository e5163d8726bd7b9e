"""Decide whether a project's memory may be written now.

A verdict combines the markers on the disk (`echod.workflows`), the last writes of echod itself (`echod.store`), and
the declared and earlier workflows (`echod.state`). Each check also records the workflows that it finds, each once,
because the scores of entries depend on them.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from echod.state.workflow_log import WorkflowLog, WorkflowSnapshot
from echod.store.layout import Store
from echod.store.reader import StoreReader
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
