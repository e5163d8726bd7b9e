"""One connection to the database: its pragmas, the creation of the file and its migrations. Knows no table."""

from __future__ import annotations

import contextlib
import sqlite3
import time
from pathlib import Path
from typing import Final

from echod.errors import StateError
from echod.paths import PRIVATE_FILE
from echod.state import errors as faults
from echod.state.schema import MIGRATIONS, VERSION

BUSY_SECONDS: Final = 5.0
_RETRY_SECONDS: Final = 0.02
_NEEDS_SQLITE: Final = (3, 37)  # STRICT tables
_LOG_BYTES_KEPT: Final = 1 << 20
# Two bytes of a database's header say that it has a write-ahead log (2). There is none in memory (1).
_WRITE_VERSION: Final = 18
_READ_VERSION: Final = 19
_ROLLBACK_JOURNAL: Final = 1


def connect(uri: str) -> sqlite3.Connection:
    """A connection that waits for others, survives a power cut, and is used by one thread at a time."""
    # The time-out comes first: every later statement, the pragmas included, may meet a lock.
    link = sqlite3.connect(uri, uri=True, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False)
    link.row_factory = sqlite3.Row
    # In the write-ahead log, NORMAL may lose the last commits in a power cut; an acknowledged job must stay.
    link.execute("PRAGMA synchronous = FULL")
    # On macOS an ordinary fsync leaves the data in the drive's cache. Elsewhere these two do nothing.
    link.execute("PRAGMA fullfsync = ON")
    link.execute("PRAGMA checkpoint_fullfsync = ON")
    link.execute(f"PRAGMA journal_size_limit = {_LOG_BYTES_KEPT}")
    return link


def prepare(link: sqlite3.Connection, path: Path) -> None:
    """Make a new file private and give it its journal mode; for one that exists nothing changes."""
    if sqlite3.sqlite_version_info < _NEEDS_SQLITE:
        raise StateError(f"echod needs SQLite 3.37 or newer; this Python has {sqlite3.sqlite_version}.")
    fresh = version(link) == 0  # the first statement creates the file; log and index inherit its mode
    if path.stat().st_mode & 0o777 != PRIVATE_FILE:
        path.chmod(PRIVATE_FILE)
    if fresh:
        # Only possible before the first table; afterwards the same words would write to the file at every start.
        link.execute("PRAGMA auto_vacuum = INCREMENTAL")
    _use_log(link)


def migrate(link: sqlite3.Connection, path: Path) -> None:
    """Apply the migrations that are missing, each in one transaction, whoever else does the same now.

    Raises:
        DatabaseNewerError: more were applied than this version knows.
    """
    while (applied := version(link)) < VERSION:
        link.execute("BEGIN IMMEDIATE")
        try:
            if version(link) == applied:
                for statement in MIGRATIONS[applied]:
                    link.execute(statement)
                link.execute(f"PRAGMA user_version = {applied + 1}")
            link.execute("COMMIT")
        except BaseException:
            rollback(link)
            raise
    if applied > VERSION:
        raise faults.newer(path, applied, VERSION)


def brought_up_to_date(link: sqlite3.Connection, path: Path, uri: str) -> sqlite3.Connection:
    """A copy in memory, at `uri`, of an older database, with the migrations applied that are missing.

    For readers, who may not change the file: they find what stands in it as if it had been brought up to date. The
    copy is there for every connection to `uri` until the one that is returned is closed.
    """
    copy = connect(uri)
    try:
        pages = bytearray(link.serialize())
        pages[_READ_VERSION] = pages[_WRITE_VERSION] = _ROLLBACK_JOURNAL
        with contextlib.closing(sqlite3.connect(":memory:")) as plain:
            plain.deserialize(bytes(pages))
            plain.backup(copy)
        migrate(copy, path)
    except BaseException:
        copy.close()
        raise
    return copy


def version(link: sqlite3.Connection) -> int:
    """How many migrations were applied; 0 for a file without content."""
    return int(link.execute("PRAGMA user_version").fetchone()[0])


def rollback(link: sqlite3.Connection) -> None:
    """End an open transaction without effect."""
    if link.in_transaction:
        link.execute("ROLLBACK")


def _use_log(link: sqlite3.Connection) -> None:
    # SQLite does not wait here when another process is switching the same new file over.
    deadline = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            mode = link.execute("PRAGMA journal_mode = WAL").fetchone()[0]
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
            time.sleep(_RETRY_SECONDS)
            continue
        if mode != "wal":
            raise StateError(
                "The state directory is on a file system without shared memory (a network one?); "
                "set ECHOD_STATE_DIR to a local directory."
            )
        return
