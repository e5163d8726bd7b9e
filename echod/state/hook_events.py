"""Record completed tasks and the outcomes of hook events.

A task's key is stored before its entry is committed and confirmed afterwards. After a crash in between, the keys show
which tasks to look for in the memory file.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from echod.state.database import Database

TASK_RETENTION_SECONDS = 180 * 86_400.0
"""How long a task is kept. Its key contains the session's id, and no session is resumed after that time."""


class TaskState(StrEnum):
    """`STARTED`: a process began to write the entry, and may have ended meanwhile. `RECORDED`: the entry is written."""

    STARTED = "started"
    RECORDED = "recorded"


class TaskRecord(NamedTuple):
    """A known task: its state, and the name of the spooled event that reported it."""

    state: TaskState
    event_name: str


@dataclass(frozen=True, slots=True)
class EventCount:
    """The number of events of a kind with an outcome, and the time of the last one (Unix seconds)."""

    event: str
    outcome: str
    count: int
    last_at: float


class HookEventLog:
    """The recorded tasks and the counts. Thread-safe; several processes may use it."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def find_tasks(self, keys: Iterable[str]) -> Mapping[str, TaskRecord]:
        """Return the known ones of these tasks, by key."""
        with self._database.read_transaction() as connection:
            rows = connection.execute(
                "SELECT key, event_name, recorded_at FROM recorded_task WHERE key IN (SELECT value FROM json_each(?))",
                (json.dumps(list(keys)),),
            ).fetchall()
        started, recorded = TaskState.STARTED, TaskState.RECORDED
        return {key: TaskRecord(started if at is None else recorded, event) for key, event, at in rows}

    def mark_started(self, events: Mapping[str, str], now: float) -> None:
        """Store that the entries of these tasks (key: name of the spooled event) are about to be written."""
        with self._database.write_transaction() as connection:
            connection.executemany(
                "INSERT INTO recorded_task (key, event_name, started_at) VALUES (?, ?, ?) ON CONFLICT (key) DO NOTHING",
                [(key, event, now) for key, event in events.items()],
            )

    def mark_recorded(self, keys: Iterable[str], now: float) -> None:
        """Store that the entries of these tasks are in the memory file, count them, and delete expired tasks."""
        with self._database.write_transaction() as connection:
            recorded = connection.executemany(
                "UPDATE recorded_task SET recorded_at = ? WHERE key = ? AND recorded_at IS NULL",
                [(now, key) for key in keys],
            ).rowcount
            _add_count(connection, "task-completed", "recorded", recorded, now)
            connection.execute("DELETE FROM recorded_task WHERE started_at < ?", (now - TASK_RETENTION_SECONDS,))

    def add_count(self, event: str, outcome: str, number: int, now: float) -> None:
        """Count `number` events of a kind with this outcome."""
        with self._database.write_transaction() as connection:
            _add_count(connection, event, outcome, number, now)

    def list_counts(self) -> tuple[EventCount, ...]:
        """List all counts, the highest first."""
        with self._database.read_transaction() as connection:
            rows = connection.execute("SELECT * FROM hook_event_count ORDER BY count DESC, event, outcome").fetchall()
        return tuple(EventCount(row["event"], row["outcome"], row["count"], row["last_at"]) for row in rows)


def _add_count(connection: sqlite3.Connection, event: str, outcome: str, number: int, now: float) -> None:
    if number > 0:
        connection.execute(
            "INSERT INTO hook_event_count (event, outcome, count, last_at) VALUES (?, ?, ?, ?) "
            "ON CONFLICT (event, outcome) "
            "DO UPDATE SET count = count + excluded.count, last_at = excluded.last_at",
            (event, outcome, number, now),
        )
