"""Careful looks at other programs' files: bounded, never through a symbolic link, never waiting on a pipe.

Between listing a directory and reading a file of it everything may change. What has vanished is absent; what is
there but cannot be read is *unreadable*, which is something else. This module knows nothing of workflows.
"""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

# O_NONBLOCK: a FIFO with a marker's name must not stop the collector.
_PIECE = 1 << 16
_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


@dataclass(frozen=True, slots=True)
class Found:
    """A plain file that exists.

    Attributes:
        data: its first bytes, None if it cannot be read.
        whole: whether `data` is all of it.
        written: its time, see `time_of`; None if it cannot be told.
    """

    data: bytes | None
    whole: bool
    written: float | None


@dataclass(frozen=True, slots=True)
class Listing:
    """Names in a directory. `readable` is false if there are, or may be, names that could not be listed."""

    names: tuple[str, ...]
    readable: bool
    written: float | None


_ABSENT = Listing((), readable=True, written=None)


def time_of(status: os.stat_result) -> float:
    """When a file was last written (Unix seconds).

    The modification time can be set to anything; a time in the future would look fresh for ever. The change time is
    the system's own and is never older than an honest modification time.
    """
    return min(status.st_mtime, status.st_ctime)


def look(path: Path) -> os.stat_result | None:
    """The status of what lies at `path` itself, None if nothing does or it cannot be told."""
    try:
        return os.lstat(path)
    except OSError:
        return None


def read(path: Path, limit: int) -> Found | None:
    """At most `limit` bytes of a plain file. None: there is no plain file (absent, a link, a pipe, a directory)."""
    try:
        status = os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError:
        return Found(None, whole=False, written=_time_or_none(path.parent))
    if not stat.S_ISREG(status.st_mode):
        return None
    try:
        descriptor = os.open(path, _FLAGS)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError:
        return Found(None, whole=False, written=time_of(status))
    try:
        return _read_open(descriptor, limit)
    finally:
        os.close(descriptor)


def _read_open(descriptor: int, limit: int) -> Found | None:
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode):
        return None
    try:
        data = _read_up_to(descriptor, limit + 1)
    except OSError:
        return Found(None, whole=False, written=time_of(status))
    return Found(data[:limit], whole=len(data) <= limit, written=time_of(status))


def _read_up_to(descriptor: int, count: int) -> bytes:
    pieces = [os.read(descriptor, min(count, _PIECE))]
    while pieces[-1] and (count := count - len(pieces[-1])) > 0:
        pieces.append(os.read(descriptor, min(count, _PIECE)))
    return b"".join(pieces)


def is_directory(path: Path) -> bool:
    """Whether a directory, not a link to one, lies at `path`."""
    status = look(path)
    return status is not None and stat.S_ISDIR(status.st_mode)


def is_link(path: Path) -> bool:
    """Whether a symbolic link lies at `path`."""
    status = look(path)
    return status is not None and stat.S_ISLNK(status.st_mode)


def names_in(directory: Path, wanted: Callable[[str], bool]) -> Listing:
    """The wanted names in a directory. Costs one system call for hundreds of names, and memory for the wanted only."""
    try:
        status = os.lstat(directory)
    except (FileNotFoundError, NotADirectoryError):
        return _ABSENT
    except OSError:
        return Listing((), readable=False, written=_time_or_none(directory.parent))
    if not stat.S_ISDIR(status.st_mode):
        return _ABSENT
    try:
        with os.scandir(directory) as entries:
            found = tuple(sorted(entry.name for entry in entries if wanted(entry.name)))
    except (FileNotFoundError, NotADirectoryError):
        return _ABSENT
    except OSError:
        return Listing((), readable=False, written=time_of(status))
    return Listing(found, readable=True, written=time_of(status))


_SMALL_DIRECTORY = 16 << 10
"""Bytes that a directory takes itself. One of a few hundred names is listed sooner than asked for many names."""


def present_in(directory: Path, names: Iterable[str]) -> tuple[str, ...]:
    """Those of these names that are in a directory, not a link to one. Costs little, whatever else is in it."""
    try:
        descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return ()
    try:
        if os.fstat(descriptor).st_size <= _SMALL_DIRECTORY:
            held = set(os.listdir(descriptor))  # noqa: PTH208 - a descriptor has no path
            return tuple(name for name in names if name in held)
        return tuple(name for name in names if _is_in(descriptor, name))
    except OSError:
        return ()
    finally:
        os.close(descriptor)


def _is_in(descriptor: int, name: str) -> bool:
    try:
        os.stat(name, dir_fd=descriptor, follow_symlinks=False)
    except OSError:
        return False
    return True


def newest(paths: Iterable[Path], count: int) -> tuple[Path, ...]:
    """The `count` most recently changed of the paths.

    A project may have years of markers of the past; only the latest can still mean something.
    """
    given = tuple(paths)
    if len(given) <= count:
        return given
    aged = [(time_of(status), path) for path in given if (status := look(path)) is not None]
    return tuple(path for _, path in sorted(aged, reverse=True)[:count])


def relative(path: Path, project: Path) -> str:
    """The path as a person of this project would write it."""
    return str(path).removeprefix(f"{project}/")


def latest(*moments: float | None) -> float | None:
    """The latest of the known moments; None if one is not known at all, for unknown counts as fresh."""
    known = [moment for moment in moments if moment is not None]
    return max(known, default=None)


def _time_or_none(path: Path) -> float | None:
    status = look(path)
    return None if status is None else time_of(status)
