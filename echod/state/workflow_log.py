"""Workflows that were seen in a project or announced for it, each once, and when they ended.

What a marker means is not known here, nor whether a process lives: that is for the gate to say. `project` is the
absolute path of the project's root.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from typing import NamedTuple

from echod.state.database import Database


class WorkflowSnapshot(NamedTuple):
    """A workflow as one look at a project shows it. Times are Unix seconds.

    Attributes:
        key: its identity, the same in every look at the same run; unique within a project.
        kind: which workflow: review, work, arc, ...
        name: how its markers call it.
        started_at: when it began, if it says so.
        running: whether it still runs, as far as one can tell.
        ended_at: when it ended; None while it runs, or if nothing tells.
    """

    key: str
    kind: str
    name: str
    started_at: float | None
    running: bool
    ended_at: float | None


class WorkflowChanges(NamedTuple):
    """What a look brought that was not known: the keys of the workflows that began and that ended."""

    started_keys: tuple[str, ...] = ()
    ended_keys: tuple[str, ...] = ()


class WorkflowDeclaration(NamedTuple):
    """A workflow that someone announced: its process, if it has one, and the end agreed beforehand (Unix seconds)."""

    name: str
    pid: int | None
    pid_started: float | None
    started_at: float
    until: float


class WorkflowLog:
    """The workflows of all projects. All times are Unix seconds, passed in."""

    def __init__(self, database: Database) -> None:
        self._database = database

    # Seen

    def record(self, project: str, snapshots: Sequence[WorkflowSnapshot], now: float) -> WorkflowChanges:
        """Note what one complete look at a project showed; returns what is new.

        A workflow that ran and is not there any more has ended now: its markers were cleaned away. Not to be called
        with an incomplete look. A look that shows nothing new writes nothing.
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
        """When a workflow of the project last ended, as far as was noted."""
        with self._database.read_transaction() as connection:
            found = connection.execute("SELECT max(ended_at) FROM workflow WHERE project = ?", (project,)).fetchone()
        return None if found[0] is None else float(found[0])

    # Announced

    def begin(
        self, project: str, name: str, *, pid: int | None, pid_started: float | None, until: float, now: float
    ) -> None:
        """Announce a workflow that lasts until `end`, until its process is gone, or until `until`.

        Announced again while it lasts, it is the same workflow with another process and end.
        """
        with self._database.write_transaction() as connection:
            _end_expired(connection, project, now)
            renewed = connection.execute(
                "UPDATE workflow SET pid = ?, pid_started = ?, until = ? "
                "WHERE project = ? AND name = ? AND until IS NOT NULL AND ended_at IS NULL",
                (pid, pid_started, until, project, name),
            ).rowcount
            if not renewed:
                # The key is the one under which the gate counts announced workflows. Ended and begun again within a
                # second, it is the same and goes on.
                connection.execute(
                    "INSERT INTO workflow (project, key, kind, name, started_at, first_seen, until, pid, pid_started) "
                    "VALUES (:project, :key, 'declared', :name, :now, :now, :until, :pid, :pid_started) "
                    "ON CONFLICT (project, key) DO UPDATE SET ended_at = NULL, until = excluded.until, "
                    "pid = excluded.pid, pid_started = excluded.pid_started",
                    {
                        "project": project,
                        "key": f"declared:{name}:{now:.0f}",
                        "name": name,
                        "now": now,
                        "until": until,
                        "pid": pid,
                        "pid_started": pid_started,
                    },
                )

    def end(self, project: str, name: str, now: float) -> bool:
        """An announced workflow is over; False if none of that name lasted."""
        with self._database.write_transaction() as connection:
            _end_expired(connection, project, now)
            ended = connection.execute(
                "UPDATE workflow SET ended_at = ? "
                "WHERE project = ? AND name = ? AND until IS NOT NULL AND ended_at IS NULL",
                (now, project, name),
            )
            return ended.rowcount > 0

    def list_declared(self, project: str, now: float) -> tuple[WorkflowDeclaration, ...]:
        """The announced workflows that were not ended and have not run out. Their processes are not looked at."""
        with self._database.read_transaction() as connection:
            found = connection.execute(
                "SELECT name, pid, pid_started, started_at, until FROM workflow "
                "WHERE project = ? AND ended_at IS NULL AND until > ? ORDER BY id",
                (project, now),
            ).fetchall()
        return tuple(
            WorkflowDeclaration(row["name"], row["pid"], row["pid_started"], row["started_at"], row["until"])
            for row in found
        )


class _WorkflowEvent(NamedTuple):
    """Something to be noted: a workflow began (`ended_at` is None) or ended. `snapshot` is set if it was not known."""

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
    """What the sightings add to what is known."""
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
            # An announced workflow that was ended since the look stays ended.
            if row is None or (row["ended_at"] is not None and row["until"] is None):
                events.append(_WorkflowEvent(key, None, snapshot if row is None else None))
        elif row is None or row["ended_at"] is None:
            at = now if snapshot.ended_at is None else min(snapshot.ended_at, now)
            events.append(_WorkflowEvent(key, at, snapshot if row is None else None))
    for key, row in known.items():
        if row["ended_at"] is None and key not in by_key:
            # An announcement shows nowhere on the disk; one made since the look must not be taken for gone.
            if row["until"] is None:
                events.append(_WorkflowEvent(key, now, None))
            elif row["until"] <= now:
                events.append(_WorkflowEvent(key, row["until"], None))
    return tuple(events)


def _end_expired(connection: sqlite3.Connection, project: str, now: float) -> None:
    connection.execute(
        "UPDATE workflow SET ended_at = until WHERE project = ? AND ended_at IS NULL AND until <= ?", (project, now)
    )
