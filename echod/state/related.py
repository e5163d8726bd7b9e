"""Store groups of related entries, which a client of the MCP server declares.

A group is no fact about a file, so no job reads it. It is shown with the results of a search
and moves along when the id of an entry changes.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from echod.state.database import Database

MAX_GROUP_SIZE = 50
"""The number of entries in a group. More of them say nothing about each other."""


class RelatedEntry(NamedTuple):
    """An entry of a group, by store and id, with its similarity to the group (0..1)."""

    store: str
    id: str
    similarity: float


class RelatedEntries:
    """The groups of all stores. Thread-safe; several processes may use it."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, group: str, entries: Iterable[RelatedEntry]) -> None:
        """Add entries to a group. An entry that is already in it gets its new similarity."""
        with self._database.write_transaction() as connection:
            connection.executemany(
                "INSERT OR REPLACE INTO related_entry (store, group_id, entry_id, similarity) VALUES (?, ?, ?, ?)",
                [(entry.store, group, entry.id, entry.similarity) for entry in entries],
            )

    def related_to(self, stores: Collection[str], ids: Iterable[str]) -> Mapping[str, tuple[str, ...]]:
        """Return the ids of the entries that share a group with each of these entries, the most similar first."""
        with self._database.read_transaction() as connection:
            rows = connection.execute(
                "SELECT DISTINCT one.entry_id AS id, other.entry_id AS related FROM related_entry AS one "
                "JOIN related_entry AS other ON other.group_id = one.group_id "
                "WHERE one.entry_id <> other.entry_id AND one.entry_id IN (SELECT value FROM json_each(:ids)) "
                "AND one.store IN (SELECT value FROM json_each(:stores)) "
                "AND other.store IN (SELECT value FROM json_each(:stores)) ORDER BY other.similarity DESC, related",
                {"ids": json.dumps(list(ids)), "stores": json.dumps(list(stores))},
            ).fetchall()
        found: dict[str, list[str]] = {}
        for row in rows:
            known = found.setdefault(row["id"], [])
            if row["related"] not in known and len(known) < MAX_GROUP_SIZE:
                known.append(row["related"])
        return {identity: tuple(related) for identity, related in found.items()}
