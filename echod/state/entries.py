"""What is known of entries apart from their files: since when they are known, what referenced them, what is pinned.

An entry is named by its id, which holds its role; `store` is the store's key, `project` the absolute path of the
project's root. Days are local days. What the numbers mean is for the policies to say.
"""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta

from echod.memory.document import Layer
from echod.memory.policy.facts import Facts, History
from echod.state.database import Database

FORGOTTEN_DAYS = 180
"""How long an entry that is gone is known. Longer than anything is pinned, or an undo is possible."""


@dataclass(frozen=True, slots=True)
class Reference:
    """That an entry was of use.

    Attributes:
        entry: its id.
        cause: what referenced it; counts once, however often it is recorded.
        workflow: the key of the workflow that ran then, None where none is known.
    """

    entry: str
    cause: str
    workflow: str | None = None


class EntryLog:
    """The entries of all stores; may be used by several threads and processes."""

    def __init__(self, database: Database) -> None:
        self._database = database

    # Seen

    def see(self, store: str, role: str, layers: Mapping[str, Layer | None], today: date) -> None:
        """A role's memory file holds exactly these entries now. A look that shows nothing new writes nothing."""
        with self._database.reading() as link:
            if not _news(link, store, role, layers):
                return
        with self._database.writing() as link:
            for identity in _news(link, store, role, layers):
                if identity not in layers:
                    link.execute(
                        "UPDATE entry SET gone = ? WHERE store = ? AND role = ? AND id = ?",
                        (today.isoformat(), store, role, identity),
                    )
                    continue
                layer = layers[identity]
                link.execute(
                    "INSERT INTO entry (store, role, id, layer, first_seen) VALUES (?, ?, ?, ?, ?) "
                    "ON CONFLICT (store, role, id) DO UPDATE SET layer = excluded.layer, gone = NULL",
                    (store, role, identity, layer and layer.value, today.isoformat()),
                )

    def mark_alive(self, project: str, days: Iterable[date]) -> None:
        """On these days something was done in the project."""
        said = sorted({day.isoformat() for day in days})
        with self._database.reading() as link:
            known = link.execute(
                "SELECT day FROM alive WHERE project = ? AND day IN (SELECT value FROM json_each(?))",
                (project, json.dumps(said)),
            ).fetchall()
        new = set(said) - {row["day"] for row in known}
        if new:
            with self._database.writing() as link:
                link.executemany("INSERT OR IGNORE INTO alive VALUES (?, ?)", [(project, day) for day in new])

    # Referenced

    def refer(self, store: str, references: Iterable[Reference], today: date) -> int:
        """Count references; returns how many were new."""
        rows = [(store, r.entry, r.cause, r.workflow, today.isoformat()) for r in references]
        if not rows:
            return 0
        with self._database.writing() as link:
            return link.executemany(
                "INSERT INTO reference (store, entry, cause, workflow, day) VALUES (?, ?, ?, ?, ?) "
                "ON CONFLICT (store, entry, cause) DO NOTHING",
                rows,
            ).rowcount

    def workflow_at(self, project: str, moment: float) -> str | None:
        """The key of the workflow that ran in the project at that moment (Unix seconds), the newest of several."""
        with self._database.reading() as link:
            found = link.execute(
                "SELECT key FROM workflow WHERE project = :project "
                "AND min(coalesce(started_at, first_seen), first_seen) <= :at AND coalesce(ended_at, :at) >= :at "
                "ORDER BY first_seen DESC, id DESC LIMIT 1",
                {"project": project, "at": moment},
            ).fetchone()
        return None if found is None else str(found["key"])

    def often_referenced(self, store: str, role: str, layer: Layer, least: int, today: date) -> tuple[str, ...]:
        """Ids of a role's entries of a layer with so many references at least, in order; pinned ones left out."""
        with self._database.reading() as link:
            rows = link.execute(
                "SELECT id FROM entry JOIN reference ON reference.store = entry.store AND reference.entry = entry.id "
                "WHERE entry.store = ? AND role = ? AND layer = ? AND gone IS NULL AND NOT EXISTS "
                "(SELECT 1 FROM pin WHERE pin.store = entry.store AND pin.entry = entry.id AND until >= ?) "
                "GROUP BY id HAVING count(*) >= ? ORDER BY id",
                (store, role, layer.value, today.isoformat(), least),
            ).fetchall()
        return tuple(row["id"] for row in rows)

    # Pinned

    def pin(self, store: str, entries: Collection[str], until: date) -> None:
        """No rule touches these entries up to and including that day."""
        with self._database.writing() as link:
            link.executemany(
                "INSERT INTO pin (store, entry, until) VALUES (?, ?, ?) "
                "ON CONFLICT (store, entry) DO UPDATE SET until = excluded.until",
                [(store, entry, until.isoformat()) for entry in entries],
            )

    def unpin(self, store: str, entry: str) -> bool:
        """The rules hold again for an entry; False if it was not pinned."""
        with self._database.writing() as link:
            return link.execute("DELETE FROM pin WHERE store = ? AND entry = ?", (store, entry)).rowcount > 0

    # Changed

    def renumber(self, store: str, role: str, renumbered: Mapping[str, str]) -> None:
        """Entries have other ids now (old: new), all at once; what an id of the new ones stood for is done with."""
        if not renumbered:
            return
        with self._database.writing() as link:
            _move(link, "reference", "entry", {"store": store}, renumbered)
            _move(link, "pin", "entry", {"store": store}, renumbered)
            _move(link, "entry", "id", {"store": store, "role": role}, renumbered)

    def note_pruned(self, store: str, role: str, today: date, inscribed: int) -> None:
        """A memory file was pruned, and so many inscribed entries were archived for room. It is held no more."""
        with self._database.writing() as link:
            link.execute(
                "INSERT INTO pruned (store, role, day, inscribed, released) VALUES (:store, :role, :day, :number, 1) "
                "ON CONFLICT (store, role) DO UPDATE SET released = 1, "
                "inscribed = iif(day = excluded.day, inscribed, 0) + excluded.inscribed, day = excluded.day",
                {"store": store, "role": role, "day": today.isoformat(), "number": inscribed},
            )

    # The first prune of a memory file

    def hold(self, store: str, role: str, now: float) -> float | None:
        """Hold the first prune of a memory file; since when (Unix seconds) it is held. None: it is not, any more."""
        with self._database.writing() as link:
            link.execute(
                "INSERT INTO pruned (store, role, held_since) VALUES (?, ?, ?) "
                "ON CONFLICT (store, role) DO UPDATE SET held_since = coalesce(held_since, excluded.held_since)",
                (store, role, now),
            )
            row = link.execute(
                "SELECT held_since, released FROM pruned WHERE store = ? AND role = ?", (store, role)
            ).fetchone()
        return None if row["released"] else float(row["held_since"])

    def let_go(self, store: str, roles: Iterable[str]) -> None:
        """A person wants these memory files to be pruned, also for the first time."""
        with self._database.reading() as link:
            known = link.execute("SELECT role FROM pruned WHERE store = ? AND released", (store,)).fetchall()
        held = sorted(set(roles) - {row["role"] for row in known})
        if not held:
            return
        with self._database.writing() as link:
            link.executemany(
                "INSERT INTO pruned (store, role, released) VALUES (?, ?, 1) "
                "ON CONFLICT (store, role) DO UPDATE SET released = 1",
                [(store, role) for role in held],
            )

    # Asked

    def facts(self, store: str, role: str, project: str, today: date, relevance_days: int) -> Facts:
        """What the policies are told about the entries of a role, all of one moment."""
        since = datetime.combine(today - timedelta(days=relevance_days), datetime.min.time()).timestamp()
        with self._database.reading() as link:
            recent = _recent_workflows(link, project, since)
            known = link.execute(
                "SELECT id, first_seen FROM entry WHERE store = ? AND role = ?", (store, role)
            ).fetchall()
            references = link.execute(
                "SELECT entry, count(*) AS number, max(day) AS last FROM reference WHERE store = ? GROUP BY entry",
                (store,),
            ).fetchall()
            pairs = link.execute(
                "SELECT DISTINCT entry, workflow FROM reference WHERE store = ? AND workflow IS NOT NULL", (store,)
            ).fetchall()
            pins = link.execute("SELECT entry, until FROM pin WHERE store = ?", (store,)).fetchall()
            pruned = link.execute(
                "SELECT inscribed FROM pruned WHERE store = ? AND role = ? AND day = ?",
                (store, role, today.isoformat()),
            ).fetchone()
            alive = _alive_days(link, project, today)
        counted = Counter(row["entry"] for row in pairs if row["workflow"] in recent)
        first_seen = {row["id"]: date.fromisoformat(row["first_seen"]) for row in known}
        referenced = {row["entry"]: row for row in references}
        return Facts(
            histories={
                identity: History(
                    first_seen=first_seen.get(identity),
                    last_reference=date.fromisoformat(row["last"]) if (row := referenced.get(identity)) else None,
                    references=int(row["number"]) if row else 0,
                    workflows=counted[identity],
                )
                for identity in first_seen.keys() | referenced.keys()
            },
            workflows_seen=len(recent),
            alive_days=alive,
            pinned={row["entry"]: date.fromisoformat(row["until"]) for row in pins},
            inscribed_archived_today=int(pruned["inscribed"]) if pruned else 0,
        )

    # Upkeep

    def tidy(self, today: date) -> int:
        """Forget entries that are long gone, with their references, and pins that ran out. Returns how many entries."""
        before = (today - timedelta(days=FORGOTTEN_DAYS)).isoformat()
        with self._database.writing() as link:
            link.execute("DELETE FROM pin WHERE until < ?", (today.isoformat(),))
            link.execute(
                "DELETE FROM reference WHERE EXISTS (SELECT 1 FROM entry WHERE entry.store = reference.store "
                "AND entry.id = reference.entry AND gone < ?)",
                (before,),
            )
            return link.execute("DELETE FROM entry WHERE gone < ?", (before,)).rowcount


def _news(link: sqlite3.Connection, store: str, role: str, layers: Mapping[str, Layer | None]) -> set[str]:
    """The ids that are new, came back, went, or have another layer."""
    rows = link.execute("SELECT id, layer, gone FROM entry WHERE store = ? AND role = ?", (store, role))
    known = {row["id"]: row for row in rows}
    here = {identity for identity, row in known.items() if row["gone"] is None}
    changed = {identity for identity in here & layers.keys() if known[identity]["layer"] != (layers[identity] or None)}
    return changed | (here ^ layers.keys())


def _move(
    link: sqlite3.Connection, table: str, column: str, where: Mapping[str, str], renumbered: Mapping[str, str]
) -> None:
    # Table and column names are those above, never data.
    condition = " AND ".join(f"{name} = :{name}" for name in where)
    ids = json.dumps(sorted(renumbered.keys() | set(renumbered.values())))
    found = link.execute(
        f"SELECT * FROM {table} WHERE {condition} AND {column} IN (SELECT value FROM json_each(:ids))",  # noqa: S608
        {**where, "ids": ids},
    ).fetchall()
    link.execute(
        f"DELETE FROM {table} WHERE {condition} AND {column} IN (SELECT value FROM json_each(:ids))",  # noqa: S608
        {**where, "ids": ids},
    )
    for row in found:
        if row[column] in renumbered:
            values = {**dict(row), column: renumbered[row[column]]}
            places = ", ".join("?" * len(values))
            link.execute(f"INSERT INTO {table} ({', '.join(values)}) VALUES ({places})", (*values.values(),))  # noqa: S608


def _recent_workflows(link: sqlite3.Connection, project: str, since: float) -> frozenset[str]:
    """Keys of the workflows that began since then; what is left of older ones does not count."""
    rows = link.execute(
        "SELECT key FROM workflow WHERE project = ? AND min(coalesce(started_at, first_seen), first_seen) >= ?",
        (project, since),
    )
    return frozenset(row["key"] for row in rows)


def _alive_days(link: sqlite3.Connection, project: str, today: date) -> frozenset[date]:
    days = {
        date.fromisoformat(row["day"]) for row in link.execute("SELECT day FROM alive WHERE project = ?", (project,))
    }
    for row in link.execute("SELECT first_seen, ended_at FROM workflow WHERE project = ?", (project,)):
        day = _day(row["first_seen"])
        last = today if row["ended_at"] is None else min(_day(row["ended_at"]), today)
        while day <= last:
            days.add(day)
            day += timedelta(days=1)
    return frozenset(days)


def _day(at: float) -> date:
    return datetime.fromtimestamp(at).astimezone().date()
