"""When is a file the same as before? Its stamp tells, without reading it; and what was made of it needs no new look.

Reading files that others made: never waiting for a FIFO, never reading a device, never more than a bound.

What stands at a path was looked at before, perhaps, and may be something else by now; so it is looked at again once it
is open. Knows nothing of what the files hold.

Leaving a small file in the runtime directory for commands to read: whole or not at all, and private.

Not synced to the disk: what a crash loses here was worth nothing.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Callable, Hashable
from os import stat_result
from pathlib import Path
from stat import S_ISREG
from typing import BinaryIO, Generic, TypeVar

from echod.paths import PRIVATE_DIR_MODE, PRIVATE_FILE_MODE


def open_regular(path: Path, *, follow_symlinks: bool = True) -> BinaryIO:
    """A plain file, opened for reading; a link is followed unless `follow_symlinks` is false (ELOOP).

    Raises:
        OSError: it is missing, may not be read, or is no plain file.
    """
    # O_NONBLOCK: opening a FIFO that nobody writes to would wait for ever; for a plain file it does nothing.
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
    descriptor = os.open(path, flags if follow_symlinks else flags | os.O_NOFOLLOW)
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return os.fdopen(descriptor, "rb")
    os.close(descriptor)
    raise OSError(errno.EINVAL, "not a plain file", str(path))


def read_regular(path: Path, limit: int) -> bytes:
    """All of a plain file of at most `limit` bytes.

    Raises:
        OSError: as `open_regular`, or it is larger.
    """
    with open_regular(path) as file:
        data = file.read(limit + 1)
    if len(data) > limit:
        raise OSError(errno.EFBIG, "too large", str(path))
    return data


def write_runtime_file(path: Path, text: str) -> None:
    """Replace the file at `path` by `text`.

    Raises:
        OSError: the runtime directory is gone or full.
    """
    path.parent.mkdir(mode=PRIVATE_DIR_MODE, parents=True, exist_ok=True)  # some sweep runtime directories
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    descriptor = os.open(
        temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW, PRIVATE_FILE_MODE
    )
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
        temporary.replace(path)
    except OSError:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise


FileVersion = tuple[int, int, int, int]
"""Inode, bytes, time of the content, time of the file's state (both in nanoseconds)."""

Value = TypeVar("Value")


def file_version(status: stat_result) -> FileVersion:
    """The stamp of a file whose state is known."""
    return status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def regular_file_version(file: Path, limit: int) -> FileVersion | None:
    """The stamp of a plain file of at most `limit` bytes; None for anything else, also for nothing.

    Raises:
        OSError: it cannot be looked at.
    """
    try:
        status = file.lstat()
    except FileNotFoundError:
        return None
    return file_version(status) if S_ISREG(status.st_mode) and status.st_size <= limit else None


class VersionedCache(Generic[Value]):
    """What was made of things, each as long as the thing is the same and is still asked for."""

    def __init__(self) -> None:
        self._cache: dict[Hashable, tuple[Hashable, Value]] = {}
        self._used: set[Hashable] = set()

    def get_or_compute(self, key: Hashable, version: Hashable, compute: Callable[[], Value]) -> Value:
        """What `compute` says of a thing, which is called only if the thing has another version than before.

        Raises:
            whatever `compute` raises; nothing is remembered then.
        """
        self._used.add(key)
        cached = self._cache.get(key)
        if cached is None or cached[0] != version:
            cached = self._cache[key] = (version, compute())
        return cached[1]

    def evict_unused(self) -> None:
        """Forget what nobody asked for since the last time."""
        for unused in self._cache.keys() - self._used:
            del self._cache[unused]
        self._used.clear()
