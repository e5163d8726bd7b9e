"""The system calls a commit is made of, relative to open directories so that no symlink is ever followed.

Knows nothing of memory, records or jobs. `Dir` is an open directory: once opened below the project root, a path
component that is swapped for a symlink afterwards changes nothing. The renames are in `renames`.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

NO_FOLLOW = os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass(frozen=True, slots=True)
class Dir:
    """An open directory. `path` is only for messages; every operation goes through the descriptor."""

    fd: int
    path: Path

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the descriptor; nothing may be done through it afterwards."""
        os.close(self.fd)

    def stat(self, name: str) -> os.stat_result | None:
        """The file's own state (a symlink's, not its target's), None where there is none."""
        try:
            return os.stat(name, dir_fd=self.fd, follow_symlinks=False)
        except FileNotFoundError:
            return None

    def inode(self, name: str) -> int | None:
        """The inode number at a name, None where there is none."""
        found = self.stat(name)
        return found.st_ino if found else None

    def open(self, name: str, flags: int, mode: int = 0o666) -> int:
        """Open a plain file; a symlink is refused (ELOOP), and so is everything that is no file (EINVAL)."""
        # O_NONBLOCK so that a FIFO in the place of a file cannot hold us; with a plain file it does nothing.
        fd = os.open(name, flags | NO_FOLLOW | os.O_NONBLOCK, mode, dir_fd=self.fd)
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            os.close(fd)
            raise OSError(errno.EINVAL, "not a regular file", name)
        return fd

    def read(self, name: str, limit: int) -> bytes:
        """What a plain file holds, at most `limit` bytes and one (so that "too big" shows); see `open`."""
        fd = self.open(name, os.O_RDONLY)
        try:
            return read_all(fd, limit)
        finally:
            os.close(fd)

    def below(self, name: str) -> Dir:
        """Open a directory in this one; a symlink is refused."""
        fd = os.open(name, os.O_RDONLY | os.O_DIRECTORY | NO_FOLLOW, dir_fd=self.fd)
        return Dir(fd, self.path / name)

    def unlink(self, name: str) -> None:
        """Remove a name that only echod uses; one that is gone already is fine."""
        try:
            os.unlink(name, dir_fd=self.fd)
        except FileNotFoundError:
            return

    def sync(self) -> None:
        """Make the names in this directory durable."""
        sync(self.fd)

    def names(self) -> list[str]:
        """The names in this directory, sorted."""
        return sorted(os.listdir(self.fd))  # noqa: PTH208 - a descriptor has no path

    def still_there(self) -> bool:
        """Whether the path still leads to this directory (it may have been moved or replaced)."""
        try:
            here, there = os.fstat(self.fd), self.path.lstat()
        except OSError:
            return False
        return (here.st_dev, here.st_ino) == (there.st_dev, there.st_ino)


def open_dir(root: Path, parts: Iterable[str]) -> Dir:
    """Open the directory `root/parts...`; `root` is trusted (resolved), below it no symlink is followed.

    Raises:
        OSError: a part is missing, a symlink (ELOOP or ENOTDIR) or not a directory.
    """
    here = Dir(os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC), root)
    for part in parts:
        with here:
            here = here.below(part)
    return here


def make_dir(parent: Dir, name: str, mode: int) -> None:
    """Make a directory if there is none yet, and make its name durable."""
    try:
        os.mkdir(name, mode, dir_fd=parent.fd)
    except FileExistsError:
        return
    parent.sync()


def prepare_file(directory: Dir, name: str, data: bytes, mode: int) -> None:
    """Write a durable file under a name that only echod uses; what was left there before goes."""
    directory.unlink(name)
    fd = directory.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    try:
        write_all(fd, data)
        sync(fd)
    finally:
        os.close(fd)


def sync(fd: int) -> None:
    """Fsync that also empties the drive's own cache on macOS. An error is final: never sync that file again."""
    full = getattr(fcntl, "F_FULLFSYNC", None)
    if full is not None:
        fcntl.fcntl(fd, full)
    else:
        os.fsync(fd)


def write_all(fd: int, data: bytes) -> None:
    """Write every byte, however short the single writes are."""
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(fd, rest) :]


def read_all(fd: int, limit: int) -> bytes:
    """Read from the current offset to the end, at most `limit` bytes and one (so that "too big" shows)."""
    parts: list[bytes] = []
    left = limit + 1
    while left and (part := os.read(fd, min(left, 1 << 20))):
        parts.append(part)
        left -= len(part)
    return b"".join(parts)
