"""Keep what the user decided in plain files beside the database, and read it back into a new one.

A database that was damaged or deleted is rebuilt empty, since everything else in it is found again on the disk. The
user's decisions are not: pins, answers to review items, held and released first prunes, and declared workflows. Each
store has one file with all of its decisions, and so has each project with declared workflows:

    {state}/decisions/{digest of the store or project}.json

A file is replaced durably inside the transaction that changes the rows. So files are written in the order of the
transactions, and an acknowledged decision is in both places.

Both are decisions or belong to one, so they are also kept outside of the database (`echod.state.decisions`).
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum
from pathlib import Path
from typing import Any, Final, NamedTuple

from echod.errors import os_reason
from echod.files import write_private_durable
from echod.log import get_logger
from echod.state.database import Database, DatabaseUnavailableError

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
    _Table("moved_store", "store", ("store", "first_key")),
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


def name_moved_store(connection: sqlite3.Connection, old: str, new: str) -> None:
    """Record the first key of a store that is moved, within the write transaction that moves its rows."""
    moved_before = connection.execute(
        "UPDATE OR REPLACE moved_store SET store = ? WHERE store = ?", (new, old)
    ).rowcount
    if not moved_before:
        connection.execute("INSERT OR IGNORE INTO moved_store (store, first_key) VALUES (?, ?)", (new, old))


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


class ReviewAnswer(StrEnum):
    """The user's answer to an item. A dismissed one is hidden, and nothing else happens."""

    ACCEPTED = "accepted"
    REJECTED = "rejected"
    DISMISSED = "dismissed"


class ReviewAnswers:
    """The answers for all stores. An answered item is hidden until its content, and so its id, changes."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def answered_items(self, store: str) -> frozenset[str]:
        """Return the answered items of a store."""
        with self._database.read_transaction() as connection:
            rows = connection.execute("SELECT item_id FROM review_answer WHERE store = ?", (store,))
            return frozenset(row["item_id"] for row in rows)

    def is_rejected(self, store: str, item: str) -> bool:
        """Return whether the user rejected an item of a store."""
        with self._database.read_transaction() as connection:
            select = "SELECT 1 FROM review_answer WHERE store = ? AND item_id = ? AND answer = ?"
            return connection.execute(select, (store, item, ReviewAnswer.REJECTED)).fetchone() is not None

    def store_name(self, store: str) -> str:
        """Return the name of a store in the ids of its items: its first key, also after it was moved."""
        with self._database.read_transaction() as connection:
            row = connection.execute("SELECT first_key FROM moved_store WHERE store = ?", (store,)).fetchone()
        return store if row is None else str(row["first_key"])

    def record(self, store: str, items: Iterable[str], answer: ReviewAnswer, at: float) -> None:
        """Store an answer to these items, in place of an earlier one."""
        with self._database.write_transaction() as connection:
            connection.executemany(
                "INSERT INTO review_answer (item_id, store, answer, answered_at) VALUES (?, ?, ?, ?) "
                "ON CONFLICT (store, item_id) DO UPDATE SET answer = excluded.answer, "
                "answered_at = excluded.answered_at",
                [(item, store, answer.value, at) for item in items],
            )
            save_decisions(connection, self._database.path, store)


class QuestionKey(NamedTuple):
    """The key of the finding that raised a question, and the id that the entry had at that time."""

    finding_key: str
    entry_id: str


class QuestionSubjects:
    """The entries that the questions of all stores are about.

    The questions are in the journal, with the id that the entry had when the question was asked. The present id is
    stored here. A question without a row here is about the entry that has the id in the journal.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def record(self, store: str, questions: Iterable[QuestionKey]) -> None:
        """Store questions that are asked now, when the entries have the ids of the keys."""
        rows = [(store, key.finding_key, key.entry_id, key.entry_id) for key in questions]
        if not rows:
            return
        with self._database.write_transaction() as connection:
            connection.executemany(
                "INSERT INTO question_subject (store, finding_key, asked_entry_id, current_entry_id) "
                "VALUES (?, ?, ?, ?) ON CONFLICT (store, finding_key, asked_entry_id) "
                "DO UPDATE SET current_entry_id = excluded.current_entry_id",
                rows,
            )
            save_decisions(connection, self._database.path, store)

    def current_ids(self, store: str) -> Mapping[QuestionKey, str]:
        """Return the present ids of the entries, as of the last look at their file."""
        with self._database.read_transaction() as connection:
            rows = connection.execute("SELECT * FROM question_subject WHERE store = ?", (store,))
            return {QuestionKey(r["finding_key"], r["asked_entry_id"]): str(r["current_entry_id"]) for r in rows}
