"""The search index: one SQLite file that follows the files of its sources.

`SearchIndex.refresh` compares the files of sources with the index and reads what changed. It is called before every
answer, so the daemon only makes that call cheap. A file that is written while it is read, or that was written within a
tick of the clock, is read again at the next call. `index_file` opens the index.

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
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

from echod.files import file_version
from echod.lazy import lazy_imports
from echod.log import get_logger
from echod.paths import PRIVATE_DIR_MODE, PRIVATE_FILE_MODE
from echod.search.documents import DocumentSource, SourceFile, UnreadableFileError
from echod.search.ranking import TermCache
from echod.search.schema import BUILD, CREATE_STATEMENTS, SCHEMA_VERSION

with lazy_imports(__name__):
    from echod.search import writer

if TYPE_CHECKING:
    from echod.search.writer import FileContent


_CLOCK_TICK_NS: Final = 50_000_000
"""A file that was changed this recently may change again without a new time."""
_READ_ATTEMPTS: Final = 3
_FILES_PER_TRANSACTION: Final = 64
BUSY_CODES: Final = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED})


class Problem(NamedTuple):
    """A file or directory whose documents cannot be found now, and why, as a sentence."""

    path: str
    reason: str


class Refresh(NamedTuple):
    """The result of a comparison with the disk.

    Attributes:
        collections: the ids of the collections that were compared, by the key of their source.
        read_files: the number of files that were read because they changed.
        problems: files and directories that could not be read. They have no documents in an answer.
        outdated_files: the ids of files that changed and could not be indexed. Their documents must not be shown.
        stale: why the index is not up to date, as a sentence; None if it is.
    """

    collections: dict[str, int]
    read_files: int = 0
    problems: tuple[Problem, ...] = ()
    outdated_files: frozenset[int] = frozenset()
    stale: str | None = None


class SearchIndex:
    """An open index. For one thread at a time. `notice` is a sentence if it is only kept in memory."""

    def __init__(self, path: Path, connection: sqlite3.Connection, notice: str | None = None) -> None:
        """Use `open_index` instead."""
        self.path = path
        self.connection = connection
        self.notice = notice
        self._identity = file_identity(path)

    @cached_property
    def terms(self) -> TermCache:
        """The parts of this index that earlier searches read."""
        return TermCache()

    @property
    def is_current(self) -> bool:
        """Whether the file at the path is the one that was opened. Another process may have replaced it."""
        return self.notice is not None or file_identity(self.path) == self._identity

    def close(self) -> None:
        """Close the file."""
        self.connection.close()

    @contextlib.contextmanager
    def snapshot(self) -> Iterator[None]:
        """Read one state of the index, whatever other processes write meanwhile."""
        self.connection.execute("BEGIN")
        try:
            yield
        finally:
            self.connection.execute("ROLLBACK")  # nothing was written

    def store_states(self, rows: Sequence[tuple[object, ...]]) -> None:
        """Store states of citations. They are lost if another process writes, since the next check finds them again."""
        self.connection.execute("PRAGMA busy_timeout = 0")
        try:
            with transaction(self.connection):
                self.connection.executemany(
                    "UPDATE citation SET state = ?, at = ?, basis = ?, file = ?, inode = ?, size = ?, modified_ns = ?, "
                    "changed_ns = ? WHERE document = ? AND cite = ?",
                    rows,
                )
        except sqlite3.OperationalError as error:
            if primary_code(error) not in BUSY_CODES:
                raise
        finally:
            self.connection.execute(f"PRAGMA busy_timeout = {int(BUSY_TIMEOUT_SECONDS * 1000)}")

    def refresh(self, sources: Iterable[DocumentSource]) -> Refresh:
        """Bring the documents of these sources up to date with the disk.

        Raises:
            sqlite3.Error: the index is damaged, or cannot be written.
        """
        collections: dict[str, int] = {}
        problems: list[Problem] = []
        outdated: set[int] = set()
        read_files, stale = 0, None
        for source in sources:
            try:
                files = source.list_files()
            except OSError as error:
                reason = (error.strerror or type(error).__name__).lower()
                problems.append(Problem(source.store, f"{source.store} cannot be listed: {reason}."))
                continue
            try:
                collection, read, own_problems = self._refresh_source(source, files)
            except sqlite3.OperationalError as error:
                if primary_code(error) not in BUSY_CODES:
                    raise
                stale = "Another process is writing the search index. Documents that changed just now are left out."
                known = self._known_collection(source)
                if known is not None:
                    collections[source.key] = known
                    outdated |= {row.id for row in self._changed_rows(known, files)}
                continue
            collections[source.key] = collection
            read_files += read
            problems += own_problems
        return Refresh(collections, read_files, tuple(problems), frozenset(outdated), stale)

    def forget(self, is_wanted: Callable[[str, str], bool]) -> None:
        """Delete the collections for which `is_wanted(project, store)` is false."""
        rows = self.connection.execute("SELECT id, project, store FROM collection").fetchall()
        unwanted = [number for number, project, store in rows if not is_wanted(project, store)]
        if not unwanted:
            return
        with transaction(self.connection):
            for collection in unwanted:
                writer = _writer().CollectionWriter(self.connection, collection)
                for row in self._file_rows(collection).values():
                    writer.delete_file(row.id)
                writer.finish(0)
                self.connection.execute("DELETE FROM collection WHERE id = ?", (collection,))

    def _known_collection(self, source: DocumentSource) -> int | None:
        row = self.connection.execute("SELECT id FROM collection WHERE key = ?", (source.key,)).fetchone()
        return None if row is None else int(row[0])

    def _refresh_source(
        self, source: DocumentSource, files: Sequence[SourceFile]
    ) -> tuple[int, int, Iterable[Problem]]:
        collection = self._known_collection(source)
        if collection is None:
            with transaction(self.connection):
                self.connection.execute(
                    "INSERT OR IGNORE INTO collection (key, scope, project, store) VALUES (?, ?, ?, ?)",
                    (source.key, source.scope.value, source.project, source.store),
                )
            collection = self._known_collection(source)
            assert collection is not None  # noqa: S101  it was just inserted
        rows = self._file_rows(collection)
        changed = [file for file in files if not _is_unchanged(rows.get(str(file.path)), file)]
        listed = {str(file.path) for file in files}
        removed = [row for path, row in rows.items() if path not in listed]
        has_changed = bool(changed or removed)
        for begin in range(0, len(changed) or len(removed), _FILES_PER_TRANSACTION):
            contents = [_read(source, file) for file in changed[begin : begin + _FILES_PER_TRANSACTION]]
            with transaction(self.connection):
                writer = _writer().CollectionWriter(self.connection, collection)
                for row in removed:
                    writer.delete_file(row.id)
                removed = []
                for content in contents:
                    writer.write_file(content)
                writer.finish(time.time())
        if has_changed:
            rows = self._file_rows(collection)
        problems = [Problem(path, row.problem) for path, row in sorted(rows.items()) if row.problem is not None]
        return collection, len(changed), problems

    def _changed_rows(self, collection: int, files: Sequence[SourceFile]) -> Iterator[_FileRow]:
        by_path = {str(file.path): file for file in files}
        for path, row in self._file_rows(collection).items():
            if path not in by_path or not _is_unchanged(row, by_path[path]):
                yield row

    def _file_rows(self, collection: int) -> dict[str, _FileRow]:
        rows = self.connection.execute(
            "SELECT path, id, settled, problem, inode, size, modified_ns, changed_ns FROM file WHERE collection = ?",
            (collection,),
        )
        return {
            path: _FileRow(number, (*version,), bool(settled), problem)
            for path, number, settled, problem, *version in rows
        }


def _writer() -> ModuleType:
    return writer


class _FileRow(NamedTuple):
    id: int
    version: tuple[int, ...]
    settled: bool
    problem: str | None


def _is_unchanged(row: _FileRow | None, file: SourceFile) -> bool:
    return row is not None and row.settled and row.version == file.version


def _read(source: DocumentSource, file: SourceFile) -> FileContent:
    """Read a file and its documents. A file that vanished or cannot be understood has none, and a problem."""
    version, settled = file.version, False
    try:
        data = b""
        for _ in range(_READ_ATTEMPTS):
            version = file_version(os.lstat(file.path))
            data = source.read_file(file.path)
            if version == file_version(os.lstat(file.path)):
                settled = time.time_ns() - version[3] > _CLOCK_TICK_NS  # no program can set this time
                break
        documents, problem = source.read_documents(file.path, data), None
    except FileNotFoundError:
        documents, problem = (), None
    except OSError as error:
        documents, problem = (), f"It cannot be read: {(error.strerror or type(error).__name__).lower()}."
    except UnreadableFileError as error:
        documents, problem = (), str(error)
    content: FileContent = _writer().FileContent(str(file.path), version, settled, documents, problem)
    return content


@contextlib.contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """Run a transaction that writes."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def primary_code(error: sqlite3.Error) -> int:
    """Return the primary result code of an error. Extended codes have it in their low byte."""
    return int(getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR)) & 0xFF


def file_identity(path: Path) -> tuple[int, int] | None:
    """Return the device and inode of a file; None if there is none."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


BUSY_TIMEOUT_SECONDS: Final = 5.0
_CACHE_KIB: Final = 8_000
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
        connection.execute(f"PRAGMA cache_size = -{_CACHE_KIB}")
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
