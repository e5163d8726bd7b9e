"""The composition root: everything that the daemon and the commands work with is built here and nowhere else."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil

from echod import projects as project_list
from echod.daemon.counts import take_up
from echod.daemon.progress import Progress
from echod.jobs.care import Care
from echod.jobs.counted import Counted
from echod.jobs.gatekeeper import Gatekeeper
from echod.jobs.inbox import Inbox, Rules
from echod.jobs.needs import NeedRules
from echod.jobs.observe import Desk
from echod.jobs.review import Review
from echod.jobs.roster import Roster, call
from echod.jobs.spool import Spool
from echod.jobs.survey import Survey
from echod.jobs.upkeep import Upkeep
from echod.jobs.work import Terms, Worker
from echod.packs.room import PackRoom
from echod.paths import Paths, claude_home
from echod.project_settings import ProjectSettingsReader
from echod.projects import Projects
from echod.settings import Settings
from echod.state.database import Database
from echod.state.entries import EntryLog
from echod.state.job import ProcessIdentity
from echod.state.observed import ObservedLog
from echod.state.queue import JobQueue
from echod.state.queue_view import QueueView
from echod.state.rescue import Opened, open_checked
from echod.state.workflow_log import WorkflowLog
from echod.store.engine import Engine
from echod.store.layout import project_root
from echod.store.limits import EngineLimits
from echod.workflows.limits import GateLimits
from echod.workflows.processes import SystemProcesses

_SAME_START_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class Lookout:
    """What looks at projects and their queue and changes nothing. `view` is None where nothing was ever recorded.

    `wishes` are the projects' own settings; parsing them at every look would cost more than the look.
    """

    paths: Paths
    settings: Settings
    projects: Projects
    view: QueueView | None
    engine: Engine
    gatekeeper: Gatekeeper
    counted: Counted
    survey: Survey
    spool: Spool
    wishes: ProjectSettingsReader
    observed: ObservedLog | None
    entries: EntryLog | None
    reviews: Review
    packs: PackRoom

    def roster(self) -> Roster:
        """The projects and stores as they are now: registered ones and those the settings' globs match."""
        return call((*self.projects.roots(), *project_list.expand(self.settings.projects)))

    def rules(self, project: Path) -> NeedRules:
        """What counts as work in a project."""
        return NeedRules(
            quiet_seconds=self.settings.quiet_seconds,
            consolidate=self.wishes.read(project).settings.consolidate,
            mode=self.settings.mode,
            care=self.care(project),
        )

    def care(self, project: Path) -> Care:
        """What may be done to the project's memory beyond consolidation, and by which numbers."""
        asked = self.wishes.read(project).settings
        return Care(
            policy=self.settings.policy_numbers(asked.line_limit(self.settings.memory_line_limit)),
            prune=asked.prune,
            compress=asked.compress,
            maintain_tracked=asked.maintain_tracked,
        )

    def line_limit(self, project: Path) -> int:
        """How long a memory file of the project may be."""
        return self.wishes.read(project).settings.line_limit(self.settings.memory_line_limit)

    def staleness_days(self, projects: Iterable[Path]) -> int:
        """After how many days a doc pack is stale: the least that these projects say, else the user's setting."""
        asked = (self.wishes.read(project).settings.staleness_days for project in projects)
        return min((days for days in asked if days is not None), default=self.settings.packs.staleness_days)

    def settings_warnings(self, project: Path) -> tuple[str, ...]:
        """What in the project's own settings file was not understood, a sentence each."""
        return self.wishes.read(project).warnings


@dataclass(frozen=True, slots=True)
class House:
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
def look_out(
    paths: Paths, settings: Settings, environ: Mapping[str, str], clock: Callable[[], float]
) -> Iterator[Lookout]:
    """What a command needs that only looks. Creates nothing, and works while a daemon runs.

    Raises:
        StateError: the database cannot be read.
    """
    with ExitStack() as stack:
        database = Database.open_reading(paths.database)
        if database is not None:
            stack.enter_context(database)
        engine = Engine(paths.journal, limits=EngineLimits(), clock=clock)
        log = None if database is None else WorkflowLog(database)
        yield _lookout(paths, settings, environ, engine, database, log, None)


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
        lookout = _lookout(paths, settings, environ, engine, database, workflows, workflows)
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


def still_runs(worker: ProcessIdentity) -> bool:
    """Whether the process that claimed a job lives; True where that cannot be told."""
    try:
        return abs(psutil.Process(worker.pid).create_time() - worker.started) < _SAME_START_SECONDS
    except psutil.NoSuchProcess:
        return False
    except psutil.Error:
        return True


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


def _lookout(
    paths: Paths,
    settings: Settings,
    environ: Mapping[str, str],
    engine: Engine,
    database: Database | None,
    workflows: WorkflowLog | None,
    recorder: WorkflowLog | None,
) -> Lookout:
    gatekeeper = Gatekeeper(
        engine=engine,
        workflows=workflows,
        recorder=recorder,
        claude_home=claude_home(environ),
        processes=SystemProcesses(),
        limits=GateLimits(quiet_seconds=settings.quiet_seconds, sessions=settings.gate.sessions),
    )
    entries = None if database is None else EntryLog(database)
    counted = take_up(paths.counts)
    return Lookout(
        paths=paths,
        settings=settings,
        projects=Projects(paths.projects),
        view=None if database is None else QueueView(database),
        engine=engine,
        gatekeeper=gatekeeper,
        counted=counted,
        survey=Survey(counted),
        spool=Spool(paths.spool),
        wishes=ProjectSettingsReader(),
        observed=None if database is None else ObservedLog(database),
        entries=entries,
        reviews=Review(engine, entries, counted),
        packs=PackRoom(project_root(claude_home(environ)), settings.packs.registries),
    )
