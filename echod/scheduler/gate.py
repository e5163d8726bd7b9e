"""Asks whether a project's memory may be written now: joins what three rooms know into one verdict.

The markers on the disk (workflows), what echod itself wrote last (store), and what was announced or seen before
(state). Every verdict also records the workflows it saw, each once, for the scores of entries.
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
    WorkflowRun,
    WorkflowRunState,
    collect_observations,
    find_workflow_runs,
    gate,
    quiet_streak,
)

_MAX_CHECK_GAP_SECONDS = 60.0
"""Two looks further apart than this say nothing about the time between them."""


class _QuietStreak(NamedTuple):
    since: float | None
    checked_at: float


class ProjectGate:
    """One for a process; remembers since when each project has been quiet. May be asked by several threads.

    Args:
        reader: knows what echod itself wrote last.
        workflows: what was announced and what ended, None where nothing was ever recorded.
        recorder: where the workflows that are seen are recorded, None for whoever only looks.
        claude_home: Claude Code's directory, for its sessions.
        processes: the table of processes.
        limits: how long which sign is believed.
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
        """The verdict on a project at `now` (Unix seconds)."""
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
            verdict = gate(observations, now, self._limits, quiet_since=since)
            self._quiet_streaks[project] = _QuietStreak(quiet_streak(verdict, since, now), now)
        if self._recorder is not None and not observations.inaccessible:
            snapshots = [_workflow_snapshot(seen) for seen in find_workflow_runs(observations, now, self._limits)]
            self._recorder.record(str(project), snapshots, now)
        return verdict


def _workflow_snapshot(seen: WorkflowRun) -> WorkflowSnapshot:
    running = seen.state is WorkflowRunState.RUNNING
    return WorkflowSnapshot(seen.key, seen.kind, seen.name, seen.started, running=running, ended_at=seen.ended_at)


def describe_verdict(verdict: Verdict) -> str:
    """Why a job has to wait, for its row in the queue."""
    holding = [f"{reason.marker}: {reason.text}" for reason in verdict.reasons if reason.blocking]
    return "; ".join(holding) or f"the project is {verdict.state.value}"
