"""Move the recorded data of entries to their new ids. `echod.memory.entry_matching` decides which entry is which.

An entry that left its file keeps its data under its id. If another entry has that id now, the data moves to a name
that no entry can have. It is all available again when the entry returns.

A group is no fact about a file, so no job reads it. It is shown with the results of a search
and moves along when the id of an entry changes.
"""

from __future__ import annotations

import json
import sqlite3
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from echod.memory.entry_matching import NO_ID_CHANGES, EntrySignature, PresentEntry, match_entries
from echod.state.database import Database

# Three selects, each by its own index. One condition would read every entry that ever was in the file.
_SELECT_CANDIDATES = """
    SELECT * FROM entry INDEXED BY entry_present WHERE store = ? AND role = ? AND removed_on IS NULL
    UNION SELECT * FROM entry WHERE store = ? AND role = ? AND id IN (SELECT value FROM json_each(?))
    UNION SELECT * FROM entry INDEXED BY entry_body WHERE store = ? AND role = ?
        AND body_digest IN (SELECT value FROM json_each(?))
"""
_SELECT_EARLIER = """
    SELECT * FROM earlier_signature INDEXED BY earlier_signature_body WHERE store = ? AND role = ?
        AND body_digest IN (SELECT value FROM json_each(?))
"""
_SELECT_BY_ID = "SELECT * FROM entry WHERE store = ? AND role = ? AND id IN (SELECT value FROM json_each(?))"


class EntryChanges(NamedTuple):
    """The differences between a memory file and the rows of its role.

    Attributes:
        renames: recorded id -> new id, for each row that gets another id.
        removed_ids: the recorded ids of entries that are no longer in the file.
        updated_entries: the entries of the file without a row, or with an outdated one.
        replaced_signatures: the new ids of entries whose signature changed, each with the recorded signature.
    """

    renames: Mapping[str, str]
    removed_ids: tuple[str, ...]
    updated_entries: tuple[PresentEntry, ...]
    replaced_signatures: tuple[tuple[str, EntrySignature], ...]


def compare_entries(
    connection: sqlite3.Connection,
    store: str,
    role: str,
    present: Iterable[PresentEntry],
    known_renames: Mapping[str, str] = NO_ID_CHANGES,
) -> EntryChanges:
    """Compare the entries of a file with the recorded ones. Read-only.

    Args:
        connection: in a transaction.
        store: the store's key.
        role: the role's name.
        present: the entries of the file.
        known_renames: old id -> new id, for entries that the writer of the file renamed.
    """
    current = {entry.id: entry for entry in present}
    rows = {row["id"]: row for row in _select_candidates(connection, store, role, current)}
    earlier = _select_earlier(connection, store, role, _unrecorded_signatures(current, rows))
    if unread := sorted(earlier.keys() - rows.keys()):
        rows |= {row["id"]: row for row in connection.execute(_SELECT_BY_ID, (store, role, json.dumps(unread)))}
    present_rows = {identity: row for identity, row in rows.items() if row["removed_on"] is None}
    removed_rows = {identity: row for identity, row in rows.items() if row["removed_on"] is not None}
    signatures = {identity: entry.signature for identity, entry in current.items()}
    old_ids = match_entries(_signatures(present_rows), _signatures(removed_rows), signatures, known_renames, earlier)
    renames = {old_id: identity for identity, old_id in old_ids.items() if old_id != identity}
    matched = set(old_ids.values())
    for identity in current.keys() & rows.keys() - matched:
        renames[identity] = _displaced_id(rows[identity])
    return EntryChanges(
        renames=renames,
        removed_ids=tuple(sorted(present_rows.keys() - matched)),
        updated_entries=tuple(
            entry for entry in current.values() if _is_updated(entry, rows.get(old_ids.get(entry.id, "")))
        ),
        replaced_signatures=tuple(
            (identity, signature)
            for identity, old_id in old_ids.items()
            if (signature := _signature(rows[old_id])) != signatures[identity]
        ),
    )


def rename_entries(connection: sqlite3.Connection, store: str, role: str, renames: Mapping[str, str]) -> None:
    """Give rows their new ids, all at once.

    Data that is already stored for a new id without a row of its own belongs to the entry that gets the id.
    """
    if not renames:
        return
    ids = json.dumps(sorted(renames))
    for row in _delete_returning(connection, "reference", "store = ? AND entry_id", (store, ids)):
        connection.execute(
            "INSERT INTO reference (store, entry_id, cause, workflow, day) VALUES (?, ?, ?, ?, ?) "
            "ON CONFLICT (store, entry_id, cause) DO UPDATE SET day = max(day, excluded.day)",
            (store, renames[row["entry_id"]], row["cause"], row["workflow"], row["day"]),
        )
    for row in _delete_returning(connection, "pin", "store = ? AND entry_id", (store, ids)):
        connection.execute(
            "INSERT INTO pin (store, entry_id, until) VALUES (?, ?, ?) "
            "ON CONFLICT (store, entry_id) DO UPDATE SET until = max(until, excluded.until)",
            (store, renames[row["entry_id"]], row["until"]),
        )
    for row in _delete_returning(connection, "related_entry", "store = ? AND entry_id", (store, ids)):
        connection.execute(
            "INSERT OR REPLACE INTO related_entry (store, group_id, entry_id, similarity) VALUES (?, ?, ?, ?)",
            (store, row["group_id"], renames[row["entry_id"]], row["similarity"]),
        )
    for row in connection.execute(
        "SELECT * FROM question_subject WHERE store = ? AND current_entry_id IN (SELECT value FROM json_each(?))",
        (store, ids),
    ).fetchall():
        connection.execute(
            "UPDATE question_subject SET current_entry_id = ? "
            "WHERE store = ? AND finding_key = ? AND asked_entry_id = ?",
            (renames[row["current_entry_id"]], store, row["finding_key"], row["asked_entry_id"]),
        )
    for table, column in (("entry", "id"), ("earlier_signature", "entry_id"), ("fingerprint", "entry_id")):
        for row in _delete_returning(connection, table, f"store = ? AND role = ? AND {column}", (store, role, ids)):
            values = {**dict(row), column: renames[row[column]]}
            connection.execute(
                f"INSERT OR REPLACE INTO {table} ({', '.join(values)}) "  # noqa: S608
                f"VALUES ({', '.join('?' * len(values))})",
                (*values.values(),),
            )


def _delete_returning(
    connection: sqlite3.Connection, table: str, where: str, values: tuple[str, ...]
) -> list[sqlite3.Row]:
    # Table and condition are the literals above, never data.
    selection = f"FROM {table} WHERE {where} IN (SELECT value FROM json_each(?))"  # noqa: S608
    rows = connection.execute(f"SELECT * {selection}", values).fetchall()
    connection.execute(f"DELETE {selection}", values)
    return rows


def _select_candidates(
    connection: sqlite3.Connection, store: str, role: str, present: Mapping[str, PresentEntry]
) -> list[sqlite3.Row]:
    """Return the rows of present entries, and of removed ones that may be one of the given entries."""
    ids = json.dumps(sorted(present))
    bodies = json.dumps(sorted({entry.signature.body for entry in present.values()}))
    return connection.execute(_SELECT_CANDIDATES, (store, role, store, role, ids, store, role, bodies)).fetchall()


def _unrecorded_signatures(
    present: Mapping[str, PresentEntry], rows: Mapping[str, sqlite3.Row]
) -> frozenset[EntrySignature]:
    """Return the signatures of the given entries that are not the recorded ones of their ids."""
    return frozenset(
        entry.signature
        for entry in present.values()
        if entry.id not in rows or _signature(rows[entry.id]) != entry.signature
    )


def _select_earlier(
    connection: sqlite3.Connection, store: str, role: str, wanted: Collection[EntrySignature]
) -> Mapping[str, list[EntrySignature]]:
    """Return recorded id -> those of the given signatures that the entry had before."""
    earlier: defaultdict[str, list[EntrySignature]] = defaultdict(list)
    if not wanted:
        return earlier
    bodies = json.dumps(sorted({signature.body for signature in wanted}))
    for row in connection.execute(_SELECT_EARLIER, (store, role, bodies)):
        if (signature := _signature(row)) in wanted:
            earlier[row["entry_id"]].append(signature)
    return earlier


def _signatures(rows: Mapping[str, sqlite3.Row]) -> dict[str, EntrySignature | None]:
    return {identity: _signature(row) for identity, row in rows.items()}


def _signature(row: sqlite3.Row) -> EntrySignature:
    return EntrySignature(row["title_digest"], row["date_digest"], row["source_digest"], row["body_digest"])


def _is_updated(entry: PresentEntry, row: sqlite3.Row | None) -> bool:
    if row is None or row["removed_on"] is not None or row["id"] != entry.id:
        return True
    return row["layer"] != (entry.layer and entry.layer.value) or _signature(row) != entry.signature


def _displaced_id(row: sqlite3.Row) -> str:
    return f"{row['id']}-{row['body_digest']}"


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
