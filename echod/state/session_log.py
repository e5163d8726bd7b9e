"""Record how far transcripts were read, which records archives contain, what hooks reported, and completed tasks.

The receipts beside the archives contain the same and are the truth. This is what is needed to look something up among
a hundred thousand records, and to see that a transcript has not changed.

A task's key is stored before its entry is committed and confirmed afterwards. After a crash in between, the keys show
which tasks to look for in the memory file.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from echod.state.database import Database

HINT_RETENTION_SECONDS = 60 * 86_400.0
"""Hosts delete transcripts after 30 days, and a hint is useless without one."""


class SourceState(StrEnum):
    """The result of the last look at a transcript: its conversation was archived, or why it was not.

    `UNDONE` and `FORGOTTEN` are decisions of the user. The first holds until the transcript changes.
    """

    ARCHIVED = "archived"
    SKIPPED = "skipped"
    UNDONE = "undone"
    FORGOTTEN = "forgotten"


class SourceRecord(NamedTuple):
    """The last look at a transcript.

    Attributes:
        store: the directory of the archives.
        project: the root of the project; "" if the user named the transcript and the directory.
        archive: the number of the newest archive of the session; None if there is none.
        size, mtime_ns: of the transcript at that look.
        offset: how many bytes were read.
        tail: the digest of the bytes before `offset`.
        recorded_at: Unix seconds.
    """

    store: str
    path: str
    project: str
    session_id: str
    state: SourceState
    reason: str
    archive: int | None
    size: int
    mtime_ns: int
    offset: int
    tail: str
    recorded_at: float


class SessionHint(NamedTuple):
    """The reports of hooks about a session, in Unix seconds; None where nothing was reported."""

    ended_at: float | None = None
    compacting_at: float | None = None


class SessionLog:
    """The records about transcripts and archives. Thread-safe; several processes may use it."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def find_source(self, store: str, path: str) -> SourceRecord | None:
        """Return the last look at a transcript, or None."""
        with self._database.read_transaction() as connection:
            row = connection.execute(
                "SELECT * FROM session_source WHERE store = ? AND path = ?", (store, path)
            ).fetchone()
        return None if row is None else _source_from_row(row)

    def list_sources(self, store: str) -> Mapping[str, SourceRecord]:
        """Return the last look at each transcript for a directory of archives, by path."""
        with self._database.read_transaction() as connection:
            rows = connection.execute("SELECT * FROM session_source WHERE store = ?", (store,)).fetchall()
        return {row["path"]: _source_from_row(row) for row in rows}

    def put_source(self, record: SourceRecord) -> None:
        """Replace the last look at a transcript."""
        with self._database.write_transaction() as connection:
            _put_source(connection, record)

    def mark_sources(self, store: str, session_id: str, state: SourceState, reason: str) -> int:
        """Change the state of all transcripts of a session, and return their number."""
        with self._database.write_transaction() as connection:
            return connection.execute(
                "UPDATE session_source SET state = ?, reason = ?, archive = NULL WHERE store = ? AND session_id = ?",
                (state.value, reason, store, session_id),
            ).rowcount

    @contextmanager
    def key_lookup(self, store: str) -> Iterator[Callable[[int], int | None]]:
        """Return a function that returns the archive which has a record, or None. All calls see one state."""
        with self._database.read_transaction() as connection:

            def find(key: int) -> int | None:
                row = connection.execute(
                    "SELECT archive FROM session_key WHERE store = ? AND key = ?", (store, key)
                ).fetchone()
                return None if row is None else int(row["archive"])

            yield find

    def root_version(self, store: str) -> str | None:
        """Return the version of the receipts that were last read, or None."""
        with self._database.read_transaction() as connection:
            row = connection.execute("SELECT version FROM session_root WHERE store = ?", (store,)).fetchone()
        return None if row is None else str(row["version"])

    def list_roots(self) -> tuple[str, ...]:
        """Return every directory of archives that was ever used."""
        with self._database.read_transaction() as connection:
            return tuple(row["store"] for row in connection.execute("SELECT store FROM session_root ORDER BY store"))

    def archives_of(self, store: str, session_id: str) -> tuple[int, ...]:
        """Return the numbers of the archives of a session, in order."""
        with self._database.read_transaction() as connection:
            rows = connection.execute(
                "SELECT archive FROM session_archive WHERE store = ? AND session_id = ? ORDER BY archive",
                (store, session_id),
            ).fetchall()
        return tuple(int(row["archive"]) for row in rows)

    def replace_root(
        self,
        store: str,
        version: str,
        sources: Iterable[SourceRecord],
        archives: Mapping[int, str],
        keys: Iterable[tuple[int, int]],
    ) -> None:
        """Replace everything that is known of the archives in a directory (by number, with their sessions).

        Looks at transcripts that led to no archive stay.
        """
        with self._database.write_transaction() as connection:
            connection.execute("DELETE FROM session_key WHERE store = ?", (store,))
            connection.execute(
                "DELETE FROM session_source WHERE store = ? AND state = ?", (store, SourceState.ARCHIVED.value)
            )
            for source in sources:
                _put_source(connection, source)
            connection.execute("DELETE FROM session_archive WHERE store = ?", (store,))
            _put_archives(connection, store, archives)
            _add_keys(connection, store, keys)
            _set_version(connection, store, version)

    def record_archive(
        self,
        sources: Iterable[SourceRecord],
        store: str,
        version: str,
        archives: Mapping[int, str],
        keys: Mapping[int, int],
    ) -> None:
        """Record that an archive was written: its transcripts, its session, its records, and the receipts' version."""
        with self._database.write_transaction() as connection:
            _put_archives(connection, store, archives)
            for source in sources:
                _put_source(connection, source)
            _add_keys(connection, store, keys.items())
            _set_version(connection, store, version)

    def hints(self, session_ids: Collection[str]) -> Mapping[str, SessionHint]:
        """Return what hooks reported about these sessions, by session."""
        with self._database.read_transaction() as connection:
            rows = connection.execute(
                "SELECT * FROM session_hint WHERE session_id IN (SELECT value FROM json_each(?))",
                (json.dumps(list(session_ids)),),
            ).fetchall()
        return {row["session_id"]: SessionHint(row["ended_at"], row["compacting_at"]) for row in rows}

    def put_hint(self, session_id: str, hint: SessionHint, now: float) -> None:
        """Record what a hook reported. Times that are None keep their value. Very old hints are deleted."""
        with self._database.write_transaction() as connection:
            connection.execute(
                "INSERT INTO session_hint (session_id, ended_at, compacting_at) VALUES (?, ?, ?) "
                "ON CONFLICT (session_id) DO UPDATE SET ended_at = coalesce(excluded.ended_at, ended_at), "
                "compacting_at = coalesce(excluded.compacting_at, compacting_at)",
                (session_id, hint.ended_at, hint.compacting_at),
            )
            connection.execute(
                "DELETE FROM session_hint WHERE max(coalesce(ended_at, 0), coalesce(compacting_at, 0)) < ?",
                (now - HINT_RETENTION_SECONDS,),
            )

    def clear_compacting(self, session_id: str) -> None:
        """Forget that the host began to compact a session, because its checkpoint was made."""
        with self._database.write_transaction() as connection:
            connection.execute("UPDATE session_hint SET compacting_at = NULL WHERE session_id = ?", (session_id,))


def _source_from_row(row: sqlite3.Row) -> SourceRecord:
    values = {name: row[name] for name in SourceRecord._fields}
    return SourceRecord(**{**values, "state": SourceState(row["state"])})


def _put_source(connection: sqlite3.Connection, record: SourceRecord) -> None:
    names = SourceRecord._fields
    connection.execute(
        f"INSERT OR REPLACE INTO session_source ({', '.join(names)}) VALUES ({', '.join('?' * len(names))})",  # noqa: S608
        (*record[:4], record.state.value, *record[5:]),
    )


def _add_keys(connection: sqlite3.Connection, store: str, keys: Iterable[tuple[int, int]]) -> None:
    connection.executemany(
        "INSERT INTO session_key (store, key, archive) VALUES (?, ?, ?) ON CONFLICT (store, key) DO NOTHING",
        [(store, key, archive) for key, archive in keys],
    )


def _put_archives(connection: sqlite3.Connection, store: str, archives: Mapping[int, str]) -> None:
    connection.executemany(
        "INSERT OR REPLACE INTO session_archive (store, archive, session_id) VALUES (?, ?, ?)",
        [(store, archive, session_id) for archive, session_id in archives.items()],
    )


def _set_version(connection: sqlite3.Connection, store: str, version: str) -> None:
    connection.execute(
        "INSERT INTO session_root (store, version) VALUES (?, ?) "
        "ON CONFLICT (store) DO UPDATE SET version = excluded.version",
        (store, version),
    )


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
