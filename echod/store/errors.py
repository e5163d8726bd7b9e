"""Why a commit did not happen, in a sentence for the person. In every one of these cases no byte was lost.

`BusyError` is not a failure: the job is deferred and tried again. `RefusedError` stays until something changes.
`StoreError` is what the operating system said.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from echod.errors import EchodError


class BusyError(EchodError):
    """Not now: someone else is writing. The job waits and is tried again; nothing was changed."""


class RefusedError(EchodError):
    """The change would break a promise, so it was not made."""


class StoreError(EchodError):
    """The file system said no."""


_ADVICE = {
    errno.ENOSPC: "the disk is full; free some space",
    errno.EDQUOT: "the disk quota is used up; free some space",
    errno.EROFS: "the file system is mounted read-only; mount it writable",
    errno.EACCES: "permission was denied; check who owns it",
    errno.EPERM: "the operation is not permitted there; check its attributes and owner",
    errno.EIO: "the disk reported an error; check the hardware and the system log",
    errno.EMFILE: "too many files are open; raise the limit of open files",
    errno.ENFILE: "the system has too many open files; close some programs",
    errno.ELOOP: "it is a symbolic link, and echod follows none inside a project; replace it by a real file",
    errno.ENOENT: "it disappeared; the next look at the project decides what is left to do",
    errno.ENOTDIR: "something that is not a directory stands in the way; look at that path",
}


@contextmanager
def as_store_error(action: str, path: Path) -> Iterator[None]:
    """Turn what the operating system says inside the block into a `StoreError` about `path`.

    Args:
        action: what was being done, as in "could not {action}".
        path: the file it was done to.
    """
    try:
        yield
    except OSError as error:
        raise store_error(action, path, error) from error


def store_error(action: str, path: Path, error: OSError) -> StoreError:
    """The sentence for an error of the operating system."""
    code = error.errno or 0
    reason = _ADVICE.get(code, f"{os.strerror(code).lower()}; look at that path")
    location = f" ({error.filename})" if isinstance(error.filename, str) and error.filename != str(path) else ""
    return StoreError(f"Could not {action} {path}{location}: {reason}.")
