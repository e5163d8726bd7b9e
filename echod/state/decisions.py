"""Keep what the user decided in plain files beside the database, and read it back into a new one.

A database that was damaged or deleted is rebuilt empty, since everything else in it is found again on the disk. The
user's decisions are not: pins, answers to review items, held and released first prunes, and declared workflows. Each
store has one file with all of its decisions, and so has each project with declared workflows:

    {state}/decisions/{digest of the store or project}.json

A file is replaced durably inside the transaction that changes the rows. So files are written in the order of the
transactions, and an acknowledged decision is in both places.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

from echod.errors import os_reason
from echod.files import write_private_durable
from echod.log import get_logger
from echod.state.database import DatabaseUnavailableError

log = get_logger(__name__)

_SUFFIX: Final = ".json"


class _Table(NamedTuple):
    """The columns of a table that hold decisions, and the column that names the store or project."""

    name: str
    owner: str
    columns: tuple[str, ...]
    condition: str = "true"


_TABLES: Final = (
    _Table("pin", "store", ("store", "entry_id", "until")),
    _Table("review_answer", "store", ("item_id", "store", "answer", "answered_at")),
    _Table("question_subject", "store", ("store", "finding_key", "asked_entry_id", "current_entry_id")),
    _Table("prune_state", "store", ("store", "role", "last_pruned_on", "archived_learnings", "held_since", "released")),
    _Table(
        "workflow",
        "project",
        ("project", "key", "kind", "name", "started_at", "first_seen", "ended_at", "until", "pid", "pid_started"),
        "until IS NOT NULL AND ended_at IS NULL",
    ),
)


class DecisionsNotSavedError(DatabaseUnavailableError):
    """A file of decisions cannot be written, so that a decision would be lost with the database."""


def decisions_directory(database: Path) -> Path:
    """Return the directory of the files that belong to the database at this path."""
    return database.parent / "decisions"


def save_decisions(connection: sqlite3.Connection, database: Path, owner: str) -> None:
    """Write the decisions about a store or project, within the write transaction that changed them.

    Without changes nothing is written.

    Raises:
        DecisionsNotSavedError: the file cannot be written. The caller's transaction must not be committed.
    """
    file = _file_of(database, owner)
    rows = {table.name: rows for table in _TABLES if (rows := _select(connection, table, owner))}
    data = json.dumps({"owner": owner, "rows": rows}, indent=1, sort_keys=True).encode()
    try:
        present = file.read_bytes() if file.exists() else b""
        if present != data and (rows or present):
            write_private_durable(file, data)
    except OSError as error:
        raise DecisionsNotSavedError(f"{file} cannot be written: {os_reason(error)}. Nothing was changed.") from error


def save_all_decisions(connection: sqlite3.Connection, database: Path) -> None:
    """Write the decisions about every store and project; see `save_decisions`."""
    owners = {row[0] for table in _TABLES for row in connection.execute(f"SELECT {table.owner} FROM {table.name}")}  # noqa: S608
    for owner in sorted(owners):
        save_decisions(connection, database, owner)


def delete_decisions(database: Path, owner: str) -> None:
    """Delete the file of a store or project whose data is deleted."""
    _file_of(database, owner).unlink(missing_ok=True)


def restore_decisions(connection: sqlite3.Connection, database: Path) -> None:
    """Insert the decisions of all files into a new database, within the transaction that creates its tables.

    A file that cannot be read is moved aside, since the next decision would replace it.
    """
    for file in sorted(decisions_directory(database).glob(f"*{_SUFFIX}")):
        try:
            values = json.loads(file.read_bytes())
            rows = [(table, row) for table in _TABLES for row in _checked_rows(values["rows"], table)]
        except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
            log.warning("decisions_unreadable", file=str(file), reason=str(error))
            file.rename(file.with_suffix(".unreadable"))
            continue
        for table, row in rows:
            columns = ", ".join(table.columns)
            marks = ", ".join("?" * len(table.columns))
            connection.execute(f"INSERT OR REPLACE INTO {table.name} ({columns}) VALUES ({marks})", row)  # noqa: S608


def _select(connection: sqlite3.Connection, table: _Table, owner: str) -> list[list[Any]]:
    columns = ", ".join(table.columns)
    select = f"SELECT {columns} FROM {table.name} WHERE {table.owner} = ? AND {table.condition} ORDER BY {columns}"  # noqa: S608
    return [list(row) for row in connection.execute(select, (owner,))]


def _checked_rows(rows_by_table: dict[str, list[list[Any]]], table: _Table) -> Iterator[tuple[Any, ...]]:
    for row in rows_by_table.get(table.name, []):
        if len(row) != len(table.columns):
            raise ValueError(f"a row of {table.name} has {len(row)} values")
        yield tuple(row)


def _file_of(database: Path, owner: str) -> Path:
    return decisions_directory(database) / f"{hashlib.sha256(owner.encode()).hexdigest()[:16]}{_SUFFIX}"
