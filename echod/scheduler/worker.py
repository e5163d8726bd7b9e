"""Run jobs one at a time, and in the daemon in a thread of their own.

The daemon and `echod run --once` use the same worker. The caller holds the worker lock. An error of a job does not
end the caller, but a lost database or lock does.

`WorkerThread` sleeps until the next job is due, and stops only between jobs. It owns no state except its own progress:
`Worker` decides what a job is and whether it may run.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Iterable
from contextlib import AbstractContextManager
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from queue import SimpleQueue
from typing import NamedTuple

from echod.clock import local_date
from echod.errors import EchodError, StateError, error_reason, isolated
from echod.jobs import consolidate
from echod.jobs.base import (
    JobBlocked,
    JobContext,
    JobDeferred,
    JobDone,
    JobFailed,
    JobOutcome,
    JobResources,
    JobStalled,
)
from echod.jobs.consolidate import ConsolidateSettings, FindingsCache
from echod.lazy import lazy_imports
from echod.log import get_logger
from echod.projects.settings import MaintenancePolicy, request_only_reason
from echod.runtime import WorkerBusyError
from echod.scheduler.needs import ProjectGate, describe_verdict
from echod.state.database import DatabaseUnavailableError
from echod.state.entries import EntryStore
from echod.state.jobs import Job, JobKind, ProcessIdentity
from echod.state.queue import JobQueue
from echod.store import layout
from echod.store.engine import Engine
from echod.store.errors import BusyError, RefusedError, StoreError, is_disk_full
from echod.store.layout import Role, Store
from echod.workflows.model import GateState, Verdict

with lazy_imports(__name__):
    import structlog

    from echod.jobs import compress, ingest, observe, promote, propose, prune

log = get_logger(__name__)

_GATE_RECHECK_SECONDS = 600.0
_BUSY_RETRY_SECONDS = 5.0
_PAUSED_RETRY_SECONDS = 3600.0
_DAY_SECONDS = 86_400.0
_JOB_RETENTION_DAYS = 30.0
"""How long `echod jobs` lists finished jobs."""


class JobSettings(NamedTuple):
    """The settings for all jobs of a project.

    Findings must be unchanged for `quiet_seconds`. `allow_writes` is false in report mode.
    """

    quiet_seconds: float
    allow_writes: bool
    paused: bool
    maintenance: MaintenancePolicy


class FinishedJob(NamedTuple):
    """A job that was run, and its outcome. `deferred_by_gate`: it waits for the project's gate."""

    job: Job
    outcome: JobOutcome
    deferred_by_gate: bool = False


class Worker:
    """Runs one job at a time."""

    def __init__(
        self,
        *,
        queue: JobQueue,
        engine: Engine,
        project_gate: ProjectGate,
        job_settings: Callable[[Path], JobSettings],
        observe_context: observe.ObserveContext,
        validator: ingest.Validator | None,
        proposer: propose.Proposer | None,
        entries: EntryStore,
        exchange: Callable[[JobResources, Path], JobOutcome],
        archive: Callable[[Job, Path], JobOutcome],
        apply_session_retention: Callable[[], int],
        is_alive: Callable[[ProcessIdentity], bool],
        clock: Callable[[], float],
    ) -> None:
        self._queue = queue
        self._engine = engine
        self._project_gate = project_gate
        self._job_settings = job_settings
        self._observe_context = observe_context
        self._validator = validator
        self._proposer = proposer
        self._entries = entries
        self._exchange = exchange
        self._archive = archive
        self._apply_session_retention = apply_session_retention
        self._is_alive = is_alive
        self._clock = clock
        self._findings_cache = FindingsCache()
        self._current_job: Job | None = None
        self._unsaved: FinishedJob | None = None

    @property
    def current_job(self) -> Job | None:
        """The running job. May be read by other threads."""
        return self._current_job

    @property
    def has_unsaved_result(self) -> bool:
        """True if a job ended while the database was unavailable. The next `run_next` records its outcome."""
        return self._unsaved is not None

    def run_next(self, stores: Collection[str] | None = None) -> FinishedJob | None:
        """Run the next due job, of `stores` only if given. Returns None if no job is due.

        Raises:
            DatabaseUnavailableError: try again in a moment. Nothing was lost.
            StateError: the database or a lock was lost. The caller must stop.
        """
        if self._unsaved is not None:
            return self._save_pending(self._unsaved)
        # A process that died during a job held the worker lock, which this process holds now.
        self._queue.recover(self._is_alive, self._clock())
        job = self._queue.claim(self._clock(), stores)
        if job is None:
            return None
        with structlog.contextvars.bound_contextvars(job=job.id, kind=job.kind.value, store=job.store, role=job.role):
            self._current_job = job
            try:
                return self._run_job(job)
            finally:
                self._current_job = None

    def merge_late_writes(self, store: Store) -> bool:
        """Merge late writes to displaced files, and restore overwritten entries. False if the gate holds that."""
        if not self._may_need_repair(store):  # the usual case; the gate is more expensive
            return True
        settings = self._job_settings(store.project)
        if settings.paused or not settings.allow_writes:
            return True
        if self._check_gate(store).state is not GateState.IDLE:
            return False
        if commits := self._engine.merge_late_writes(store):
            log.info("late_writes_merged", store=store.key, commits=len(commits))
        return True

    def apply_retention(self) -> None:
        """Delete expired jobs, data of removed entries, and blobs of the journal. To be called daily.

        Nothing is deleted by a clock that has just jumped ahead.
        """
        now = self._clock()
        if not self._queue.believes_clock(now):
            log.info("retention_postponed", reason="the clock jumped ahead")
            return
        jobs = self._queue.delete_finished(now - _JOB_RETENTION_DAYS * _DAY_SECONDS)
        self._entries.delete_stale(local_date(now))
        freed = self._engine.apply_retention() + self._apply_session_retention()
        log.info("retention_applied", jobs=jobs, journal_bytes=freed)

    def _may_need_repair(self, store: Store) -> bool:
        try:
            return self._engine.has_open_commits(store) or bool(self._engine.roles_changed_by_others(store))
        except StoreError:
            return True  # the roles with a readable journal are merged anyway

    def _check_gate(self, store: Store) -> Verdict:
        stores = layout.find_stores_in_resolved_root(store.project)
        return self._project_gate.check(store.project, stores, self._clock())

    def _run_job(self, job: Job) -> FinishedJob:
        started = self._clock()
        finished = self._run_guarded(job)
        self._unsaved = finished
        self._save_pending(finished)
        log.info("job_finished", outcome=type(finished.outcome).__name__, seconds=round(self._clock() - started, 3))
        return finished

    def _save_pending(self, finished: FinishedJob) -> FinishedJob:
        self._save(finished)
        self._unsaved = None
        return finished

    def _run_guarded(self, job: Job) -> FinishedJob:
        """Run a job, and convert its errors to outcomes, so that they do not end the service."""
        try:
            return self._run_if_allowed(job, layout.store_at(Path(job.store)))
        except (BusyError, DatabaseUnavailableError) as error:
            return FinishedJob(job, JobDeferred(str(error), self._clock() + _BUSY_RETRY_SECONDS))
        except RefusedError as error:
            return FinishedJob(job, JobBlocked(str(error)))
        except StateError:
            raise
        except EchodError as error:
            log.warning("job_failed", error=str(error), cause=repr(error.__cause__))
            return FinishedJob(job, JobStalled(str(error)) if is_disk_full(error) else JobFailed(str(error)))
        except Exception as error:
            log.exception("job_crashed")
            return FinishedJob(job, JobFailed(error_reason(error)))

    def _run_if_allowed(self, job: Job, store: Store) -> FinishedJob:
        settings = self._job_settings(store.project)
        if settings.paused:
            until = self._clock() + _PAUSED_RETRY_SECONDS
            return FinishedJob(job, JobDeferred("paused; continue with: echod resume", until))
        if job.kind in (JobKind.ARCHIVE, JobKind.CHECKPOINT):
            # Archives of conversations are no files of a store, so no workflow holds them up.
            return FinishedJob(job, self._archive(job, store.project))
        role, maintenance = Role(store, job.role), settings.maintenance
        if disabled := maintenance.disabled_reason(job.kind) or request_only_reason(job.kind, role, maintenance):
            return FinishedJob(job, JobDone(f"nothing was done: {disabled}", changed=False))
        verdict = self._check_gate(store)
        if verdict.state is not GateState.IDLE:
            return self._deferred_by_gate(job, verdict)
        closed_verdicts: list[Verdict] = []

        def gate() -> str | None:
            recheck = self._check_gate(store)
            if recheck.state is GateState.IDLE:
                return None
            closed_verdicts.append(recheck)
            return describe_verdict(recheck)

        try:
            if job.kind is JobKind.CONSOLIDATE:
                with self._engine.open_read_only(role) as session:
                    selected = ConsolidateSettings(settings.quiet_seconds)
                    consolidate.preload_findings(session, self._findings_cache, selected, self._entries, self._clock)
            resources = JobResources(
                job.id, self._engine, self._entries, maintenance.policy, gate, self._clock, settings.allow_writes
            )
            if job.kind is JobKind.SYNC:  # it locks each role that receives something
                return FinishedJob(job, self._exchange(resources, store.project))
            if job.kind is JobKind.INGEST:
                return FinishedJob(job, ingest.run_for_project(resources, store, self._validator))
            if job.kind is JobKind.PROPOSE:  # it asks the user's command before it locks the role
                return FinishedJob(job, propose.run(resources, role, self._proposer))
            with resources.open_role(role) as context:
                return FinishedJob(job, self._dispatch(job, context, settings))
        except BusyError:
            if closed_verdicts:
                return self._deferred_by_gate(job, closed_verdicts[-1])
            raise

    def _dispatch(self, job: Job, context: JobContext, settings: JobSettings) -> JobOutcome:
        match job.kind:
            case JobKind.CONSOLIDATE:
                return consolidate.run(context, ConsolidateSettings(settings.quiet_seconds), self._findings_cache)
            case JobKind.OBSERVE:
                return observe.run(context, self._observe_context)
            case JobKind.PRUNE:
                return prune.run(context)
            case JobKind.PROMOTE:
                return promote.run(context)
            case JobKind.COMPRESS:
                return compress.run(context)
            case _:
                return JobBlocked(f"only a command runs this: echod {job.kind.value}")

    def _deferred_by_gate(self, job: Job, verdict: Verdict) -> FinishedJob:
        now = self._clock()
        # The same time as `echod gate` shows. If the gate opens earlier, the daemon wakes the job.
        until = now + _GATE_RECHECK_SECONDS if verdict.until is None else verdict.until
        return FinishedJob(job, JobDeferred(describe_verdict(verdict), max(until, now + 0.1)), deferred_by_gate=True)

    def _save(self, finished: FinishedJob) -> None:
        now, job = self._clock(), finished.job
        match finished.outcome:
            case JobDone(summary):
                self._queue.finish(job, summary, now)
            case JobDeferred(reason, until):
                self._queue.defer(job, reason, until, now)
            case JobBlocked(reason):
                self._queue.give_up(job, reason, now)
            case JobStalled(error):
                self._queue.stall(job, error, now)
            case JobFailed(error):
                self._queue.fail(job, error, now)


MAX_SLEEP_SECONDS = 5.0
"""Also how often the idle thread records progress."""

DATABASE_RETRY_SECONDS = 1.0
"""The pause after the database could not be used, because another process keeps it locked or the disk is full."""


@dataclass(eq=False)
class WorkerThread:
    """The thread that runs jobs.

    Attributes:
        acquire_lock: takes the worker lock, which another process may hold for the length of a job.
        next_due: returns when the next job may run (Unix seconds, possibly in the past); None if none is queued.
        wall_clock: the clock of `next_due`.
        on_finished: called after each job, in the worker's thread.
        on_must_wait: called with a store whose gate holds the merge of late writes, in the worker's thread.
        on_fatal_error: called once with the error if the database or a lock is lost. The thread ends then.
        last_step_at: returns when the running job last made progress (monotonic seconds).
    """

    worker: Worker
    _: KW_ONLY
    acquire_lock: Callable[[], AbstractContextManager[object]]
    next_due: Callable[[], float | None]
    wall_clock: Callable[[], float]
    on_finished: Callable[[FinishedJob], None]
    on_must_wait: Callable[[Store], None]
    on_fatal_error: Callable[[EchodError], None]
    last_step_at: Callable[[], float]

    def __post_init__(self) -> None:
        self._late_merge_stores: SimpleQueue[Store] = SimpleQueue()
        self._retention_requested = threading.Event()
        self._wake = threading.Event()
        self._stop = threading.Event()
        self._last_iteration_at = time.monotonic()
        self._thread = threading.Thread(target=self._run, name="worker", daemon=True)

    @property
    def last_progress(self) -> float:
        """When the thread, or the job in it, last made progress (monotonic seconds)."""
        return max(self._last_iteration_at, self.last_step_at())

    @property
    def current_job(self) -> str:
        """The running job in words, or "" between jobs."""
        job = self.worker.current_job
        return f"{job.kind.value} {job.role} in {job.store}" if job is not None else ""

    def wake(self) -> None:
        """Check for work now instead of at the end of the sleep."""
        self._wake.set()

    def request_late_merge(self, stores: Iterable[Store]) -> None:
        """Merge late writes in these stores between two jobs."""
        for store in stores:
            self._late_merge_stores.put(store)
        self._wake.set()

    def request_retention(self) -> None:
        """Delete expired records between two jobs."""
        self._retention_requested.set()
        self._wake.set()

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self, seconds: float) -> bool:
        """Stop after the running job, which is never cut short. Return whether the thread ended within `seconds`."""
        self._stop.set()
        self._wake.set()
        if self._thread.is_alive():
            self._thread.join(seconds)
        return not self._thread.is_alive()

    def _run(self) -> None:
        try:
            while not self._stop.is_set():
                self._last_iteration_at = time.monotonic()
                self._run_iteration()
        except EchodError as error:
            self.on_fatal_error(error)

    def _run_iteration(self) -> None:
        try:
            self._run_housekeeping()
            if not self._run_one():
                self._sleep()
        except DatabaseUnavailableError as error:
            log.warning("database_unavailable", error=str(error))
            self._stop.wait(DATABASE_RETRY_SECONDS)
        except EchodError:
            raise
        except Exception:
            log.exception("worker_iteration_failed")  # the job in it, if any, is claimed again
            self._stop.wait(DATABASE_RETRY_SECONDS)

    def _run_housekeeping(self) -> None:
        stores: dict[str, Store] = {}
        while not self._late_merge_stores.empty():
            store = self._late_merge_stores.get()
            stores[store.key] = store
        if not (stores or self._retention_requested.is_set()) or self._stop.is_set():
            return
        try:
            with self.acquire_lock():
                for store in stores.values():
                    with isolated(store.key):
                        if not self.worker.merge_late_writes(store):
                            self.on_must_wait(store)
                if self._retention_requested.is_set():
                    self._retention_requested.clear()
                    with isolated("The retention"):
                        self.worker.apply_retention()
        except WorkerBusyError:
            log.info("late_writes_deferred", stores=len(stores))
            for store in stores.values():
                self.on_must_wait(store)

    def _run_one(self) -> bool:
        if not self.worker.has_unsaved_result and ((due := self.next_due()) is None or due > self.wall_clock()):
            return False
        try:
            with self.acquire_lock():
                finished = self.worker.run_next()
        except WorkerBusyError:
            return False
        if finished is not None:
            self.on_finished(finished)
        return finished is not None

    def _sleep(self) -> None:
        due = self.next_due()
        pause = MAX_SLEEP_SECONDS if due is None else min(max(due - self.wall_clock(), 0.05), MAX_SLEEP_SECONDS)
        self._wake.wait(pause)
        self._wake.clear()
