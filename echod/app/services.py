"""Composition root for the daemon and for commands that change memory.

The read-only parts are in `context`. A part that few commands use is loaded when it is made.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from echod.app.context import ReadContext, process_is_alive
from echod.app.moved_projects import RecordedProjects
from echod.errors import isolated
from echod.lazy import lazy_imports
from echod.paths import Paths
from echod.runtime.system import UserCommand
from echod.settings.schema import Settings
from echod.state.entries import EntryStore
from echod.state.jobs import ProcessIdentity, QueueView
from echod.state.queue import JobQueue
from echod.state.repair import CheckedDatabase, open_checked
from echod.state.session_log import HookEventLog, SessionHint, SessionLog
from echod.state.workflow_log import WorkflowLog
from echod.store.commit.context import CommitStep
from echod.store.engine import Engine
from echod.store.errors import EngineLimits

with lazy_imports(__name__):
    import psutil

    from echod.auto_memory import copies
    from echod.inbox import inbox as hook_inbox
    from echod.jobs import archive, observe, packs
    from echod.memory import proposals
    from echod.memory.conversation import digest
    from echod.memory.reports import intake
    from echod.scheduler import reconcile
    from echod.scheduler import worker as job_worker
    from echod.sync import job, repository

if TYPE_CHECKING:
    from echod.jobs.base import JobOutcome, JobResources
    from echod.state.jobs import Job
    from echod.store.healing.recovery import RecoveryReport
    from echod.store.layout import Store


class ProgressTracer:
    """Records when the last step of a commit was made, so that the heartbeat does not take a long job for a stuck one.

    Written and read by different threads.
    """

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._last_step_at = monotonic()

    def __call__(self, step: CommitStep, /) -> None:
        """Record a step of a commit (`store.commit.steps.Tracer`)."""
        del step
        self.record()

    def record(self) -> None:
        """Record that the job made progress."""
        self._last_step_at = self._monotonic()

    @property
    def last_step_at(self) -> float:
        """Monotonic seconds of the last step; before the first step, of the start."""
        return self._last_step_at


class Services:
    """Everything that works on memories. Each part is made when it is first used.

    The daemon uses the parts that its threads share before it starts the second one, so none is made twice. `environ`
    names Claude Code's own directory. `clock` returns Unix seconds.
    """

    def __init__(
        self,
        paths: Paths,
        settings: Settings,
        environ: Mapping[str, str],
        clock: Callable[[], float],
        checked_database: CheckedDatabase,
    ) -> None:
        self.paths = paths
        self.settings = settings
        self.checked_database = checked_database
        self._environ = environ
        self._clock = clock
        self._database = checked_database.database

    @cached_property
    def progress(self) -> ProgressTracer:
        """The time of the last step of a commit."""
        return ProgressTracer(time.monotonic)

    @cached_property
    def engine(self) -> Engine:
        """The store engine, the only writer of memory."""
        return Engine(self.paths.journal, limits=EngineLimits(), clock=self._clock, trace=self.progress)

    @cached_property
    def read_context(self) -> ReadContext:
        """The read-only parts. Their gate records the workflows it sees."""
        database = self._database
        return ReadContext(self.paths, self.settings, self._environ, self.engine, database, records_workflows=True)

    @cached_property
    def recorded_projects(self) -> RecordedProjects:
        """The records about projects by their paths, to be carried along when one is moved."""
        return RecordedProjects(self.paths.journal, self._database, self.read_context.projects, self.paths.worker_lock)

    def recover(self, stores: Iterable[Store]) -> RecoveryReport:
        """Complete all that a crash left half done in these stores and the global ones. Hold the worker lock."""
        locations = self.read_context.pack_locations
        report = self.engine.recover((*stores, *locations.stores))
        if locations.exists:
            with isolated("The list of doc packs"):  # commands that change packs do it too
                packs.sync_manifests(self.engine, locations.claude_home)
        return report

    @cached_property
    def queue(self) -> JobQueue:
        """The queue, in which this process claims jobs."""
        this_process = ProcessIdentity(os.getpid(), psutil.Process().create_time())
        queue = JobQueue(
            self._database,
            worker=this_process,
            rng=random.Random(),  # noqa: S311
            max_attempts=self.settings.max_attempts,
        )
        if not queue.has_assigned_ids():
            # The journal may be older than the database, and `undo` finds a commit by the number of its job.
            queue.reserve_ids(self.engine.highest_job())
        return queue

    @cached_property
    def queue_view(self) -> QueueView:
        """The queue, read-only."""
        return QueueView(self._database)

    @cached_property
    def workflow_log(self) -> WorkflowLog:
        """The declared and the observed workflows."""
        return WorkflowLog(self._database)

    @cached_property
    def entries(self) -> EntryStore:
        """The facts about entries."""
        return EntryStore(self._database)

    @cached_property
    def inbox(self) -> hook_inbox.Inbox:
        """The observations that hooks spooled."""
        context = self.read_context

        def register(project: Path) -> None:
            context.projects.add(project)

        settings = hook_inbox.InboxSettings(
            teams=self.settings.observe.teams,
            projects=lambda: context.discover_stores().projects,
            register=register if self.settings.hooks.register_projects else None,
            observations_enabled=lambda project: context.project_settings.read(project).settings.observe,
            locator=context.locator,
            session_hint=self._record_session_hint,
        )
        return hook_inbox.Inbox(context.spool, self._hook_events, settings)

    @cached_property
    def maintenance_finder(self) -> reconcile.MaintenanceNeedFinder:
        """The finder of maintenance needs."""
        return reconcile.MaintenanceNeedFinder(self.entries, self.engine, self.read_context.inspections)

    @cached_property
    def session_log(self) -> SessionLog:
        """The transcripts that were read."""
        return SessionLog(self._database)

    @cached_property
    def session_services(self) -> archive.SessionServices:
        """Everything that works on conversations."""
        settings = self.settings.sessions

        summarizer = self._user_command(settings.summary_command, settings.summary_seconds, digest.MAX_ANSWER_BYTES)
        return archive.SessionServices(
            projects=self.read_context.session_projects,
            need_finder=self.read_context.session_need_finder,
            session_log=self.session_log,
            summarizer=summarizer,
            clock=self._clock,
            trace=lambda _step: self.progress.record(),
        )

    @cached_property
    def validator(self) -> UserCommand | None:
        """The command that validates learnings; None without one."""
        settings = self.settings.validation
        return self._user_command(settings.command, settings.seconds, intake.MAX_ANSWER_BYTES)

    @cached_property
    def proposer(self) -> UserCommand | None:
        """The command that proposes merged learnings and titles; None without one."""
        policy = self.settings.policy
        return self._user_command(policy.propose_command, policy.propose_seconds, proposals.MAX_ANSWER_BYTES)

    def _user_command(self, command: tuple[str, ...], seconds: float, max_bytes: int) -> UserCommand | None:
        """Return a command of the user, which may take long and is no stuck job; None without one."""
        if not command:
            return None
        return UserCommand(command, seconds, self._environ, max_bytes, on_wait=self.progress.record)

    def _record_session_hint(self, project: Path, session_id: str, hint: SessionHint) -> bool:
        """Record what a hook reported about a session. False if conversations of the project are not archived."""
        if not self.read_context.session_projects.enabled([project]):
            return False
        self.session_log.put_hint(session_id, hint, self._clock())
        self.read_context.session_need_finder.look_again()
        return True

    @cached_property
    def worker(self) -> job_worker.Worker:
        """The worker, which runs one job at a time.

        Raises:
            ConfigurationError: `sessions.root` cannot be used.
        """
        if self.read_context.session_projects.any_chosen:
            _ = self.session_services  # made before a second thread uses it
        return job_worker.Worker(
            queue=self.queue,
            engine=self.engine,
            project_gate=self.read_context.project_gate,
            job_settings=self._job_settings,
            observe_context=observe.ObserveContext(self.inbox, self._hook_events),
            validator=self.validator,
            proposer=self.proposer,
            entries=self.entries,
            exchange=self._exchange,
            archive=self._archive,
            apply_session_retention=self._apply_session_retention,
            is_alive=process_is_alive,
            clock=self._clock,
        )

    def copy_auto_memory(self) -> int:
        """Make the copies of auto memory that are due, and return their number. They need no lock and no job."""
        projects = self.read_context.discover_stores().projects
        root = self.paths.auto_memory / "copies"
        return copies.refresh_copies(root, self.read_context.claude_home, projects, self._clock())

    @cached_property
    def _hook_events(self) -> HookEventLog:
        return HookEventLog(self._database)

    def _exchange(self, resources: JobResources, project: Path) -> JobOutcome:
        memory = repository.MemoryRepository(self.paths.memory_repository(project), self._environ)
        return job.run_exchange(project, memory, resources)

    def _archive(self, job: Job, project: Path) -> JobOutcome:
        return archive.run(self.session_services, job, project, allow_writes=self.settings.mode == "maintain")

    def _apply_session_retention(self) -> int:
        return self.session_services.apply_retention() if self.session_log.list_roots() else 0

    def _job_settings(self, project: Path) -> job_worker.JobSettings:
        return job_worker.JobSettings(
            quiet_seconds=self.settings.quiet_seconds,
            allow_writes=self.settings.mode == "maintain",
            paused=self.read_context.projects.is_paused(project),
            maintenance=self.read_context.maintenance_policy(project),
        )


@contextmanager
def open_services(
    paths: Paths, settings: Settings, environ: Mapping[str, str], clock: Callable[[], float]
) -> Iterator[Services]:
    """Open the state database, checked and rebuilt if it is damaged, and the services on top of it.

    Raises:
        StateError: the state directory or the database cannot be used.
    """
    paths.create_directories()
    checked_database = open_checked(paths.database, clock)
    with checked_database.database:
        yield Services(paths, settings, environ, clock, checked_database)
