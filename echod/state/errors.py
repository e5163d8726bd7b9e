"""What can be wrong with the database, each with its sentence. Knows SQLite's codes, nothing of what is stored."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from echod.errors import StateError


class DatabaseUnavailableError(StateError):
    """The database is sound, but cannot be used just now; the same call may work later."""


class DatabaseBusyError(DatabaseUnavailableError):
    """Another process held the database for longer than we wait."""


class DatabaseFullError(DatabaseUnavailableError):
    """There is no room on the disk for what should be written."""


class DatabaseDamagedError(StateError):
    """The file is not a database any more, or its pages contradict each other."""


class DatabaseNewerError(StateError):
    """A newer echod has changed the schema; nothing was touched."""


class DatabaseLostError(StateError):
    """The file was deleted or replaced while it was open: what we write would go nowhere."""


_DAMAGED_CODES = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_FORMAT})
_BUSY_CODES = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED})
_MESSAGES = {
    sqlite3.SQLITE_READONLY: "it cannot be written; check its permissions and the file system",
    sqlite3.SQLITE_CANTOPEN: "it cannot be opened; check its permissions and those of its directory",
    sqlite3.SQLITE_PERM: "it cannot be opened; check its permissions",
    sqlite3.SQLITE_IOERR: "the disk reports an error; check the disk",
}


def damaged_error(path: Path) -> DatabaseDamagedError:
    """The error for a database whose content cannot be relied upon."""
    return DatabaseDamagedError(
        f"The state database {path} is damaged; start echod, which moves it aside and rebuilds it from the disk."
    )


def busy_error(path: Path) -> DatabaseBusyError:
    """The error for a database that someone else keeps locked."""
    return DatabaseBusyError(f"The state database {path} is in use by another process; try again in a moment.")


def lost_error(path: Path) -> DatabaseLostError:
    """The error for a database that is no longer the file that was opened."""
    return DatabaseLostError(f"The state database {path} was deleted or replaced while in use; start echod again.")


def newer_error(path: Path, found_version: int, known_version: int) -> DatabaseNewerError:
    """The error for a schema version above ours."""
    return DatabaseNewerError(
        f"The state database {path} was written by a newer echod (schema {found_version}, "
        f"this one knows {known_version}); "
        "upgrade echod. To stay with this one, move that file away: what is queued, and what is known of the age and "
        "use of entries, begins anew; memory and undo stay."
    )


def as_state_error(error: sqlite3.Error, path: Path) -> StateError:
    """The sentence for what SQLite said about the database at `path`; raise it `from error`."""
    # Extended codes carry the primary one in their low byte; errors of the driver itself carry none.
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
    if code in _DAMAGED_CODES:
        return damaged_error(path)
    if code in _BUSY_CODES:
        return busy_error(path)
    if code == sqlite3.SQLITE_FULL:
        return DatabaseFullError(f"The state database {path} cannot be written: the disk is full; free some space.")
    message = _MESSAGES.get(code, "it refused a statement; the log has the cause")
    return StateError(f"The state database {path} cannot be used: {message}.")
