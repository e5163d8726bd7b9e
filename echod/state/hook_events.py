"""What became of the events that hooks reported: which tasks are remembered already, and how often what happened.

A task's key is entered before its entry is committed and confirmed afterwards, so that after a crash in between it
is known which tasks to look for in the memory file.
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
"""How long a task is known. Its key holds the session's id, and no session is resumed after that."""


class TaskState(StrEnum):
    """`begun`: a process ended while it wrote the entry. `recorded`: the entry is in the memory file."""

    STARTED = "started"
    RECORDED = "recorded"


class TaskRecord(NamedTuple):
    """A task that was met before: how far it came, and the name of the spooled event that it came from."""

    state: TaskState
    event_name: str


@dataclass(frozen=True, slots=True)
class EventCount:
    """How often an event had an outcome, and when it last had (Unix seconds)."""

    event: str
    outcome: str
    count: int
    last_at: float


class HookEventLog:
    """The tasks and the counts; may be used by several threads and processes."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def find_tasks(self, keys: Iterable[str]) -> Mapping[str, TaskRecord]:
        """Those of the tasks that were met before."""
        with self._database.read_transaction() as connection:
            rows = connection.execute(
                "SELECT key, event, recorded_at FROM observed WHERE key IN (SELECT value FROM json_each(?))",
                (json.dumps(list(keys)),),
            ).fetchall()
        return {
            row["key"]: TaskRecord(
                TaskState.STARTED if row["recorded_at"] is None else TaskState.RECORDED, row["event"]
            )
            for row in rows
        }

    def mark_started(self, events: Mapping[str, str], now: float) -> None:
        """These tasks (key: name of the spooled event) are about to be written."""
        with self._database.write_transaction() as connection:
            connection.executemany(
                "INSERT INTO observed (key, event, begun_at) VALUES (?, ?, ?) ON CONFLICT (key) DO NOTHING",
                [(key, event, now) for key, event in events.items()],
            )

    def mark_recorded(self, keys: Iterable[str], now: float) -> None:
        """The entries of these tasks are in the memory file. Counts each; forgets what is too old to matter."""
        with self._database.write_transaction() as connection:
            recorded = connection.executemany(
                "UPDATE observed SET recorded_at = ? WHERE key = ? AND recorded_at IS NULL",
                [(now, key) for key in keys],
            ).rowcount
            _add_count(connection, "task-completed", "recorded", recorded, now)
            connection.execute("DELETE FROM observed WHERE begun_at < ?", (now - TASK_RETENTION_SECONDS,))

    def add_count(self, event: str, outcome: str, number: int, now: float) -> None:
        """So many events of a kind had this outcome."""
        with self._database.write_transaction() as connection:
            _add_count(connection, event, outcome, number, now)

    def list_counts(self) -> tuple[EventCount, ...]:
        """All that was counted, the most frequent first."""
        with self._database.read_transaction() as connection:
            rows = connection.execute("SELECT * FROM heard ORDER BY count DESC, event, outcome").fetchall()
        return tuple(EventCount(row["event"], row["outcome"], row["count"], row["last_at"]) for row in rows)


def _add_count(connection: sqlite3.Connection, event: str, outcome: str, number: int, now: float) -> None:
    if number > 0:
        connection.execute(
            "INSERT INTO heard (event, outcome, count, last_at) VALUES (?, ?, ?, ?) ON CONFLICT (event, outcome) "
            "DO UPDATE SET count = count + excluded.count, last_at = excluded.last_at",
            (event, outcome, number, now),
        )
