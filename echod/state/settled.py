"""The memo of inputs: which one was last dealt with, done or given up, for each kind, store and role.

Every function runs inside the caller's transaction. One row a key, so the memo cannot grow with time.
"""

from __future__ import annotations

import sqlite3

from echod.state.job import Job, Need


def is_settled(link: sqlite3.Connection, need: Need) -> bool:
    """Whether this very input was the last one dealt with."""
    found = link.execute(
        "SELECT 1 FROM settled WHERE kind = ? AND store = ? AND role = ? AND fingerprint = ?",
        (need.kind.value, need.store, need.role, need.fingerprint),
    )
    return found.fetchone() is not None


def settle(link: sqlite3.Connection, job: Job) -> None:
    """The input of the job was dealt with."""
    link.execute(
        "INSERT INTO settled (kind, store, role, fingerprint) VALUES (?, ?, ?, ?) "
        "ON CONFLICT (kind, store, role) DO UPDATE SET fingerprint = excluded.fingerprint",
        (job.kind.value, job.store, job.role, job.fingerprint),
    )


def unsettle(link: sqlite3.Connection, of: Need | Job) -> None:
    """Whatever was dealt with for this kind, store and role may be tried again."""
    link.execute("DELETE FROM settled WHERE kind = ? AND store = ? AND role = ?", (of.kind.value, of.store, of.role))
