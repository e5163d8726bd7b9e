"""The tables, as an ordered list of migrations. A migration that was released is never edited, only followed."""

from __future__ import annotations

from typing import Final

_JOBS: Final = (
    # Two reasons to wait that end separately: input that is not ready, and a pause after a failure or a deferral.
    """
    CREATE TABLE job (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        kind TEXT NOT NULL,
        store TEXT NOT NULL,
        role TEXT NOT NULL,
        state TEXT NOT NULL CHECK (state IN ('queued', 'deferred', 'running', 'done', 'dead')),
        reason TEXT NOT NULL,
        fingerprint TEXT NOT NULL,
        attempts INTEGER NOT NULL CHECK (attempts >= 0),
        ready REAL NOT NULL,
        rests_until REAL NOT NULL,
        due REAL NOT NULL GENERATED ALWAYS AS (max(ready, rests_until)) VIRTUAL,
        queued_at REAL NOT NULL,
        started_at REAL,
        finished_at REAL,
        result TEXT NOT NULL,
        merged_into INTEGER,
        worker_pid INTEGER,
        worker_started REAL,
        CHECK ((state = 'running') = (worker_pid IS NOT NULL)),
        CHECK ((state = 'running') = (worker_started IS NOT NULL))
    ) STRICT
    """,
    "CREATE UNIQUE INDEX job_pending ON job (kind, store, role) WHERE state IN ('queued', 'deferred')",
    "CREATE UNIQUE INDEX job_running ON job (kind, store, role) WHERE state = 'running'",
    "CREATE UNIQUE INDEX job_worker ON job (worker_pid, worker_started) WHERE state = 'running'",
    "CREATE UNIQUE INDEX job_dead ON job (kind, store, role) WHERE state = 'dead'",
    "CREATE INDEX job_finished ON job (finished_at) WHERE state = 'done'",
    # The input of each store and role that was last settled: done, or given up. One row a key, so it cannot grow
    # with time, and it outlives the finished job.
    """
    CREATE TABLE settled (
        kind TEXT NOT NULL,
        store TEXT NOT NULL,
        role TEXT NOT NULL,
        fingerprint TEXT NOT NULL,
        PRIMARY KEY (kind, store, role)
    ) STRICT, WITHOUT ROWID
    """,
    # Whose turn it was: a counter, not a time, so that a clock set back cannot make anybody wait.
    "CREATE TABLE served (store TEXT PRIMARY KEY, turn INTEGER NOT NULL) STRICT, WITHOUT ROWID",
    """
    CREATE TABLE kind_record (
        kind TEXT PRIMARY KEY,
        last_success REAL,
        last_failure REAL,
        last_error TEXT
    ) STRICT, WITHOUT ROWID
    """,
)

_WORKFLOWS: Final = (
    # A declared workflow (someone said so, no marker shows it) has an end agreed beforehand: until.
    """
    CREATE TABLE workflow (
        id INTEGER PRIMARY KEY,
        project TEXT NOT NULL,
        key TEXT NOT NULL,
        kind TEXT NOT NULL,
        name TEXT NOT NULL,
        started_at REAL,
        first_seen REAL NOT NULL,
        ended_at REAL,
        until REAL,
        pid INTEGER,
        pid_started REAL,
        UNIQUE (project, key)
    ) STRICT
    """,
    "CREATE UNIQUE INDEX workflow_declared ON workflow (project, name) WHERE until IS NOT NULL AND ended_at IS NULL",
    "CREATE INDEX workflow_ended ON workflow (project, ended_at)",
)

_HOOKS: Final = (
    # What became of events that hooks reported, each task once. A row without `recorded_at` was being written when
    # the process ended: whether it was is to be seen in the memory file.
    """
    CREATE TABLE observed (
        key TEXT PRIMARY KEY,
        event TEXT NOT NULL,
        begun_at REAL NOT NULL,
        recorded_at REAL
    ) STRICT, WITHOUT ROWID
    """,
    "CREATE INDEX observed_begun ON observed (begun_at)",
    """
    CREATE TABLE heard (
        event TEXT NOT NULL,
        outcome TEXT NOT NULL,
        count INTEGER NOT NULL,
        last_at REAL NOT NULL,
        PRIMARY KEY (event, outcome)
    ) STRICT, WITHOUT ROWID
    """,
)

_UNDO: Final = ()
"""No table changes: the queue may hold jobs of the kind `undo` from here on."""

_SCRUB: Final = ()
"""The same for the kind `scrub`."""

MIGRATIONS: Final[tuple[tuple[str, ...], ...]] = ((*_JOBS, *_WORKFLOWS), _HOOKS, _UNDO, _SCRUB)
"""Each applied in one transaction; `PRAGMA user_version` counts those applied."""

VERSION: Final = len(MIGRATIONS)
