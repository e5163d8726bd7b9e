"""Read what ran in a project: its workflows and sessions, and the days on which it was active.

A session is known by the references that it recorded, a workflow by its markers. A session within a workflow is a part
of that workflow.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from datetime import date, datetime, timedelta

from echod.clock import local_date

_SESSION_CAUSES = "session:*"
"""The causes of references that name a session."""

SELECT_REFERENCING_RUNS = (
    "SELECT DISTINCT coalesce(renamed.value, entry_id) AS id, coalesce(workflow, cause) AS run "
    "FROM reference LEFT JOIN json_each(?) AS renamed ON renamed.key = entry_id "
    "WHERE store = ? AND (workflow IS NOT NULL OR cause GLOB 'session:*')"
)
"""The workflows and sessions that referenced entries, by the ids that these have in the file."""


def recent_runs(connection: sqlite3.Connection, project: str, store: str, first: date) -> Mapping[str, date]:
    """Return the workflows that began on this day or later, and the sessions that referenced anything since, with days.

    Older workflows do not count, even if they still run.
    """
    since = datetime.combine(first, datetime.min.time()).timestamp()
    workflows = connection.execute(
        "SELECT key, min(coalesce(started_at, first_seen), first_seen) AS began FROM workflow "
        "WHERE project = ? AND min(coalesce(started_at, first_seen), first_seen) >= ?",
        (project, since),
    )
    runs = {str(row["key"]): local_date(row["began"]) for row in workflows}
    sessions = connection.execute(
        "SELECT cause, max(day) AS day FROM reference WHERE store = ? AND workflow IS NULL AND cause GLOB ? "
        "GROUP BY cause HAVING max(day) >= ?",
        (store, _SESSION_CAUSES, first.isoformat()),
    )
    return runs | {str(row["cause"]): date.fromisoformat(row["day"]) for row in sessions}


def count_runs_since(runs: Mapping[str, date], day: date | None) -> int:
    """Return how many of the runs there were since an entry was first seen on this day; None is unknown, so all."""
    return sum(day is None or ran >= day for ran in runs.values())


def active_days(connection: sqlite3.Connection, project: str, today: date) -> frozenset[date]:
    """Return the local days on which a workflow ran in the project or its memory changed."""
    rows = connection.execute("SELECT day FROM project_activity WHERE project = ?", (project,))
    days = {date.fromisoformat(row["day"]) for row in rows}
    for row in connection.execute("SELECT first_seen, ended_at FROM workflow WHERE project = ?", (project,)):
        day = local_date(row["first_seen"])
        last = today if row["ended_at"] is None else min(local_date(row["ended_at"]), today)
        while day <= last:
            days.add(day)
            day += timedelta(days=1)
    return frozenset(days)
