"""Do the next job: claim it, ask the gate, run it, write down how it ended. The same for the daemon and `run --once`.

Whoever calls holds the worker lock. A job's error never ends the caller; a lost database or lock does.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from pathlib import Path
from typing import NamedTuple

import structlog

from echod.clock import local_day
from echod.errors import EchodError, StateError
from echod.jobs import compress, consolidate, observe, promote, prune
from echod.jobs.base import Blocked, Deferred, Done, Failed, Outcome
from echod.jobs.consolidate import Reading
from echod.log import get_logger
from echod.projects.maintenance import Care, only_on_request
from echod.scheduler.gate import Gatekeeper, in_words
from echod.state.entries import EntryLog
from echod.state.errors import DatabaseUnavailableError
from echod.state.job import Job, JobKind, ProcessIdentity
from echod.state.queue import JobQueue
from echod.store import layout
from echod.store.changes import Gate
from echod.store.engine import Engine
from echod.store.errors import Busy, Refused, StoreFault
from echod.store.layout import Role, Store
from echod.store.session import RoleSession
from echod.workflows.model import GateState, Verdict

log = get_logger(__name__)

_ASK_AGAIN_SECONDS = 600.0
_BUSY_SECONDS = 5.0
_PAUSED_SECONDS = 3600.0
_DAY = 86_400.0
_JOB_DAYS = 30.0
"""How long `echod jobs` remembers what was done."""


class Terms(NamedTuple):
    """What holds for every job of a project."""

    quiet_seconds: float
    writes: bool
    paused: bool
    care: Care


class Finished(NamedTuple):
    """A job that was run, and how that ended; `held_by_gate` if it waits for the project's gate."""

    job: Job
    outcome: Outcome
    held_by_gate: bool = False


class Worker:
    """Runs one job at a time."""

    def __init__(
        self,
        *,
        queue: JobQueue,
        engine: Engine,
        gatekeeper: Gatekeeper,
        terms: Callable[[Path], Terms],
        hooks: observe.Desk,
        entries: EntryLog,
        still_runs: Callable[[ProcessIdentity], bool],
        clock: Callable[[], float],
    ) -> None:
        self._queue = queue
        self._engine = engine
        self._gatekeeper = gatekeeper
        self._terms = terms
        self._hooks = hooks
        self._entries = entries
        self._still_runs = still_runs
        self._clock = clock
        self._reading = Reading()
        self._doing: Job | None = None
        self._unwritten: Finished | None = None

    @property
    def doing(self) -> Job | None:
        """The job that runs just now; may be asked from other threads."""
        return self._doing

    @property
    def owes_a_row(self) -> bool:
        """Whether a job ended while the database could not be used; the next `turn` writes it down."""
        return self._unwritten is not None

    def turn(self, stores: Collection[str] | None = None) -> Finished | None:
        """Run the next due job, of `stores` only if given. None: nothing is due.

        Raises:
            DatabaseUnavailableError: try again in a moment; nothing is lost by it.
            StateError: the database or a lock was lost; whoever runs must stop.
        """
        if self._unwritten is not None:
            return self._written(self._unwritten)
        # Whoever died with a job in hand held the worker lock, which is ours now.
        self._queue.recover(self._still_runs, self._clock())
        job = self._queue.claim(self._clock(), stores)
        if job is None:
            return None
        with structlog.contextvars.bound_contextvars(job=job.id, kind=job.kind.value, store=job.store, role=job.role):
            self._doing = job
            try:
                return self._run(job)
            finally:
                self._doing = None

    def settle(self, store: Store) -> bool:
        """Merge what other programs wrote into files that were replaced under them; False if the store must wait."""
        if not self._may_owe(store):  # nearly always; the gate is the dearer question
            return True
        terms = self._terms(store.project)
        if terms.paused or not terms.writes:
            return False
        if self._verdict(store).state is not GateState.IDLE:
            return False
        if made := self._engine.settle_debts(store):
            log.info("late_bytes_merged", store=store.key, commits=len(made))
        return True

    def tidy(self) -> None:
        """Forget what is beyond its time: jobs, entries long gone, and the journal's images. To be called daily."""
        now = self._clock()
        jobs = self._queue.delete_finished(now - _JOB_DAYS * _DAY)
        self._entries.tidy(local_day(now))
        freed = self._engine.retain()
        log.info("tidied", jobs=jobs, journal_bytes=freed)

    def _may_owe(self, store: Store) -> bool:
        try:
            return self._engine.owes(store)
        except StoreFault:
            return True  # the roles whose journal can tell are settled all the same

    def _verdict(self, store: Store) -> Verdict:
        return self._gatekeeper.ask(store.project, layout.stores_below(store.project), self._clock())

    def _run(self, job: Job) -> Finished:
        started = self._clock()
        finished = self._contained(job, layout.store_at(Path(job.store)))
        self._unwritten = finished
        self._written(finished)
        log.info("job_ended", outcome=type(finished.outcome).__name__, seconds=round(self._clock() - started, 3))
        return finished

    def _written(self, finished: Finished) -> Finished:
        self._note(finished)
        self._unwritten = None
        return finished

    def _contained(self, job: Job, store: Store) -> Finished:
        """The boundary of a job: whatever goes wrong inside becomes its outcome and does not end the service."""
        try:
            return self._attempt(job, store)
        except Busy as error:
            return Finished(job, Deferred(str(error), self._clock() + _BUSY_SECONDS))
        except Refused as error:
            return Finished(job, Blocked(str(error)))
        except DatabaseUnavailableError as error:
            return Finished(job, Deferred(str(error), self._clock() + _BUSY_SECONDS))
        except StateError:
            raise
        except EchodError as error:
            log.warning("job_failed", error=str(error), cause=repr(error.__cause__))
            return Finished(job, Failed(str(error)))
        except Exception as error:
            log.exception("job_crashed")
            return Finished(job, Failed(f"an unexpected {type(error).__name__}; the log has the report"))

    def _attempt(self, job: Job, store: Store) -> Finished:
        terms = self._terms(store.project)
        if terms.paused:
            return Finished(job, Deferred("paused; `echod resume` lets it go on", self._clock() + _PAUSED_SECONDS))
        role = Role(store, job.role)
        if unwanted := terms.care.opted_out(job.kind) or only_on_request(job.kind, role, terms.care):
            return Finished(job, Done(f"nothing was done: {unwanted}", changed=False))
        verdict = self._verdict(store)
        if verdict.state is not GateState.IDLE:
            return self._held(job, verdict)
        closed: list[Verdict] = []

        def gate() -> str | None:
            again = self._verdict(store)
            if again.state is GateState.IDLE:
                return None
            closed.append(again)
            return in_words(again)

        try:
            if job.kind is JobKind.CONSOLIDATE:
                with self._engine.only_look(role) as session:
                    consolidate.read_ahead(session, self._reading, _rules(terms), self._clock)
            with self._engine.open_role(role) as session:
                return Finished(job, self._outcome(job, session, terms, gate))
        except Busy:
            if closed:
                return self._held(job, closed[-1])
            raise

    def _outcome(self, job: Job, session: RoleSession, terms: Terms, gate: Gate) -> Outcome:
        entries, policy, clock, writes = self._entries, terms.care.policy, self._clock, terms.writes
        match job.kind:
            case JobKind.CONSOLIDATE:
                return consolidate.run(job.id, session, entries, _rules(terms), self._reading, gate, clock)
            case JobKind.OBSERVE:
                return observe.run(job.id, session, self._hooks, gate, clock, writes=writes)
            case JobKind.PRUNE:
                return prune.run(job.id, session, entries, policy, gate, clock, writes=writes)
            case JobKind.PROMOTE:
                return promote.run(job.id, session, entries, policy, gate, clock, writes=writes)
            case JobKind.COMPRESS:
                return compress.run(job.id, session, entries, policy, gate, clock, writes=writes)
            case _:
                return Blocked(f"only a person does this: echod {job.kind.value}")

    def _held(self, job: Job, verdict: Verdict) -> Finished:
        now = self._clock()
        until = min(verdict.until or now + _ASK_AGAIN_SECONDS, now + _ASK_AGAIN_SECONDS)
        return Finished(job, Deferred(in_words(verdict), max(until, now + 0.1)), held_by_gate=True)

    def _note(self, finished: Finished) -> None:
        now, job = self._clock(), finished.job
        match finished.outcome:
            case Done(summary):
                self._queue.finish(job, summary, now)
            case Deferred(reason, until):
                self._queue.defer(job, reason, until, now)
            case Blocked(reason):
                self._queue.give_up(job, reason, now)
            case Failed(error):
                self._queue.fail(job, error, now)


def _rules(terms: Terms) -> consolidate.Terms:
    return consolidate.Terms(quiet_seconds=terms.quiet_seconds, writes=terms.writes)
