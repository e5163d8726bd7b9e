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

_ENTRIES: Final = (
    # Entries of memory files by id: the layer (NULL: none that is known), the local day on which echod first saw
    # each, and since when it is gone (NULL: it is there).
    """
    CREATE TABLE entry (
        store TEXT NOT NULL,
        role TEXT NOT NULL,
        id TEXT NOT NULL,
        layer TEXT,
        first_seen TEXT NOT NULL,
        gone TEXT,
        PRIMARY KEY (store, role, id)
    ) STRICT, WITHOUT ROWID
    """,
    # A cause (a session, a workflow, a finding) counts once for each entry. `workflow`: the key of the one that ran.
    """
    CREATE TABLE reference (
        store TEXT NOT NULL,
        entry TEXT NOT NULL,
        cause TEXT NOT NULL,
        workflow TEXT,
        day TEXT NOT NULL,
        PRIMARY KEY (store, entry, cause)
    ) STRICT, WITHOUT ROWID
    """,
    """
    CREATE TABLE pin (
        store TEXT NOT NULL,
        entry TEXT NOT NULL,
        until TEXT NOT NULL,
        PRIMARY KEY (store, entry)
    ) STRICT, WITHOUT ROWID
    """,
    "CREATE TABLE alive (project TEXT NOT NULL, day TEXT NOT NULL, PRIMARY KEY (project, day)) STRICT, WITHOUT ROWID",
    # What prune has to know of a memory file: how many inscribed entries it archived for room on that day, and
    # whether its first prune is held, and may be done by now.
    """
    CREATE TABLE pruned (
        store TEXT NOT NULL,
        role TEXT NOT NULL,
        day TEXT,
        inscribed INTEGER NOT NULL DEFAULT 0,
        held_since REAL,
        released INTEGER NOT NULL DEFAULT 0,
        PRIMARY KEY (store, role)
    ) STRICT, WITHOUT ROWID
    """,
)
"""Also, the queue may hold jobs of the kinds `prune`, `promote` and `compress` from here on."""

_REVIEW_ANSWERS: Final = (
    # What a person answered to a review item: it is not shown again while it says the same.
    """
    CREATE TABLE answered (
        item TEXT PRIMARY KEY,
        store TEXT NOT NULL,
        answer TEXT NOT NULL CHECK (answer IN ('accepted', 'rejected')),
        at REAL NOT NULL
    ) STRICT, WITHOUT ROWID
    """,
)
"""Also, the queue may hold what a person asks for with `remember`, `raise`, `forget`, `restore`, `reset`, `review`,
`elevate` and `packs` from here on."""

_ENTRY_SIGNATURES: Final = (
    # By what an entry is recognised when its id changes: digests of its title, date, source and body without secrets.
    # NULL in rows that were not looked at since; the next look at their file fills them in.
    "ALTER TABLE entry ADD COLUMN title TEXT",
    "ALTER TABLE entry ADD COLUMN day TEXT",
    "ALTER TABLE entry ADD COLUMN source TEXT",
    "ALTER TABLE entry ADD COLUMN body TEXT",
)

_ENTRY_INDEXES: Final = (
    # Of very many entries that ever were in a file a look wants those that are there, or say the same as one of them.
    "CREATE INDEX entry_here ON entry (store, role) WHERE gone IS NULL",
    "CREATE INDEX entry_body ON entry (store, role, body)",
)

_QUESTION_SUBJECTS: Final = (
    # The entry that a question to a person is about: the id that it had when the question was asked, and has now.
    """
    CREATE TABLE asked (
        store TEXT NOT NULL,
        finding TEXT NOT NULL,
        was TEXT NOT NULL,
        entry TEXT NOT NULL,
        PRIMARY KEY (store, finding, was)
    ) STRICT, WITHOUT ROWID
    """,
)

MIGRATIONS: Final[tuple[tuple[str, ...], ...]] = (
    (*_JOBS, *_WORKFLOWS),
    _HOOKS,
    _UNDO,
    _SCRUB,
    _ENTRIES,
    _REVIEW_ANSWERS,
    _ENTRY_SIGNATURES,
    _ENTRY_INDEXES,
    _QUESTION_SUBJECTS,
)
"""Each applied in one transaction; `PRAGMA user_version` counts those applied."""

SCHEMA_VERSION: Final = len(MIGRATIONS)
