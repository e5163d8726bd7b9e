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
from echod.state.job import BY_HAND, Job, JobKind, JobState, Need, ProcessIdentity


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


def is_settled(link: sqlite3.Connection, need: Need) -> bool:
    """Whether this very input was the last one dealt with."""
    found = link.execute(
        "SELECT 1 FROM settled WHERE kind = ? AND store = ? AND role = ? AND fingerprint = ?",
        (need.kind.value, need.store, need.role, need.fingerprint),
    )
    return found.fetchone() is not None


def settle(link: sqlite3.Connection, job: Job) -> None:
    """The input of the job was dealt with."""
    link.execute(
        "INSERT INTO settled (kind, store, role, fingerprint) VALUES (?, ?, ?, ?) "
        "ON CONFLICT (kind, store, role) DO UPDATE SET fingerprint = excluded.fingerprint",
        (job.kind.value, job.store, job.role, job.fingerprint),
    )


def unsettle(link: sqlite3.Connection, of: Need | Job) -> None:
    """Whatever was dealt with for this kind, store and role may be tried again."""
    link.execute("DELETE FROM settled WHERE kind = ? AND store = ? AND role = ?", (of.kind.value, of.store, of.role))


LONGEST_DEFERRAL_SECONDS: Final = 24 * 3600.0
"""No job waits longer for a person or a workflow. A deferral, or a pause beyond the back-off's cap, that would last
longer was computed while the clock was wrong; the next `put` cuts it short."""

DEFAULT_BACKOFF: Final = Backoff()
_DELETED_AT_ONCE: Final = 500


class JobNotHeldError(StateError):
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

    def has_numbered(self) -> bool:
        """Whether this database ever gave a job its number; a new or rebuilt one has not."""
        with self._database.reading() as link:
            return link.execute("SELECT 1 FROM sqlite_sequence WHERE name = 'job'").fetchone() is not None

    def number_after(self, last: int) -> None:
        """Give no number up to `last` again: commits of jobs that this database does not know carry them."""
        with self._database.writing() as link:
            link.execute(
                "INSERT INTO sqlite_sequence (name, seq) SELECT 'job', :last "
                "WHERE NOT EXISTS (SELECT 1 FROM sqlite_sequence WHERE name = 'job')",
                {"last": last},
            )
            link.execute("UPDATE sqlite_sequence SET seq = max(seq, ?) WHERE name = 'job'", (last,))

    # What a store calls for

    def put(self, need: Need, now: float) -> int | None:
        """Queue what a store calls for; returns the number of the job that will see to it.

        A job that already waits for the same kind, store and role takes on the newer cause. None: there is nothing to
        queue, since this input was already done, or given up, or is being done now.
        """
        with self._database.writing() as link:
            waiting = job_rows.pending(link, need)
            if is_settled(link, need):
                if waiting:
                    _close(link, waiting, "its input is again one that was dealt with before", now)
                return None
            if waiting:
                job_rows.save(link, waiting, self._renewed(waiting, need, now))
                return waiting.id
            active = job_rows.running(link, need)
            if active and active.fingerprint == need.fingerprint:
                return None
            return job_rows.insert(link, need, now)

    def insist(self, need: Need, now: float) -> int:
        """Queue what a person asks for, even if this very input was done or given up before."""
        with self._database.writing() as link:
            unsettle(link, need)
            if waiting := job_rows.pending(link, need):
                asked = replace(_with_cause(waiting, need), state=JobState.QUEUED, attempts=0, result="")
                job_rows.save(link, waiting, _resting(asked, now))
                return waiting.id
            active = job_rows.running(link, need)
            if active and active.fingerprint == need.fingerprint:
                return active.id
            return job_rows.insert(link, need, now)

    def withdraw(self, store: str, now: float, why: str, keep: Collection[tuple[JobKind, str]] = ()) -> tuple[int, ...]:
        """Close the pending and dead jobs of a store that nothing calls for any more, except those to `keep`.

        `keep` holds (kind, role) pairs; `why` is the sentence they get. Returns their numbers. Not to be called for
        what could not be looked at: unreadable is not empty.
        """
        with self._database.writing() as link:
            found = link.execute(
                "SELECT * FROM job WHERE store = ? AND state IN ('queued', 'deferred', 'dead')", (store,)
            ).fetchall()
            called_for = [job for job in map(job_rows.job_of, found) if job.kind not in BY_HAND]
            closed = [job for job in called_for if (job.kind, job.role) not in keep]
            for job in closed:
                _close(link, job, why, now)
            return tuple(job.id for job in closed)

    def retry(self, job_id: int, now: float) -> int:
        """Try a dead or resting job again at once, as if it had never failed; returns the number that goes on.

        Raises:
            UsageError: there is no such job, it is in no state to be retried, or a person's command did it.
        """
        with self._database.writing() as link:
            job = job_rows.by_id(link, job_id)
            if job is None:
                raise UsageError(f"There is no job {job_id}; `echod jobs` lists them.")
            if job.kind in BY_HAND:
                raise UsageError(f"Job {job_id} was a command; give it again: echod {job.kind.value}.")
            if job.state is JobState.DEAD and (waiting := job_rows.pending(link, job)):
                job_rows.save(link, waiting, _resting(replace(waiting, attempts=0), now))
                return waiting.id
            if job.state not in (JobState.DEAD, JobState.QUEUED):
                raise UsageError(f"Job {job_id} is {job.state.value}; only dead and queued jobs can be retried.")
            unsettle(link, job)
            again = replace(job, state=JobState.QUEUED, attempts=0, finished_at=None, result="")
            job_rows.save(link, job, _resting(again, now))
            return job_id

    # Running one

    def claim(self, now: float, stores: Collection[str] | None = None) -> Job | None:
        """Start the next job that is due, of `stores` only if given. None: nothing is due, or we run one already.

        The store served longest ago comes first; within it, the job that is due longest.
        """
        with self._database.writing() as link:
            if self._busy(link):
                return None
            row = link.execute(
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
            job = job_rows.job_of(row)
            claimed = replace(
                job,
                state=JobState.RUNNING,
                attempts=job.attempts + 1,
                started_at=now,
                finished_at=None,
                result="",
                worker=self._worker,
            )
            job_rows.save(link, job, claimed)
            link.execute(
                "INSERT INTO served (store, turn) SELECT ?, coalesce(max(turn), 0) + 1 FROM served WHERE true "
                "ON CONFLICT (store) DO UPDATE SET turn = excluded.turn",
                (job.store,),
            )
            return claimed

    def begin(self, need: Need, now: float) -> Job:
        """Start a job that a person's command does itself: it gets its number and runs from here on.

        It ends by `finish` or `give_up`. What waits for the same key goes on waiting. The caller holds the worker
        lock and has called `recover`.

        Raises:
            StateError: this process runs a job already, or another one runs for the same key.
        """
        with self._database.writing() as link:
            if self._busy(link) or job_rows.running(link, need):
                raise StateError("Another job runs just now; try again in a moment.")
            return job_rows.insert_running(link, need, self._worker, now)

    def finish(self, job: Job, result: str, now: float) -> None:
        """The job is done, `result` says what it did. The same input is not queued again.

        Raises:
            JobNotHeldError: this process does not run it.
        """
        with self._database.writing() as link:
            held = self._held(link, job)
            self._end(link, held, replace(held, state=JobState.DONE, finished_at=now, result=result))
            link.execute(
                "INSERT INTO kind_record (kind, last_success) VALUES (?, ?) "
                "ON CONFLICT (kind) DO UPDATE SET last_success = excluded.last_success",
                (held.kind.value, now),
            )

    def fail(self, job: Job, error: str, now: float) -> Job:
        """The job failed, `error` is the sentence. It rests and is tried again; after `max_attempts` it is dead.

        Returns the job as it is now: resting, dead, or merged into a successor.

        Raises:
            JobNotHeldError: this process does not run it.
        """
        with self._database.writing() as link:
            held = self._held(link, job)
            _record_failure(link, held.kind, error, now)
            if held.attempts >= self._max_attempts:
                return self._end(link, held, replace(held, state=JobState.DEAD, finished_at=now, result=error))
            waiting = job_rows.pending(link, held)
            # A changed input deserves an early try, though not one at every change.
            failures = held.attempts if waiting is None or waiting.fingerprint == held.fingerprint else 1
            until = now + self._backoff.pause(failures, self._rng)
            return _back(link, held, _resting(replace(held, state=JobState.QUEUED, result=error), until), now)

    def give_up(self, job: Job, why: str, now: float) -> Job:
        """Only a change of its input can help the job, `why` is the sentence: it is dead at once, and stays so.

        Returns the job as it is now.

        Raises:
            JobNotHeldError: this process does not run it.
        """
        with self._database.writing() as link:
            held = self._held(link, job)
            _record_failure(link, held.kind, why, now)
            return self._end(link, held, replace(held, state=JobState.DEAD, finished_at=now, result=why))

    def defer(self, job: Job, reason: str, until: float, now: float) -> Job:
        """The job has to wait, `reason` says for what; it asks again at `until`. That was no attempt.

        Returns the job as it is now: deferred, or merged into a successor.

        Raises:
            JobNotHeldError: this process does not run it.
        """
        with self._database.writing() as link:
            held = self._held(link, job)
            waits = replace(held, state=JobState.DEFERRED, attempts=held.attempts - 1, result=reason)
            return _back(link, held, _resting(waits, until), now)

    def wake_deferred(self, store: str, now: float) -> int:
        """The gate of a store opened: its deferred jobs may run as soon as their input is ready. Returns how many."""
        with self._database.writing() as link:
            found = link.execute("SELECT * FROM job WHERE state = 'deferred' AND store = ?", (store,)).fetchall()
            for job in map(job_rows.job_of, found):
                job_rows.save(link, job, _resting(replace(job, state=JobState.QUEUED, result=""), now))
            return len(found)

    # Upkeep

    def recover(self, alive: Callable[[ProcessIdentity], bool], now: float) -> tuple[Job, ...]:
        """Take back jobs whose process died while they ran. That was an attempt.

        To be called at start and whenever the worker lock was taken: another process may have died since.

        `alive` must answer True where it cannot tell. Returns the jobs as they are now.
        """
        with self._database.reading() as link:
            found = [job_rows.job_of(row) for row in link.execute("SELECT * FROM job WHERE state = 'running'")]
        left = [job for job in found if job.worker not in (None, self._worker) and not alive(job.worker)]
        return tuple(job for old in left if (job := self._take_back(old, now)))

    def delete_finished(self, before: float) -> int:
        """Forget done jobs that finished before that time; dead jobs stay until they are dealt with.

        Nobody has to deal with a person's command that failed: the person was told.
        """
        total = 0
        while True:
            with self._database.writing() as link:
                deleted = link.execute(
                    """
                    DELETE FROM job WHERE id IN (
                      SELECT id FROM job WHERE state = 'done' AND finished_at < :before
                      UNION ALL
                      SELECT id FROM job WHERE state = 'dead' AND finished_at < :before
                        AND kind IN (SELECT value FROM json_each(:by_hand))
                      LIMIT :limit
                    )
                    """,
                    {"before": before, "by_hand": json.dumps(sorted(BY_HAND)), "limit": _DELETED_AT_ONCE},
                ).rowcount
            total += deleted
            if deleted < _DELETED_AT_ONCE:
                break
        if total:
            self._database.release_space()
        return total

    # Within a transaction

    def _busy(self, link: sqlite3.Connection) -> bool:
        """Whether this process runs a job."""
        found = link.execute(
            "SELECT 1 FROM job WHERE state = 'running' AND worker_pid = ? AND worker_started = ?",
            (self._worker.pid, self._worker.started),
        )
        return found.fetchone() is not None

    def _held(self, link: sqlite3.Connection, job: Job) -> Job:
        held = job_rows.by_id(link, job.id)
        if held is None or held.state is not JobState.RUNNING or held.worker != self._worker:
            found = "gone" if held is None else held.state.value
            raise JobNotHeldError(f"Job {job.id} is not run by this process any more ({found}); start echod again.")
        return held

    def _renewed(self, waiting: Job, need: Need, now: float) -> Job:
        """A pending job with a newer cause. What it waits for besides its input stays, within reason."""
        if waiting.state is JobState.DEFERRED:
            longest = LONGEST_DEFERRAL_SECONDS
        elif waiting.fingerprint == need.fingerprint:
            longest = self._backoff.cap_seconds
        else:
            # A changed input deserves an early try after failures, though not one at every change.
            longest = self._backoff.base_seconds
        return _resting(_with_cause(waiting, need), min(waiting.rests_until, now + longest))

    def _end(self, link: sqlite3.Connection, held: Job, ended: Job) -> Job:
        """A running job is done or dead: its input is settled, and an older dead job of its key is history."""
        ended = replace(ended, worker=None)
        if older := job_rows.dead(link, held):
            _merge(link, older, held.id, ended.finished_at or 0.0)
        job_rows.save(link, held, ended)
        waiting = job_rows.pending(link, held)
        if waiting and waiting.fingerprint == held.fingerprint and ended.state is JobState.DEAD:
            _merge(link, waiting, held.id, ended.finished_at or 0.0)
        if waiting is None or waiting.fingerprint != held.fingerprint or ended.state is JobState.DEAD:
            settle(link, held)
        return ended

    def _take_back(self, old: Job, now: float) -> Job | None:
        with self._database.writing() as link:
            held = job_rows.by_id(link, old.id)
            if held is None or held.state is not JobState.RUNNING or held.worker != old.worker:
                return None
            pid = held.worker.pid if held.worker else 0
            error = f"The process that ran it (pid {pid}) ended before it did."
            _record_failure(link, held.kind, error, now)
            if held.kind in BY_HAND or held.attempts >= self._max_attempts:
                return self._end(link, held, replace(held, state=JobState.DEAD, finished_at=now, result=error))
            # One death is most often a power cut or a kill, and nobody should have to wait for that.
            until = now + self._backoff.pause(held.attempts - 1, self._rng)
            waits = _resting(replace(held, state=JobState.QUEUED, result=error), until)
            if waiting := job_rows.pending(link, held):
                job_rows.save(link, waiting, replace(waiting, attempts=max(waiting.attempts, held.attempts)))
            return _back(link, held, waits, now)


def _back(link: sqlite3.Connection, held: Job, waits: Job, now: float) -> Job:
    """A running job goes back to wait: as itself, or in its successor if a newer cause arrived while it ran."""
    waiting = job_rows.pending(link, held)
    if waiting is None:
        waits = replace(waits, worker=None)
        job_rows.save(link, held, waits)
        return waits
    same = waiting.fingerprint == held.fingerprint
    heir = replace(
        waiting,
        state=waits.state,
        attempts=max(waiting.attempts, waits.attempts) if same else waiting.attempts,
        result=waits.result,
    )
    job_rows.save(link, waiting, _resting(heir, waits.rests_until))
    return _merge(link, held, waiting.id, now)


def _merge(link: sqlite3.Connection, job: Job, heir: int, now: float) -> Job:
    return _close(link, job, f"merged into job {heir}", now, heir)


def _close(link: sqlite3.Connection, job: Job, why: str, now: float, heir: int | None = None) -> Job:
    closed = replace(job, state=JobState.DONE, finished_at=now, result=why, merged_into=heir, worker=None)
    job_rows.save(link, job, closed)
    return closed


def _with_cause(waiting: Job, need: Need) -> Job:
    """The newest look at the disk is the truth: its reason, its input, and when that is ready."""
    same = waiting.fingerprint == need.fingerprint
    return replace(
        waiting,
        reason=need.reason,
        fingerprint=need.fingerprint,
        attempts=waiting.attempts if same else 0,
        ready=need.due,
        due=max(need.due, waiting.rests_until),
    )


def _resting(job: Job, until: float) -> Job:
    """The job with another end of its pause or deferral (Unix seconds)."""
    return replace(job, rests_until=until, due=max(job.ready, until))


def _record_failure(link: sqlite3.Connection, kind: JobKind, error: str, now: float) -> None:
    link.execute(
        "INSERT INTO kind_record (kind, last_failure, last_error) VALUES (?, ?, ?) "
        "ON CONFLICT (kind) DO UPDATE SET last_failure = excluded.last_failure, last_error = excluded.last_error",
        (kind.value, now, error),
    )
