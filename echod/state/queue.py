"""The queue: every move a job can make (the picture is in `echod.state.job`), each one transaction on the disk.

Whoever runs jobs holds the worker lock; this module does not rely on it. It knows nothing of what a job does, nor why
one must wait.

How long a failing job rests before it is tried again.

The memo of inputs: which one was last dealt with, done or given up, for each kind, store and role.

Every function runs inside the caller's transaction. One row a key, so the memo cannot grow with time.
"""

from __future__ import annotations

import json
import random
import sqlite3
from collections.abc import Callable, Collection
from dataclasses import replace
from typing import Final, NamedTuple

from echod.errors import StateError, UsageError
from echod.state import job_rows
from echod.state.database import Database
from echod.state.job import MANUAL_KINDS, Job, JobKind, JobState, Need, ProcessIdentity


class Backoff(NamedTuple):
    """Growing pauses with jitter, so that jobs that failed together do not come back together.

    Attributes:
        base_seconds: the pause after the first failure.
        factor: what each further failure multiplies it by.
        cap_seconds: no pause is longer.
    """

    base_seconds: float = 30.0
    factor: float = 4.0
    cap_seconds: float = 3600.0

    def pause(self, failures: int, rng: random.Random) -> float:
        """Seconds to rest after so many failures: between a half and the whole of the nominal pause; 0 after none."""
        if failures < 1:
            return 0.0
        # The exponent is bounded: a large one would overflow, and the cap is reached long before.
        nominal = min(self.cap_seconds, self.base_seconds * self.factor ** min(failures - 1, 64))
        return nominal * rng.uniform(0.5, 1.0)


def is_input_done(connection: sqlite3.Connection, need: Need) -> bool:
    """Whether this very input was the last one dealt with."""
    found = connection.execute(
        "SELECT 1 FROM settled WHERE kind = ? AND store = ? AND role = ? AND fingerprint = ?",
        (need.kind.value, need.store, need.role, need.fingerprint),
    )
    return found.fetchone() is not None


def mark_input_done(connection: sqlite3.Connection, job: Job) -> None:
    """The input of the job was dealt with."""
    connection.execute(
        "INSERT INTO settled (kind, store, role, fingerprint) VALUES (?, ?, ?, ?) "
        "ON CONFLICT (kind, store, role) DO UPDATE SET fingerprint = excluded.fingerprint",
        (job.kind.value, job.store, job.role, job.fingerprint),
    )


def clear_input(connection: sqlite3.Connection, target: Need | Job) -> None:
    """Whatever was dealt with for this kind, store and role may be tried again."""
    connection.execute(
        "DELETE FROM settled WHERE kind = ? AND store = ? AND role = ?", (target.kind.value, target.store, target.role)
    )


MAX_DEFERRAL_SECONDS: Final = 24 * 3600.0
"""No job waits longer for a person or a workflow. A deferral, or a pause beyond the back-off's cap, that would last
longer was computed while the clock was wrong; the next `put` cuts it short."""

DEFAULT_BACKOFF: Final = Backoff()
_DELETE_BATCH_SIZE: Final = 500


class JobNotOwnedError(StateError):
    """Someone moved a job that this process believed to be running: two workers think they own it."""


class JobQueue:
    """The jobs of all stores. All times are Unix seconds, passed in."""

    def __init__(
        self,
        database: Database,
        *,
        worker: ProcessIdentity,
        rng: random.Random,
        max_attempts: int = 5,
        backoff: Backoff = DEFAULT_BACKOFF,
    ) -> None:
        """`worker` is this process; `rng` gives the jitter; after `max_attempts` runs a failing job is dead."""
        self._database = database
        self._worker = worker
        self._rng = rng
        self._max_attempts = max_attempts
        self._backoff = backoff

    def has_assigned_ids(self) -> bool:
        """Whether this database ever gave a job its number; a new or rebuilt one has not."""
        with self._database.read_transaction() as connection:
            return connection.execute("SELECT 1 FROM sqlite_sequence WHERE name = 'job'").fetchone() is not None

    def reserve_ids(self, last_id: int) -> None:
        """Give no number up to `last_entry_id` again: commits of jobs that this database does not know carry them."""
        with self._database.write_transaction() as connection:
            connection.execute(
                "INSERT INTO sqlite_sequence (name, seq) SELECT 'job', :last "
                "WHERE NOT EXISTS (SELECT 1 FROM sqlite_sequence WHERE name = 'job')",
                {"last": last_id},
            )
            connection.execute("UPDATE sqlite_sequence SET seq = max(seq, ?) WHERE name = 'job'", (last_id,))

    # What a store calls for

    def put(self, need: Need, now: float) -> int | None:
        """Queue what a store calls for; returns the number of the job that will see to it.

        A job that already waits for the same kind, store and role takes on the newer cause. None: there is nothing to
        queue, since this input was already done, or given up, or is being done now.
        """
        with self._database.write_transaction() as connection:
            waiting = job_rows.find_pending(connection, need)
            if is_input_done(connection, need):
                if waiting:
                    _close(connection, waiting, "its input is again one that was dealt with before", now)
                return None
            if waiting:
                job_rows.save(connection, waiting, self._refreshed(waiting, need, now))
                return waiting.id
            active = job_rows.find_running(connection, need)
            if active and active.fingerprint == need.fingerprint:
                return None
            return job_rows.insert(connection, need, now)

    def put_forced(self, need: Need, now: float) -> int:
        """Queue what a person asks for, even if this very input was done or given up before."""
        with self._database.write_transaction() as connection:
            clear_input(connection, need)
            if waiting := job_rows.find_pending(connection, need):
                forced = replace(_with_need(waiting, need), state=JobState.QUEUED, attempts=0, result="")
                job_rows.save(connection, waiting, _delayed(forced, now))
                return waiting.id
            active = job_rows.find_running(connection, need)
            if active and active.fingerprint == need.fingerprint:
                return active.id
            return job_rows.insert(connection, need, now)

    def withdraw(
        self, store: str, now: float, reason: str, keep: Collection[tuple[JobKind, str]] = ()
    ) -> tuple[int, ...]:
        """Close the pending and dead jobs of a store that nothing calls for any more, except those to `keep`.

        `keep` holds (kind, role) pairs; `reason` is the sentence they get. Returns their numbers. Not to be called for
        what could not be looked at: unreadable is not empty.
        """
        with self._database.write_transaction() as connection:
            found = connection.execute(
                "SELECT * FROM job WHERE store = ? AND state IN ('queued', 'deferred', 'dead')", (store,)
            ).fetchall()
            called_for = [job for job in map(job_rows.job_from_row, found) if job.kind not in MANUAL_KINDS]
            closed = [job for job in called_for if (job.kind, job.role) not in keep]
            for job in closed:
                _close(connection, job, reason, now)
            return tuple(job.id for job in closed)

    def retry(self, job_id: int, now: float) -> int:
        """Try a dead or resting job again at once, as if it had never failed; returns the number that goes on.

        Raises:
            UsageError: there is no such job, it is in no state to be retried, or a person's command did it.
        """
        with self._database.write_transaction() as connection:
            job = job_rows.find_by_id(connection, job_id)
            if job is None:
                raise UsageError(f"There is no job {job_id}; `echod jobs` lists them.")
            if job.kind in MANUAL_KINDS:
                raise UsageError(f"Job {job_id} was a command; give it again: echod {job.kind.value}.")
            if job.state is JobState.DEAD and (waiting := job_rows.find_pending(connection, job)):
                job_rows.save(connection, waiting, _delayed(replace(waiting, attempts=0), now))
                return waiting.id
            if job.state not in (JobState.DEAD, JobState.QUEUED):
                raise UsageError(f"Job {job_id} is {job.state.value}; only dead and queued jobs can be retried.")
            clear_input(connection, job)
            again = replace(job, state=JobState.QUEUED, attempts=0, finished_at=None, result="")
            job_rows.save(connection, job, _delayed(again, now))
            return job_id

    # Running one

    def claim(self, now: float, stores: Collection[str] | None = None) -> Job | None:
        """Start the next job that is due, of `stores` only if given. None: nothing is due, or we run one already.

        The store served longest ago comes first; within it, the job that is due longest.
        """
        with self._database.write_transaction() as connection:
            if self._has_running_job(connection):
                return None
            row = connection.execute(
                """
                SELECT job.* FROM job LEFT JOIN served USING (store)
                WHERE job.state IN ('queued', 'deferred') AND job.due <= :now
                  AND (:stores IS NULL OR job.store IN (SELECT value FROM json_each(:stores)))
                  AND NOT EXISTS (
                    SELECT 1 FROM job AS other WHERE other.state = 'running'
                      AND other.kind = job.kind AND other.store = job.store AND other.role = job.role
                  )
                ORDER BY coalesce(served.turn, 0), job.due, job.id LIMIT 1
                """,
                {"now": now, "stores": None if stores is None else json.dumps(sorted(stores))},
            ).fetchone()
            if row is None:
                return None
            job = job_rows.job_from_row(row)
            claimed = replace(
                job,
                state=JobState.RUNNING,
                attempts=job.attempts + 1,
                started_at=now,
                finished_at=None,
                result="",
                worker=self._worker,
            )
            job_rows.save(connection, job, claimed)
            connection.execute(
                "INSERT INTO served (store, turn) SELECT ?, coalesce(max(turn), 0) + 1 FROM served WHERE true "
                "ON CONFLICT (store) DO UPDATE SET turn = excluded.turn",
                (job.store,),
            )
            return claimed

    def start_manual(self, need: Need, now: float) -> Job:
        """Start a job that a person's command does itself: it gets its number and runs from here on.

        It ends by `finish` or `give_up`. What waits for the same key goes on waiting. The caller holds the worker
        lock and has called `recover`.

        Raises:
            StateError: this process runs a job already, or another one runs for the same key.
        """
        with self._database.write_transaction() as connection:
            if self._has_running_job(connection) or job_rows.find_running(connection, need):
                raise StateError("Another job runs just now; try again in a moment.")
            return job_rows.insert_running(connection, need, self._worker, now)

    def finish(self, job: Job, result: str, now: float) -> None:
        """The job is done, `result` says what it did. The same input is not queued again.

        Raises:
            JobNotOwnedError: this process does not run it.
        """
        with self._database.write_transaction() as connection:
            owned = self._require_owned(connection, job)
            self._end_job(connection, owned, replace(owned, state=JobState.DONE, finished_at=now, result=result))
            connection.execute(
                "INSERT INTO kind_record (kind, last_success) VALUES (?, ?) "
                "ON CONFLICT (kind) DO UPDATE SET last_success = excluded.last_success",
                (owned.kind.value, now),
            )

    def fail(self, job: Job, error: str, now: float) -> Job:
        """The job failed, `error` is the sentence. It rests and is tried again; after `max_attempts` it is dead.

        Returns the job as it is now: resting, dead, or merged into a successor.

        Raises:
            JobNotOwnedError: this process does not run it.
        """
        with self._database.write_transaction() as connection:
            owned = self._require_owned(connection, job)
            _record_failure(connection, owned.kind, error, now)
            if owned.attempts >= self._max_attempts:
                return self._end_job(
                    connection, owned, replace(owned, state=JobState.DEAD, finished_at=now, result=error)
                )
            waiting = job_rows.find_pending(connection, owned)
            # A changed input deserves an early try, though not one at every change.
            failures = owned.attempts if waiting is None or waiting.fingerprint == owned.fingerprint else 1
            until = now + self._backoff.pause(failures, self._rng)
            return _requeue(
                connection, owned, _delayed(replace(owned, state=JobState.QUEUED, result=error), until), now
            )

    def give_up(self, job: Job, reason: str, now: float) -> Job:
        """Only a change of its input can help the job, `reason` is the sentence: it is dead at once, and stays so.

        Returns the job as it is now.

        Raises:
            JobNotOwnedError: this process does not run it.
        """
        with self._database.write_transaction() as connection:
            owned = self._require_owned(connection, job)
            _record_failure(connection, owned.kind, reason, now)
            return self._end_job(connection, owned, replace(owned, state=JobState.DEAD, finished_at=now, result=reason))

    def defer(self, job: Job, reason: str, until: float, now: float) -> Job:
        """The job has to wait, `reason` says for what; it asks again at `until`. That was no attempt.

        Returns the job as it is now: deferred, or merged into a successor.

        Raises:
            JobNotOwnedError: this process does not run it.
        """
        with self._database.write_transaction() as connection:
            owned = self._require_owned(connection, job)
            requeued = replace(owned, state=JobState.DEFERRED, attempts=owned.attempts - 1, result=reason)
            return _requeue(connection, owned, _delayed(requeued, until), now)

    def wake_deferred(self, store: str, now: float) -> int:
        """The gate of a store opened: its deferred jobs may run as soon as their input is ready. Returns how many."""
        with self._database.write_transaction() as connection:
            found = connection.execute("SELECT * FROM job WHERE state = 'deferred' AND store = ?", (store,)).fetchall()
            for job in map(job_rows.job_from_row, found):
                job_rows.save(connection, job, _delayed(replace(job, state=JobState.QUEUED, result=""), now))
            return len(found)

    # Upkeep

    def recover(self, is_alive: Callable[[ProcessIdentity], bool], now: float) -> tuple[Job, ...]:
        """Take back jobs whose process died while they ran. That was an attempt.

        To be called at start and whenever the worker lock was taken: another process may have died since.

        `is_alive` must answer True where it cannot tell. Returns the jobs as they are now.
        """
        with self._database.read_transaction() as connection:
            found = [
                job_rows.job_from_row(row) for row in connection.execute("SELECT * FROM job WHERE state = 'running'")
            ]
        orphaned = [job for job in found if job.worker not in (None, self._worker) and not is_alive(job.worker)]
        return tuple(job for recorded in orphaned if (job := self._recover_job(recorded, now)))

    def delete_finished(self, before: float) -> int:
        """Forget done jobs that finished before that time; dead jobs stay until they are dealt with.

        Nobody has to deal with a person's command that failed: the person was told.
        """
        total = 0
        while True:
            with self._database.write_transaction() as connection:
                deleted = connection.execute(
                    """
                    DELETE FROM job WHERE id IN (
                      SELECT id FROM job WHERE state = 'done' AND finished_at < :before
                      UNION ALL
                      SELECT id FROM job WHERE state = 'dead' AND finished_at < :before
                        AND kind IN (SELECT value FROM json_each(:by_hand))
                      LIMIT :limit
                    )
                    """,
                    {"before": before, "by_hand": json.dumps(sorted(MANUAL_KINDS)), "limit": _DELETE_BATCH_SIZE},
                ).rowcount
            total += deleted
            if deleted < _DELETE_BATCH_SIZE:
                break
        if total:
            self._database.vacuum()
        return total

    # Within a transaction

    def _has_running_job(self, connection: sqlite3.Connection) -> bool:
        """Whether this process runs a job."""
        found = connection.execute(
            "SELECT 1 FROM job WHERE state = 'running' AND worker_pid = ? AND worker_started = ?",
            (self._worker.pid, self._worker.started),
        )
        return found.fetchone() is not None

    def _require_owned(self, connection: sqlite3.Connection, job: Job) -> Job:
        owned = job_rows.find_by_id(connection, job.id)
        if owned is None or owned.state is not JobState.RUNNING or owned.worker != self._worker:
            found = "gone" if owned is None else owned.state.value
            raise JobNotOwnedError(f"Job {job.id} is not run by this process any more ({found}); start echod again.")
        return owned

    def _refreshed(self, waiting: Job, need: Need, now: float) -> Job:
        """A pending job with a newer cause. What it waits for besides its input stays, within reason."""
        if waiting.state is JobState.DEFERRED:
            longest = MAX_DEFERRAL_SECONDS
        elif waiting.fingerprint == need.fingerprint:
            longest = self._backoff.cap_seconds
        else:
            # A changed input deserves an early try after failures, though not one at every change.
            longest = self._backoff.base_seconds
        return _delayed(_with_need(waiting, need), min(waiting.not_before, now + longest))

    def _end_job(self, connection: sqlite3.Connection, owned: Job, ended: Job) -> Job:
        """A running job is done or dead: its input is settled, and an older dead job of its key is history."""
        ended = replace(ended, worker=None)
        if older := job_rows.find_dead(connection, owned):
            _merge_into(connection, older, owned.id, ended.finished_at or 0.0)
        job_rows.save(connection, owned, ended)
        waiting = job_rows.find_pending(connection, owned)
        if waiting and waiting.fingerprint == owned.fingerprint and ended.state is JobState.DEAD:
            _merge_into(connection, waiting, owned.id, ended.finished_at or 0.0)
        if waiting is None or waiting.fingerprint != owned.fingerprint or ended.state is JobState.DEAD:
            mark_input_done(connection, owned)
        return ended

    def _recover_job(self, recorded: Job, now: float) -> Job | None:
        with self._database.write_transaction() as connection:
            owned = job_rows.find_by_id(connection, recorded.id)
            if owned is None or owned.state is not JobState.RUNNING or owned.worker != recorded.worker:
                return None
            pid = owned.worker.pid if owned.worker else 0
            error = f"The process that ran it (pid {pid}) ended before it did."
            _record_failure(connection, owned.kind, error, now)
            if owned.kind in MANUAL_KINDS or owned.attempts >= self._max_attempts:
                return self._end_job(
                    connection, owned, replace(owned, state=JobState.DEAD, finished_at=now, result=error)
                )
            # One death is most often a power cut or a kill, and nobody should have to wait for that.
            until = now + self._backoff.pause(owned.attempts - 1, self._rng)
            requeued = _delayed(replace(owned, state=JobState.QUEUED, result=error), until)
            if waiting := job_rows.find_pending(connection, owned):
                job_rows.save(connection, waiting, replace(waiting, attempts=max(waiting.attempts, owned.attempts)))
            return _requeue(connection, owned, requeued, now)


def _requeue(connection: sqlite3.Connection, owned: Job, requeued: Job, now: float) -> Job:
    """A running job goes back to wait: as itself, or in its successor if a newer cause arrived while it ran."""
    waiting = job_rows.find_pending(connection, owned)
    if waiting is None:
        requeued = replace(requeued, worker=None)
        job_rows.save(connection, owned, requeued)
        return requeued
    same = waiting.fingerprint == owned.fingerprint
    successor = replace(
        waiting,
        state=requeued.state,
        attempts=max(waiting.attempts, requeued.attempts) if same else waiting.attempts,
        result=requeued.result,
    )
    job_rows.save(connection, waiting, _delayed(successor, requeued.not_before))
    return _merge_into(connection, owned, waiting.id, now)


def _merge_into(connection: sqlite3.Connection, job: Job, successor_id: int, now: float) -> Job:
    return _close(connection, job, f"merged into job {successor_id}", now, successor_id)


def _close(connection: sqlite3.Connection, job: Job, reason: str, now: float, successor_id: int | None = None) -> Job:
    closed = replace(job, state=JobState.DONE, finished_at=now, result=reason, merged_into=successor_id, worker=None)
    job_rows.save(connection, job, closed)
    return closed


def _with_need(waiting: Job, need: Need) -> Job:
    """The newest look at the disk is the truth: its reason, its input, and when that is ready."""
    same = waiting.fingerprint == need.fingerprint
    return replace(
        waiting,
        reason=need.reason,
        fingerprint=need.fingerprint,
        attempts=waiting.attempts if same else 0,
        ready_at=need.due,
        due=max(need.due, waiting.not_before),
    )


def _delayed(job: Job, until: float) -> Job:
    """The job with another end of its pause or deferral (Unix seconds)."""
    return replace(job, not_before=until, due=max(job.ready_at, until))


def _record_failure(connection: sqlite3.Connection, kind: JobKind, error: str, now: float) -> None:
    connection.execute(
        "INSERT INTO kind_record (kind, last_failure, last_error) VALUES (?, ?, ?) "
        "ON CONFLICT (kind) DO UPDATE SET last_failure = excluded.last_failure, last_error = excluded.last_error",
        (kind.value, now, error),
    )
