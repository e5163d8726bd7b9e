"""Rows about a project that nobody wants kept any more: how many there are, and how they go.

A row is about a project if a column says so: `store` or `project`. Tables to come are found in the same way.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection, Iterator

from echod.state.database import Database

_IN = "IN (SELECT value FROM json_each(?))"


def count(database: Database, project: str, stores: Collection[str]) -> int:
    """How many rows are about a project or one of its stores."""
    with database.reading() as link:
        return sum(
            int(link.execute(f"SELECT count(*) FROM {table} WHERE {column} {_IN}", (names,)).fetchone()[0])  # noqa: S608
            for table, column, names in _places(link, project, stores)
        )


def forget(database: Database, project: str, stores: Collection[str]) -> int:
    """Remove them; how many they were."""
    with database.writing() as link:
        return sum(
            link.execute(f"DELETE FROM {table} WHERE {column} {_IN}", (names,)).rowcount  # noqa: S608
            for table, column, names in list(_places(link, project, stores))
        )


def _places(link: sqlite3.Connection, project: str, stores: Collection[str]) -> Iterator[tuple[str, str, str]]:
    """Each table with the column that says what its rows are about, and which values of it are meant, as JSON."""
    wanted = {"store": json.dumps(sorted(stores)), "project": json.dumps([project])}
    tables = link.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'").fetchall()
    for (table,) in tables:
        for row in link.execute(f'PRAGMA table_info("{table}")').fetchall():
            if row["name"] in wanted:
                yield f'"{table}"', row["name"], wanted[row["name"]]
