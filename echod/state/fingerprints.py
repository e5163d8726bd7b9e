"""Store the fingerprints of cited lines, by entry and citation, and the state that the last check found.

A fingerprint moves with its entry when the entry's id changes (`echod.state.entry_ids`), and is deleted with it.
"""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from echod.lazy import lazy_imports
from echod.state.database import Database

with lazy_imports(__name__):
    from echod.memory.evidence import fingerprint as fingerprint_module

if TYPE_CHECKING:
    from echod.memory.evidence.fingerprint import Fingerprint  # a search loads this module and compares nothing

_COLUMNS = (
    "entry_id, cite, path, first, last, tokens, context_before, context_after, lines_before, lines_after, line_sizes, "
    "copies, size, digest, sketch, taken_at, commit_name, state"
)
_NOTHING = (None, 0, 0, b"", b"", b"", b"", b"", b"", 0, 0, "", b"")


class StoredFingerprint(NamedTuple):
    """The base of a citation: what was cited, when (Unix seconds), and the commit it is from (None: the file itself).

    `fingerprint` is None where there was nothing to take it from. `state` is that of the last check, None before one.
    """

    fingerprint: Fingerprint | None
    taken_at: float
    commit: str | None = None
    state: str | None = None


FingerprintKey = tuple[str, str]
"""The id of an entry and a citation as written."""


class FingerprintStore:
    """The fingerprints of all stores. Thread-safe; several processes may use it."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def read(self, store: str, role: str, entry: str | None = None) -> Mapping[FingerprintKey, StoredFingerprint]:
        """Return the fingerprints of a role's entries, or of one entry."""
        where, values = ("", (store, role)) if entry is None else (" AND entry_id = ?", (store, role, entry))
        with self._database.read_transaction() as connection:
            rows = connection.execute(
                f"SELECT {_COLUMNS} FROM fingerprint WHERE store = ? AND role = ?{where}",  # noqa: S608  literals
                values,
            ).fetchall()
        found = {}
        for row in rows:
            entry, cite, *values, taken, commit, state = row
            fingerprint = None if values[0] is None else fingerprint_module.Fingerprint(*values)
            found[entry, cite] = StoredFingerprint(fingerprint, taken, commit, state)
        return found

    def read_identities(self, store: str, role: str, entry: str) -> Mapping[str, str]:
        """Return a text for each citation of an entry that has a fingerprint. Another fingerprint has another text."""
        with self._database.read_transaction() as connection:
            rows = connection.execute(
                "SELECT cite, taken_at, commit_name, path, first, last, copies, size, digest FROM fingerprint "
                "WHERE store = ? AND role = ? AND entry_id = ? AND path IS NOT NULL",
                (store, role, entry),
            ).fetchall()
        return {cite: repr(values) for cite, *values in rows}

    def write(self, store: str, role: str, taken: Mapping[FingerprintKey, StoredFingerprint]) -> None:
        """Store fingerprints that the user confirmed, instead of those that there are."""
        if taken:
            with self._database.write_transaction() as connection:
                _replace(connection, store, role, taken)

    def write_found(
        self,
        store: str,
        role: str,
        taken: Mapping[FingerprintKey, StoredFingerprint],
        states: Mapping[FingerprintKey, str],
    ) -> None:
        """Store what a check found: the fingerprints that are new, and the states that differ from the stored ones."""
        if not taken and not states:
            return
        with self._database.derived_write_transaction() as connection:
            _replace(connection, store, role, taken)
            connection.executemany(
                "UPDATE fingerprint SET state = ? WHERE store = ? AND role = ? AND entry_id = ? AND cite = ?",
                [(state, store, role, *key) for key, state in states.items()],
            )

    def count_states(self, stores: Iterable[str]) -> Mapping[str, int]:
        """Return how many citations of present entries of these stores the last check found in each state."""
        counts: dict[str, int] = {}
        with self._database.read_transaction() as connection:
            for store in stores:
                for state, number in connection.execute(
                    "SELECT coalesce(fingerprint.state, 'unknown'), count(*) FROM fingerprint JOIN entry "
                    "ON entry.store = fingerprint.store AND entry.role = fingerprint.role AND id = entry_id "
                    "WHERE fingerprint.store = ? AND removed_on IS NULL GROUP BY 1",
                    (store,),
                ):
                    counts[state] = counts.get(state, 0) + number
        return counts


def _replace(
    connection: sqlite3.Connection, store: str, role: str, taken: Mapping[FingerprintKey, StoredFingerprint]
) -> None:
    connection.executemany(
        f"INSERT OR REPLACE INTO fingerprint (store, role, {_COLUMNS}) "  # noqa: S608  literals
        f"VALUES ({', '.join('?' * (_COLUMNS.count(',') + 3))})",
        [(store, role, *key, *(found.fingerprint or _NOTHING), *found[1:]) for key, found in taken.items()],
    )


StoredBases = Mapping[str, Mapping[str, StoredFingerprint]]
"""The stored fingerprints by entry id and citation."""


def read_bases(fingerprints: FingerprintStore | None, store: str, role: str) -> StoredBases:
    """Return the stored bases of a role's entries; none without a database."""
    bases: defaultdict[str, dict[str, StoredFingerprint]] = defaultdict(dict)
    if fingerprints is not None:
        for (identity, cite), stored in fingerprints.read(store, role).items():
            bases[identity][cite] = stored
    return bases
