"""The composition root: what works on memories is built here and nowhere else; `lookout` has what only looks.

When did the work last go on? Told by the steps of commits, asked by the heartbeat: a long job is not a stuck one.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import psutil

from echod.app.context import ReadContext, build_read_context, process_is_alive
from echod.inbox.inbox import Inbox, InboxSettings
from echod.jobs.observe import ObserveContext
from echod.paths import Paths, claude_home
from echod.scheduler.maintenance import MaintenanceNeedFinder
from echod.scheduler.worker import JobSettings, Worker
from echod.settings.values import Settings
from echod.state.entries import EntryStore
from echod.state.hook_events import HookEventLog
from echod.state.job import ProcessIdentity
from echod.state.job_rows import QueueView
from echod.state.queue import JobQueue
from echod.state.repair import CheckedDatabase, open_checked
from echod.state.workflow_log import WorkflowLog
from echod.store.commit.context import CommitStep
from echod.store.engine import Engine
from echod.store.layout import project_root
from echod.store.limits import EngineLimits


class ProgressTracer:
    """The moment of the last step, on the clock that was given. Told and asked by different threads."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._last_step_at = monotonic()

    def __call__(self, step: CommitStep, /) -> None:
        """A commit passes `step` now (`store.steps.Tracer`)."""
        del step
        self._last_step_at = self._monotonic()

    @property
    def last_step_at(self) -> float:
        """Monotonic seconds of the last step; of the beginning before the first."""
        return self._last_step_at


class Services(NamedTuple):
    """What works on memories."""

    read_context: ReadContext
    checked_database: CheckedDatabase
    queue: JobQueue
    queue_view: QueueView
    engine: Engine
    worker: Worker
    workflow_log: WorkflowLog
    inbox: Inbox
    entries: EntryStore
    maintenance_finder: MaintenanceNeedFinder
    progress: ProgressTracer

    @property
    def paths(self) -> Paths:
        """Where echod's own files live."""
        return self.read_context.paths

    @property
    def settings(self) -> Settings:
        """The settings it was built with."""
        return self.read_context.settings


@contextmanager
def open_services(
    paths: Paths, settings: Settings, environ: Mapping[str, str], clock: Callable[[], float]
) -> Iterator[Services]:
    """Build everything, the database checked (and rebuilt where it is damaged).

    Raises:
        StateError: the state directory or the database cannot be used.
    """
    paths.create_directories()
    checked_database = open_checked(paths.database, clock)
    with checked_database.database as database:
        progress = ProgressTracer(time.monotonic)
        engine = Engine(paths.journal, limits=EngineLimits(), clock=clock, trace=progress)
        workflow_log = WorkflowLog(database)
        read_context = build_read_context(paths, settings, environ, engine, database, workflow_log, workflow_log)
        this_process = ProcessIdentity(os.getpid(), psutil.Process().create_time())
        queue = JobQueue(database, worker=this_process, rng=random.Random(), max_attempts=settings.max_attempts)  # noqa: S311
        if not queue.has_assigned_ids():
            # The journal outlives the database, and `undo` finds a commit by the number of its job.
            queue.reserve_ids(engine.highest_job())

        hook_events = HookEventLog(database)
        entries = EntryStore(database)
        inbox = Inbox(read_context.spool, hook_events, _inbox_settings(read_context, environ))

        def job_settings(project: Path) -> JobSettings:
            return JobSettings(
                quiet_seconds=settings.quiet_seconds,
                allow_writes=settings.mode == "maintain",
                paused=read_context.projects.is_paused(project),
                maintenance=read_context.maintenance_policy(project),
            )

        yield Services(
            read_context=read_context,
            checked_database=checked_database,
            queue=queue,
            queue_view=QueueView(database),
            engine=engine,
            worker=Worker(
                queue=queue,
                engine=engine,
                project_gate=read_context.project_gate,
                job_settings=job_settings,
                observe_context=ObserveContext(inbox, hook_events),
                entries=entries,
                is_alive=process_is_alive,
                clock=clock,
            ),
            workflow_log=workflow_log,
            inbox=inbox,
            entries=entries,
            maintenance_finder=MaintenanceNeedFinder(entries, engine),
            progress=progress,
        )


def _inbox_settings(read_context: ReadContext, environ: Mapping[str, str]) -> InboxSettings:
    def register(project: Path) -> None:
        read_context.projects.add(project)

    return InboxSettings(
        teams=read_context.settings.observe.teams,
        projects=lambda: read_context.discover_stores().projects,
        register=register if read_context.settings.hooks.register_projects else None,
        observations_enabled=lambda project: read_context.project_settings.read(project).settings.observe,
        global_store=project_root(claude_home(environ) / "echoes"),
    )
