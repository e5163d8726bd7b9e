"""When is a file the same as before? Its stamp tells, without reading it; and what was made of it needs no new look."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from os import stat_result
from pathlib import Path
from stat import S_ISREG
from typing import Generic, TypeVar

from echod.memory.limits import SIZE_LIMIT

Stamp = tuple[int, int, int, int]
"""Inode, bytes, time of the content, time of the file's state (both in nanoseconds)."""

Made = TypeVar("Made")


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
