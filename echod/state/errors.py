"""The errors of the state database, and the sentence for each. Knows SQLite's codes, but no table."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from echod.errors import StateError

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
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
    if code in _DAMAGED_CODES:
        return damaged_error(path)
    if code in _BUSY_CODES:
        return busy_error(path)
    if code == sqlite3.SQLITE_FULL:
        return DatabaseFullError(f"The state database {path} cannot be written: the disk is full; free some space.")
    message = _MESSAGES.get(code, "it refused a statement; the log has the cause")
    return StateError(f"The state database {path} cannot be used: {message}.")
