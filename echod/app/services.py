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

from echod.app.context import Lookout, make_lookout, still_runs
from echod.inbox.inbox import Inbox, Rules
from echod.jobs.observe import Desk
from echod.paths import Paths, claude_home
from echod.scheduler.maintenance import Upkeep
from echod.scheduler.worker import Terms, Worker
from echod.settings.values import Settings
from echod.state.entries import EntryLog
from echod.state.hook_events import ObservedLog
from echod.state.job import ProcessIdentity
from echod.state.job_rows import QueueView
from echod.state.queue import JobQueue
from echod.state.repair import Opened, open_checked
from echod.state.workflow_log import WorkflowLog
from echod.store.commit.steps import Step
from echod.store.engine import Engine
from echod.store.layout import project_root
from echod.store.limits import EngineLimits


class Progress:
    """The moment of the last step, on the clock that was given. Told and asked by different threads."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._at = monotonic()

    def __call__(self, step: Step, /) -> None:
        """A commit passes `step` now (`store.steps.Tracer`)."""
        del step
        self._at = self._monotonic()

    @property
    def at(self) -> float:
        """Monotonic seconds of the last step; of the beginning before the first."""
        return self._at


class House(NamedTuple):
    """What works on memories."""

    lookout: Lookout
    opened: Opened
    queue: JobQueue
    view: QueueView
    engine: Engine
    worker: Worker
    workflows: WorkflowLog
    inbox: Inbox
    entries: EntryLog
    upkeep: Upkeep
    progress: Progress

    @property
    def paths(self) -> Paths:
        """Where echod's own files live."""
        return self.lookout.paths

    @property
    def settings(self) -> Settings:
        """The settings it was built with."""
        return self.lookout.settings


@contextmanager
def furnish(
    paths: Paths, settings: Settings, environ: Mapping[str, str], clock: Callable[[], float]
) -> Iterator[House]:
    """Build everything, the database checked (and rebuilt where it is damaged).

    Raises:
        StateError: the state directory or the database cannot be used.
    """
    paths.create()
    opened = open_checked(paths.database, clock)
    with opened.database as database:
        progress = Progress(time.monotonic)
        engine = Engine(paths.journal, limits=EngineLimits(), clock=clock, trace=progress)
        workflows = WorkflowLog(database)
        lookout = make_lookout(paths, settings, environ, engine, database, workflows, workflows)
        me = ProcessIdentity(os.getpid(), psutil.Process().create_time())
        queue = JobQueue(database, worker=me, rng=random.Random(), max_attempts=settings.max_attempts)  # noqa: S311
        if not queue.has_numbered():
            # The journal outlives the database, and `undo` finds a commit by the number of its job.
            queue.number_after(engine.highest_job())

        observed = ObservedLog(database)
        entries = EntryLog(database)
        inbox = Inbox(lookout.spool, observed, _event_rules(lookout, environ))

        def terms(project: Path) -> Terms:
            return Terms(
                quiet_seconds=settings.quiet_seconds,
                writes=settings.mode == "maintain",
                paused=lookout.projects.paused(project),
                care=lookout.care(project),
            )

        yield House(
            lookout=lookout,
            opened=opened,
            queue=queue,
            view=QueueView(database),
            engine=engine,
            worker=Worker(
                queue=queue,
                engine=engine,
                gatekeeper=lookout.gatekeeper,
                terms=terms,
                hooks=Desk(inbox, observed),
                entries=entries,
                still_runs=still_runs,
                clock=clock,
            ),
            workflows=workflows,
            inbox=inbox,
            entries=entries,
            upkeep=Upkeep(entries, engine),
            progress=progress,
        )


def _event_rules(lookout: Lookout, environ: Mapping[str, str]) -> Rules:
    def register(project: Path) -> None:
        lookout.projects.add(project)

    return Rules(
        teams=lookout.settings.observe.teams,
        projects=lambda: lookout.roster().projects,
        register=register if lookout.settings.hooks.register_projects else None,
        wanted=lambda project: lookout.wishes.read(project).settings.observe,
        global_store=project_root(claude_home(environ) / "echoes"),
    )
