"""Store data about entries beside their files: first sight, references, pins, project activity, prune state.

Pins and the prune state are also kept outside of the database (`echod.state.decisions`).

An entry is identified by its id, which contains its role. `store` is the store's key, `project` the absolute path of
the project's root. Days are local days. The policies interpret the numbers.
"""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from datetime import date, timedelta
from types import MappingProxyType, ModuleType
from typing import TYPE_CHECKING, NamedTuple

from echod.lazy import lazy_imports
from echod.memory.model import Layer
from echod.state.database import Database
from echod.state.decisions import QuestionSubjects, ReviewAnswers, save_all_decisions, save_decisions
from echod.state.workflow_log import SELECT_REFERENCING_RUNS, active_days, count_runs_since, recent_runs

with lazy_imports(__name__):
    from echod.memory.policy import scoring
    from echod.state import entry_ids
    from echod.state import fingerprints as fingerprints_module

if TYPE_CHECKING:  # both modules import the redaction rules and policies, which readers of pins do not need
    from echod.memory.entry_matching import PresentEntry
    from echod.state.entry_ids import EntryChanges

REMOVED_ENTRY_DAYS = 180
"""How long the data of a removed entry is kept. Longer than any pin lasts, and than an undo is possible."""

MAX_REFERENCES = 1_000
"""The number of references without a workflow that are stored for an entry. Of further ones only the last day is."""

_OVERFLOW_CAUSE = "overflow"
"""The cause that represents all references above `MAX_REFERENCES`."""

# For all recorded entries, or (with `_IN_JSON`) for the given ones: a role may have had very many.
_SELECT_FIRST_SEEN = "SELECT id, first_seen FROM entry WHERE store = ? AND role = ?"
# The others return the ids that the entries have in the file (`renamed` is recorded id: id in the file).
_SELECT_REFERENCES = (
    "SELECT coalesce(renamed.value, entry_id) AS id, count(DISTINCT cause) AS number, max(day) AS last "
    "FROM reference LEFT JOIN json_each(?) AS renamed ON renamed.key = entry_id WHERE store = ?"
)
_SELECT_PINS = (
    "SELECT coalesce(renamed.value, entry_id) AS id, max(until) AS until "
    "FROM pin LEFT JOIN json_each(?) AS renamed ON renamed.key = entry_id WHERE store = ?"
)
_SELECT_GONE = (
    "SELECT entry_id FROM fingerprint WHERE store = ? AND role = ? "
    "GROUP BY entry_id HAVING min(coalesce(state, '') = 'gone')"
)
_IN_JSON = "IN (SELECT value FROM json_each(?))"


class Reference(NamedTuple):
    """A use of an entry, by its id. A cause counts once, however often it is recorded.

    `workflow` is the key of the workflow that was running; None if it is unknown.
    """

    entry: str
    cause: str
    workflow: str | None = None


class EntryStore:
    """The entries of all stores. Thread-safe; several processes may use it."""

    def __init__(self, database: Database) -> None:
        self._database = database

    @property
    def answers(self) -> ReviewAnswers:
        """The user's answers to review items."""
        return ReviewAnswers(self._database)

    @property
    def question_subjects(self) -> QuestionSubjects:
        """The entries that questions to the user are about."""
        return QuestionSubjects(self._database)

    @property
    def fingerprints(self) -> fingerprints_module.FingerprintStore:
        """The fingerprints of the lines that entries cite."""
        return fingerprints_module.FingerprintStore(self._database)

    # Presence

    def record_present(
        self,
        store: str,
        role: str,
        present: Iterable[PresentEntry],
        today: date,
        known_renames: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        """Record the complete list of entries in a role's memory file. Without changes nothing is written.

        The recorded data of an entry whose id changed moves to its new id. `known_renames` has old id -> new id for the
        entries that the writer of the file renamed.
        """
        entry_ids = _entry_ids()

        entries = tuple(present)
        with self._database.read_transaction() as connection:
            changes = entry_ids.compare_entries(connection, store, role, entries, known_renames)
        if not (changes.renames or changes.removed_ids or changes.updated_entries):
            return
        # A change of ids is on the disk at once: pins move with it, and only the writer of the file may know of it.
        database = self._database
        transaction = database.write_transaction if changes.renames else database.derived_write_transaction
        with transaction() as connection:
            changes = entry_ids.compare_entries(connection, store, role, entries, known_renames)
            connection.executemany(
                "UPDATE entry SET removed_on = ? WHERE store = ? AND role = ? AND id = ?",
                [(today.isoformat(), store, role, identity) for identity in changes.removed_ids],
            )
            entry_ids.rename_entries(connection, store, role, changes.renames)
            connection.executemany(
                "INSERT OR REPLACE INTO earlier_signature (store, role, entry_id, "
                "title_digest, date_digest, source_digest, body_digest, replaced_on) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                [(store, role, identity, *old, today.isoformat()) for identity, old in changes.replaced_signatures],
            )
            connection.executemany(
                "INSERT INTO entry "
                "(store, role, id, layer, first_seen, title_digest, date_digest, source_digest, body_digest) "
                "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (store, role, id) DO UPDATE SET "
                "layer = excluded.layer, removed_on = NULL, title_digest = excluded.title_digest, "
                "date_digest = excluded.date_digest, source_digest = excluded.source_digest, "
                "body_digest = excluded.body_digest",
                [(store, role, *_entry_values(entry, today)) for entry in changes.updated_entries],
            )
            if changes.renames:
                save_decisions(connection, self._database.path, store)

    def find_renames(self, store: str, role: str, present: Iterable[PresentEntry]) -> Mapping[str, str]:
        """Return recorded id -> id in the file, for the entries of a file whose ids changed since the last record."""
        entry_ids = _entry_ids()

        with self._database.read_transaction() as connection:
            changes: EntryChanges = entry_ids.compare_entries(connection, store, role, present)
            return changes.renames

    def record_activity(self, project: str, days: Iterable[date]) -> None:
        """Record the days on which a project was active."""
        day_texts = sorted({day.isoformat() for day in days})
        with self._database.read_transaction() as connection:
            known = connection.execute(
                "SELECT day FROM project_activity WHERE project = ? AND day IN (SELECT value FROM json_each(?))",
                (project, json.dumps(day_texts)),
            ).fetchall()
        new = set(day_texts) - {row["day"] for row in known}
        if new:
            with self._database.derived_write_transaction() as connection:
                connection.executemany(
                    "INSERT OR IGNORE INTO project_activity (project, day) VALUES (?, ?)",
                    [(project, day) for day in new],
                )

    # References

    def add_references(self, store: str, references: Iterable[Reference], today: date) -> int:
        """Store references, and return the number of new ones.

        Beyond `MAX_REFERENCES` without a workflow, only the fact that there are more and the last day are stored.
        """
        wanted = tuple(references)
        if not wanted:
            return 0
        with self._database.write_transaction() as connection:
            full = {r.entry for r in wanted if r.workflow is None and _has_max_references(connection, store, r.entry)}
            connection.executemany(
                "INSERT INTO reference (store, entry_id, cause, day) VALUES (?, ?, ?, ?) "
                "ON CONFLICT (store, entry_id, cause) DO UPDATE SET day = max(day, excluded.day)",
                [(store, entry, _OVERFLOW_CAUSE, today.isoformat()) for entry in sorted(full)],
            )
            rows = [
                (store, r.entry, r.cause, r.workflow, today.isoformat())
                for r in wanted
                if r.workflow is not None or r.entry not in full
            ]
            return connection.executemany(
                "INSERT INTO reference (store, entry_id, cause, workflow, day) VALUES (?, ?, ?, ?, ?) "
                "ON CONFLICT (store, entry_id, cause) DO NOTHING",
                rows,
            ).rowcount

    def copy_references(self, store: str, merged: Mapping[str, str]) -> None:
        """Copy the references of entries to the ones that carry on for them: old id -> new id."""
        if not merged:
            return
        with self._database.write_transaction() as connection:
            connection.execute(
                "INSERT INTO reference (store, entry_id, cause, workflow, day) "
                "SELECT store, merged.value, cause, workflow, day FROM reference "
                "JOIN json_each(?) AS merged ON merged.key = entry_id WHERE store = ? "
                "ON CONFLICT (store, entry_id, cause) DO UPDATE SET day = max(day, excluded.day)",
                (json.dumps(dict(merged)), store),
            )

    def workflow_at(self, project: str, at: float) -> str | None:
        """Return the key of the workflow that ran in the project at `at` (Unix seconds), the newest of several."""
        with self._database.read_transaction() as connection:
            row = connection.execute(
                "SELECT key FROM workflow WHERE project = :project "
                "AND min(coalesce(started_at, first_seen), first_seen) <= :at AND coalesce(ended_at, :at) >= :at "
                "ORDER BY first_seen DESC, id DESC LIMIT 1",
                {"project": project, "at": at},
            ).fetchone()
        return None if row is None else str(row["key"])

    def list_often_referenced(
        self, store: str, role: str, layer: Layer, min_references: int, today: date
    ) -> tuple[str, ...]:
        """List the ids of a role's unpinned entries of a layer that have at least `min_references`, sorted."""
        with self._database.read_transaction() as connection:
            rows = connection.execute(
                "SELECT id FROM entry INDEXED BY entry_present "
                "JOIN reference ON reference.store = entry.store AND reference.entry_id = entry.id "
                "WHERE entry.store = ? AND role = ? AND layer = ? AND removed_on IS NULL AND NOT EXISTS "
                "(SELECT 1 FROM pin WHERE pin.store = entry.store AND pin.entry_id = entry.id AND until >= ?) "
                "GROUP BY id HAVING count(*) >= ? ORDER BY id",
                (store, role, layer.value, today.isoformat(), min_references),
            ).fetchall()
        return tuple(row["id"] for row in rows)

    # Pins

    def pin(self, store: str, entries: Collection[str], until: date) -> None:
        """Protect these entries from the rules up to and including that day."""
        with self._database.write_transaction() as connection:
            connection.executemany(
                "INSERT INTO pin (store, entry_id, until) VALUES (?, ?, ?) "
                "ON CONFLICT (store, entry_id) DO UPDATE SET until = excluded.until",
                [(store, entry, until.isoformat()) for entry in entries],
            )
            save_decisions(connection, self._database.path, store)

    def unpin(self, store: str, entry: str) -> bool:
        """Remove the pin of an entry. False if it was not pinned."""
        with self._database.write_transaction() as connection:
            deleted = connection.execute("DELETE FROM pin WHERE store = ? AND entry_id = ?", (store, entry)).rowcount
            save_decisions(connection, self._database.path, store)
            return deleted > 0

    def pinned_ids(self, store: str, today: date) -> frozenset[str]:
        """Return the ids of a store's entries that are pinned today."""
        with self._database.read_transaction() as connection:
            select = "SELECT entry_id FROM pin WHERE store = ? AND until >= ?"
            rows = connection.execute(select, (store, today.isoformat()))
            return frozenset(row["entry_id"] for row in rows)

    # Prune state

    def record_prune(self, store: str, role: str, today: date, archived_learnings: int) -> None:
        """Record a prune and the number of learnings that it archived to get below the limit."""
        with self._database.write_transaction() as connection:
            connection.execute(
                "INSERT INTO prune_state (store, role, last_pruned_on, archived_learnings, released) "
                "VALUES (:store, :role, :day, :number, 1) ON CONFLICT (store, role) DO UPDATE SET released = 1, "
                "archived_learnings = iif(last_pruned_on = excluded.last_pruned_on, archived_learnings, 0) "
                "+ excluded.archived_learnings, last_pruned_on = excluded.last_pruned_on",
                {"store": store, "role": role, "day": today.isoformat(), "number": archived_learnings},
            )
            save_decisions(connection, self._database.path, store)

    def hold_first_prune(self, store: str, role: str, now: float) -> float | None:
        """Hold the first prune of a memory file. Returns since when (Unix seconds) it is held; None if released."""
        with self._database.write_transaction() as connection:
            connection.execute(
                "INSERT INTO prune_state (store, role, held_since) VALUES (?, ?, ?) "
                "ON CONFLICT (store, role) DO UPDATE SET held_since = coalesce(held_since, excluded.held_since)",
                (store, role, now),
            )
            row = connection.execute(
                "SELECT held_since, released FROM prune_state WHERE store = ? AND role = ?", (store, role)
            ).fetchone()
            save_decisions(connection, self._database.path, store)
        return None if row["released"] else float(row["held_since"])

    def held_first_prunes(self, store: str) -> Mapping[str, float]:
        """Return the roles whose first prune is held, each with the time since then (Unix seconds)."""
        with self._database.read_transaction() as connection:
            rows = connection.execute(
                "SELECT role, held_since FROM prune_state WHERE store = ? AND NOT released AND held_since IS NOT NULL",
                (store,),
            )
            return {row["role"]: float(row["held_since"]) for row in rows}

    def release_first_prune(self, store: str, roles: Iterable[str]) -> tuple[str, ...]:
        """Allow the first prune of these memory files, because the user requested it. Return the roles that were held.

        A role counts as held until its first prune is released or done.
        """
        with self._database.read_transaction() as connection:
            rows = connection.execute("SELECT role FROM prune_state WHERE store = ? AND released", (store,)).fetchall()
        held = tuple(sorted(set(roles) - {row["role"] for row in rows}))
        if not held:
            return ()
        with self._database.write_transaction() as connection:
            connection.executemany(
                "INSERT INTO prune_state (store, role, released) VALUES (?, ?, 1) "
                "ON CONFLICT (store, role) DO UPDATE SET released = 1",
                [(store, role) for role in held],
            )
            save_decisions(connection, self._database.path, store)
        return held

    def withdraw_release(self, store: str, roles: Iterable[str]) -> None:
        """Hold the first prune of these memory files again, except for those that were pruned in the meantime."""
        with self._database.write_transaction() as connection:
            connection.executemany(
                "UPDATE prune_state SET released = 0 WHERE store = ? AND role = ? AND last_pruned_on IS NULL",
                [(store, role) for role in roles],
            )
            save_decisions(connection, self._database.path, store)

    # Facts for the policies

    def get_facts(
        self,
        store: str,
        role: str,
        project: str,
        today: date,
        relevance_days: int,
        present: Iterable[PresentEntry] | None = None,
        ids: Iterable[str] | None = None,
    ) -> scoring.Facts:
        """Return the recorded facts about the entries of a role, from one state of the database.

        Workflows and sessions count for `relevance_days`. With `present`, the entries of the memory file, the facts are
        restricted to them and use their ids in the file, also where these changed since the last record. Otherwise the
        recorded ids are used; `ids` restricts the facts to these, else they cover all recorded entries.
        """
        entry_ids = _entry_ids()

        entries = () if present is None else tuple(present)
        only = [entry.id for entry in entries] if present is not None else ids
        with self._database.read_transaction() as connection:
            recent = recent_runs(connection, project, store, today - timedelta(days=relevance_days))
            renames = entry_ids.compare_entries(connection, store, role, entries).renames if entries else {}
            wanted = None if only is None else _stored_ids(renames, only)
            where = (json.dumps(renames), store)
            known = _select(connection, _SELECT_FIRST_SEEN, (store, role), "id", wanted)
            references = _select(connection, _SELECT_REFERENCES, where, "entry_id", wanted, " GROUP BY 1")
            pairs = _select(connection, SELECT_REFERENCING_RUNS, where, "entry_id", wanted)
            pins = _select(connection, _SELECT_PINS, where, "entry_id", wanted, " GROUP BY 1")
            prune_state = connection.execute(
                "SELECT archived_learnings FROM prune_state WHERE store = ? AND role = ? AND last_pruned_on = ?",
                (store, role, today.isoformat()),
            ).fetchone()
            alive_days = active_days(connection, project, today)
            gone = connection.execute(_SELECT_GONE, (store, role)).fetchall()
        run_counts = Counter(row["id"] for row in pairs if row["run"] in recent)
        first_seen = {renames.get(row["id"], row["id"]): date.fromisoformat(row["first_seen"]) for row in known}
        referenced = {row["id"]: row for row in references}
        return scoring.Facts(
            histories={
                identity: scoring.History(
                    first_seen=first_seen.get(identity),
                    last_reference=date.fromisoformat(row["last"]) if (row := referenced.get(identity)) else None,
                    references=int(row["number"]) if row else 0,
                    workflows=run_counts[identity],
                    workflows_seen=count_runs_since(recent, first_seen.get(identity)),
                )
                for identity in first_seen.keys() | referenced.keys()
            },
            workflows_seen=len(recent),
            alive_days=alive_days,
            pinned={row["id"]: date.fromisoformat(row["until"]) for row in pins},
            learnings_archived_today=int(prune_state["archived_learnings"]) if prune_state else 0,
            evidence_gone=frozenset(renames.get(row["entry_id"], row["entry_id"]) for row in gone),
        )

    # Retention

    def delete_stale(self, today: date) -> int:
        """Delete entries that were removed long ago, their references, old signatures and expired pins.

        Returns:
            The number of deleted entries.
        """
        before = (today - timedelta(days=REMOVED_ENTRY_DAYS)).isoformat()
        with self._database.write_transaction() as connection:
            connection.execute("DELETE FROM pin WHERE until < ?", (today.isoformat(),))
            connection.execute(
                "DELETE FROM reference WHERE EXISTS (SELECT 1 FROM entry WHERE entry.store = reference.store "
                "AND entry.id = reference.entry_id AND removed_on < ?)",
                (before,),
            )
            connection.execute("DELETE FROM earlier_signature WHERE replaced_on < ?", (before,))
            connection.execute(
                "DELETE FROM fingerprint WHERE EXISTS (SELECT 1 FROM entry WHERE entry.store = fingerprint.store "
                "AND entry.role = fingerprint.role AND entry.id = fingerprint.entry_id AND removed_on < ?)",
                (before,),
            )
            deleted = connection.execute("DELETE FROM entry WHERE removed_on < ?", (before,)).rowcount
            connection.execute(
                "DELETE FROM question_subject WHERE NOT EXISTS (SELECT 1 FROM entry "
                "WHERE entry.store = question_subject.store AND entry.id = question_subject.current_entry_id)"
            )
            save_all_decisions(connection, self._database.path)
            return deleted


def _has_max_references(connection: sqlite3.Connection, store: str, entry: str) -> bool:
    select = "SELECT count(*) FROM (SELECT 1 FROM reference WHERE store = ? AND entry_id = ? LIMIT ?)"
    return bool(connection.execute(select, (store, entry, MAX_REFERENCES)).fetchone()[0] >= MAX_REFERENCES)


def _stored_ids(renames: Mapping[str, str], ids: Iterable[str]) -> str:
    """Return the ids under which the data of these entries is stored, as JSON."""
    wanted = set(ids)
    renamed = {old_id for old_id, new_id in renames.items() if new_id in wanted}
    return json.dumps(sorted(renamed | (wanted - renames.keys())))


def _select(
    connection: sqlite3.Connection,
    select: str,
    values: tuple[str, ...],
    column: str,
    ids_json: str | None,
    suffix: str = "",
) -> list[sqlite3.Row]:
    # The text consists of the literals above, never of data.
    if ids_json is None:
        return connection.execute(select + suffix, values).fetchall()
    return connection.execute(f"{select} AND {column} {_IN_JSON}{suffix}", (*values, ids_json)).fetchall()


def _entry_values(entry: PresentEntry, today: date) -> tuple[str | None, ...]:
    signature = entry.signature
    layer = entry.layer and entry.layer.value
    return entry.id, layer, today.isoformat(), signature.title, signature.day, signature.source, signature.body


def _entry_ids() -> ModuleType:
    return entry_ids
