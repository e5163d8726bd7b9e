"""The queue as `status`, `echod jobs` and the worker's alarm clock see it.

Changes nothing, so a database that was opened for reading is enough.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

from echod.state import job_rows as rows
from echod.state.database import Database
from echod.state.job import BY_HAND, Job, JobKind, JobState

ALL_STATES: Final = frozenset(JobState)


@dataclass(frozen=True, slots=True)
class KindRecord:
    """When a kind of job last ended well and badly (Unix seconds; None: never). Outlives the jobs themselves."""

    last_success: float | None
    last_failure: float | None
    last_error: str | None


class QueueView:
    """Questions to the queue, each answered from one moment."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def get(self, job_id: int) -> Job | None:
        """The job of that number; None if there never was one or it was forgotten."""
        with self._database.reading() as link:
            return rows.by_id(link, job_id)

    def jobs(self, states: Collection[JobState] = ALL_STATES, limit: int = 100) -> tuple[Job, ...]:
        """Jobs in any of these states, the newest first."""
        with self._database.reading() as link:
            found = link.execute(
                "SELECT * FROM job WHERE state IN (SELECT value FROM json_each(?)) ORDER BY id DESC LIMIT ?",
                (json.dumps(sorted(states)), limit),
            ).fetchall()
        return tuple(map(rows.job_of, found))

    def counts(self) -> dict[JobState, int]:
        """How many jobs are in each state, zeros included; a command that failed does not count as given up."""
        with self._database.reading() as link:
            found = dict(
                link.execute(
                    "SELECT state, count(*) FROM job "
                    "WHERE NOT (state = 'dead' AND kind IN (SELECT value FROM json_each(?))) GROUP BY state",
                    (json.dumps(sorted(BY_HAND)),),
                ).fetchall()
            )
        return {state: int(found.get(state.value, 0)) for state in JobState}

    def oldest_due(self, now: float) -> float | None:
        """Since when (Unix seconds) the longest due queued job has been waiting; None if none is due."""
        with self._database.reading() as link:
            found = link.execute("SELECT min(due) FROM job WHERE state = 'queued' AND due <= ?", (now,)).fetchone()
        return None if found[0] is None else float(found[0])

    def next_due(self) -> float | None:
        """When (Unix seconds) the next pending job may run, which may be past; None if nothing is pending."""
        with self._database.reading() as link:
            found = link.execute("SELECT min(due) FROM job WHERE state IN ('queued', 'deferred')").fetchone()
        return None if found[0] is None else float(found[0])

    def records(self) -> dict[JobKind, KindRecord]:
        """For each kind of job that ever ended, how it last did."""
        with self._database.reading() as link:
            found = link.execute("SELECT * FROM kind_record").fetchall()
        return {
            JobKind(row["kind"]): KindRecord(row["last_success"], row["last_failure"], row["last_error"])
            for row in found
        }
