"""Asks whether a project's memory may be written now: joins what three rooms know into one verdict.

The markers on the disk (workflows), what echod itself wrote last (store), and what was announced or seen before
(state). Every verdict also records the workflows it saw, each once, for the scores of entries.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from echod.state.workflow_log import Sighting, WorkflowLog
from echod.store.layout import Store
from echod.store.reader import Reader
from echod.workflows import (
    DeclaredWorkflow,
    GateLimits,
    Processes,
    SeenState,
    SeenWorkflow,
    Verdict,
    active_workflows,
    gate,
    observe,
    quiet_streak,
)

_UNBROKEN_SECONDS = 60.0
"""Two looks further apart than this say nothing about the time between them."""


class _Streak(NamedTuple):
    since: float | None
    asked: float


class Gatekeeper:
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
        reader: Reader,
        workflows: WorkflowLog | None,
        recorder: WorkflowLog | None,
        claude_home: Path | None,
        processes: Processes,
        limits: GateLimits,
    ) -> None:
        self._reader = reader
        self._workflows = workflows
        self._recorder = recorder
        self._claude_home = claude_home
        self._processes = processes
        self._limits = limits
        self._streaks: dict[Path, _Streak] = {}
        self._lock = threading.Lock()

    def ask(self, project: Path, stores: Sequence[Store], now: float) -> Verdict:
        """The verdict on a project at `now` (Unix seconds)."""
        declared = self._workflows.current(str(project), now) if self._workflows else ()
        observations = observe(
            project,
            [store.root for store in stores],
            claude_home=self._claude_home,
            processes=self._processes,
            changed_since=now - self._limits.quiet_seconds,
            own_write=self._reader.own_write,
            declared=[DeclaredWorkflow(d.name, d.pid, d.pid_started, d.began, d.until) for d in declared],
            last_ended=self._workflows.last_ended(str(project)) if self._workflows else None,
        )
        with self._lock:
            streak = self._streaks.get(project)
            since = streak.since if streak is not None and now - streak.asked <= _UNBROKEN_SECONDS else None
            verdict = gate(observations, now, self._limits, quiet_since=since)
            self._streaks[project] = _Streak(quiet_streak(verdict, since, now), now)
        if self._recorder is not None and not observations.unseen:
            sightings = [_sighting(seen) for seen in active_workflows(observations, now, self._limits)]
            self._recorder.record(str(project), sightings, now)
        return verdict


def _sighting(seen: SeenWorkflow) -> Sighting:
    running = seen.state is SeenState.RUNNING
    return Sighting(seen.key, seen.kind, seen.name, seen.started, running=running, ended_at=seen.ended_at)


def in_words(verdict: Verdict) -> str:
    """Why a job has to wait, for its row in the queue."""
    holding = [f"{reason.marker}: {reason.text}" for reason in verdict.reasons if reason.holds]
    return "; ".join(holding) or f"the project is {verdict.state.value}"
