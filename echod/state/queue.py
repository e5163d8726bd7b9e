"""The job queue: every transition of a job (`echod.state.jobs` has the state machine), each in one transaction.

The process that runs jobs holds the worker lock, but this module does not depend on it. It does not know what a job
does, nor why one must wait.
"""

from __future__ import annotations

import json
import random
import sqlite3
from collections.abc import Callable, Collection
from typing import Final

from echod.errors import StateError, UsageError
from echod.state import jobs
from echod.state.database import Database
from echod.state.jobs import DEFAULT_BACKOFF, MANUAL_KINDS, Backoff, Job, JobKind, JobState, Need, ProcessIdentity

_MAX_CLOCK_GAP: Final = 2 * 86_400.0
_MIN_CONFIRMATION: Final = 20 * 3600.0

MAX_DEFERRAL_SECONDS: Final = 24 * 3600.0
"""The longest wait for the user or a workflow. A longer deferral, or a pause above the back-off's cap, was computed
while the clock was wrong. The next `put` shortens it."""

STALLED_RETRY_SECONDS: Final = 60.0
"""The longest pause of a job that only waits for a cause outside of it to end."""

_DELETE_BATCH_SIZE: Final = 500


class JobNotOwnedError(StateError):
    """Another process changed a job that this process runs."""


class JobQueue:
    """The jobs of all stores. All times are arguments, in Unix seconds.

    `finish`, `fail`, `stall`, `give_up`, `refuse` and `defer` raise `JobNotOwnedError` if this process does not run
    the job.
    """

    def __init__(
        self,
        database: Database,
        *,
        worker: ProcessIdentity,
        rng: random.Random,
        max_attempts: int = 5,
        backoff: Backoff = DEFAULT_BACKOFF,
    ) -> None:
        """Use the queue as process `worker`. `rng` gives the jitter; a job is dead after `max_attempts` failed runs."""
        self._database = database
        self._worker = worker
        self._rng = rng
        self._max_attempts = max_attempts
        self._backoff = backoff

    def has_assigned_ids(self) -> bool:
        """Return whether this database ever numbered a job. A new or rebuilt one has not."""
        with self._database.read_transaction() as connection:
            return connection.execute("SELECT 1 FROM sqlite_sequence WHERE name = 'job'").fetchone() is not None

    def reserve_ids(self, last_id: int) -> None:
        """Never assign a number up to `last_id`: commits of jobs unknown to this database carry them."""
        with self._database.write_transaction() as connection:
            connection.execute(
                "INSERT INTO sqlite_sequence (name, seq) SELECT 'job', :last "
                "WHERE NOT EXISTS (SELECT 1 FROM sqlite_sequence WHERE name = 'job')",
                {"last": last_id},
            )
            connection.execute("UPDATE sqlite_sequence SET seq = max(seq, ?) WHERE name = 'job'", (last_id,))

    # The needs of a store

    def put(self, need: Need, now: float) -> int | None:
        """Queue a need of a store. A pending job of the same kind, store and role takes over the new cause.

        Returns the number of the job that handles the need; None if its input was already processed or given up, or is
        being processed now.
        """
        with self._database.write_transaction() as connection:
            waiting = jobs.find_pending(connection, need)
            if jobs.is_input_done(connection, need):
                if waiting:
                    _close(connection, waiting, "its input was already processed", now)
                return None
            if waiting:
                jobs.save(connection, waiting, self._refreshed(waiting, need, now))
                return waiting.id
            active = jobs.find_running(connection, need)
            if active and active.fingerprint == need.fingerprint:
                return None
            return jobs.insert(connection, need, now)

    def put_forced(self, need: Need, now: float) -> int:
        """Queue a need that the user requested, even if its input was already processed or given up."""
        with self._database.write_transaction() as connection:
            jobs.clear_input(connection, need)
            if waiting := jobs.find_pending(connection, need):
                forced = _with_need(waiting, need)._replace(state=JobState.QUEUED, attempts=0, result="")
                jobs.save(connection, waiting, _delayed(forced, now))
                return waiting.id
            active = jobs.find_running(connection, need)
            if active and active.fingerprint == need.fingerprint:
                return active.id
            return jobs.insert(connection, need, now)

    def withdraw(
        self, store: str, now: float, reason: str, keep: Collection[tuple[JobKind, str]] = ()
    ) -> tuple[int, ...]:
        """Close the pending and dead jobs of a store, and return their numbers. `reason` becomes their result.

        `keep` has (kind, role) of the jobs that are still needed. Must not be called after an incomplete look at the
        store: unreadable is not empty.
        """
        with self._database.write_transaction() as connection:
            rows = connection.execute(
                "SELECT * FROM job WHERE store = ? AND state IN ('queued', 'deferred', 'dead')", (store,)
            ).fetchall()
            found = [job for job in map(jobs.job_from_row, rows) if job.kind not in MANUAL_KINDS]
            closed = [job for job in found if (job.kind, job.role) not in keep]
            for job in closed:
                _close(connection, job, reason, now)
            return tuple(job.id for job in closed)

    def retry(self, job_id: int, now: float) -> int:
        """Make a dead or paused job due at once, as if it had never failed.

        Returns the number of the job that runs; another one if a successor is pending.

        Raises:
            UsageError: there is no such job, it cannot be retried in its state, or it was a manual job.
        """
        with self._database.write_transaction() as connection:
            job = jobs.find_by_id(connection, job_id)
            if job is None:
                raise UsageError(f"There is no job {job_id}. `echod jobs` lists the jobs.")
            if job.kind in MANUAL_KINDS:
                raise UsageError(f"Job {job_id} was a command. Repeat it: echod {job.kind.value}.")
            if job.state is JobState.DEAD and (waiting := jobs.find_pending(connection, job)):
                jobs.save(connection, waiting, _delayed(waiting._replace(attempts=0), now))
                return waiting.id
            if job.state not in (JobState.DEAD, JobState.QUEUED):
                raise UsageError(f"Job {job_id} is {job.state.value}. Only dead and queued jobs can be retried.")
            jobs.clear_input(connection, job)
            again = job._replace(state=JobState.QUEUED, attempts=0, finished_at=None, result="")
            jobs.save(connection, job, _delayed(again, now))
            return job_id

    # Running a job

    def claim(self, now: float, stores: Collection[str] | None = None) -> Job | None:
        """Start the next due job, of `stores` only if given. None if no job is due, or this process already runs one.

        The store whose last turn is longest ago comes first; within it, the job that has been due longest.
        """
        with self._database.write_transaction() as connection:
            if self._has_running_job(connection):
                return None
            row = connection.execute(
                """
                SELECT job.* FROM job LEFT JOIN store_turn USING (store)
                WHERE job.state IN ('queued', 'deferred') AND job.due <= :now
                  AND (:stores IS NULL OR job.store IN (SELECT value FROM json_each(:stores)))
                  AND NOT EXISTS (
                    SELECT 1 FROM job AS other WHERE other.state = 'running'
                      AND other.kind = job.kind AND other.store = job.store AND other.role = job.role
                  )
                ORDER BY coalesce(store_turn.turn, 0), job.due, job.id LIMIT 1
                """,
                {"now": now, "stores": None if stores is None else json.dumps(sorted(stores))},
            ).fetchone()
            if row is None:
                return None
            job = jobs.job_from_row(row)
            claimed = job._replace(state=JobState.RUNNING, attempts=job.attempts + 1, worker=self._worker)
            claimed = claimed._replace(started_at=now, finished_at=None, result="")
            jobs.save(connection, job, claimed)
            connection.execute(
                "INSERT INTO store_turn (store, turn) SELECT ?, coalesce(max(turn), 0) + 1 FROM store_turn WHERE true "
                "ON CONFLICT (store) DO UPDATE SET turn = excluded.turn",
                (job.store,),
            )
            return claimed

    def start_manual(self, need: Need, now: float) -> Job:
        """Start a manual job: it gets its number and is running.

        It ends by `finish`, `refuse` or `give_up`. A pending job of the same key stays pending. The caller holds the
        worker lock and has called `recover`.

        Raises:
            StateError: this process already runs a job, or another one runs a job of the same key.
        """
        with self._database.write_transaction() as connection:
            if self._has_running_job(connection) or jobs.find_running(connection, need):
                raise StateError("Another job is running. Try again in a moment.")
            number = jobs.insert(connection, need, now, self._worker)
            started = jobs.find_by_id(connection, number)
            assert started is not None  # noqa: S101  it was just inserted
            return started

    def finish(self, job: Job, result: str, now: float) -> None:
        """Mark the job as done, with `result` as the description. The same input is not queued again."""
        with self._database.write_transaction() as connection:
            owned = self._require_owned(connection, job)
            self._end_job(connection, owned, owned._replace(state=JobState.DONE, finished_at=now, result=result))
            connection.execute(
                "INSERT INTO job_kind_record (kind, last_success) VALUES (?, ?) "
                "ON CONFLICT (kind) DO UPDATE SET last_success = excluded.last_success",
                (owned.kind.value, now),
            )

    def fail(self, job: Job, error: str, now: float) -> Job:
        """Mark the job as failed, with `error` as the sentence. It is retried until `max_attempts` runs have failed.

        Returns the job as it is now: paused, dead, or merged into a successor.
        """
        with self._database.write_transaction() as connection:
            owned = self._require_owned(connection, job)
            _record_failure(connection, owned.kind, error, now)
            if owned.attempts >= self._max_attempts:
                dead = owned._replace(state=JobState.DEAD, finished_at=now, result=error)
                return self._end_job(connection, owned, dead)
            waiting = jobs.find_pending(connection, owned)
            # A changed input is tried early, but not at every change.
            failures = owned.attempts if waiting is None or waiting.fingerprint == owned.fingerprint else 1
            until = now + self._backoff.pause(failures, self._rng)
            requeued = owned._replace(state=JobState.QUEUED, result=error)
            return _requeue(connection, owned, _delayed(requeued, until), now)

    def stall(self, job: Job, error: str, now: float) -> Job:
        """Mark the job as failed for a cause outside of it, such as a full disk. It is retried until that is gone.

        Returns the job as it is now: paused, or merged into a successor.
        """
        with self._database.write_transaction() as connection:
            owned = self._require_owned(connection, job)
            attempts = max(1, min(owned.attempts, self._max_attempts - 1))
            requeued = owned._replace(state=JobState.QUEUED, attempts=attempts, result=error)
            until = now + min(self._backoff.pause(attempts, self._rng), STALLED_RETRY_SECONDS)
            return _requeue(connection, owned, _delayed(requeued, until), now)

    def give_up(self, job: Job, reason: str, now: float) -> Job:
        """Mark the job as dead at once, and return it. Only a change of its input revives it."""
        with self._database.write_transaction() as connection:
            owned = self._require_owned(connection, job)
            _record_failure(connection, owned.kind, reason, now)
            return self._end_job(connection, owned, owned._replace(state=JobState.DEAD, finished_at=now, result=reason))

    def refuse(self, job: Job, reason: str, now: float) -> Job:
        """Mark a manual job as refused: nothing was changed, because of `reason`. Neither a success nor a failure."""
        with self._database.write_transaction() as connection:
            owned = self._require_owned(connection, job)
            refused = owned._replace(state=JobState.REFUSED, finished_at=now, result=reason, worker=None)
            jobs.save(connection, owned, refused)
            return refused

    def defer(self, job: Job, reason: str, until: float, now: float) -> Job:
        """Let the job wait until `until`, with `reason` as the sentence. The run does not count as an attempt.

        Returns the job as it is now: deferred, or merged into a successor.
        """
        with self._database.write_transaction() as connection:
            owned = self._require_owned(connection, job)
            requeued = owned._replace(state=JobState.DEFERRED, attempts=owned.attempts - 1, result=reason)
            return _requeue(connection, owned, _delayed(requeued, until), now)

    def wake_deferred(self, store: str, now: float) -> int:
        """Let the deferred jobs of a store run as soon as their input is ready. Returns their number."""
        with self._database.write_transaction() as connection:
            rows = connection.execute("SELECT * FROM job WHERE state = 'deferred' AND store = ?", (store,)).fetchall()
            for job in map(jobs.job_from_row, rows):
                jobs.save(connection, job, _delayed(job._replace(state=JobState.QUEUED, result=""), now))
            return len(rows)

    # Maintenance

    def recover(self, is_alive: Callable[[ProcessIdentity], bool], now: float) -> tuple[Job, ...]:
        """Requeue the jobs whose process died while they ran, and return them. The run counts as an attempt.

        Must be called at start, and whenever the worker lock was acquired, since another process may have died.
        `is_alive` must return True if it is unknown.
        """
        with self._database.read_transaction() as connection:
            rows = connection.execute("SELECT * FROM job WHERE state = 'running'").fetchall()
        running = map(jobs.job_from_row, rows)
        orphaned = [job for job in running if job.worker not in (None, self._worker) and not is_alive(job.worker)]
        return tuple(job for recorded in orphaned if (job := self._recover_job(recorded, now)))

    def believes_clock(self, now: float) -> bool:
        """Return whether old data may be deleted by this reading of the clock (Unix seconds). To be asked daily.

        A jump ahead of more than two days is believed when the clock still goes on from there most of a day later. So
        a clock that is wrong for some hours deletes nothing.
        """
        with self._database.write_transaction() as connection:
            row = connection.execute("SELECT believed, doubted FROM clock_reading").fetchone()
            doubted = None if row is None else row["doubted"]
            jumped = row is not None and now - row["believed"] > _MAX_CLOCK_GAP
            confirmed = doubted is not None and _MIN_CONFIRMATION <= now - doubted <= _MAX_CLOCK_GAP
            believed = now if not jumped or confirmed else row["believed"]
            if believed == now:
                doubted = None
            elif doubted is None or not 0 <= now - doubted <= _MAX_CLOCK_GAP:
                doubted = now
            connection.execute("INSERT OR REPLACE INTO clock_reading VALUES (1, ?, ?)", (believed, doubted))
        return bool(believed == now)

    def delete_finished(self, before: float) -> int:
        """Delete the done and refused jobs that finished before that time, and return their number.

        Dead jobs stay until the user handles them, except for manual jobs, which reported their failure.
        """
        total = 0
        while True:
            with self._database.write_transaction() as connection:
                deleted = connection.execute(
                    """
                    DELETE FROM job WHERE id IN (
                      SELECT id FROM job WHERE state IN ('done', 'refused') AND finished_at < :before
                      UNION ALL
                      SELECT id FROM job WHERE state = 'dead' AND finished_at < :before
                        AND kind IN (SELECT value FROM json_each(:manual))
                      LIMIT :limit
                    )
                    """,
                    {"before": before, "manual": json.dumps(sorted(MANUAL_KINDS)), "limit": _DELETE_BATCH_SIZE},
                ).rowcount
            total += deleted
            if deleted < _DELETE_BATCH_SIZE:
                break
        if total:
            self._database.vacuum()
        return total

    # Within a transaction

    def _has_running_job(self, connection: sqlite3.Connection) -> bool:
        select = "SELECT 1 FROM job WHERE state = 'running' AND worker_pid = ? AND worker_started = ?"
        return connection.execute(select, self._worker).fetchone() is not None

    def _require_owned(self, connection: sqlite3.Connection, job: Job) -> Job:
        owned = jobs.find_by_id(connection, job.id)
        if owned is None or owned.state is not JobState.RUNNING or owned.worker != self._worker:
            state = "deleted" if owned is None else owned.state.value
            raise JobNotOwnedError(f"Job {job.id} is no longer run by this process ({state}). Start echod again.")
        return owned

    def _refreshed(self, waiting: Job, need: Need, now: float) -> Job:
        """Return a pending job with a newer cause. Its pause or deferral is kept, up to a limit."""
        if waiting.state is JobState.DEFERRED:
            longest = MAX_DEFERRAL_SECONDS
        elif waiting.fingerprint == need.fingerprint:
            longest = self._backoff.cap_seconds
        else:
            # A changed input is tried early after failures, but not at every change.
            longest = self._backoff.base_seconds
        return _delayed(_with_need(waiting, need), min(waiting.not_before, now + longest))

    def _end_job(self, connection: sqlite3.Connection, owned: Job, ended: Job) -> Job:
        """Save the end of a running job, record its input, and merge an older dead job of its key into it."""
        ended = ended._replace(worker=None)
        if older := jobs.find_dead(connection, owned):
            _merge_into(connection, older, owned.id, ended.finished_at or 0.0)
        jobs.save(connection, owned, ended)
        waiting = jobs.find_pending(connection, owned)
        if waiting and waiting.fingerprint == owned.fingerprint and ended.state is JobState.DEAD:
            _merge_into(connection, waiting, owned.id, ended.finished_at or 0.0)
        if waiting is None or waiting.fingerprint != owned.fingerprint or ended.state is JobState.DEAD:
            jobs.mark_input_done(connection, owned)
        return ended

    def _recover_job(self, recorded: Job, now: float) -> Job | None:
        with self._database.write_transaction() as connection:
            owned = jobs.find_by_id(connection, recorded.id)
            if owned is None or owned.state is not JobState.RUNNING or owned.worker != recorded.worker:
                return None
            error = f"The process that ran it (pid {owned.worker.pid if owned.worker else 0}) ended too early."
            _record_failure(connection, owned.kind, error, now)
            if owned.kind in MANUAL_KINDS or owned.attempts >= self._max_attempts:
                dead = owned._replace(state=JobState.DEAD, finished_at=now, result=error)
                return self._end_job(connection, owned, dead)
            # A single death is usually a power cut or a kill, which should not delay the job.
            until = now + self._backoff.pause(owned.attempts - 1, self._rng)
            requeued = _delayed(owned._replace(state=JobState.QUEUED, result=error), until)
            if waiting := jobs.find_pending(connection, owned):
                jobs.save(connection, waiting, waiting._replace(attempts=max(waiting.attempts, owned.attempts)))
            return _requeue(connection, owned, requeued, now)


def _requeue(connection: sqlite3.Connection, owned: Job, requeued: Job, now: float) -> Job:
    """Return a running job to the queue: as itself, or merged into the successor that was queued while it ran."""
    waiting = jobs.find_pending(connection, owned)
    if waiting is None:
        requeued = requeued._replace(worker=None)
        jobs.save(connection, owned, requeued)
        return requeued
    same = waiting.fingerprint == owned.fingerprint
    attempts = max(waiting.attempts, requeued.attempts) if same else waiting.attempts
    successor = waiting._replace(state=requeued.state, attempts=attempts, result=requeued.result)
    jobs.save(connection, waiting, _delayed(successor, requeued.not_before))
    return _merge_into(connection, owned, waiting.id, now)


def _merge_into(connection: sqlite3.Connection, job: Job, successor_id: int, now: float) -> Job:
    return _close(connection, job, f"merged into job {successor_id}", now, successor_id)


def _close(connection: sqlite3.Connection, job: Job, reason: str, now: float, successor_id: int | None = None) -> Job:
    closed = job._replace(state=JobState.DONE, finished_at=now, result=reason, merged_into=successor_id, worker=None)
    jobs.save(connection, job, closed)
    return closed


def _with_need(waiting: Job, need: Need) -> Job:
    """Return the pending job with the reason, the input and the ready time of the newest look at the disk."""
    same = waiting.fingerprint == need.fingerprint
    due, attempts = max(need.due, waiting.not_before), waiting.attempts if same else 0
    return waiting._replace(
        reason=need.reason, fingerprint=need.fingerprint, attempts=attempts, ready_at=need.due, due=due
    )


def _delayed(job: Job, until: float) -> Job:
    """Return the job with another end of its pause or deferral (Unix seconds)."""
    return job._replace(not_before=until, due=max(job.ready_at, until))


def _record_failure(connection: sqlite3.Connection, kind: JobKind, error: str, now: float) -> None:
    connection.execute(
        "INSERT INTO job_kind_record (kind, last_failure, last_error) VALUES (?, ?, ?) "
        "ON CONFLICT (kind) DO UPDATE SET last_failure = excluded.last_failure, last_error = excluded.last_error",
        (kind.value, now, error),
    )
