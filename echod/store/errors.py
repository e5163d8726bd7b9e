"""Errors of the store: why a commit did not happen, in a sentence for the user.

None of them loses a byte. `BusyError` is not a failure: the job is deferred and tried again. `RefusedError` remains
until something changes. `StoreError` reports an error of the operating system.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

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
