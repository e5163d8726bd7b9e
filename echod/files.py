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

from echod.paths import PRIVATE_DIR, PRIVATE_FILE


def open_plain(path: Path) -> BinaryIO:
    """A plain file, opened for reading; a link is followed.

    Raises:
        OSError: it is missing, may not be read, or is no plain file.
    """
    # O_NONBLOCK: opening a FIFO that nobody writes to would wait for ever; for a plain file it does nothing.
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return os.fdopen(descriptor, "rb")
    os.close(descriptor)
    raise OSError(errno.EINVAL, "not a plain file", str(path))


def read_plain(path: Path, limit: int) -> bytes:
    """All of a plain file of at most `limit` bytes.

    Raises:
        OSError: as `open_plain`, or it is larger.
    """
    with open_plain(path) as file:
        data = file.read(limit + 1)
    if len(data) > limit:
        raise OSError(errno.EFBIG, "too large", str(path))
    return data


def leave(path: Path, text: str) -> None:
    """Replace the file at `path` by `text`.

    Raises:
        OSError: the runtime directory is gone or full.
    """
    path.parent.mkdir(mode=PRIVATE_DIR, parents=True, exist_ok=True)  # some sweep runtime directories
    stage = path.with_name(f".{path.name}.{os.getpid()}")
    descriptor = os.open(stage, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW, PRIVATE_FILE)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
        stage.replace(path)
    except OSError:
        with contextlib.suppress(OSError):
            stage.unlink()
        raise


Stamp = tuple[int, int, int, int]
"""Inode, bytes, time of the content, time of the file's state (both in nanoseconds)."""

Made = TypeVar("Made")


def stamp_of(status: stat_result) -> Stamp:
    """The stamp of a file whose state is known."""
    return status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def plain_stamp(file: Path, limit: int) -> Stamp | None:
    """The stamp of a plain file of at most `limit` bytes; None for anything else, also for nothing.

    Raises:
        OSError: it cannot be looked at.
    """
    try:
        status = file.lstat()
    except FileNotFoundError:
        return None
    return stamp_of(status) if S_ISREG(status.st_mode) and status.st_size <= limit else None


class Remembered(Generic[Made]):
    """What was made of things, each as long as the thing is the same and is still asked for."""

    def __init__(self) -> None:
        self._known: dict[Hashable, tuple[Hashable, Made]] = {}
        self._asked: set[Hashable] = set()

    def of(self, thing: Hashable, version: Hashable, make: Callable[[], Made]) -> Made:
        """What `make` says of a thing, which is called only if the thing has another version than before.

        Raises:
            whatever `make` raises; nothing is remembered then.
        """
        self._asked.add(thing)
        known = self._known.get(thing)
        if known is None or known[0] != version:
            known = self._known[thing] = (version, make())
        return known[1]

    def forget_unasked(self) -> None:
        """Forget what nobody asked for since the last time."""
        for gone in self._known.keys() - self._asked:
            del self._known[gone]
        self._asked.clear()
