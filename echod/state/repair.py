"""Check the database, move a damaged one aside and rebuild it, and delete the rows of a removed project.

The database can be rebuilt empty because it contains no memory: pending work is found again on the disk, the journal of
commits does not depend on it, and the user's decisions are read back (`echod.state.decisions`). The rest is lost
(`LOST_WITH_DATABASE`).

A row belongs to a project if the table has a column `store` or `project`. Later tables are found in the same way.
"""

from __future__ import annotations

import contextlib
import json
import sqlite3
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from typing import Final, NamedTuple

from echod.errors import StateError
from echod.lazy import lazy_imports
from echod.state.database import Database, DatabaseDamagedError, busy_error, damaged_error
from echod.state.decisions import delete_decisions, name_moved_store, save_decisions

with lazy_imports(__name__):
    import filelock

DATABASE_SUFFIXES: Final = ("", "-wal", "-shm")
"""The suffixes of a database's files."""
LOST_WITH_DATABASE: Final = (
    "Your decisions were kept. The list of earlier jobs, and the ages and references of entries, are lost."
)
"""The effect of a rebuild, in sentences for the user."""
_LOCK_SECONDS: Final = 10.0
_MAX_DAMAGED_COPIES: Final = 3
_IN_JSON: Final = "IN (SELECT value FROM json_each(?))"


class DatabaseRebuild(NamedTuple):
    """The replacement of a damaged database by an empty one. `moved_to` is the damaged file.

    `rebuilt_at` is in Unix seconds. `reason` is the result of the check.
    """

    rebuilt_at: float
    moved_to: Path
    reason: str


class CheckedDatabase(NamedTuple):
    """A database that passed its check, and its rebuild if there was one."""

    database: Database
    rebuild: DatabaseRebuild | None


def open_checked(path: Path, clock: Callable[[], float]) -> CheckedDatabase:
    """Open the database, check every page, and rebuild it if it is damaged. For the daemon and writing commands.

    Raises:
        StateError: the database cannot be used for another reason than damage; nothing was moved.
    """
    try:
        return CheckedDatabase(_open_and_check(path), None)
    except DatabaseDamagedError:
        return _rebuild(path, clock)


def check_integrity(database: Database) -> None:
    """Check every page. The database may be in use by a daemon.

    Raises:
        DatabaseDamagedError: pages contradict each other.
        StateError: the database cannot be read.
    """
    with database.read_transaction() as connection:
        result = [str(row[0]) for row in connection.execute("PRAGMA quick_check(5)")]
    if result != ["ok"]:
        raise damaged_error(database.path) from sqlite3.DatabaseError("; ".join(result))


def list_damaged_copies(path: Path) -> tuple[Path, ...]:
    """List the damaged databases that were moved aside, oldest first. The user may inspect and delete them."""
    copies = path.parent.glob(f"{path.name}.damaged-*")
    return tuple(sorted(copy for copy in copies if not copy.name.endswith(DATABASE_SUFFIXES[1:])))


def _open_and_check(path: Path) -> Database:
    database = Database.open(path)
    try:
        check_integrity(database)
    except BaseException:
        database.close()
        raise
    return database


def _rebuild(path: Path, clock: Callable[[], float]) -> CheckedDatabase:
    try:
        # Of two processes that find the damage, the second must not move the new database of the first aside.
        with filelock.FileLock(path.with_name(f"{path.name}.lock"), timeout=_LOCK_SECONDS, mode=0o600):
            try:
                return CheckedDatabase(_open_and_check(path), None)
            except DatabaseDamagedError as error:
                now = clock()
                rebuild = DatabaseRebuild(now, _move_aside(path, now), str(error.__cause__ or error))
                return CheckedDatabase(_open_and_check(path), rebuild)
    except filelock.Timeout as error:
        raise busy_error(path) from error
    except OSError as error:
        raise StateError(
            f"The state database {path} is damaged and cannot be moved aside: {error.strerror}. Move it away by hand."
        ) from error


def _move_aside(path: Path, now: float) -> Path:
    stem = f"{path.name}.damaged-{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime(now))}"
    target, number = path.with_name(stem), 1
    while target.exists():
        number += 1
        target = path.with_name(f"{stem}-{number}")
    # The database first: if the process is killed here, SQLite removes a log that it finds without a database.
    for suffix in DATABASE_SUFFIXES:
        with contextlib.suppress(FileNotFoundError):
            path.with_name(path.name + suffix).rename(target.with_name(target.name + suffix))
    for old in list_damaged_copies(path)[:-_MAX_DAMAGED_COPIES]:
        for suffix in DATABASE_SUFFIXES:
            old.with_name(old.name + suffix).unlink(missing_ok=True)
    return target


def count_project_rows(database: Database, project: str, stores: Collection[str]) -> int:
    """Count the rows of a project and its stores."""
    with database.read_transaction() as connection:
        return sum(
            int(connection.execute(f"SELECT count(*) FROM {table} WHERE {column} {_IN_JSON}", (names,)).fetchone()[0])  # noqa: S608
            for table, column, names in _project_columns(connection, project, stores)
        )


def delete_project_rows(database: Database, project: str, stores: Collection[str]) -> int:
    """Delete the rows of a project and its stores, and return their number."""
    for owner in (project, *stores):
        delete_decisions(database.path, owner)
    with database.write_transaction() as connection:
        return sum(
            connection.execute(f"DELETE FROM {table} WHERE {column} {_IN_JSON}", (names,)).rowcount  # noqa: S608
            for table, column, names in list(_project_columns(connection, project, stores))
        )


def move_project_rows(database: Database, old: str, new: str, stores: Mapping[str, str]) -> int:
    """Give the rows of a project and its stores their new paths, and return their number.

    `stores` maps old keys to new ones. A row that exists at the new path is replaced, since the older records are
    more complete. A pending job is planned again from the disk.
    """
    paths = {**stores, old: new}
    with database.write_transaction() as connection:
        pending = f"DELETE FROM job WHERE state IN ('queued', 'deferred') AND store {_IN_JSON}"  # noqa: S608
        connection.execute(pending, (json.dumps(list(stores)),))
        for old_key, new_key in stores.items():
            name_moved_store(connection, old_key, new_key)
        moved = 0
        for table, column, names in list(_project_columns(connection, old, list(stores))):
            for name in json.loads(names):
                statement = f"UPDATE OR REPLACE {table} SET {column} = ? WHERE {column} = ?"  # noqa: S608
                moved += connection.execute(statement, (paths[name], name)).rowcount
        for owner in paths.values():
            save_decisions(connection, database.path, owner)
    for owner in paths:
        delete_decisions(database.path, owner)
    return moved


def copy_entry_rows(database: Database, old: str, new: str, role: str) -> None:
    """Copy the records of a role's entries, with their references and pins, from one store to another.

    Rows that the new store has already stay as they are. The old rows stay for an undo.
    """
    ids = "SELECT id FROM entry WHERE store = ? AND role = ?"
    copies = (
        ("entry", "role = ?", (role,)),
        ("reference", f"entry_id IN ({ids})", (old, role)),
        ("pin", f"entry_id IN ({ids})", (old, role)),
    )
    with database.write_transaction() as connection:
        for table, condition, values in copies:
            rows = connection.execute(f'PRAGMA table_info("{table}")').fetchall()
            columns = ", ".join(row["name"] for row in rows if row["name"] != "store")
            connection.execute(
                f"INSERT OR IGNORE INTO {table} (store, {columns}) "  # noqa: S608  names from the schema
                f"SELECT ?, {columns} FROM {table} WHERE store = ? AND {condition}",
                (new, old, *values),
            )
        save_decisions(connection, database.path, new)


def list_entry_stores(database: Database) -> tuple[str, ...]:
    """Return the keys of all stores with recorded entries."""
    with database.read_transaction() as connection:
        return tuple(str(row[0]) for row in connection.execute("SELECT DISTINCT store FROM entry ORDER BY store"))


def list_present_entries(database: Database, store: str) -> frozenset[tuple[str, str]]:
    """Return role and id of the entries that were in a store's memory files when echod last looked."""
    with database.read_transaction() as connection:
        rows = connection.execute("SELECT role, id FROM entry WHERE store = ? AND removed_on IS NULL", (store,))
        return frozenset((str(role), str(identity)) for role, identity in rows)


def _project_columns(
    connection: sqlite3.Connection, project: str, stores: Collection[str]
) -> Iterator[tuple[str, str, str]]:
    """Yield each table with the column that names the project or store, and the wanted values of it as JSON."""
    wanted = {"store": json.dumps(sorted(stores)), "project": json.dumps([project])}
    tables = connection.execute(
        "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
    ).fetchall()
    for (table,) in tables:
        for row in connection.execute(f'PRAGMA table_info("{table}")').fetchall():
            if row["name"] in wanted:
                yield f'"{table}"', row["name"], wanted[row["name"]]
