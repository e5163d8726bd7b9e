"""Open the SQLite state database, run transactions on it, and describe its errors. This module knows no table.

Only SQLite opens the file. Closing any other descriptor of it in this process would drop the locks that SQLite holds,
since POSIX locks belong to the process and not to the descriptor.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import stat
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from echod.errors import StateError, os_reason
from echod.lazy import lazy_imports
from echod.paths import PRIVATE_FILE_MODE, make_private_directory
from echod.state.schema import CREATE_STATEMENTS, SCHEMA_VERSION

with lazy_imports(__name__):
    from echod.state import decisions

BUSY_TIMEOUT_SECONDS: Final = 5.0
_RETRY_SECONDS: Final = 0.02
_MIN_SQLITE_VERSION: Final = (3, 37)  # STRICT tables
_WAL_SIZE_LIMIT_BYTES: Final = 1 << 20
_CACHE_KIB: Final = 1_000
_MAX_IDLE_CONNECTIONS: Final = 4
_IMMUTABLE_URI_OPTION: Final = "immutable=1"
_DAMAGED_CODES = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_FORMAT})
_BUSY_CODES = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED})
_MESSAGES = {
    sqlite3.SQLITE_READONLY: "it cannot be written; check its permissions and the file system",
    sqlite3.SQLITE_CANTOPEN: "it cannot be opened; check its permissions and those of its directory",
    sqlite3.SQLITE_PERM: "it cannot be opened; check its permissions",
    sqlite3.SQLITE_IOERR: "the disk reports an error; check the disk",
}


class DatabaseUnavailableError(StateError):
    """The database is intact but cannot be used at the moment. The same call may succeed later."""


class DatabaseBusyError(DatabaseUnavailableError):
    """Another process held the database for longer than the timeout."""


class DatabaseFullError(DatabaseUnavailableError):
    """The disk has no space for the write."""


class DatabaseDamagedError(StateError):
    """The file is not a database, or its pages contradict each other."""


class DatabaseVersionError(StateError):
    """The file has another schema version than this echod uses. It was not changed."""


class DatabaseLostError(StateError):
    """The file was deleted or replaced while it was open, so that further writes would be lost."""


class Database:
    """An open database. Thread-safe: each transaction has its own connection.

    One more connection stays open and unused as long as the database is open. While it exists, SQLite keeps the same
    write-ahead log, so that a log that another program deleted is distinguishable from one that SQLite removed.
    """

    def __init__(self, path: Path, uri: str, keepalive: sqlite3.Connection) -> None:
        """Use `open` or `open_readonly` instead."""
        self.path = path
        self._uri = uri
        self._keepalive = keepalive
        self._idle: list[sqlite3.Connection] = []
        self._lock = threading.Lock()
        self._snapshot = threading.local()
        self._closed = False
        self._opened_identity = _file_identity(path)
        self._opened_version = _file_version(path)

    @classmethod
    def open(cls, path: Path) -> Database:
        """Open for reading and writing. A missing file is created with mode 0600, in a directory with mode 0700.

        Raises:
            DatabaseDamagedError: the file is not a database; `echod.state.repair` can rebuild it.
            DatabaseVersionError: the file has another schema version.
            DatabaseBusyError: another process kept it locked.
            StateError: the file cannot be created, opened or written.
        """
        try:
            make_private_directory(path.parent)
            _require_plain_files(path)
            uri = path.absolute().as_uri()
            with _closing_on_error(_connect(uri)) as keepalive:
                _initialize_file(keepalive, path)
                _create_tables(keepalive, path)
                return cls(path, uri, keepalive)
        except sqlite3.Error as error:
            raise as_state_error(error, path) from error
        except OSError as error:
            raise _unusable_directory_error(path, error) from error

    @classmethod
    def open_readonly(cls, path: Path) -> Database | None:
        """Open for reading while other processes may write. Creates no database and no log.

        Returns None if nothing was ever recorded.

        Raises:
            StateError: the errors of `open`.
        """
        try:
            if _stat(path) is None:
                return None
            _require_plain_files(path)
            uri = f"{path.absolute().as_uri()}?mode=ro&{_read_mode(path)}"
            with _closing_on_error(_connect(uri)) as keepalive:
                version = _schema_version(keepalive)
                if version == 0:
                    keepalive.close()
                    return None
                if version != SCHEMA_VERSION:
                    raise version_error(path, version, SCHEMA_VERSION)
                return cls(path, uri, keepalive)
        except sqlite3.Error as error:
            raise as_state_error(error, path) from error
        except OSError as error:
            raise _unusable_directory_error(path, error) from error

    @contextlib.contextmanager
    def read_transaction(self) -> Iterator[sqlite3.Connection]:
        """Run a transaction that sees one state of the database and changes nothing.

        Raises:
            StateError: the database cannot be read.
        """
        if (shared := getattr(self._snapshot, "connection", None)) is not None:
            yield shared
            return
        with self._borrow() as connection:
            connection.execute("BEGIN")
            yield connection

    @contextlib.contextmanager
    def snapshot(self) -> Iterator[None]:
        """Make everything that this thread reads in the block come from one state of the database.

        Raises:
            StateError: the database cannot be read.
        """
        with self.read_transaction() as connection:
            self._snapshot.connection = connection
            try:
                yield
            finally:
                self._snapshot.connection = None

    @contextlib.contextmanager
    def write_transaction(self) -> Iterator[sqlite3.Connection]:
        """Run a transaction that is completely on the disk when the block ends, or not at all after an exception.

        Raises:
            DatabaseLostError: the file was deleted or replaced; nothing was written.
            DatabaseBusyError: another process kept it locked; nothing was written.
            StateError: the database cannot be written.
        """
        # First before anything touches the file, which would disturb the index of a new database at the same path; then
        # again before anything is acknowledged.
        self._fail_if_lost()
        with self._borrow() as connection, self._committed(connection):
            yield connection

    @contextlib.contextmanager
    def derived_write_transaction(self) -> Iterator[sqlite3.Connection]:
        """Run a transaction of values that are found again in the files if they are missing.

        All or nothing as well, but it does not wait for the disk, so a power cut may undo it. A service that sees a
        thousand projects for the first time would otherwise wait for the disk ten thousand times.

        Raises:
            StateError: the errors of `write_transaction`.
        """
        self._fail_if_lost()
        with self._borrow() as connection:
            connection.execute("PRAGMA synchronous = NORMAL")
            try:
                with self._committed(connection):
                    yield connection
            finally:
                _rollback(connection)  # the level cannot be changed inside a transaction
                connection.execute("PRAGMA synchronous = FULL")

    @contextlib.contextmanager
    def _committed(self, connection: sqlite3.Connection) -> Iterator[None]:
        connection.execute("BEGIN IMMEDIATE")
        yield
        self._fail_if_lost()
        connection.execute("COMMIT")

    def is_current(self) -> bool:
        """Return whether the files at the path are those that were opened. If not, the process must stop."""
        return _file_identity(self.path) == self._opened_identity

    def vacuum(self) -> None:
        """Return the pages of deleted rows to the file system."""
        with self._borrow() as connection:
            # `execute` would free a single page: the statement needs one step for each page and has no columns.
            connection.executescript("PRAGMA incremental_vacuum")

    def close(self) -> None:
        """Close all connections. The database is unusable afterwards. May be called twice."""
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
        for connection in (*idle, self._keepalive):
            connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @contextlib.contextmanager
    def _borrow(self) -> Iterator[sqlite3.Connection]:
        connection: sqlite3.Connection | None = None
        try:
            connection = self._acquire()
            try:
                yield connection
            finally:
                _rollback(connection)
        except sqlite3.Error as error:
            raise self._as_state_error(error) from error
        finally:
            if connection is not None:
                self._release(connection)

    def _acquire(self) -> sqlite3.Connection:
        with self._lock:
            if self._closed:
                raise StateError(f"The state database {self.path} is closed.")
            if self._idle:
                return self._idle.pop()
        return _connect(self._uri)

    def _release(self, connection: sqlite3.Connection) -> None:
        with self._lock:
            if not self._closed and not connection.in_transaction and len(self._idle) < _MAX_IDLE_CONNECTIONS:
                self._idle.append(connection)
                return
        connection.close()

    def _fail_if_lost(self) -> None:
        if not self.is_current():
            raise lost_error(self.path)

    def _as_state_error(self, error: sqlite3.Error) -> StateError:
        if _IMMUTABLE_URI_OPTION in self._uri:
            # Read without locks: after a concurrent write, an apparent damage is a half-written page.
            changed = _file_version(self.path) != self._opened_version
            return busy_error(self.path) if changed else as_state_error(error, self.path)
        # A lost database is reported as lost, even if SQLite reports another error.
        return as_state_error(error, self.path) if self.is_current() else lost_error(self.path)


def _connect(uri: str) -> sqlite3.Connection:
    """Return a connection that waits for locks, survives a power cut, and is used by one thread at a time."""
    # The timeout is set first: every later statement, also a pragma, may meet a lock.
    connection = sqlite3.connect(
        uri, uri=True, timeout=BUSY_TIMEOUT_SECONDS, isolation_level=None, check_same_thread=False
    )
    connection.row_factory = sqlite3.Row
    # With a write-ahead log, NORMAL may lose the last commits in a power cut. An acknowledged job must not be lost.
    connection.execute("PRAGMA synchronous = FULL")
    # On macOS an ordinary fsync leaves the data in the drive's cache. On other systems these two have no effect.
    connection.execute("PRAGMA fullfsync = ON")
    connection.execute("PRAGMA checkpoint_fullfsync = ON")
    connection.execute(f"PRAGMA journal_size_limit = {_WAL_SIZE_LIMIT_BYTES}")
    connection.execute(f"PRAGMA cache_size = -{_CACHE_KIB}")
    return connection


def _initialize_file(connection: sqlite3.Connection, path: Path) -> None:
    """Make a new file private and set its journal mode. An existing file does not change."""
    if sqlite3.sqlite_version_info < _MIN_SQLITE_VERSION:
        raise StateError(f"echod needs SQLite 3.37 or newer; this Python has {sqlite3.sqlite_version}.")
    is_new = _schema_version(connection) == 0  # the first statement creates the file; log and index inherit its mode
    if path.stat().st_mode & 0o777 != PRIVATE_FILE_MODE:
        path.chmod(PRIVATE_FILE_MODE)
    if is_new:
        # Only possible before the first table. Later the same statement would write to the file at every start.
        connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
    _enable_wal(connection)


def _enable_wal(connection: sqlite3.Connection) -> None:
    # SQLite does not wait here while another process sets the mode of the same new file.
    deadline = time.monotonic() + BUSY_TIMEOUT_SECONDS
    while True:
        try:
            mode = connection.execute("PRAGMA journal_mode = WAL").fetchone()[0]
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
            time.sleep(_RETRY_SECONDS)
            continue
        if mode != "wal":
            raise StateError(
                "The state directory is on a file system without shared memory, such as a network file system. "
                "Set ECHOD_STATE_DIR to a local directory."
            )
        return


def _create_tables(connection: sqlite3.Connection, path: Path) -> None:
    """Create the tables of a new file in one transaction, with the user's decisions of an earlier one.

    Several processes may do so at the same time.

    Raises:
        DatabaseVersionError: the file has another schema version; nothing was changed.
    """
    if _schema_version(connection) == 0:
        connection.execute("BEGIN IMMEDIATE")
        try:
            if _schema_version(connection) == 0:
                for statement in CREATE_STATEMENTS:
                    connection.execute(statement)

                decisions.restore_decisions(connection, path)
                connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
            connection.execute("COMMIT")
        except BaseException:
            _rollback(connection)
            raise
    if (version := _schema_version(connection)) != SCHEMA_VERSION:
        raise version_error(path, version, SCHEMA_VERSION)


def _schema_version(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def _rollback(connection: sqlite3.Connection) -> None:
    if connection.in_transaction:
        connection.execute("ROLLBACK")


def _read_mode(path: Path) -> str:
    # While a process has the database open there is a log. Without one, an ordinary reader would create it.
    if _stat(_sibling(path, "-wal")) is None:
        return _IMMUTABLE_URI_OPTION
    # A log without its index can only be read by building the index, the only file that may be created here.
    return "readonly_shm=0" if _stat(_sibling(path, "-shm")) is None else "readonly_shm=1"


@contextlib.contextmanager
def _closing_on_error(connection: sqlite3.Connection) -> Iterator[sqlite3.Connection]:
    try:
        yield connection
    except BaseException:
        connection.close()
        raise


def _file_identity(path: Path) -> tuple[tuple[int, int] | None, ...]:
    """Return the device and inode of the database and of its log."""
    return tuple(status and (status.st_dev, status.st_ino) for status in _stats(path))


def _file_version(path: Path) -> tuple[tuple[int, int, int] | None, ...]:
    """Return inode, size and time of the database and its log, which change with every write."""
    return tuple(status and (status.st_ino, status.st_size, status.st_mtime_ns) for status in _stats(path))


def _stats(path: Path) -> tuple[os.stat_result | None, ...]:
    return tuple(map(_stat, (path, _sibling(path, "-wal"))))


def _stat(path: Path) -> os.stat_result | None:
    try:
        return path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return None


def _require_plain_files(path: Path) -> None:
    """Check that nothing else has the place of the database or of its log: SQLite would wait for a FIFO for ever."""
    for status in (_stat(path), _stat(_sibling(path, "-wal")), _stat(_sibling(path, "-shm"))):
        if status is not None and not stat.S_ISREG(status.st_mode):
            raise damaged_error(path) from sqlite3.DatabaseError("it is not a plain file")


def _sibling(path: Path, suffix: str) -> Path:
    return path.with_name(path.name + suffix)


def _unusable_directory_error(path: Path, error: OSError) -> StateError:
    return StateError(
        f"The state directory {path.parent} cannot be used: {os_reason(error)}. Repair it, or set "
        "ECHOD_STATE_DIR to another directory."
    )


def damaged_error(path: Path) -> DatabaseDamagedError:
    """Return the error for a database with unreliable content."""
    return DatabaseDamagedError(
        f"The state database {path} is damaged. Start echod, which moves it aside and rebuilds it from the disk."
    )


def busy_error(path: Path) -> DatabaseBusyError:
    """Return the error for a database that another process keeps locked."""
    return DatabaseBusyError(f"The state database {path} is in use by another process. Try again in a moment.")


def lost_error(path: Path) -> DatabaseLostError:
    """Return the error for a path that no longer is the file that was opened."""
    return DatabaseLostError(f"The state database {path} was deleted or replaced while in use. Start echod again.")


def version_error(path: Path, version: int, known_version: int) -> DatabaseVersionError:
    """Return the error for a schema version that this echod does not use."""
    reset = (
        "move that file away: the queue and the recorded age and use of entries then start empty; "
        "memory and undo are kept."
    )
    if version > known_version:
        return DatabaseVersionError(
            f"The state database {path} was written by a newer echod (schema {version}, this one uses "
            f"{known_version}). Update echod. To stay with this version, {reset}"
        )
    return DatabaseVersionError(
        f"The state database {path} has an unknown schema ({version}, this echod uses {known_version}). To start "
        f"with an empty one, {reset}"
    )


def as_state_error(error: sqlite3.Error, path: Path) -> StateError:
    """Return the error for what SQLite reported about the database at `path`; raise it `from error`."""
    # Extended codes carry the primary code in their low byte. Errors of the driver itself carry none.
    extended = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR)
    code = extended & 0xFF
    if code in _DAMAGED_CODES:
        return damaged_error(path)
    if code in _BUSY_CODES:
        return busy_error(path)
    if code == sqlite3.SQLITE_FULL or extended == sqlite3.SQLITE_IOERR_SHMSIZE:
        return DatabaseFullError(f"The state database {path} cannot be written: the disk is full; free some space.")
    message = _MESSAGES.get(code, "it refused a statement; the log has the cause")
    return StateError(f"The state database {path} cannot be used: {message}.")
