"""Open the search index, and build it again where it is unusable.

Opening never fails. An index that is damaged, or of another version, is deleted and built again. Where no index can be
written (a full disk, a read-only directory), documents are read into memory for this one process, and `notice` has a
sentence about it.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final, TypeVar

from echod.log import get_logger
from echod.paths import PRIVATE_DIR_MODE, PRIVATE_FILE_MODE
from echod.search.index import BUSY_CODES, SearchIndex, primary_code, transaction
from echod.search.schema import BUILD, CREATE_STATEMENTS, SCHEMA_VERSION

BUSY_TIMEOUT_SECONDS: Final = 5.0
_BUILD_ATTEMPTS: Final = 3
_MEMORY_SECONDS: Final = 60.0
"""How long documents are kept in memory before the file is tried again."""
_UNWRITABLE: Final = {
    sqlite3.SQLITE_FULL: "the disk is full",
    sqlite3.SQLITE_READONLY: "it cannot be written",
    sqlite3.SQLITE_CANTOPEN: "it cannot be opened",
    sqlite3.SQLITE_PERM: "it cannot be opened",
    sqlite3.SQLITE_IOERR: "the disk reports an error",
}

ResultT = TypeVar("ResultT")

log = get_logger(__name__)


class IndexUnusableError(Exception):
    """The file is damaged, or not an index of this version."""


class IndexFile:
    """The index at a path, kept open between uses. Thread-safe; several processes may use it.

    An index that turns out to be damaged while it is used is built again. Documents are kept in memory where it cannot
    be written, and the file is tried again after a minute.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._index: SearchIndex | None = None
        self._memory_until = 0.0
        self._lock = threading.Lock()

    def run(self, action: Callable[[SearchIndex], ResultT]) -> ResultT:
        """Run `action` on the index."""
        with self._lock:
            for _ in range(_BUILD_ATTEMPTS):
                index = self._current()
                try:
                    return action(index)
                except (sqlite3.DatabaseError, IndexUnusableError) as error:
                    if index.notice is not None:
                        raise
                    self._replace(error)
            return action(self._use_memory("it is damaged again and again"))

    def close(self) -> None:
        """Close the file. It is opened again when it is used."""
        with self._lock:
            self._close()

    def _current(self) -> SearchIndex:
        index = self._index
        if index is not None and (not index.is_current or (index.notice and time.monotonic() > self._memory_until)):
            self._close()
        if self._index is None:
            self._index = open_index(self._path)
            self._memory_until = time.monotonic() + _MEMORY_SECONDS
        return self._index

    def _replace(self, error: Exception) -> None:
        self._close()
        code = primary_code(error) if isinstance(error, sqlite3.OperationalError) else None
        if code in BUSY_CODES:
            self._use_memory("another process keeps it locked")
        elif code in _UNWRITABLE:
            self._use_memory(_UNWRITABLE[code])
        else:
            _discard(self._path, error)

    def _use_memory(self, reason: str) -> SearchIndex:
        self._close()
        self._index = _memory_index(self._path, reason)
        self._memory_until = time.monotonic() + _MEMORY_SECONDS
        return self._index

    def _close(self) -> None:
        if self._index is not None:
            self._index.close()
            self._index = None


def open_index(path: Path) -> SearchIndex:
    """Open the index at `path`. It is created if it does not exist, and built again if it is unusable."""
    for _ in range(2):
        try:
            return SearchIndex(path, _open_file(path))
        except sqlite3.OperationalError as error:
            code = primary_code(error)
            if code in _UNWRITABLE:
                return _memory_index(path, _UNWRITABLE[code])
            if code in BUSY_CODES:
                return _memory_index(path, "another process keeps it locked")
            _discard(path, error)
        except (sqlite3.DatabaseError, IndexUnusableError) as error:
            _discard(path, error)
        except OSError as error:
            return _memory_index(path, (error.strerror or type(error).__name__).lower())
    return _memory_index(path, "it cannot be built again")


def _open_file(path: Path) -> sqlite3.Connection:
    path.parent.mkdir(mode=PRIVATE_DIR_MODE, parents=True, exist_ok=True)
    # Created before SQLite does, which would use the mode of the process.
    os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, PRIVATE_FILE_MODE))
    connection = sqlite3.connect(path, timeout=BUSY_TIMEOUT_SECONDS, isolation_level=None, check_same_thread=False)
    try:
        connection.execute("PRAGMA synchronous = NORMAL")
        if _version(connection) == 0:
            _create(connection)
        if _version(connection) != SCHEMA_VERSION or _build(connection) != BUILD:
            raise IndexUnusableError("it is of another version")  # noqa: TRY301  closes the connection like any error
    except BaseException:
        connection.close()
        raise
    return connection


def _create(connection: sqlite3.Connection) -> None:
    connection.execute("PRAGMA journal_mode = WAL")
    with transaction(connection):
        if _version(connection) == 0:  # another process may have been faster
            for statement in CREATE_STATEMENTS:
                connection.execute(statement)
            connection.execute("INSERT INTO meta (key, value) VALUES ('build', ?)", (BUILD,))
            connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")


def _version(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def _build(connection: sqlite3.Connection) -> str:
    row = connection.execute("SELECT value FROM meta WHERE key = 'build'").fetchone()
    return "" if row is None else str(row[0])


def _memory_index(path: Path, reason: str) -> SearchIndex:
    connection = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
    _create(connection)
    notice = f"The search index {path} is not used: {reason}. The files themselves were searched, which takes longer."
    return SearchIndex(path, connection, notice)


def _discard(path: Path, error: Exception) -> None:
    """Delete an unusable index. Everything in it is on the disk elsewhere."""
    log.info("search_index_rebuilt", reason=str(error))
    for suffix in ("", "-wal", "-shm", "-journal"):
        with contextlib.suppress(FileNotFoundError):
            path.with_name(path.name + suffix).unlink()
