"""Errors of the store, each a sentence for the user, and the limits of the commit engine with their reasons.

None of them loses a byte. `BusyError` is not a failure: the job is deferred and tried again. `RefusedError` remains
until something changes. `StoreError` reports an error of the operating system.

The limits are here because settings and read-only commands need them without the engine (docs/durability.md).
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from echod.errors import EchodError

_ADVICE = {
    errno.ENOSPC: "the disk is full; free some space",
    errno.EDQUOT: "the disk quota is used up; free some space",
    errno.EROFS: "the file system is mounted read-only; mount it writable",
    errno.EACCES: "permission was denied; check its owner and mode",
    errno.EPERM: "the operation is not permitted there; check its attributes and owner",
    errno.EIO: "the disk reported an error; check the hardware and the system log",
    errno.EMFILE: "too many files are open; raise the limit of open files",
    errno.ENFILE: "the system has too many open files; close some programs",
    errno.ELOOP: "it is a symbolic link, and echod follows none inside a project; replace it by a real file",
    errno.ENOENT: "it disappeared; the next reconcile finds the remaining work",
    errno.ENOTDIR: "something that is not a directory is in the way; check that path",
}


class BusyError(EchodError):
    """Another program is writing. The job waits and is tried again. Nothing was changed."""


class RefusedError(EchodError):
    """The change would break a promise, so it was not made."""


class AlreadyUndoneError(RefusedError):
    """The job to undo was undone before."""


class StoreError(EchodError):
    """The file system refused an operation."""


def is_disk_full(error: BaseException) -> bool:
    """Return whether an error, or one that caused it, is that a disk is full or a quota is used up."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, OSError) and cause.errno in (errno.ENOSPC, errno.EDQUOT):
            return True
        cause = cause.__cause__
    return False


@contextmanager
def as_store_error(action: str, path: Path) -> Iterator[None]:
    """Turn an `OSError` inside the block into a `StoreError` about `path`: "Could not {action} {path}"."""
    try:
        yield
    except OSError as error:
        raise store_error(action, path, error) from error


def store_error(action: str, path: Path, error: OSError) -> StoreError:
    """Return the `StoreError` for an error of the operating system."""
    code = error.errno or 0
    reason = _ADVICE.get(code, f"{os.strerror(code).lower()}; check that path")
    location = f" ({error.filename})" if isinstance(error.filename, str) and error.filename != str(path) else ""
    return StoreError(f"Could not {action} {path}{location}: {reason}.")


MAX_MERGE_ATTEMPTS = 4
"""How often the engine's own commits (healing, late writes) are planned again while other programs keep writing."""

_HOUR = 3_600.0
_DAY = 24 * _HOUR


class EngineLimits(NamedTuple):
    """The limits of the engine. The defaults are the product's; tests shorten them."""

    young_seconds: float = 5.0  # a change of echod's that vanished within this time was overwritten, not deleted
    history_hours: float = 24.0  # how long contents of a memory file are remembered, to recognize stale overwrites
    displaced_hours: float = 24.0  # how long a displaced or claimed file is followed for late writes
    max_restores: int = 3  # how often one block is restored before the user decides
    max_replans: int = 3  # how often a plan may be overtaken before the commit continues and merges
    settle_seconds: float = 2.0  # how long a file must be unchanged if no lease is available
    lock_seconds: float = 20.0  # how long the upstream writers' lock may be held before the first exchange
    undo_days: float = 14.0  # how long a commit can be undone
    redacted_days: float = 7.0  # how long exact blobs of a commit that redacted something are kept
    max_ledger_keys: int = 20_000  # how many consumed findings a role's ledger remembers. The oldest are dropped first.
    max_history_bytes: int = 64 * 1024 * 1024  # limit of the remembered contents of one role

    @property
    def history_seconds(self) -> float:
        """`history_hours` in seconds."""
        return self.history_hours * _HOUR

    @property
    def displaced_seconds(self) -> float:
        """`displaced_hours` in seconds."""
        return self.displaced_hours * _HOUR

    @property
    def undo_seconds(self) -> float:
        """`undo_days` in seconds."""
        return self.undo_days * _DAY

    @property
    def redacted_seconds(self) -> float:
        """`redacted_days` in seconds."""
        return self.redacted_days * _DAY
