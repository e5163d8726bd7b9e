"""The tables of the state database.

There is one version of the schema. `echod.state.database` creates it and refuses a file of any other version. A
change that is released comes with the next version number and a migration.
"""

from __future__ import annotations

from typing import Final

SCHEMA_VERSION: Final = 1
"""`PRAGMA user_version` of a database with these tables; 0 is a file without content."""

_JOBS: Final = (
    # Two times to wait for, which pass independently: when the input is ready (ready_at), and the end of a pause
    # after a failure or a deferral (not_before).
    """
    CREATE TABLE job (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        kind TEXT NOT NULL,
        store TEXT NOT NULL,
        role TEXT NOT NULL,
        state TEXT NOT NULL CHECK (state IN ('queued', 'deferred', 'running', 'done', 'dead', 'refused')),
        reason TEXT NOT NULL,
        fingerprint TEXT NOT NULL,
        attempts INTEGER NOT NULL CHECK (attempts >= 0),
        ready_at REAL NOT NULL,
        not_before REAL NOT NULL,
        due REAL NOT NULL GENERATED ALWAYS AS (max(ready_at, not_before)) VIRTUAL,
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
    "CREATE INDEX job_finished ON job (finished_at) WHERE state IN ('done', 'refused')",
    # The last input of each kind, store and role that was processed or given up. One row for each key, so the table
    # does not grow with time, and a row outlives its finished job.
    """
    CREATE TABLE done_input (
        kind TEXT NOT NULL,
        store TEXT NOT NULL,
        role TEXT NOT NULL,
        fingerprint TEXT NOT NULL,
        PRIMARY KEY (kind, store, role)
    ) STRICT, WITHOUT ROWID
    """,
    # When a store last had its turn. A counter instead of a time, so that a clock that is set back delays no store.
    # The last reading of the clock that is believed, and the first one of a jump ahead that is not believed yet.
    """
    CREATE TABLE clock_reading (
        id INTEGER PRIMARY KEY CHECK (id = 1),
        believed REAL NOT NULL,
        doubted REAL
    ) STRICT
    """,
    "CREATE TABLE store_turn (store TEXT PRIMARY KEY, turn INTEGER NOT NULL) STRICT, WITHOUT ROWID",
    """
    CREATE TABLE job_kind_record (
        kind TEXT PRIMARY KEY,
        last_success REAL,
        last_failure REAL,
        last_error TEXT
    ) STRICT, WITHOUT ROWID
    """,
)

_WORKFLOWS: Final = (
    # A declared workflow (a command reported it, no marker shows it) has an end agreed beforehand: until.
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
    # Completed tasks that hooks reported, each once. A row without recorded_at was being written when the process
    # ended. The memory file shows whether its entry was written.
    """
    CREATE TABLE recorded_task (
        key TEXT PRIMARY KEY,
        event_name TEXT NOT NULL,
        started_at REAL NOT NULL,
        recorded_at REAL
    ) STRICT, WITHOUT ROWID
    """,
    "CREATE INDEX recorded_task_started ON recorded_task (started_at)",
    """
    CREATE TABLE hook_event_count (
        event TEXT NOT NULL,
        outcome TEXT NOT NULL,
        count INTEGER NOT NULL,
        last_at REAL NOT NULL,
        PRIMARY KEY (event, outcome)
    ) STRICT, WITHOUT ROWID
    """,
)

_ENTRIES: Final = (
    # Entries of memory files by id: the layer (NULL: unknown), the local day on which echod first saw the entry, the
    # day since which it is removed (NULL: it is present), and the digests of its title, date, source and body (without
    # secrets), by which an entry is recognised when its id changes.
    """
    CREATE TABLE entry (
        store TEXT NOT NULL,
        role TEXT NOT NULL,
        id TEXT NOT NULL,
        layer TEXT,
        first_seen TEXT NOT NULL,
        removed_on TEXT,
        title_digest TEXT NOT NULL,
        date_digest TEXT NOT NULL,
        source_digest TEXT NOT NULL,
        body_digest TEXT NOT NULL,
        PRIMARY KEY (store, role, id)
    ) STRICT, WITHOUT ROWID
    """,
    # A role can have had very many entries. A look at its file reads those that are present, or have the same body
    # as one that is.
    "CREATE INDEX entry_present ON entry (store, role) WHERE removed_on IS NULL",
    "CREATE INDEX entry_body ON entry (store, role, body_digest)",
    # The digests that an entry had before, up to and including a local day. An older text of its file may come back.
    """
    CREATE TABLE earlier_signature (
        store TEXT NOT NULL,
        role TEXT NOT NULL,
        entry_id TEXT NOT NULL,
        title_digest TEXT NOT NULL,
        date_digest TEXT NOT NULL,
        source_digest TEXT NOT NULL,
        body_digest TEXT NOT NULL,
        replaced_on TEXT NOT NULL,
        PRIMARY KEY (store, role, entry_id, title_digest, date_digest, source_digest, body_digest)
    ) STRICT, WITHOUT ROWID
    """,
    "CREATE INDEX earlier_signature_body ON earlier_signature (store, role, body_digest)",
    # A cause (a session, a workflow, a finding) counts once for each entry. `workflow` is the key of the one that ran.
    """
    CREATE TABLE reference (
        store TEXT NOT NULL,
        entry_id TEXT NOT NULL,
        cause TEXT NOT NULL,
        workflow TEXT,
        day TEXT NOT NULL,
        PRIMARY KEY (store, entry_id, cause)
    ) STRICT, WITHOUT ROWID
    """,
    # Groups of entries that a client of the MCP server declared as related.
    """
    CREATE TABLE related_entry (
        store TEXT NOT NULL,
        group_id TEXT NOT NULL,
        entry_id TEXT NOT NULL,
        similarity REAL NOT NULL,
        PRIMARY KEY (store, group_id, entry_id)
    ) STRICT, WITHOUT ROWID
    """,
    "CREATE INDEX related_entry_id ON related_entry (store, entry_id)",
    """
    CREATE TABLE pin (
        store TEXT NOT NULL,
        entry_id TEXT NOT NULL,
        until TEXT NOT NULL,
        PRIMARY KEY (store, entry_id)
    ) STRICT, WITHOUT ROWID
    """,
    # The base of each citation of an entry: where the cited lines were (path NULL: nowhere), their tokens as hashes,
    # when and from which commit (NULL: the file itself) that was taken, and the state that the last check found.
    """
    CREATE TABLE fingerprint (
        store TEXT NOT NULL,
        role TEXT NOT NULL,
        entry_id TEXT NOT NULL,
        cite TEXT NOT NULL,
        path TEXT,
        first INTEGER NOT NULL,
        last INTEGER NOT NULL,
        tokens BLOB NOT NULL,
        context_before BLOB NOT NULL,
        context_after BLOB NOT NULL,
        lines_before BLOB NOT NULL,
        lines_after BLOB NOT NULL,
        line_sizes BLOB NOT NULL,
        copies INTEGER NOT NULL,
        size INTEGER NOT NULL,
        digest TEXT NOT NULL,
        sketch BLOB NOT NULL,
        taken_at REAL NOT NULL,
        commit_name TEXT,
        state TEXT,
        PRIMARY KEY (store, role, entry_id, cite)
    ) STRICT
    """,
    """
    CREATE TABLE project_activity (
        project TEXT NOT NULL,
        day TEXT NOT NULL,
        PRIMARY KEY (project, day)
    ) STRICT, WITHOUT ROWID
    """,
    # What prune needs to know about a memory file: how many inscribed entries it archived on its last day to get
    # below the limit, and whether its first prune is held or was released.
    """
    CREATE TABLE prune_state (
        store TEXT NOT NULL,
        role TEXT NOT NULL,
        last_pruned_on TEXT,
        archived_learnings INTEGER NOT NULL DEFAULT 0,
        held_since REAL,
        released INTEGER NOT NULL DEFAULT 0,
        PRIMARY KEY (store, role)
    ) STRICT, WITHOUT ROWID
    """,
)

_REVIEW: Final = (
    # The user's answers to review items. An answered item is hidden until its content changes.
    """
    CREATE TABLE review_answer (
        store TEXT NOT NULL,
        item_id TEXT NOT NULL,
        answer TEXT NOT NULL CHECK (answer IN ('accepted', 'rejected', 'dismissed')),
        answered_at REAL NOT NULL,
        PRIMARY KEY (store, item_id)
    ) STRICT, WITHOUT ROWID
    """,
    # The first key of a store that was moved. The ids of its review items contain it.
    "CREATE TABLE moved_store (store TEXT PRIMARY KEY, first_key TEXT NOT NULL) STRICT, WITHOUT ROWID",
    # The entry that a question to the user is about: the id it had when the question was asked, and its present id.
    """
    CREATE TABLE question_subject (
        store TEXT NOT NULL,
        finding_key TEXT NOT NULL,
        asked_entry_id TEXT NOT NULL,
        current_entry_id TEXT NOT NULL,
        PRIMARY KEY (store, finding_key, asked_entry_id)
    ) STRICT, WITHOUT ROWID
    """,
)

_SESSIONS: Final = (
    # How far each transcript of an agent's session was read for an archive. `store` is the directory of the archives,
    # `tail` the digest of the bytes before `offset`. A row is found again in the receipts beside the archives.
    """
    CREATE TABLE session_source (
        store TEXT NOT NULL,
        path TEXT NOT NULL,
        project TEXT NOT NULL,
        session_id TEXT NOT NULL,
        state TEXT NOT NULL,
        reason TEXT NOT NULL,
        archive INTEGER,
        size INTEGER NOT NULL,
        mtime_ns INTEGER NOT NULL,
        offset INTEGER NOT NULL,
        tail TEXT NOT NULL,
        recorded_at REAL NOT NULL,
        PRIMARY KEY (store, path)
    ) STRICT, WITHOUT ROWID
    """,
    "CREATE INDEX session_source_session ON session_source (store, session_id)",
    # The records that the archives of a directory contain, by the digests of their ids.
    """
    CREATE TABLE session_key (
        store TEXT NOT NULL,
        key INTEGER NOT NULL,
        archive INTEGER NOT NULL,
        PRIMARY KEY (store, key)
    ) STRICT, WITHOUT ROWID
    """,
    "CREATE INDEX session_key_archive ON session_key (store, archive)",
    """
    CREATE TABLE session_archive (
        store TEXT NOT NULL,
        archive INTEGER NOT NULL,
        session_id TEXT NOT NULL,
        PRIMARY KEY (store, archive)
    ) STRICT, WITHOUT ROWID
    """,
    "CREATE INDEX session_archive_session ON session_archive (store, session_id)",
    # The version of the receipts that the tables above were read from.
    "CREATE TABLE session_root (store TEXT PRIMARY KEY, version TEXT NOT NULL) STRICT, WITHOUT ROWID",
    # What hooks reported about a session: when it ended, and when its host began to compact it. Only hints.
    """
    CREATE TABLE session_hint (
        session_id TEXT PRIMARY KEY,
        ended_at REAL,
        compacting_at REAL
    ) STRICT, WITHOUT ROWID
    """,
)

CREATE_STATEMENTS: Final = (*_JOBS, *_WORKFLOWS, *_HOOKS, *_ENTRIES, *_REVIEW, *_SESSIONS)
"""Run in one transaction on a file without content."""
