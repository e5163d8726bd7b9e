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
from echod.state.review_answers import AnswerLog, AskedLog

if TYPE_CHECKING:
    from echod.memory.entry_matching import Present
    from echod.memory.policy.scoring import Facts

FORGOTTEN_DAYS = 180
"""How long an entry that is gone is known. Longer than anything is pinned, or an undo is possible."""

MOST_REFERENCES = 1_000
"""So many references of an entry are told apart where no workflow is known; of more only the last day is."""

_MORE = "more"
"""The cause that stands for all references above `MOST_REFERENCES`."""

# Of all entries that there ever were, or (with `_THESE`) of those that are asked for: a role may have had very many.
_SEEN = "SELECT id, first_seen FROM entry WHERE store = ? AND role = ?"
# The rest for the ids that the entries have by now (`moved` is id then: id now).
_REFERENCES = (
    "SELECT coalesce(moved.value, entry) AS entry, count(DISTINCT cause) AS number, max(day) AS last "
    "FROM reference LEFT JOIN json_each(?) AS moved ON moved.key = entry WHERE store = ?"
)
_WORKFLOWS = (
    "SELECT DISTINCT coalesce(moved.value, entry) AS entry, workflow "
    "FROM reference LEFT JOIN json_each(?) AS moved ON moved.key = entry WHERE store = ? AND workflow IS NOT NULL"
)
_PINS = (
    "SELECT coalesce(moved.value, entry) AS entry, max(until) AS until "
    "FROM pin LEFT JOIN json_each(?) AS moved ON moved.key = entry WHERE store = ?"
)
_THESE = "IN (SELECT value FROM json_each(?))"


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


class EntryLog:
    """The entries of all stores; may be used by several threads and processes."""

    def __init__(self, database: Database) -> None:
        self._database = database

    @property
    def answers(self) -> AnswerLog:
        """What a person answered where entries or their files waited for it."""
        return AnswerLog(self._database)

    @property
    def asked(self) -> AskedLog:
        """Which entries the questions to a person are about."""
        return AskedLog(self._database)

    # Seen

    def see(
        self,
        store: str,
        role: str,
        present: Iterable[Present],
        today: date,
        told: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        """A role's memory file holds exactly these entries now. A look that shows nothing new writes nothing.

        What was known of an entry goes with it where its id changed since the last look.

        Args:
            store: the store's key.
            role: the role's name.
            present: the entries of the file.
            today: the local day.
            told: id before -> id now, for entries of which whoever changed the file knows it.
        """
        from echod.state.entry_ids import carried, move  # noqa: PLC0415  slow to load, for whoever only looks at pins

        entries = tuple(present)
        with self._database.reading() as link:
            found = carried(link, store, role, entries, told)
        if not (found.moves or found.gone or found.news):
            return
        with self._database.writing() as link:
            found = carried(link, store, role, entries, told)
            link.executemany(
                "UPDATE entry SET gone = ? WHERE store = ? AND role = ? AND id = ?",
                [(today.isoformat(), store, role, identity) for identity in found.gone],
            )
            move(link, store, role, found.moves)
            link.executemany(
                "INSERT INTO entry (store, role, id, layer, first_seen, title, day, source, body) "
                "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (store, role, id) DO UPDATE SET "
                "layer = excluded.layer, gone = NULL, title = excluded.title, day = excluded.day, "
                "source = excluded.source, body = excluded.body",
                [(store, role, *_values(entry, today)) for entry in found.news],
            )

    def moves(self, store: str, role: str, present: Iterable[Present]) -> Mapping[str, str]:
        """Id at the last look -> id in the file as it is, of entries that got another one since. Arguments as above."""
        from echod.state.entry_ids import carried  # noqa: PLC0415

        with self._database.reading() as link:
            return carried(link, store, role, present).moves

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
        """Count references; returns how many were new.

        Of more than `MOST_REFERENCES` for which no workflow is known only that there are more is written down, and
        the last day.
        """
        wanted = tuple(references)
        if not wanted:
            return 0
        with self._database.writing() as link:
            many = {r.entry for r in wanted if r.workflow is None and _has_many(link, store, r.entry)}
            link.executemany(
                "INSERT INTO reference (store, entry, cause, day) VALUES (?, ?, ?, ?) "
                "ON CONFLICT (store, entry, cause) DO UPDATE SET day = max(day, excluded.day)",
                [(store, entry, _MORE, today.isoformat()) for entry in sorted(many)],
            )
            rows = [
                (store, r.entry, r.cause, r.workflow, today.isoformat())
                for r in wanted
                if r.workflow is not None or r.entry not in many
            ]
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
                "SELECT id FROM entry INDEXED BY entry_here "
                "JOIN reference ON reference.store = entry.store AND reference.entry = entry.id "
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

    def pinned(self, store: str, today: date) -> frozenset[str]:
        """The ids of a store's entries that no rule touches today."""
        with self._database.reading() as link:
            rows = link.execute("SELECT entry FROM pin WHERE store = ? AND until >= ?", (store, today.isoformat()))
            return frozenset(row["entry"] for row in rows)

    # Changed

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

    def held(self, store: str) -> Mapping[str, float]:
        """The roles whose first prune is held, and since when (Unix seconds)."""
        with self._database.reading() as link:
            rows = link.execute(
                "SELECT role, held_since FROM pruned WHERE store = ? AND NOT released AND held_since IS NOT NULL",
                (store,),
            )
            return {row["role"]: float(row["held_since"]) for row in rows}

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

    def facts(
        self,
        store: str,
        role: str,
        project: str,
        today: date,
        relevance_days: int,
        present: Iterable[Present] | None = None,
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
        from echod.state.entry_ids import carried  # noqa: PLC0415

        entries = () if present is None else tuple(present)
        only = [entry.id for entry in entries] if present is not None else ids
        since = datetime.combine(today - timedelta(days=relevance_days), datetime.min.time()).timestamp()
        with self._database.reading() as link:
            recent = _recent_workflows(link, project, since)
            moves = carried(link, store, role, entries).moves if entries else {}
            wanted = None if only is None else _before(moves, only)
            where = (json.dumps(moves), store)
            known = _rows(link, _SEEN, (store, role), "id", wanted)
            references = _rows(link, _REFERENCES, where, "entry", wanted, " GROUP BY 1")
            pairs = _rows(link, _WORKFLOWS, where, "entry", wanted)
            pins = _rows(link, _PINS, where, "entry", wanted, " GROUP BY 1")
            pruned = link.execute(
                "SELECT inscribed FROM pruned WHERE store = ? AND role = ? AND day = ?",
                (store, role, today.isoformat()),
            ).fetchone()
            alive = _alive_days(link, project, today)
        counted = Counter(row["entry"] for row in pairs if row["workflow"] in recent)
        first_seen = {moves.get(row["id"], row["id"]): date.fromisoformat(row["first_seen"]) for row in known}
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
            forgotten = link.execute("DELETE FROM entry WHERE gone < ?", (before,)).rowcount
            link.execute(
                "DELETE FROM asked WHERE NOT EXISTS "
                "(SELECT 1 FROM entry WHERE entry.store = asked.store AND entry.id = asked.entry)"
            )
            return forgotten


def _has_many(link: sqlite3.Connection, store: str, entry: str) -> bool:
    found = link.execute(
        "SELECT count(*) FROM (SELECT 1 FROM reference WHERE store = ? AND entry = ? LIMIT ?)",
        (store, entry, MOST_REFERENCES),
    ).fetchone()
    return bool(found[0] >= MOST_REFERENCES)


def _before(moves: Mapping[str, str], ids: Iterable[str]) -> str:
    """The ids under which what is known of these entries is written down, as JSON."""
    wanted = set(ids)
    moved = {then for then, now in moves.items() if now in wanted}
    return json.dumps(sorted(moved | (wanted - moves.keys())))


def _rows(
    link: sqlite3.Connection,
    select: str,
    values: tuple[str, ...],
    column: str,
    wanted: str | None,
    end: str = "",
) -> list[sqlite3.Row]:
    # All of the text is from above, never data.
    if wanted is None:
        return link.execute(select + end, values).fetchall()
    return link.execute(f"{select} AND {column} {_THESE}{end}", (*values, wanted)).fetchall()


def _values(entry: Present, today: date) -> tuple[str | None, ...]:
    like = entry.likeness
    layer = entry.layer and entry.layer.value
    return entry.id, layer, today.isoformat(), like.title, like.day, like.source, like.body


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
