"""Run the next job: claim it, check the gate, run it, and record its outcome.

The daemon and `echod run --once` use the same worker. The caller holds the worker lock. An error of a job does not
end the caller, but a lost database or lock does.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from pathlib import Path
from typing import NamedTuple

from echod.clock import local_date
from echod.errors import EchodError, StateError, error_reason
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

    from echod.jobs import archive, compress, ingest, observe, promote, propose, prune

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
        session_services: archive.SessionServices,
        validator: ingest.Validator | None,
        proposer: propose.Proposer | None,
        entries: EntryStore,
        exchange: Callable[[JobResources, Path], JobOutcome],
        is_alive: Callable[[ProcessIdentity], bool],
        clock: Callable[[], float],
    ) -> None:
        self._queue = queue
        self._engine = engine
        self._project_gate = project_gate
        self._job_settings = job_settings
        self._observe_context = observe_context
        self._session_services = session_services
        self._validator = validator
        self._proposer = proposer
        self._entries = entries
        self._exchange = exchange
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
        freed = self._engine.apply_retention() + self._session_services.apply_retention()
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
            outcome = archive.run(self._session_services, job, store.project, allow_writes=settings.allow_writes)
            return FinishedJob(job, outcome)
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
