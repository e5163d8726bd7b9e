"""Single rows of the job table: found, inserted, replaced. Knows no rule of the queue.

Every function runs inside the caller's transaction.

The queue as `status`, `echod jobs` and the worker's alarm clock see it.

Changes nothing, so a database that was opened for reading is enough.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection
from typing import Final, NamedTuple

from echod.errors import StateError
from echod.state.database import Database
from echod.state.job import MANUAL_KINDS, Job, JobKind, JobState, Need, ProcessIdentity


def job_from_row(row: sqlite3.Row) -> Job:
    """The job that a row of the table is."""
    pid = row["worker_pid"]
    return Job(
        id=row["id"],
        kind=JobKind(row["kind"]),
        store=row["store"],
        role=row["role"],
        state=JobState(row["state"]),
        reason=row["reason"],
        fingerprint=row["fingerprint"],
        attempts=row["attempts"],
        due=row["due"],
        queued_at=row["queued_at"],
        started_at=row["started_at"],
        finished_at=row["finished_at"],
        result=row["result"],
        merged_into=row["merged_into"],
        ready_at=row["ready"],
        not_before=row["rests_until"],
        worker=None if pid is None else ProcessIdentity(pid, row["worker_started"]),
    )


def find_by_id(connection: sqlite3.Connection, job_id: int) -> Job | None:
    """The job of that number."""
    row = connection.execute("SELECT * FROM job WHERE id = ?", (job_id,)).fetchone()
    return job_from_row(row) if row else None


def find_pending(connection: sqlite3.Connection, target: Need | Job) -> Job | None:
    """The job that waits for the same kind, store and role."""
    return _find_by_key(connection, target, "SELECT * FROM job WHERE state IN ('queued', 'deferred')")


def find_running(connection: sqlite3.Connection, target: Need | Job) -> Job | None:
    """The job that runs for the same kind, store and role."""
    return _find_by_key(connection, target, "SELECT * FROM job WHERE state = 'running'")


def find_dead(connection: sqlite3.Connection, target: Need | Job) -> Job | None:
    """The job that was given up for the same kind, store and role."""
    return _find_by_key(connection, target, "SELECT * FROM job WHERE state = 'dead'")


def insert(connection: sqlite3.Connection, need: Need, now: float) -> int:
    """A new queued job; returns its number, which is higher than any before it."""
    cursor = connection.execute(
        "INSERT INTO job (kind, store, role, state, reason, fingerprint, attempts, ready, rests_until, queued_at, "
        "result) VALUES (:kind, :store, :role, 'queued', :reason, :fingerprint, 0, :due, 0, :now, '')",
        {
            "kind": need.kind.value,
            "store": need.store,
            "role": need.role,
            "reason": need.reason,
            "fingerprint": need.fingerprint,
            "due": need.due,
            "now": now,
        },
    )
    assert cursor.lastrowid is not None  # noqa: S101  an INSERT that succeeded has one
    return cursor.lastrowid


def insert_running(connection: sqlite3.Connection, need: Need, worker: ProcessIdentity, now: float) -> Job:
    """A new job that `worker` runs already; it was never queued, so one of its key may wait meanwhile."""
    cursor = connection.execute(
        "INSERT INTO job (kind, store, role, state, reason, fingerprint, attempts, ready, rests_until, queued_at, "
        "started_at, worker_pid, worker_started, result) VALUES (:kind, :store, :role, 'running', :reason, "
        ":fingerprint, 1, :due, 0, :now, :now, :pid, :started, '')",
        {
            "kind": need.kind.value,
            "store": need.store,
            "role": need.role,
            "reason": need.reason,
            "fingerprint": need.fingerprint,
            "due": need.due,
            "now": now,
            "pid": worker.pid,
            "started": worker.started,
        },
    )
    job = find_by_id(connection, cursor.lastrowid or 0)
    assert job is not None  # noqa: S101  it was just inserted
    return job


def save(connection: sqlite3.Connection, before: Job, after: Job) -> None:
    """Replace a row, provided that it is still in the state that `before` has. Nothing changed, nothing written.

    Raises:
        StateError: someone else moved it.
    """
    if after == before:
        return
    changed = connection.execute(
        "UPDATE job SET state = :state, reason = :reason, fingerprint = :fingerprint, attempts = :attempts, "
        "ready = :ready, rests_until = :rests_until, started_at = :started_at, finished_at = :finished_at, "
        "result = :result, merged_into = :merged_into, worker_pid = :worker_pid, worker_started = :worker_started "
        "WHERE id = :id AND state = :expected",
        {
            "id": before.id,
            "expected": before.state.value,
            "state": after.state.value,
            "reason": after.reason,
            "fingerprint": after.fingerprint,
            "attempts": after.attempts,
            "ready": after.ready_at,
            "rests_until": after.not_before,
            "started_at": after.started_at,
            "finished_at": after.finished_at,
            "result": after.result,
            "merged_into": after.merged_into,
            "worker_pid": after.worker and after.worker.pid,
            "worker_started": after.worker and after.worker.started,
        },
    )
    if changed.rowcount != 1:
        raise StateError(f"Job {before.id} is not {before.state.value} any more; start echod again.")


def _find_by_key(connection: sqlite3.Connection, target: Need | Job, select: str) -> Job | None:
    key = (target.kind.value, target.store, target.role)
    row = connection.execute(f"{select} AND kind = ? AND store = ? AND role = ?", key).fetchone()
    return job_from_row(row) if row else None


ALL_STATES: Final = frozenset(JobState)


class KindRecord(NamedTuple):
    """When a kind of job last ended well and badly (Unix seconds; None: never). Outlives the jobs themselves."""

    last_success: float | None
    last_failure: float | None
    last_error: str | None


class QueueView:
    """Questions to the queue, each answered from one moment."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def get(self, job_id: int) -> Job | None:
        """The job of that number; None if there never was one or it was forgotten."""
        with self._database.read_transaction() as connection:
            return find_by_id(connection, job_id)

    def list_jobs(self, states: Collection[JobState] = ALL_STATES, limit: int = 100) -> tuple[Job, ...]:
        """Jobs in any of these states, the newest first."""
        with self._database.read_transaction() as connection:
            found = connection.execute(
                "SELECT * FROM job WHERE state IN (SELECT value FROM json_each(?)) ORDER BY id DESC LIMIT ?",
                (json.dumps(sorted(states)), limit),
            ).fetchall()
        return tuple(map(job_from_row, found))

    def count_by_state(self) -> dict[JobState, int]:
        """How many jobs are in each state, zeros included; a command that failed does not count as given up."""
        with self._database.read_transaction() as connection:
            found = dict(
                connection.execute(
                    "SELECT state, count(*) FROM job "
                    "WHERE NOT (state = 'dead' AND kind IN (SELECT value FROM json_each(?))) GROUP BY state",
                    (json.dumps(sorted(MANUAL_KINDS)),),
                ).fetchall()
            )
        return {state: int(found.get(state.value, 0)) for state in JobState}

    def oldest_due(self, now: float) -> float | None:
        """Since when (Unix seconds) the longest due queued job has been waiting; None if none is due."""
        with self._database.read_transaction() as connection:
            found = connection.execute(
                "SELECT min(due) FROM job WHERE state = 'queued' AND due <= ?", (now,)
            ).fetchone()
        return None if found[0] is None else float(found[0])

    def next_due(self) -> float | None:
        """When (Unix seconds) the next pending job may run, which may be past; None if nothing is pending."""
        with self._database.read_transaction() as connection:
            found = connection.execute("SELECT min(due) FROM job WHERE state IN ('queued', 'deferred')").fetchone()
        return None if found[0] is None else float(found[0])

    def kind_records(self) -> dict[JobKind, KindRecord]:
        """For each kind of job that ever ended, how it last did."""
        with self._database.read_transaction() as connection:
            found = connection.execute("SELECT * FROM kind_record").fetchall()
        return {
            JobKind(row["kind"]): KindRecord(row["last_success"], row["last_failure"], row["last_error"])
            for row in found
        }
