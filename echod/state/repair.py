"""Opening the database for whoever works on it: checked first, and if damaged, moved aside and rebuilt empty.

The queue can be rebuilt because it holds no memory: what there is to do is read from the disk again, and the journal
of commits does not depend on it. What is lost is history: finished jobs, workflows seen, the dead jobs' memo.

The damaged databases that `rescue` moved aside.

Rows about a project that nobody wants kept any more: how many there are, and how they go.

A row is about a project if a column says so: `store` or `project`. Tables to come are found in the same way.
"""

from __future__ import annotations

import contextlib
import json
import sqlite3
import time
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import Final, NamedTuple

from echod.errors import StateError
from echod.state import errors
from echod.state.database import Database

DATABASE_SUFFIXES: Final = ("", "-wal", "-shm")
"""The files of a database."""


def list_damaged_copies(path: Path) -> tuple[Path, ...]:
    """The databases that were moved aside, oldest first; a person may look at them and delete them."""
    return tuple(
        sorted(
            copy for copy in path.parent.glob(f"{path.name}.damaged-*") if not copy.name.endswith(DATABASE_SUFFIXES[1:])
        )
    )


_LOCK_SECONDS: Final = 10.0
_MAX_DAMAGED_COPIES: Final = 3


class DatabaseRebuild(NamedTuple):
    """A damaged database was replaced by an empty one at `rebuilt_at` (Unix seconds); the old one is now `moved_to`."""

    rebuilt_at: float
    moved_to: Path
    reason: str


class CheckedDatabase(NamedTuple):
    """A database that passed its check, and what had to be done for that."""

    database: Database
    rebuild: DatabaseRebuild | None


def open_checked(path: Path, clock: Callable[[], float]) -> CheckedDatabase:
    """Open the database, check every page, and rebuild it if it is damaged. For the daemon and `run --once`.

    Raises:
        StateError: it cannot be used for another reason than damage; nothing was moved.
    """
    try:
        return CheckedDatabase(_open_and_check(path), None)
    except errors.DatabaseDamagedError:
        return _rebuild(path, clock)


def _open_and_check(path: Path) -> Database:
    database = Database.open(path)
    try:
        check_integrity(database)
    except BaseException:
        database.close()
        raise
    return database


def check_integrity(database: Database) -> None:
    """Look at every page, those of an open daemon's database too.

    Raises:
        DatabaseDamagedError: pages contradict each other.
        StateError: it cannot be read.
    """
    with database.read_transaction() as connection:
        verdict = [str(row[0]) for row in connection.execute("PRAGMA quick_check(5)")]
    if verdict != ["ok"]:
        raise errors.damaged_error(database.path) from sqlite3.DatabaseError("; ".join(verdict))


def _rebuild(path: Path, clock: Callable[[], float]) -> CheckedDatabase:
    from filelock import FileLock, Timeout  # noqa: PLC0415  slow to load, and hardly ever needed

    try:
        # Of two processes that find the damage, the second must not move the first one's new database aside.
        with FileLock(path.with_name(f"{path.name}.lock"), timeout=_LOCK_SECONDS, mode=0o600):
            try:
                return CheckedDatabase(_open_and_check(path), None)
            except errors.DatabaseDamagedError as error:
                now = clock()
                rebuilt = DatabaseRebuild(now, _move_aside(path, now), str(error.__cause__ or error))
                return CheckedDatabase(_open_and_check(path), rebuilt)
    except Timeout as error:
        raise errors.busy_error(path) from error
    except OSError as error:
        raise StateError(
            f"The state database {path} is damaged and cannot be moved aside: {error.strerror}; move it away by hand."
        ) from error


def _move_aside(path: Path, now: float) -> Path:
    stem = f"{path.name}.damaged-{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime(now))}"
    target, number = path.with_name(stem), 1
    while target.exists():
        number += 1
        target = path.with_name(f"{stem}-{number}")
    # The database first: should we die here, SQLite removes a log that it finds without one.
    for suffix in DATABASE_SUFFIXES:
        with contextlib.suppress(FileNotFoundError):
            path.with_name(path.name + suffix).rename(target.with_name(target.name + suffix))
    for old in list_damaged_copies(path)[:-_MAX_DAMAGED_COPIES]:
        for suffix in DATABASE_SUFFIXES:
            old.with_name(old.name + suffix).unlink(missing_ok=True)
    return target


_IN_JSON = "IN (SELECT value FROM json_each(?))"


def count_project_rows(database: Database, project: str, stores: Collection[str]) -> int:
    """How many rows are about a project or one of its stores."""
    with database.read_transaction() as connection:
        return sum(
            int(connection.execute(f"SELECT count(*) FROM {table} WHERE {column} {_IN_JSON}", (names,)).fetchone()[0])  # noqa: S608
            for table, column, names in _project_columns(connection, project, stores)
        )


def delete_project_rows(database: Database, project: str, stores: Collection[str]) -> int:
    """Remove them; how many they were."""
    with database.write_transaction() as connection:
        return sum(
            connection.execute(f"DELETE FROM {table} WHERE {column} {_IN_JSON}", (names,)).rowcount  # noqa: S608
            for table, column, names in list(_project_columns(connection, project, stores))
        )


def _project_columns(
    connection: sqlite3.Connection, project: str, stores: Collection[str]
) -> Iterator[tuple[str, str, str]]:
    """Each table with the column that says what its rows are about, and which values of it are meant, as JSON."""
    wanted = {"store": json.dumps(sorted(stores)), "project": json.dumps([project])}
    tables = connection.execute(
        "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
    ).fetchall()
    for (table,) in tables:
        for row in connection.execute(f'PRAGMA table_info("{table}")').fetchall():
            if row["name"] in wanted:
                yield f'"{table}"', row["name"], wanted[row["name"]]
