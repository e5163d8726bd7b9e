"""Record the workflows that were seen in a project or declared for it, and read what ran there and on which days.

This module does not interpret markers or check processes; the gate does. `project` is the absolute path of the
project's root.

A session is known by the references that it recorded, a workflow by its markers. A session within a workflow is a part
of that workflow.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping, Sequence
from datetime import date, datetime, timedelta
from typing import NamedTuple

from echod.clock import local_date
from echod.state.database import Database
from echod.state.decisions import save_decisions


class WorkflowSnapshot(NamedTuple):
    """A workflow as seen at one moment. Times are Unix seconds.

    Attributes:
        key: its identity, which is the same whenever the run is seen and unique within a project.
        kind: the workflow: review, work, arc, ...
        name: its name in its markers.
        started_at: None if unknown.
        ended_at: None while it runs, or if unknown.
    """

    key: str
    kind: str
    name: str
    started_at: float | None
    running: bool
    ended_at: float | None


class WorkflowChanges(NamedTuple):
    """The keys of the workflows that a snapshot showed to have begun and to have ended."""

    started_keys: tuple[str, ...] = ()
    ended_keys: tuple[str, ...] = ()


class WorkflowDeclaration(NamedTuple):
    """A declared workflow: its process if it has one, and the end agreed beforehand (Unix seconds)."""

    name: str
    pid: int | None
    pid_started: float | None
    started_at: float
    until: float


class WorkflowLog:
    """The workflows of all projects. All times are arguments, in Unix seconds."""

    def __init__(self, database: Database) -> None:
        self._database = database

    # Seen workflows

    def record(self, project: str, snapshots: Sequence[WorkflowSnapshot], now: float) -> WorkflowChanges:
        """Record the complete list of a project's workflows, and return the changes.

        A workflow that was running and is missing has ended now: its markers were removed. Must not be called with an
        incomplete list. Without changes nothing is written.
        """
        with self._database.read_transaction() as connection:
            if not _find_events(connection, project, snapshots, now):
                return WorkflowChanges()
        with self._database.write_transaction() as connection:
            events = _find_events(connection, project, snapshots, now)
            for event in events:
                event.save(connection, project, now)
        return WorkflowChanges(
            started_keys=tuple(event.key for event in events if event.ended_at is None),
            ended_keys=tuple(event.key for event in events if event.ended_at is not None),
        )

    def last_ended(self, project: str) -> float | None:
        """Return when a workflow of the project last ended, as far as recorded."""
        with self._database.read_transaction() as connection:
            row = connection.execute("SELECT max(ended_at) FROM workflow WHERE project = ?", (project,)).fetchone()
        return None if row[0] is None else float(row[0])

    # Declared workflows

    def begin(
        self, project: str, name: str, *, pid: int | None, pid_started: float | None, until: float, now: float
    ) -> None:
        """Declare a workflow that lasts until `end` is called, its process ends, or `until` has passed.

        Declaring it again while it lasts changes the process and the end of the same workflow.
        """
        with self._database.write_transaction() as connection:
            _end_expired(connection, project, now)
            renewed = connection.execute(
                "UPDATE workflow SET pid = ?, pid_started = ?, until = ? "
                "WHERE project = ? AND name = ? AND until IS NOT NULL AND ended_at IS NULL",
                (pid, pid_started, until, project, name),
            ).rowcount
            if not renewed:
                # The gate counts declared workflows under this key. Ended and declared again within a second, it is
                # the same workflow and continues.
                connection.execute(
                    "INSERT INTO workflow (project, key, kind, name, started_at, first_seen, until, pid, pid_started) "
                    "VALUES (:project, :key, 'declared', :name, :now, :now, :until, :pid, :pid_started) "
                    "ON CONFLICT (project, key) DO UPDATE SET ended_at = NULL, until = excluded.until, "
                    "pid = excluded.pid, pid_started = excluded.pid_started",
                    {"project": project, "key": f"declared:{name}:{now:.0f}", "name": name, "now": now}
                    | {"until": until, "pid": pid, "pid_started": pid_started},
                )
            save_decisions(connection, self._database.path, project)

    def end(self, project: str, name: str, now: float) -> bool:
        """End a declared workflow. False if no workflow of that name is running."""
        with self._database.write_transaction() as connection:
            _end_expired(connection, project, now)
            ended = connection.execute(
                "UPDATE workflow SET ended_at = ? "
                "WHERE project = ? AND name = ? AND until IS NOT NULL AND ended_at IS NULL",
                (now, project, name),
            )
            save_decisions(connection, self._database.path, project)
            return ended.rowcount > 0

    def list_declared(self, project: str, now: float) -> tuple[WorkflowDeclaration, ...]:
        """List the declared workflows that were not ended and have not expired. Their processes are not checked."""
        with self._database.read_transaction() as connection:
            rows = connection.execute(
                "SELECT name, pid, pid_started, started_at, until FROM workflow "
                "WHERE project = ? AND ended_at IS NULL AND until > ? ORDER BY id",
                (project, now),
            ).fetchall()
        return tuple(WorkflowDeclaration(*row) for row in rows)


class _WorkflowEvent(NamedTuple):
    """The begin (`ended_at` is None) or end of a workflow. `snapshot` is set if the workflow is new."""

    key: str
    ended_at: float | None
    snapshot: WorkflowSnapshot | None

    def save(self, connection: sqlite3.Connection, project: str, now: float) -> None:
        if self.snapshot is None:
            connection.execute(
                "UPDATE workflow SET ended_at = ? WHERE project = ? AND key = ?", (self.ended_at, project, self.key)
            )
            return
        connection.execute(
            "INSERT INTO workflow (project, key, kind, name, started_at, first_seen, ended_at) "
            "VALUES (?, ?, ?, ?, ?, ?, ?)",
            (project, self.key, self.snapshot.kind, self.snapshot.name, self.snapshot.started_at, now, self.ended_at),
        )


def _find_events(
    connection: sqlite3.Connection, project: str, snapshots: Sequence[WorkflowSnapshot], now: float
) -> tuple[_WorkflowEvent, ...]:
    """Return the changes between the recorded workflows and the snapshots."""
    by_key = {snapshot.key: snapshot for snapshot in snapshots}
    rows = connection.execute(
        "SELECT key, ended_at, until FROM workflow "
        "WHERE project = ? AND (ended_at IS NULL OR key IN (SELECT value FROM json_each(?)))",
        (project, json.dumps(list(by_key))),
    ).fetchall()
    known = {row["key"]: row for row in rows}
    events = []
    for key, snapshot in by_key.items():
        row = known.get(key)
        if snapshot.running:
            # A declared workflow that was ended since the snapshot stays ended.
            if row is None or (row["ended_at"] is not None and row["until"] is None):
                events.append(_WorkflowEvent(key, None, snapshot if row is None else None))
        elif row is None or row["ended_at"] is None:
            at = now if snapshot.ended_at is None else min(snapshot.ended_at, now)
            events.append(_WorkflowEvent(key, at, snapshot if row is None else None))
    for key, row in known.items():
        if row["ended_at"] is None and key not in by_key:
            # A declaration has no marker on the disk. One made since the snapshot has not ended.
            if row["until"] is None:
                events.append(_WorkflowEvent(key, now, None))
            elif row["until"] <= now:
                events.append(_WorkflowEvent(key, row["until"], None))
    return tuple(events)


def _end_expired(connection: sqlite3.Connection, project: str, now: float) -> None:
    connection.execute(
        "UPDATE workflow SET ended_at = until WHERE project = ? AND ended_at IS NULL AND until <= ?", (project, now)
    )


_SESSION_CAUSES = "session:*"
"""The causes of references that name a session."""

SELECT_REFERENCING_RUNS = (
    "SELECT DISTINCT coalesce(renamed.value, entry_id) AS id, coalesce(workflow, cause) AS run "
    "FROM reference LEFT JOIN json_each(?) AS renamed ON renamed.key = entry_id "
    "WHERE store = ? AND (workflow IS NOT NULL OR cause GLOB 'session:*')"
)
"""The workflows and sessions that referenced entries, by the ids that these have in the file."""


def recent_runs(connection: sqlite3.Connection, project: str, store: str, first: date) -> Mapping[str, date]:
    """Return the workflows that began on this day or later, and the sessions that referenced anything since, with days.

    Older workflows do not count, even if they still run.
    """
    since = datetime.combine(first, datetime.min.time()).timestamp()
    workflows = connection.execute(
        "SELECT key, min(coalesce(started_at, first_seen), first_seen) AS began FROM workflow "
        "WHERE project = ? AND min(coalesce(started_at, first_seen), first_seen) >= ?",
        (project, since),
    )
    runs = {str(row["key"]): local_date(row["began"]) for row in workflows}
    sessions = connection.execute(
        "SELECT cause, max(day) AS day FROM reference WHERE store = ? AND workflow IS NULL AND cause GLOB ? "
        "GROUP BY cause HAVING max(day) >= ?",
        (store, _SESSION_CAUSES, first.isoformat()),
    )
    return runs | {str(row["cause"]): date.fromisoformat(row["day"]) for row in sessions}


def count_runs_since(runs: Mapping[str, date], day: date | None) -> int:
    """Return how many of the runs there were since an entry was first seen on this day; None is unknown, so all."""
    return sum(day is None or ran >= day for ran in runs.values())


def active_days(connection: sqlite3.Connection, project: str, today: date) -> frozenset[date]:
    """Return the local days on which a workflow ran in the project or its memory changed."""
    rows = connection.execute("SELECT day FROM project_activity WHERE project = ?", (project,))
    days = {date.fromisoformat(row["day"]) for row in rows}
    for row in connection.execute("SELECT first_seen, ended_at FROM workflow WHERE project = ?", (project,)):
        day = local_date(row["first_seen"])
        last = today if row["ended_at"] is None else min(local_date(row["ended_at"]), today)
        while day <= last:
            days.add(day)
            day += timedelta(days=1)
    return frozenset(days)
