r"""A job, its states, the pauses between its attempts, and the rows of the job tables, without the rules of the queue.

`QueueView` is the read-only view for `echod status`, `echod jobs` and the daemon's timer. A database that was opened
for reading is sufficient for it. The functions run inside the caller's transaction.

The state machine:

    queued --claim--> running --finish--> done
      ^  ^              |  |  \--fail--> queued (back-off), and after max_attempts: dead
      |  \--its process died--/   \--defer--> deferred --due again--> running
      \--retry / changed input-- dead

A manual job starts as running. If its kind is one of `MANUAL_KINDS` it never waits: it ends done, refused or dead, and
it is dead if its process dies, since the user repeats the command. A refused one changed nothing for a reason that it
gives, which is neither a success nor a failure.

There is at most one pending (queued or deferred) job for each (kind, store, role). A cause that arrives while the job
runs queues another one. A running job that must return to the queue while such a successor is pending is merged into
it: it is done, and `merged_into` is the successor's number. A pending or dead job that its store no longer needs is
done as well.
"""

from __future__ import annotations

import json
import random
import sqlite3
from collections.abc import Collection
from enum import StrEnum
from typing import Final, NamedTuple

from echod.errors import StateError
from echod.state.database import Database


class JobKind(StrEnum):
    """The work that a job does; one module in `echod.jobs` each.

    A new kind requires a new schema version, so that an older echod refuses a queue with unknown kinds.
    """

    CONSOLIDATE = "consolidate"
    OBSERVE = "observe"
    PRUNE = "prune"
    PROMOTE = "promote"
    COMPRESS = "compress"
    UNDO = "undo"
    SCRUB = "scrub"
    REMEMBER = "remember"
    RAISE = "raise"
    VERIFY = "verify"
    FORGET = "forget"
    RESTORE = "restore"
    RESET = "reset"
    REVIEW = "review"
    ELEVATE = "elevate"
    PACK = "pack"
    SOLUTION = "solution"
    MIGRATE = "migrate"
    ARCHIVE = "archive"
    CHECKPOINT = "checkpoint"
    SESSIONS = "sessions"
    SYNC = "sync"
    INGEST = "ingest"
    PROPOSE = "propose"
    AUTO_MEMORY = "auto-memory"


MANUAL_KINDS = frozenset(
    {
        JobKind.UNDO,
        JobKind.SCRUB,
        JobKind.REMEMBER,
        JobKind.RAISE,
        JobKind.VERIFY,
        JobKind.FORGET,
        JobKind.RESTORE,
        JobKind.RESET,
        JobKind.REVIEW,
        JobKind.ELEVATE,
        JobKind.PACK,
        JobKind.SOLUTION,
        JobKind.MIGRATE,
        JobKind.AUTO_MEMORY,
        JobKind.SESSIONS,
    }
)
"""Kinds that no state of a store needs. A command runs them at once, while the user waits."""


class JobState(StrEnum):
    """The state of a job; the module docstring has the transitions."""

    QUEUED = "queued"
    DEFERRED = "deferred"
    RUNNING = "running"
    DONE = "done"
    DEAD = "dead"
    REFUSED = "refused"


PENDING_STATES = frozenset({JobState.QUEUED, JobState.DEFERRED})


class Need(NamedTuple):
    """Work that the present state of a store calls for.

    Attributes:
        kind: the kind of the job.
        store: the store's absolute path.
        role: the role's name, or "" for the whole store.
        fingerprint: identifies the input. An input that was processed or given up is not tried again.
        reason: a phrase for `echod status`.
        due: Unix seconds from which the input is ready (its files are no longer being written).
    """

    kind: JobKind
    store: str
    role: str
    fingerprint: str
    reason: str
    due: float


class ProcessIdentity(NamedTuple):
    """The process that runs a job: its number and start time (Unix seconds), since numbers are reused."""

    pid: int
    started: float


class Job(NamedTuple):
    """A row of the queue. Times are Unix seconds.

    Attributes:
        attempts: the runs for this input including the present one. A deferred run does not count.
        due: when the job may run, or when a deferred job checks again.
        result: a sentence about how it ended or why it waits.
        merged_into: the job that continues in its place.
        ready_at: when its input is ready.
        not_before: when its pause or deferral ends, independent of its input; `due` is the later of the two.
        worker: the process that runs it, while it runs.
    """

    id: int
    kind: JobKind
    store: str
    role: str
    state: JobState
    reason: str
    fingerprint: str
    attempts: int
    due: float
    queued_at: float
    started_at: float | None
    finished_at: float | None
    result: str
    merged_into: int | None = None
    ready_at: float = 0.0
    not_before: float = 0.0
    worker: ProcessIdentity | None = None

    @property
    def is_pending(self) -> bool:
        """True while the job waits to be run."""
        return self.state in PENDING_STATES


class Backoff(NamedTuple):
    """Growing pauses between the attempts of a job, with jitter so that jobs that failed together spread out.

    Attributes:
        base_seconds: the pause after the first failure.
        factor: the growth with each further failure.
        cap_seconds: the longest pause.
    """

    base_seconds: float = 30.0
    factor: float = 4.0
    cap_seconds: float = 3600.0

    def pause(self, failures: int, rng: random.Random) -> float:
        """Return the pause in seconds after that many failures: half to all of the nominal pause; 0 after none."""
        if failures < 1:
            return 0.0
        # A large exponent would overflow, and the cap is reached long before.
        nominal = min(self.cap_seconds, self.base_seconds * self.factor ** min(failures - 1, 64))
        return nominal * rng.uniform(0.5, 1.0)


DEFAULT_BACKOFF: Final = Backoff()


ALL_STATES: Final = frozenset(JobState)


class KindRecord(NamedTuple):
    """The last success and failure of a job kind (Unix seconds; None: never). Kept longer than the jobs."""

    last_success: float | None
    last_failure: float | None
    last_error: str | None


class QueueView:
    """Read-only queries of the queue. Each result comes from one state of the database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def get(self, job_id: int) -> Job | None:
        """Return the job with this number; None if there never was one or it was deleted."""
        with self._database.read_transaction() as connection:
            return find_by_id(connection, job_id)

    def list_jobs(self, states: Collection[JobState] = ALL_STATES, limit: int = 100) -> tuple[Job, ...]:
        """List jobs in any of these states, the newest first."""
        with self._database.read_transaction() as connection:
            rows = connection.execute(
                "SELECT * FROM job WHERE state IN (SELECT value FROM json_each(?)) ORDER BY id DESC LIMIT ?",
                (json.dumps(sorted(states)), limit),
            ).fetchall()
        return tuple(map(job_from_row, rows))

    def count_by_state(self) -> dict[JobState, int]:
        """Count the jobs in each state, zeros included. A failed command does not count as dead."""
        select = (
            "SELECT state, count(*) FROM job "
            "WHERE NOT (state = 'dead' AND kind IN (SELECT value FROM json_each(?))) GROUP BY state"
        )
        with self._database.read_transaction() as connection:
            counts = dict(connection.execute(select, (json.dumps(sorted(MANUAL_KINDS)),)).fetchall())
        return {state: int(counts.get(state.value, 0)) for state in JobState}

    def oldest_due(self, now: float) -> float | None:
        """Return the time (Unix seconds) since which the oldest due queued job waits; None if none is due."""
        with self._database.read_transaction() as connection:
            row = connection.execute("SELECT min(due) FROM job WHERE state = 'queued' AND due <= ?", (now,)).fetchone()
        return None if row[0] is None else float(row[0])

    def next_due(self) -> float | None:
        """Return when (Unix seconds, possibly past) the next pending job may run; None if none is pending."""
        with self._database.read_transaction() as connection:
            row = connection.execute("SELECT min(due) FROM job WHERE state IN ('queued', 'deferred')").fetchone()
        return None if row[0] is None else float(row[0])

    def kind_records(self) -> dict[JobKind, KindRecord]:
        """Return the record of each job kind that ever ended."""
        with self._database.read_transaction() as connection:
            rows = connection.execute("SELECT * FROM job_kind_record").fetchall()
        return {JobKind(kind): KindRecord(*record) for kind, *record in rows}


def job_from_row(row: sqlite3.Row) -> Job:
    """Convert a row of the job table."""
    values = dict(row)
    pid, started = values.pop("worker_pid"), values.pop("worker_started")
    worker = None if pid is None else ProcessIdentity(pid, started)
    return Job(**values | {"kind": JobKind(row["kind"]), "state": JobState(row["state"]), "worker": worker})


def find_by_id(connection: sqlite3.Connection, job_id: int) -> Job | None:
    """Return the job with this number."""
    row = connection.execute("SELECT * FROM job WHERE id = ?", (job_id,)).fetchone()
    return job_from_row(row) if row else None


def find_pending(connection: sqlite3.Connection, target: Need | Job) -> Job | None:
    """Return the pending job of the same kind, store and role."""
    return _find_by_key(connection, target, "SELECT * FROM job WHERE state IN ('queued', 'deferred')")


def find_running(connection: sqlite3.Connection, target: Need | Job) -> Job | None:
    """Return the running job of the same kind, store and role."""
    return _find_by_key(connection, target, "SELECT * FROM job WHERE state = 'running'")


def find_dead(connection: sqlite3.Connection, target: Need | Job) -> Job | None:
    """Return the dead job of the same kind, store and role."""
    return _find_by_key(connection, target, "SELECT * FROM job WHERE state = 'dead'")


def insert(connection: sqlite3.Connection, need: Need, now: float, worker: ProcessIdentity | None = None) -> int:
    """Insert a job that is queued, or that `worker` already runs.

    Returns its number, which is higher than every earlier one. A job that runs at once was never queued, so another job
    of its key may be pending.
    """
    state, attempts, started_at = (JobState.QUEUED, 0, None) if worker is None else (JobState.RUNNING, 1, now)
    running = {"attempts": attempts, "started_at": started_at, "state": state} | _worker_columns(worker)
    cursor = connection.execute(
        "INSERT INTO job (kind, store, role, state, reason, fingerprint, attempts, ready_at, not_before, queued_at, "
        "started_at, worker_pid, worker_started, result) VALUES (:kind, :store, :role, :state, :reason, "
        ":fingerprint, :attempts, :due, 0, :now, :started_at, :worker_pid, :worker_started, '')",
        need._asdict() | running | {"now": now},
    )
    assert cursor.lastrowid is not None  # noqa: S101  an INSERT that succeeded has one
    return cursor.lastrowid


def save(connection: sqlite3.Connection, before: Job, after: Job) -> None:
    """Replace a row that is still in the state of `before`. Equal jobs write nothing.

    Raises:
        StateError: another process changed its state.
    """
    if after == before:
        return
    changed = connection.execute(
        "UPDATE job SET state = :state, reason = :reason, fingerprint = :fingerprint, attempts = :attempts, "
        "ready_at = :ready_at, not_before = :not_before, started_at = :started_at, finished_at = :finished_at, "
        "result = :result, merged_into = :merged_into, worker_pid = :worker_pid, worker_started = :worker_started "
        "WHERE id = :id AND state = :expected",
        after._asdict() | _worker_columns(after.worker) | {"expected": before.state},
    )
    if changed.rowcount != 1:
        raise StateError(f"Job {before.id} is no longer {before.state.value}. Start echod again.")


def _worker_columns(worker: ProcessIdentity | None) -> dict[str, object]:
    pid, started = worker or (None, None)
    return {"worker_pid": pid, "worker_started": started}


def _find_by_key(connection: sqlite3.Connection, target: Need | Job, select: str) -> Job | None:
    key = (target.kind.value, target.store, target.role)
    row = connection.execute(f"{select} AND kind = ? AND store = ? AND role = ?", key).fetchone()
    return job_from_row(row) if row else None


def is_input_done(connection: sqlite3.Connection, need: Need) -> bool:
    """Return whether this input is the last one that was processed or given up for its kind, store and role."""
    select = "SELECT 1 FROM done_input WHERE kind = ? AND store = ? AND role = ? AND fingerprint = ?"
    return connection.execute(select, (need.kind, need.store, need.role, need.fingerprint)).fetchone() is not None


def mark_input_done(connection: sqlite3.Connection, job: Job) -> None:
    """Store that the input of the job was processed or given up."""
    connection.execute(
        "INSERT INTO done_input (kind, store, role, fingerprint) VALUES (?, ?, ?, ?) "
        "ON CONFLICT (kind, store, role) DO UPDATE SET fingerprint = excluded.fingerprint",
        (job.kind.value, job.store, job.role, job.fingerprint),
    )


def clear_input(connection: sqlite3.Connection, target: Need | Job) -> None:
    """Let every input of this kind, store and role be tried again."""
    delete = "DELETE FROM done_input WHERE kind = ? AND store = ? AND role = ?"
    connection.execute(delete, (target.kind, target.store, target.role))
