"""The one SQLite database: how it is opened, and its transactions. Knows no table.

The file is never opened by anything but SQLite: closing any other descriptor of it in this process would drop the
locks that SQLite holds (POSIX locks belong to the process, not to the descriptor).

One connection to the database: its pragmas, the creation of the file and its migrations. Knows no table.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from echod.errors import StateError, os_reason
from echod.paths import PRIVATE_DIR_MODE, PRIVATE_FILE_MODE
from echod.state import errors
from echod.state.schema import MIGRATIONS, SCHEMA_VERSION

BUSY_TIMEOUT_SECONDS: Final = 5.0
_RETRY_SECONDS: Final = 0.02
_MIN_SQLITE_VERSION: Final = (3, 37)  # STRICT tables
_WAL_SIZE_LIMIT_BYTES: Final = 1 << 20
# Two bytes of a database's header say that it has a write-ahead log (2). There is none in memory (1).
_WRITE_VERSION_OFFSET: Final = 18
_READ_VERSION_OFFSET: Final = 19
_ROLLBACK_JOURNAL_VERSION: Final = 1


def connect(uri: str) -> sqlite3.Connection:
    """A connection that waits for others, survives a power cut, and is used by one thread at a time."""
    # The time-out comes first: every later statement, the pragmas included, may meet a lock.
    connection = sqlite3.connect(
        uri, uri=True, timeout=BUSY_TIMEOUT_SECONDS, isolation_level=None, check_same_thread=False
    )
    connection.row_factory = sqlite3.Row
    # In the write-ahead log, NORMAL may lose the last commits in a power cut; an acknowledged job must stay.
    connection.execute("PRAGMA synchronous = FULL")
    # On macOS an ordinary fsync leaves the data in the drive's cache. Elsewhere these two do nothing.
    connection.execute("PRAGMA fullfsync = ON")
    connection.execute("PRAGMA checkpoint_fullfsync = ON")
    connection.execute(f"PRAGMA journal_size_limit = {_WAL_SIZE_LIMIT_BYTES}")
    return connection


def initialize_file(connection: sqlite3.Connection, path: Path) -> None:
    """Make a new file private and give it its journal mode; for one that exists nothing changes."""
    if sqlite3.sqlite_version_info < _MIN_SQLITE_VERSION:
        raise StateError(f"echod needs SQLite 3.37 or newer; this Python has {sqlite3.sqlite_version}.")
    is_new = schema_version(connection) == 0  # the first statement creates the file; log and index inherit its mode
    if path.stat().st_mode & 0o777 != PRIVATE_FILE_MODE:
        path.chmod(PRIVATE_FILE_MODE)
    if is_new:
        # Only possible before the first table; afterwards the same words would write to the file at every start.
        connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
    _enable_wal(connection)


def migrate(connection: sqlite3.Connection, path: Path) -> None:
    """Apply the migrations that are missing, each in one transaction, whoever else does the same now.

    Raises:
        DatabaseNewerError: more were applied than this version knows.
    """
    while (applied := schema_version(connection)) < SCHEMA_VERSION:
        connection.execute("BEGIN IMMEDIATE")
        try:
            if schema_version(connection) == applied:
                for statement in MIGRATIONS[applied]:
                    connection.execute(statement)
                connection.execute(f"PRAGMA user_version = {applied + 1}")
            connection.execute("COMMIT")
        except BaseException:
            rollback(connection)
            raise
    if applied > SCHEMA_VERSION:
        raise errors.newer_error(path, applied, SCHEMA_VERSION)


def migrated_copy(connection: sqlite3.Connection, path: Path, uri: str) -> sqlite3.Connection:
    """A copy in memory, at `uri`, of an older database, with the migrations applied that are missing.

    For readers, who may not change the file: they find what stands in it as if it had been brought up to date. The
    copy is there for every connection to `uri` until the one that is returned is closed.
    """
    copy = connect(uri)
    try:
        pages = bytearray(connection.serialize())
        pages[_READ_VERSION_OFFSET] = pages[_WRITE_VERSION_OFFSET] = _ROLLBACK_JOURNAL_VERSION
        with contextlib.closing(sqlite3.connect(":memory:")) as plain:
            plain.deserialize(bytes(pages))
            plain.backup(copy)
        migrate(copy, path)
    except BaseException:
        copy.close()
        raise
    return copy


def schema_version(connection: sqlite3.Connection) -> int:
    """How many migrations were applied; 0 for a file without content."""
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def rollback(connection: sqlite3.Connection) -> None:
    """End an open transaction without effect."""
    if connection.in_transaction:
        connection.execute("ROLLBACK")


def _enable_wal(connection: sqlite3.Connection) -> None:
    # SQLite does not wait here when another process is switching the same new file over.
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
                "The state directory is on a file system without shared memory (a network one?); "
                "set ECHOD_STATE_DIR to a local directory."
            )
        return


_MAX_IDLE_CONNECTIONS: Final = 4
_IMMUTABLE_URI_OPTION: Final = "immutable=1"


class Database:
    """An open database. May be used by several threads; each transaction has a connection to itself.

    One further connection stays open and unused for as long as the database does: while it lives, SQLite keeps the
    same write-ahead log, so that a log deleted by someone else can be told from one that SQLite tidied away.
    """

    def __init__(self, path: Path, uri: str, keepalive: sqlite3.Connection) -> None:
        """Use `open` or `open_reading`."""
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
        """Open for reading and writing; created (0600, in a 0700 directory) and migrated as needed.

        Raises:
            DatabaseDamagedError: it is no database; `echod.state.repair` can rebuild it.
            DatabaseNewerError: a newer echod wrote it.
            DatabaseBusyError: someone else kept it locked.
            StateError: it cannot be created, opened or written.
        """
        try:
            path.parent.mkdir(mode=PRIVATE_DIR_MODE, parents=True, exist_ok=True)
            uri = path.absolute().as_uri()
            with _closing_on_error(connect(uri)) as keepalive:
                initialize_file(keepalive, path)
                migrate(keepalive, path)
                return cls(path, uri, keepalive)
        except sqlite3.Error as error:
            raise errors.as_state_error(error, path) from error
        except OSError as error:
            raise _unusable_directory_error(path, error) from error

    @classmethod
    def open_readonly(cls, path: Path) -> Database | None:
        """Open for reading while others may write. None if nothing was ever recorded. Creates no database or log.

        What an older echod wrote is read from a copy, as of now, until a newer one has brought the file up to date.

        Raises:
            StateError: as `open`.
        """
        try:
            if _stat(path) is None:
                return None
            uri = f"{path.absolute().as_uri()}?mode=ro&{_read_mode(path)}"
            with _closing_on_error(connect(uri)) as keepalive:
                found = schema_version(keepalive)
                if found == 0:
                    keepalive.close()
                    return None
                if found > SCHEMA_VERSION:
                    raise errors.newer_error(path, found, SCHEMA_VERSION)
                if found < SCHEMA_VERSION:
                    memory = f"file:/{os.urandom(16).hex()}?vfs=memdb"
                    copy = migrated_copy(keepalive, path, memory)
                    keepalive.close()
                    return cls(path, f"{memory}&mode=ro", copy)
                return cls(path, uri, keepalive)
        except sqlite3.Error as error:
            raise errors.as_state_error(error, path) from error
        except OSError as error:
            raise _unusable_directory_error(path, error) from error

    @contextlib.contextmanager
    def read_transaction(self) -> Iterator[sqlite3.Connection]:
        """A transaction that sees one moment and changes nothing.

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
        """While it lasts, everything that this thread reads is of one moment: for whoever asks for very much at once.

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
        """A transaction that is wholly on the disk once the block is left, or not at all after an exception.

        Raises:
            DatabaseLostError: the file is gone or another one; nothing was written.
            DatabaseBusyError: someone else kept it locked; nothing was written.
            StateError: the database cannot be written.
        """
        # Before, lest we disturb the index of a new database in the old one's place; and again before anything is
        # acknowledged.
        self._fail_if_lost()
        with self._borrow() as connection:
            connection.execute("BEGIN IMMEDIATE")
            yield connection
            self._fail_if_lost()
            connection.execute("COMMIT")

    def is_current(self) -> bool:
        """Whether the files at our path are those that were opened. If not, whoever runs must stop."""
        return _file_identity(self.path) == self._opened_identity

    def vacuum(self) -> None:
        """Give the pages of deleted rows back to the file system."""
        with self._borrow() as connection:
            # Not `execute`: that frees a single page, since the statement answers a step for each and has no columns.
            connection.executescript("PRAGMA incremental_vacuum")

    def close(self) -> None:
        """Close every idle connection; afterwards nothing works any more. May be called twice."""
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
                rollback(connection)
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
        return connect(self._uri)

    def _release(self, connection: sqlite3.Connection) -> None:
        with self._lock:
            if not self._closed and not connection.in_transaction and len(self._idle) < _MAX_IDLE_CONNECTIONS:
                self._idle.append(connection)
                return
        connection.close()

    def _fail_if_lost(self) -> None:
        if not self.is_current():
            raise errors.lost_error(self.path)

    def _as_state_error(self, error: sqlite3.Error) -> StateError:
        if _IMMUTABLE_URI_OPTION in self._uri:
            # Read without locks: if a writer has come meanwhile, what looked damaged was half-written.
            changed = _file_version(self.path) != self._opened_version
            return errors.busy_error(self.path) if changed else errors.as_state_error(error, self.path)
        # Whatever a lost database says, the loss is what counts.
        return errors.as_state_error(error, self.path) if self.is_current() else errors.lost_error(self.path)


def _read_mode(path: Path) -> str:
    # While someone has the database open there is a log. Where there is none, a plain reader would create one.
    if _stat(_sibling(path, "-wal")) is None:
        return _IMMUTABLE_URI_OPTION
    # Without its index a log can only be read by building one: the one file that may be created here.
    return "readonly_shm=0" if _stat(_sibling(path, "-shm")) is None else "readonly_shm=1"


@contextlib.contextmanager
def _closing_on_error(connection: sqlite3.Connection) -> Iterator[sqlite3.Connection]:
    try:
        yield connection
    except BaseException:
        connection.close()
        raise


def _file_identity(path: Path) -> tuple[tuple[int, int] | None, ...]:
    """Which files these are: the database and its log."""
    return tuple(status and (status.st_dev, status.st_ino) for status in _stats(path))


def _file_version(path: Path) -> tuple[tuple[int, int, int] | None, ...]:
    """What differs once someone has written: inode, size and time of both."""
    return tuple(status and (status.st_ino, status.st_size, status.st_mtime_ns) for status in _stats(path))


def _stats(path: Path) -> tuple[os.stat_result | None, ...]:
    return tuple(map(_stat, (path, _sibling(path, "-wal"))))


def _stat(path: Path) -> os.stat_result | None:
    try:
        return path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return None


def _sibling(path: Path, suffix: str) -> Path:
    return path.with_name(path.name + suffix)


def _unusable_directory_error(path: Path, error: OSError) -> StateError:
    return StateError(
        f"The state directory {path.parent} cannot be used: {os_reason(error)}; mend it or set ECHOD_STATE_DIR to "
        "another one."
    )
