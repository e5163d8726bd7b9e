"""What is known of entries goes with them when their ids change. Rows are moved; whose they are, `memory` decides.

An entry that left the file keeps what was known of it, under its id; where another entry has that id now, under a name
that no entry can have. So it is all there again when the entry comes back.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from echod.memory.entry_matching import NOTHING, Likeness, Present, recognise

# One after the other and each by its index: else all that ever were in the file would be looked at.
_WANTED = """
    SELECT * FROM entry INDEXED BY entry_here WHERE store = ? AND role = ? AND gone IS NULL
    UNION SELECT * FROM entry WHERE store = ? AND role = ? AND id IN (SELECT value FROM json_each(?))
    UNION SELECT * FROM entry INDEXED BY entry_body WHERE store = ? AND role = ?
        AND body IN (SELECT value FROM json_each(?))
"""


class Carried(NamedTuple):
    """What a look at a file means for the rows of its role.

    Attributes:
        moves: id as it is written down -> id that the row is to have, of all rows that get another one.
        gone: ids, as they are written down, of entries that are no longer in the file.
        news: entries of the file of which something else is written down than is true now, or nothing.
    """

    moves: Mapping[str, str]
    gone: tuple[str, ...]
    news: tuple[Present, ...]


def carried(
    link: sqlite3.Connection, store: str, role: str, present: Iterable[Present], told: Mapping[str, str] = NOTHING
) -> Carried:
    """Compare the entries of a file with what is written down. Arguments as in `EntryLog.see`; changes nothing."""
    now = {entry.id: entry for entry in present}
    rows = {row["id"]: row for row in _rows(link, store, role, now)}
    here = {identity: row for identity, row in rows.items() if row["gone"] is None}
    left = {identity: row for identity, row in rows.items() if row["gone"] is not None}
    likenesses = {identity: entry.likeness for identity, entry in now.items()}
    known = recognise(_likenesses(here), _likenesses(left), likenesses, told)
    moves = {then: identity for identity, then in known.items() if then != identity}
    kept = set(known.values())
    for identity in now.keys() & rows.keys() - kept:
        moves[identity] = _name_of_gone(rows[identity])
    return Carried(
        moves=moves,
        gone=tuple(sorted(here.keys() - kept)),
        news=tuple(entry for entry in now.values() if _is_news(entry, rows.get(known.get(entry.id, "")))),
    )


def move(link: sqlite3.Connection, store: str, role: str, moves: Mapping[str, str]) -> None:
    """Give rows their new ids, all at once.

    What is written down for a new id already, without an entry of its own, was meant for the entry that gets it.
    """
    if not moves:
        return
    ids = json.dumps(sorted(moves))
    for row in _taken(link, "reference", "store = ? AND entry", (store, ids)):
        link.execute(
            "INSERT INTO reference (store, entry, cause, workflow, day) VALUES (?, ?, ?, ?, ?) "
            "ON CONFLICT (store, entry, cause) DO UPDATE SET day = max(day, excluded.day)",
            (store, moves[row["entry"]], row["cause"], row["workflow"], row["day"]),
        )
    for row in _taken(link, "pin", "store = ? AND entry", (store, ids)):
        link.execute(
            "INSERT INTO pin (store, entry, until) VALUES (?, ?, ?) "
            "ON CONFLICT (store, entry) DO UPDATE SET until = max(until, excluded.until)",
            (store, moves[row["entry"]], row["until"]),
        )
    for row in link.execute(
        "SELECT finding, was, entry FROM asked WHERE store = ? AND entry IN (SELECT value FROM json_each(?))",
        (store, ids),
    ).fetchall():
        link.execute(
            "UPDATE asked SET entry = ? WHERE store = ? AND finding = ? AND was = ?",
            (moves[row["entry"]], store, row["finding"], row["was"]),
        )
    for row in _taken(link, "entry", "store = ? AND role = ? AND id", (store, role, ids)):
        values = {**dict(row), "id": moves[row["id"]]}
        link.execute(
            f"INSERT OR REPLACE INTO entry ({', '.join(values)}) VALUES ({', '.join('?' * len(values))})",  # noqa: S608
            (*values.values(),),
        )


def _taken(link: sqlite3.Connection, table: str, where: str, values: tuple[str, ...]) -> list[sqlite3.Row]:
    # Table and condition are those above, never data.
    rows = f"FROM {table} WHERE {where} IN (SELECT value FROM json_each(?))"  # noqa: S608
    found = link.execute(f"SELECT * {rows}", values).fetchall()
    link.execute(f"DELETE {rows}", values)
    return found


def _rows(link: sqlite3.Connection, store: str, role: str, now: Mapping[str, Present]) -> list[sqlite3.Row]:
    """The rows of entries that are in the file, and of those that left it and could be one that is there now."""
    ids, bodies = (json.dumps(sorted(names)) for names in (now.keys(), {e.likeness.body for e in now.values()}))
    return link.execute(_WANTED, (store, role, store, role, ids, store, role, bodies)).fetchall()


def _likenesses(rows: Mapping[str, sqlite3.Row]) -> dict[str, Likeness | None]:
    return {identity: _likeness(row) for identity, row in rows.items()}


def _likeness(row: sqlite3.Row) -> Likeness | None:
    """None for a row of a time when no likeness was written down."""
    return None if row["body"] is None else Likeness(row["title"], row["day"], row["source"], row["body"])


def _is_news(entry: Present, row: sqlite3.Row | None) -> bool:
    if row is None or row["gone"] is not None or row["id"] != entry.id:
        return True
    return row["layer"] != (entry.layer and entry.layer.value) or _likeness(row) != entry.likeness


def _name_of_gone(row: sqlite3.Row) -> str:
    return f"{row['id']}-{row['body'] or ''}"
