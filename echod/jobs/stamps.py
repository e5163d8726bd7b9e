"""When is a file the same as before? Its stamp tells, without reading it."""

from __future__ import annotations

from os import stat_result
from pathlib import Path
from stat import S_ISREG

from echod.memory.document import SIZE_LIMIT

Stamp = tuple[int, int, int, int]
"""Inode, bytes, time of the content, time of the file's state (both in nanoseconds)."""


def stamp_of(status: stat_result) -> Stamp:
    """The stamp of a file whose state is known."""
    return status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def plain_stamp(file: Path) -> Stamp | None:
    """The stamp of a plain file of a size that is read; None for anything else, also for nothing.

    Raises:
        OSError: it cannot be looked at.
    """
    try:
        status = file.lstat()
    except FileNotFoundError:
        return None
    return stamp_of(status) if S_ISREG(status.st_mode) and status.st_size <= SIZE_LIMIT else None
