"""What is known of entries goes with them when their ids change. Rows are moved; whose they are, `memory` decides.

An entry that left the file keeps what was known of it, under its id; where another entry has that id now, under a name
that no entry can have. So it is all there again when the entry comes back.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from echod.memory.entry_matching import NO_ID_CHANGES, EntrySignature, PresentEntry, match_entries

# One after the other and each by its index: else all that ever were in the file would be looked at.
_SELECT_CANDIDATES = """
    SELECT * FROM entry INDEXED BY entry_here WHERE store = ? AND role = ? AND gone IS NULL
    UNION SELECT * FROM entry WHERE store = ? AND role = ? AND id IN (SELECT value FROM json_each(?))
    UNION SELECT * FROM entry INDEXED BY entry_body WHERE store = ? AND role = ?
        AND body IN (SELECT value FROM json_each(?))
"""


class EntryChanges(NamedTuple):
    """What a look at a file means for the rows of its role.

    Attributes:
        renames: id as it is written down -> id that the row is to have, of all rows that get another one.
        removed_ids: ids, as they are written down, of entries that are no longer in the file.
        updated_entries: entries of the file of which something else is written down than is true now, or nothing.
    """

    renames: Mapping[str, str]
    removed_ids: tuple[str, ...]
    updated_entries: tuple[PresentEntry, ...]


def compare_entries(
    connection: sqlite3.Connection,
    store: str,
    role: str,
    present: Iterable[PresentEntry],
    known_renames: Mapping[str, str] = NO_ID_CHANGES,
) -> EntryChanges:
    """Compare the entries of a file with what is written down. Arguments as in `EntryStore.see`; changes nothing."""
    now = {entry.id: entry for entry in present}
    rows = {row["id"]: row for row in _select_candidates(connection, store, role, now)}
    present_rows = {identity: row for identity, row in rows.items() if row["gone"] is None}
    absent_rows = {identity: row for identity, row in rows.items() if row["gone"] is not None}
    signatures = {identity: entry.signature for identity, entry in now.items()}
    known = match_entries(_signatures(present_rows), _signatures(absent_rows), signatures, known_renames)
    renames = {old_id: identity for identity, old_id in known.items() if old_id != identity}
    matched = set(known.values())
    for identity in now.keys() & rows.keys() - matched:
        renames[identity] = _displaced_id(rows[identity])
    return EntryChanges(
        renames=renames,
        removed_ids=tuple(sorted(present_rows.keys() - matched)),
        updated_entries=tuple(entry for entry in now.values() if _is_updated(entry, rows.get(known.get(entry.id, "")))),
    )


def rename_entries(connection: sqlite3.Connection, store: str, role: str, renames: Mapping[str, str]) -> None:
    """Give rows their new ids, all at once.

    What is written down for a new id already, without an entry of its own, was meant for the entry that gets it.
    """
    if not renames:
        return
    ids = json.dumps(sorted(renames))
    for row in _delete_returning(connection, "reference", "store = ? AND entry", (store, ids)):
        connection.execute(
            "INSERT INTO reference (store, entry, cause, workflow, day) VALUES (?, ?, ?, ?, ?) "
            "ON CONFLICT (store, entry, cause) DO UPDATE SET day = max(day, excluded.day)",
            (store, renames[row["entry"]], row["cause"], row["workflow"], row["day"]),
        )
    for row in _delete_returning(connection, "pin", "store = ? AND entry", (store, ids)):
        connection.execute(
            "INSERT INTO pin (store, entry, until) VALUES (?, ?, ?) "
            "ON CONFLICT (store, entry) DO UPDATE SET until = max(until, excluded.until)",
            (store, renames[row["entry"]], row["until"]),
        )
    for row in connection.execute(
        "SELECT finding, was, entry FROM asked WHERE store = ? AND entry IN (SELECT value FROM json_each(?))",
        (store, ids),
    ).fetchall():
        connection.execute(
            "UPDATE asked SET entry = ? WHERE store = ? AND finding = ? AND was = ?",
            (renames[row["entry"]], store, row["finding"], row["was"]),
        )
    for row in _delete_returning(connection, "entry", "store = ? AND role = ? AND id", (store, role, ids)):
        values = {**dict(row), "id": renames[row["id"]]}
        connection.execute(
            f"INSERT OR REPLACE INTO entry ({', '.join(values)}) VALUES ({', '.join('?' * len(values))})",  # noqa: S608
            (*values.values(),),
        )


def _delete_returning(
    connection: sqlite3.Connection, table: str, where: str, values: tuple[str, ...]
) -> list[sqlite3.Row]:
    # Table and condition are those above, never data.
    rows = f"FROM {table} WHERE {where} IN (SELECT value FROM json_each(?))"  # noqa: S608
    found = connection.execute(f"SELECT * {rows}", values).fetchall()
    connection.execute(f"DELETE {rows}", values)
    return found


def _select_candidates(
    connection: sqlite3.Connection, store: str, role: str, present: Mapping[str, PresentEntry]
) -> list[sqlite3.Row]:
    """The rows of entries that are in the file, and of those that left it and could be one that is there now."""
    ids, bodies = (
        json.dumps(sorted(names)) for names in (present.keys(), {e.signature.body for e in present.values()})
    )
    return connection.execute(_SELECT_CANDIDATES, (store, role, store, role, ids, store, role, bodies)).fetchall()


def _signatures(rows: Mapping[str, sqlite3.Row]) -> dict[str, EntrySignature | None]:
    return {identity: _signature(row) for identity, row in rows.items()}


def _signature(row: sqlite3.Row) -> EntrySignature | None:
    """None for a row of a time when no likeness was written down."""
    return None if row["body"] is None else EntrySignature(row["title"], row["day"], row["source"], row["body"])


def _is_updated(entry: PresentEntry, row: sqlite3.Row | None) -> bool:
    if row is None or row["gone"] is not None or row["id"] != entry.id:
        return True
    return row["layer"] != (entry.layer and entry.layer.value) or _signature(row) != entry.signature


def _displaced_id(row: sqlite3.Row) -> str:
    return f"{row['id']}-{row['body'] or ''}"
