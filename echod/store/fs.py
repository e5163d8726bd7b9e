"""The system calls a commit is made of, relative to open directories so that no symlink is ever followed.

Knows nothing of memory, records or jobs. `Dir` is an open directory: once opened below the project root, a path
component that is swapped for a symlink afterwards changes nothing. The renames stand below.

The two renames that never clobber; both say `RenameUnsupportedError` where the file system cannot do them.

A read lease: the kernel's word that nobody has a file open for writing, and a bar on new writers while held.

Linux only (`F_SETLEASE`). Elsewhere, on file systems without leases, and on files of other users the answer is
`UNKNOWN`, and the caller must rely on the file having settled. Hold a lease for microseconds: a writer that opens
the file with O_NONBLOCK fails while it is held.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import signal
import stat
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from enum import Enum
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

    def open_subdir(self, name: str) -> Dir:
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
        full_fsync(self.fd)

    def list_names(self) -> list[str]:
        """The names in this directory, sorted."""
        return sorted(os.listdir(self.fd))  # noqa: PTH208 - a descriptor has no path

    def is_current(self) -> bool:
        """Whether the path still leads to this directory (it may have been moved or replaced)."""
        try:
            opened, current = os.fstat(self.fd), self.path.lstat()
        except OSError:
            return False
        return (opened.st_dev, opened.st_ino) == (current.st_dev, current.st_ino)


def open_dir(root: Path, parts: Iterable[str]) -> Dir:
    """Open the directory `root/parts...`; `root` is trusted (resolved), below it no symlink is followed.

    Raises:
        OSError: a part is missing, a symlink (ELOOP or ENOTDIR) or not a directory.
    """
    current = Dir(os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC), root)
    for part in parts:
        with current:
            current = current.open_subdir(part)
    return current


def make_dir(parent: Dir, name: str, mode: int) -> None:
    """Make a directory if there is none yet, and make its name durable."""
    try:
        os.mkdir(name, mode, dir_fd=parent.fd)
    except FileExistsError:
        return
    parent.sync()


def create_durable_file(directory: Dir, name: str, data: bytes, mode: int) -> None:
    """Write a durable file under a name that only echod uses; what was left there before goes."""
    directory.unlink(name)
    fd = directory.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    try:
        write_all(fd, data)
        full_fsync(fd)
    finally:
        os.close(fd)


def full_fsync(fd: int) -> None:
    """Fsync that also empties the drive's own cache on macOS. An error is final: never sync that file again."""
    full_sync = getattr(fcntl, "F_FULLFSYNC", None)
    if full_sync is not None:
        fcntl.fcntl(fd, full_sync)
    else:
        os.fsync(fd)


def write_all(fd: int, data: bytes) -> None:
    """Write every byte, however short the single writes are."""
    remaining = memoryview(data)
    while remaining:
        remaining = remaining[os.write(fd, remaining) :]


def read_all(fd: int, limit: int) -> bytes:
    """Read from the current offset to the end, at most `limit` bytes and one (so that "too big" shows)."""
    parts: list[bytes] = []
    remaining = limit + 1
    while remaining and (part := os.read(fd, min(remaining, 1 << 20))):
        parts.append(part)
        remaining -= len(part)
    return b"".join(parts)


_UNSUPPORTED_ERRNOS = {errno.EINVAL, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP}
_libc = ctypes.CDLL(None, use_errno=True)

if sys.platform == "darwin":
    _rename_call, _NOREPLACE, _EXCHANGE = "renameatx_np", 4, 2
else:
    _rename_call, _NOREPLACE, _EXCHANGE = "renameat2", 1, 2


class RenameUnsupportedError(Exception):
    """This file system or platform has no such rename."""


def exchange(directory: Dir, one: str, other: str) -> None:
    """Swap two names atomically; neither is ever absent.

    Raises:
        RenameUnsupportedError: the file system cannot.
        OSError: one of the names is missing, or the call failed.
    """
    _rename(directory, one, directory, other, _EXCHANGE)


def rename_noreplace_or_link(source: Dir, name: str, target: Dir, new_name: str) -> None:
    """Rename, never onto something that exists.

    Raises:
        FileExistsError: `new_name` is taken.
        FileNotFoundError: `name` is gone.
        OSError: the call failed.
    """
    try:
        rename_noreplace(source, name, target, new_name)
    except RenameUnsupportedError:
        os.link(name, new_name, src_dir_fd=source.fd, dst_dir_fd=target.fd, follow_symlinks=False)
        os.unlink(name, dir_fd=source.fd)


def rename_noreplace(source: Dir, name: str, target: Dir, new_name: str) -> None:
    """The same in one step, for directories too.

    Raises:
        RenameUnsupportedError: the file system cannot.
        OSError: as `rename_noreplace_or_link`.
    """
    _rename(source, name, target, new_name, _NOREPLACE)


def _rename(source: Dir, name: str, target: Dir, new_name: str, flags: int) -> None:
    call = getattr(_libc, _rename_call, None)
    if call is None:
        raise RenameUnsupportedError(_rename_call)
    if call(source.fd, os.fsencode(name), target.fd, os.fsencode(new_name), flags) == 0:
        return
    code = ctypes.get_errno()
    if code in _UNSUPPORTED_ERRNOS:
        raise RenameUnsupportedError(os.strerror(code))
    raise OSError(code, os.strerror(code), str(source.path / name))


class OpenWriters(Enum):
    """What the kernel says about open writers of a file."""

    NONE = "nobody has it open for writing"
    SOME = "somebody has it open for writing"
    UNKNOWN = "this file system cannot tell"


@contextmanager
def read_lease(fd: int) -> Iterator[OpenWriters]:
    """Try to take a read lease on `fd` (opened read-only) for the length of the block."""
    writers = _take_lease(fd)
    try:
        yield writers
    finally:
        if writers is OpenWriters.NONE:
            _release_lease(fd)


def _take_lease(fd: int) -> OpenWriters:
    if not hasattr(fcntl, "F_SETLEASE"):
        return OpenWriters.UNKNOWN
    try:
        # A writer's open breaks the lease with a signal. SIGIO would end the process; SIGURG is ignored by default,
        # and asking for it needs no handler, which only the main thread could install.
        fcntl.fcntl(fd, fcntl.F_SETSIG, signal.SIGURG)
        fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_RDLCK)
    except OSError as error:
        return OpenWriters.SOME if error.errno == errno.EAGAIN else OpenWriters.UNKNOWN
    return OpenWriters.NONE


def _release_lease(fd: int) -> None:
    # The kernel takes a lease away after lease-break-time (we were suspended); then there is none to give back.
    with suppress(OSError):
        fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_UNLCK)
