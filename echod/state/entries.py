"""What is known of entries apart from their files: since when they are known, what referenced them, what is pinned.

An entry is named by its id, which holds its role; `store` is the store's key, `project` the absolute path of the
project's root. Days are local days. What the numbers mean is for the policies to say.
"""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from datetime import date, datetime, timedelta
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from echod.memory.model import Layer
from echod.state.database import Database
from echod.state.review_answers import QuestionSubjects, ReviewAnswers

if TYPE_CHECKING:
    from echod.memory.entry_matching import PresentEntry
    from echod.memory.policy.scoring import Facts

REMOVED_ENTRY_DAYS = 180
"""How long an entry that is gone is known. Longer than anything is pinned, or an undo is possible."""

MAX_REFERENCES = 1_000
"""So many references of an entry are told apart where no workflow is known; of more only the last day is."""

_OVERFLOW_CAUSE = "more"
"""The cause that stands for all references above `MAX_REFERENCES`."""

# Of all entries that there ever were, or (with `_IN_JSON`) of those that are asked for: a role may have had very many.
_SELECT_FIRST_SEEN = "SELECT id, first_seen FROM entry WHERE store = ? AND role = ?"
# The rest for the ids that the entries have by now (`moved` is id then: id now).
_SELECT_REFERENCES = (
    "SELECT coalesce(moved.value, entry) AS entry, count(DISTINCT cause) AS number, max(day) AS last "
    "FROM reference LEFT JOIN json_each(?) AS moved ON moved.key = entry WHERE store = ?"
)
_SELECT_WORKFLOWS = (
    "SELECT DISTINCT coalesce(moved.value, entry) AS entry, workflow "
    "FROM reference LEFT JOIN json_each(?) AS moved ON moved.key = entry WHERE store = ? AND workflow IS NOT NULL"
)
_SELECT_PINS = (
    "SELECT coalesce(moved.value, entry) AS entry, max(until) AS until "
    "FROM pin LEFT JOIN json_each(?) AS moved ON moved.key = entry WHERE store = ?"
)
_IN_JSON = "IN (SELECT value FROM json_each(?))"


class Reference(NamedTuple):
    """That an entry was of use.

    Attributes:
        entry: its id.
        cause: what referenced it; counts once, however often it is recorded.
        workflow: the key of the workflow that ran then, None where none is known.
    """

    entry: str
    cause: str
    workflow: str | None = None


class EntryStore:
    """The entries of all stores; may be used by several threads and processes."""

    def __init__(self, database: Database) -> None:
        self._database = database

    @property
    def answers(self) -> ReviewAnswers:
        """What a person answered where entries or their files waited for it."""
        return ReviewAnswers(self._database)

    @property
    def question_subjects(self) -> QuestionSubjects:
        """Which entries the questions to a person are about."""
        return QuestionSubjects(self._database)

    # Seen

    def record_present(
        self,
        store: str,
        role: str,
        present: Iterable[PresentEntry],
        today: date,
        known_renames: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        """A role's memory file holds exactly these entries now. A look that shows nothing new writes nothing.

        What was known of an entry goes with it where its id changed since the last look.

        Args:
            store: the store's key.
            role: the role's name.
            present: the entries of the file.
            today: the local day.
            known_renames: id before -> id now, for entries of which whoever changed the file knows it.
        """
        from echod.state.entry_ids import compare_entries, rename_entries  # noqa: PLC0415  slow to load, for whoever only looks at pins

        entries = tuple(present)
        with self._database.read_transaction() as connection:
            found = compare_entries(connection, store, role, entries, known_renames)
        if not (found.renames or found.removed_ids or found.updated_entries):
            return
        with self._database.write_transaction() as connection:
            found = compare_entries(connection, store, role, entries, known_renames)
            connection.executemany(
                "UPDATE entry SET gone = ? WHERE store = ? AND role = ? AND id = ?",
                [(today.isoformat(), store, role, identity) for identity in found.removed_ids],
            )
            rename_entries(connection, store, role, found.renames)
            connection.executemany(
                "INSERT INTO entry (store, role, id, layer, first_seen, title, day, source, body) "
                "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (store, role, id) DO UPDATE SET "
                "layer = excluded.layer, gone = NULL, title = excluded.title, day = excluded.day, "
                "source = excluded.source, body = excluded.body",
                [(store, role, *_entry_values(entry, today)) for entry in found.updated_entries],
            )

    def find_renames(self, store: str, role: str, present: Iterable[PresentEntry]) -> Mapping[str, str]:
        """Id at the last look -> id in the file as it is, of entries that got another one since. Arguments as above."""
        from echod.state.entry_ids import compare_entries  # noqa: PLC0415

        with self._database.read_transaction() as connection:
            return compare_entries(connection, store, role, present).renames

    def record_activity(self, project: str, days: Iterable[date]) -> None:
        """On these days something was done in the project."""
        day_texts = sorted({day.isoformat() for day in days})
        with self._database.read_transaction() as connection:
            known = connection.execute(
                "SELECT day FROM alive WHERE project = ? AND day IN (SELECT value FROM json_each(?))",
                (project, json.dumps(day_texts)),
            ).fetchall()
        new = set(day_texts) - {row["day"] for row in known}
        if new:
            with self._database.write_transaction() as connection:
                connection.executemany("INSERT OR IGNORE INTO alive VALUES (?, ?)", [(project, day) for day in new])

    # Referenced

    def add_references(self, store: str, references: Iterable[Reference], today: date) -> int:
        """Count references; returns how many were new.

        Of more than `MAX_REFERENCES` for which no workflow is known only that there are more is written down, and
        the last day.
        """
        wanted = tuple(references)
        if not wanted:
            return 0
        with self._database.write_transaction() as connection:
            many = {r.entry for r in wanted if r.workflow is None and _has_max_references(connection, store, r.entry)}
            connection.executemany(
                "INSERT INTO reference (store, entry, cause, day) VALUES (?, ?, ?, ?) "
                "ON CONFLICT (store, entry, cause) DO UPDATE SET day = max(day, excluded.day)",
                [(store, entry, _OVERFLOW_CAUSE, today.isoformat()) for entry in sorted(many)],
            )
            rows = [
                (store, r.entry, r.cause, r.workflow, today.isoformat())
                for r in wanted
                if r.workflow is not None or r.entry not in many
            ]
            return connection.executemany(
                "INSERT INTO reference (store, entry, cause, workflow, day) VALUES (?, ?, ?, ?, ?) "
                "ON CONFLICT (store, entry, cause) DO NOTHING",
                rows,
            ).rowcount

    def workflow_at(self, project: str, at: float) -> str | None:
        """The key of the workflow that ran in the project at that moment (Unix seconds), the newest of several."""
        with self._database.read_transaction() as connection:
            found = connection.execute(
                "SELECT key FROM workflow WHERE project = :project "
                "AND min(coalesce(started_at, first_seen), first_seen) <= :at AND coalesce(ended_at, :at) >= :at "
                "ORDER BY first_seen DESC, id DESC LIMIT 1",
                {"project": project, "at": at},
            ).fetchone()
        return None if found is None else str(found["key"])

    def list_often_referenced(
        self, store: str, role: str, layer: Layer, min_references: int, today: date
    ) -> tuple[str, ...]:
        """Ids of a role's entries of a layer with so many references at least, in order; pinned ones left out."""
        with self._database.read_transaction() as connection:
            rows = connection.execute(
                "SELECT id FROM entry INDEXED BY entry_here "
                "JOIN reference ON reference.store = entry.store AND reference.entry = entry.id "
                "WHERE entry.store = ? AND role = ? AND layer = ? AND gone IS NULL AND NOT EXISTS "
                "(SELECT 1 FROM pin WHERE pin.store = entry.store AND pin.entry = entry.id AND until >= ?) "
                "GROUP BY id HAVING count(*) >= ? ORDER BY id",
                (store, role, layer.value, today.isoformat(), min_references),
            ).fetchall()
        return tuple(row["id"] for row in rows)

    # Pinned

    def pin(self, store: str, entries: Collection[str], until: date) -> None:
        """No rule touches these entries up to and including that day."""
        with self._database.write_transaction() as connection:
            connection.executemany(
                "INSERT INTO pin (store, entry, until) VALUES (?, ?, ?) "
                "ON CONFLICT (store, entry) DO UPDATE SET until = excluded.until",
                [(store, entry, until.isoformat()) for entry in entries],
            )

    def unpin(self, store: str, entry: str) -> bool:
        """The rules hold again for an entry; False if it was not pinned."""
        with self._database.write_transaction() as connection:
            return connection.execute("DELETE FROM pin WHERE store = ? AND entry = ?", (store, entry)).rowcount > 0

    def pinned_ids(self, store: str, today: date) -> frozenset[str]:
        """The ids of a store's entries that no rule touches today."""
        with self._database.read_transaction() as connection:
            rows = connection.execute(
                "SELECT entry FROM pin WHERE store = ? AND until >= ?", (store, today.isoformat())
            )
            return frozenset(row["entry"] for row in rows)

    # Changed

    def record_prune(self, store: str, role: str, today: date, archived_inscribed: int) -> None:
        """A memory file was pruned, and so many inscribed entries were archived for room. It is held no more."""
        with self._database.write_transaction() as connection:
            connection.execute(
                "INSERT INTO pruned (store, role, day, inscribed, released) VALUES (:store, :role, :day, :number, 1) "
                "ON CONFLICT (store, role) DO UPDATE SET released = 1, "
                "inscribed = iif(day = excluded.day, inscribed, 0) + excluded.inscribed, day = excluded.day",
                {"store": store, "role": role, "day": today.isoformat(), "number": archived_inscribed},
            )

    # The first prune of a memory file

    def hold_first_prune(self, store: str, role: str, now: float) -> float | None:
        """Hold the first prune of a memory file; since when (Unix seconds) it is held. None: it is not, any more."""
        with self._database.write_transaction() as connection:
            connection.execute(
                "INSERT INTO pruned (store, role, held_since) VALUES (?, ?, ?) "
                "ON CONFLICT (store, role) DO UPDATE SET held_since = coalesce(held_since, excluded.held_since)",
                (store, role, now),
            )
            row = connection.execute(
                "SELECT held_since, released FROM pruned WHERE store = ? AND role = ?", (store, role)
            ).fetchone()
        return None if row["released"] else float(row["held_since"])

    def held_first_prunes(self, store: str) -> Mapping[str, float]:
        """The roles whose first prune is held, and since when (Unix seconds)."""
        with self._database.read_transaction() as connection:
            rows = connection.execute(
                "SELECT role, held_since FROM pruned WHERE store = ? AND NOT released AND held_since IS NOT NULL",
                (store,),
            )
            return {row["role"]: float(row["held_since"]) for row in rows}

    def release_first_prune(self, store: str, roles: Iterable[str]) -> None:
        """A person wants these memory files to be pruned, also for the first time."""
        with self._database.read_transaction() as connection:
            known = connection.execute("SELECT role FROM pruned WHERE store = ? AND released", (store,)).fetchall()
        held = sorted(set(roles) - {row["role"] for row in known})
        if not held:
            return
        with self._database.write_transaction() as connection:
            connection.executemany(
                "INSERT INTO pruned (store, role, released) VALUES (?, ?, 1) "
                "ON CONFLICT (store, role) DO UPDATE SET released = 1",
                [(store, role) for role in held],
            )

    # Asked

    def get_facts(
        self,
        store: str,
        role: str,
        project: str,
        today: date,
        relevance_days: int,
        present: Iterable[PresentEntry] | None = None,
        ids: Iterable[str] | None = None,
    ) -> Facts:
        """What the policies are told about the entries of a role, all of one moment.

        Args:
            store: the store's key.
            role: the role's name.
            project: the project's root.
            today: the local day.
            relevance_days: over how many days workflows count.
            present: the entries of the memory file that is to be judged. Only they are told of, under the ids that
                they have there, also where these changed since the last look; without them it is the ids of that look.
            ids: only these entries are told of. None, and no `present`: all that are known.
        """
        from echod.memory.policy.scoring import Facts, History  # noqa: PLC0415
        from echod.state.entry_ids import compare_entries  # noqa: PLC0415

        entries = () if present is None else tuple(present)
        only = [entry.id for entry in entries] if present is not None else ids
        since = datetime.combine(today - timedelta(days=relevance_days), datetime.min.time()).timestamp()
        with self._database.read_transaction() as connection:
            recent = _recent_workflows(connection, project, since)
            renames = compare_entries(connection, store, role, entries).renames if entries else {}
            wanted = None if only is None else _stored_ids(renames, only)
            where = (json.dumps(renames), store)
            known = _select(connection, _SELECT_FIRST_SEEN, (store, role), "id", wanted)
            references = _select(connection, _SELECT_REFERENCES, where, "entry", wanted, " GROUP BY 1")
            pairs = _select(connection, _SELECT_WORKFLOWS, where, "entry", wanted)
            pins = _select(connection, _SELECT_PINS, where, "entry", wanted, " GROUP BY 1")
            pruned = connection.execute(
                "SELECT inscribed FROM pruned WHERE store = ? AND role = ? AND day = ?",
                (store, role, today.isoformat()),
            ).fetchone()
            alive = _active_days(connection, project, today)
        workflow_counts = Counter(row["entry"] for row in pairs if row["workflow"] in recent)
        first_seen = {renames.get(row["id"], row["id"]): date.fromisoformat(row["first_seen"]) for row in known}
        referenced = {row["entry"]: row for row in references}
        return Facts(
            histories={
                identity: History(
                    first_seen=first_seen.get(identity),
                    last_reference=date.fromisoformat(row["last"]) if (row := referenced.get(identity)) else None,
                    references=int(row["number"]) if row else 0,
                    workflows=workflow_counts[identity],
                )
                for identity in first_seen.keys() | referenced.keys()
            },
            workflows_seen=len(recent),
            alive_days=alive,
            pinned={row["entry"]: date.fromisoformat(row["until"]) for row in pins},
            inscribed_archived_today=int(pruned["inscribed"]) if pruned else 0,
        )

    # Upkeep

    def delete_stale(self, today: date) -> int:
        """Forget entries that are long gone, with their references, and pins that ran out. Returns how many entries."""
        before = (today - timedelta(days=REMOVED_ENTRY_DAYS)).isoformat()
        with self._database.write_transaction() as connection:
            connection.execute("DELETE FROM pin WHERE until < ?", (today.isoformat(),))
            connection.execute(
                "DELETE FROM reference WHERE EXISTS (SELECT 1 FROM entry WHERE entry.store = reference.store "
                "AND entry.id = reference.entry AND gone < ?)",
                (before,),
            )
            forgotten = connection.execute("DELETE FROM entry WHERE gone < ?", (before,)).rowcount
            connection.execute(
                "DELETE FROM asked WHERE NOT EXISTS "
                "(SELECT 1 FROM entry WHERE entry.store = asked.store AND entry.id = asked.entry)"
            )
            return forgotten


def _has_max_references(connection: sqlite3.Connection, store: str, entry: str) -> bool:
    found = connection.execute(
        "SELECT count(*) FROM (SELECT 1 FROM reference WHERE store = ? AND entry = ? LIMIT ?)",
        (store, entry, MAX_REFERENCES),
    ).fetchone()
    return bool(found[0] >= MAX_REFERENCES)


def _stored_ids(renames: Mapping[str, str], ids: Iterable[str]) -> str:
    """The ids under which what is known of these entries is written down, as JSON."""
    wanted = set(ids)
    moved = {old_id for old_id, now in renames.items() if now in wanted}
    return json.dumps(sorted(moved | (wanted - renames.keys())))


def _select(
    connection: sqlite3.Connection,
    select: str,
    values: tuple[str, ...],
    column: str,
    ids_json: str | None,
    suffix: str = "",
) -> list[sqlite3.Row]:
    # All of the text is from above, never data.
    if ids_json is None:
        return connection.execute(select + suffix, values).fetchall()
    return connection.execute(f"{select} AND {column} {_IN_JSON}{suffix}", (*values, ids_json)).fetchall()


def _entry_values(entry: PresentEntry, today: date) -> tuple[str | None, ...]:
    signature = entry.signature
    layer = entry.layer and entry.layer.value
    return entry.id, layer, today.isoformat(), signature.title, signature.day, signature.source, signature.body


def _recent_workflows(connection: sqlite3.Connection, project: str, since: float) -> frozenset[str]:
    """Keys of the workflows that began since then; what is left of older ones does not count."""
    rows = connection.execute(
        "SELECT key FROM workflow WHERE project = ? AND min(coalesce(started_at, first_seen), first_seen) >= ?",
        (project, since),
    )
    return frozenset(row["key"] for row in rows)


def _active_days(connection: sqlite3.Connection, project: str, today: date) -> frozenset[date]:
    days = {
        date.fromisoformat(row["day"])
        for row in connection.execute("SELECT day FROM alive WHERE project = ?", (project,))
    }
    for row in connection.execute("SELECT first_seen, ended_at FROM workflow WHERE project = ?", (project,)):
        day = _local_date(row["first_seen"])
        last = today if row["ended_at"] is None else min(_local_date(row["ended_at"]), today)
        while day <= last:
            days.add(day)
            day += timedelta(days=1)
    return frozenset(days)


def _local_date(at: float) -> date:
    return datetime.fromtimestamp(at).astimezone().date()
