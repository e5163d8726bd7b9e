"""System calls relative to open directories, which follow no symbolic link, and a probe of the file system.

Knows nothing of memory, records or jobs. In this order: `Dir`, an open directory (a path component that is replaced by
a symbolic link after it was opened changes nothing); reading and writing through descriptors; the two renames that
never overwrite, which raise `RenameUnsupportedError` if the file system has no such rename; and the read lease.

A read lease is the kernel's guarantee that no process has a file open for writing. It also holds back new writers.
Leases exist on Linux only (`F_SETLEASE`). Elsewhere, on file systems without leases and for files of other users the
result is `UNKNOWN`, and the caller must rely on the file being unchanged for a while. Hold a lease for microseconds: a
writer that opens the file with O_NONBLOCK fails while it is held.

Without exchange a file that is replaced in the wrong microsecond is lost, and without leases open writers cannot be
detected. Such a store is written only when its files have been unchanged for a while, and `doctor` reports it.

A snapshot is a file's content at one moment. Under a lease no process can be in the middle of writing. Without a lease
the file must have been unchanged for a while and must not change while it is read. A read that cannot promise this
returns `UnavailableFile`, never a shorter content.
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
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

from echod.files import content_digest, file_version, full_fsync, write_all
from echod.memory import MAX_FILE_BYTES
from echod.paths import PRIVATE_FILE_MODE
from echod.store.errors import BusyError

NEW_DIR_MODE = 0o777  # less the umask, like any other program's new directory
NEW_FILE_MODE = 0o666  # less the umask, like any other program's new file

_NO_FOLLOW = os.O_NOFOLLOW | os.O_CLOEXEC
_READ_BYTES = 1 << 20
_UNSUPPORTED_ERRNOS = {errno.EINVAL, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP}
_libc = ctypes.CDLL(None, use_errno=True)

if sys.platform == "darwin":
    _rename_call, _NOREPLACE, _EXCHANGE = "renameatx_np", 4, 2
else:
    _rename_call, _NOREPLACE, _EXCHANGE = "renameat2", 1, 2


class Dir(NamedTuple):
    """An open directory. `path` is for messages only: every operation uses the descriptor."""

    fd: int
    path: Path

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the descriptor. The directory must not be used afterwards."""
        os.close(self.fd)

    def stat(self, name: str) -> os.stat_result | None:
        """Return the file's own status (a symbolic link's, not its target's), or None if it does not exist."""
        try:
            return os.stat(name, dir_fd=self.fd, follow_symlinks=False)
        except FileNotFoundError:
            return None

    def inode(self, name: str) -> int | None:
        """Return the inode number at a name, or None if there is no file."""
        status = self.stat(name)
        return status.st_ino if status else None

    @contextmanager
    def open(self, name: str, flags: int, mode: int = NEW_FILE_MODE) -> Iterator[int]:
        """Open a plain file for the length of the block. Links (ELOOP) and special files (EINVAL) are refused."""
        # O_NONBLOCK so that a FIFO in the place of a file cannot block us. It has no effect on a plain file.
        fd = os.open(name, flags | _NO_FOLLOW | os.O_NONBLOCK, mode, dir_fd=self.fd)
        try:
            if not stat.S_ISREG(os.fstat(fd).st_mode):
                raise OSError(errno.EINVAL, "not a regular file", name)
            yield fd
        finally:
            os.close(fd)

    def read(self, name: str, limit: int) -> bytes:
        """Return the content of a plain file, at most `limit` + 1 bytes so that a larger file is noticed."""
        with self.open(name, os.O_RDONLY) as fd:
            return read_all(fd, limit)

    def open_subdir(self, name: str) -> Dir:
        """Open a directory in this one. A symbolic link is refused."""
        fd = os.open(name, os.O_RDONLY | os.O_DIRECTORY | _NO_FOLLOW, dir_fd=self.fd)
        return Dir(fd, self.path / name)

    def unlink(self, name: str) -> None:
        """Remove a name that only echod uses. A missing file is not an error."""
        with suppress(FileNotFoundError):
            os.unlink(name, dir_fd=self.fd)

    def sync(self) -> None:
        """Make the names in this directory durable."""
        full_fsync(self.fd)

    def list_names(self) -> list[str]:
        """Return the names in this directory, sorted."""
        return sorted(os.listdir(self.fd))  # noqa: PTH208 - a descriptor has no path

    def is_current(self) -> bool:
        """Return whether the path still leads to this directory (it may have been moved or replaced)."""
        try:
            opened, current = os.fstat(self.fd), self.path.lstat()
        except OSError:
            return False
        return (opened.st_dev, opened.st_ino) == (current.st_dev, current.st_ino)


def open_dir(root: Path, parts: Iterable[str]) -> Dir:
    """Open the directory `root/parts...`. `root` is trusted (resolved); below it no symbolic link is followed.

    A part that is a symbolic link is an `OSError` with ELOOP or ENOTDIR.
    """
    current = Dir(os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC), root)
    for part in parts:
        with current:
            current = current.open_subdir(part)
    return current


def make_dir(parent: Dir, name: str) -> None:
    """Create a directory if it does not exist, and make its name durable."""
    try:
        os.mkdir(name, NEW_DIR_MODE, dir_fd=parent.fd)
    except FileExistsError:
        return
    parent.sync()


def create_durable_file(directory: Dir, name: str, data: bytes, mode: int) -> None:
    """Write a durable file under a name that only echod uses. A leftover file of that name is replaced."""
    directory.unlink(name)
    with directory.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode) as fd:
        write_all(fd, data)
        full_fsync(fd)


def read_all(fd: int, limit: int) -> bytes:
    """Read from the current offset to the end, at most `limit` + 1 bytes so that a larger file is noticed."""
    parts: list[bytes] = []
    remaining = limit + 1
    while remaining and (part := os.read(fd, min(remaining, _READ_BYTES))):
        parts.append(part)
        remaining -= len(part)
    return b"".join(parts)


class RenameUnsupportedError(Exception):
    """This file system or platform has no such rename."""


def exchange(source: Dir, name: str, target: Dir, other_name: str) -> None:
    """Swap two names atomically, so that neither is ever absent."""
    _rename(source, name, target, other_name, _EXCHANGE)


def rename_noreplace_or_link(source: Dir, name: str, target: Dir, new_name: str) -> None:
    """Rename a file like `rename_noreplace`, by a hard link and an unlink if there is no such rename."""
    try:
        rename_noreplace(source, name, target, new_name)
    except RenameUnsupportedError:
        os.link(name, new_name, src_dir_fd=source.fd, dst_dir_fd=target.fd, follow_symlinks=False)
        os.unlink(name, dir_fd=source.fd)


def rename_noreplace(source: Dir, name: str, target: Dir, new_name: str) -> None:
    """Rename a file or directory in one step. If `new_name` is taken, raise `FileExistsError` and replace nothing."""
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
    """The kernel's answer to whether a file is open for writing."""

    NONE = "no process has it open for writing"
    SOME = "another process has it open for writing"
    UNKNOWN = "this file system cannot tell"


@contextmanager
def read_lease(fd: int) -> Iterator[OpenWriters]:
    """Try to take a read lease on `fd` (opened read-only) for the length of the block."""
    writers = _take_lease(fd)
    try:
        yield writers
    finally:
        if writers is OpenWriters.NONE:
            # The kernel revokes a lease after lease-break-time (this process was suspended). Then it is gone.
            with suppress(OSError):
                fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_UNLCK)


def _take_lease(fd: int) -> OpenWriters:
    if not hasattr(fcntl, "F_SETLEASE"):
        return OpenWriters.UNKNOWN
    try:
        # A writer's open breaks the lease with a signal. SIGIO would end the process. SIGURG is ignored by default,
        # and asking for it needs no handler, which only the main thread could install.
        fcntl.fcntl(fd, fcntl.F_SETSIG, signal.SIGURG)
        fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_RDLCK)
    except OSError as error:
        return OpenWriters.SOME if error.errno == errno.EAGAIN else OpenWriters.UNKNOWN
    return OpenWriters.NONE


_ONE, _OTHER = ".echod-probe-one", ".echod-probe-two"


class Capabilities(NamedTuple):
    """The supported operations: atomic exchange of two names, read leases, a second name for a file."""

    exchange: bool
    lease: bool
    hard_link: bool

    @property
    def full(self) -> bool:
        """True if every promise holds here."""
        return self.exchange and self.lease


@dataclass(slots=True)
class CapabilityCache:
    """Capabilities by device, probed once in each process."""

    _by_device: dict[int, Capabilities] = field(default_factory=dict)

    def get(self, directory: Dir) -> Capabilities:
        """Return the capabilities of an open directory."""
        device = os.fstat(directory.fd).st_dev
        if device not in self._by_device:
            self._by_device[device] = _probe_directory(directory)
        return self._by_device[device]


def probe(directory: Path) -> Capabilities:
    """Return the capabilities of a directory. Raise an `OSError` if it is not writable or the disk is full."""
    with open_dir(directory, ()) as opened:
        return _probe_directory(opened)


def _probe_directory(directory: Dir) -> Capabilities:
    try:
        for name in (_ONE, _OTHER):
            directory.unlink(name)
            with directory.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, PRIVATE_FILE_MODE):
                pass
        return Capabilities(_supports_exchange(directory), _supports_lease(directory), _supports_hard_link(directory))
    finally:
        for name in (_ONE, _OTHER):
            directory.unlink(name)


def _supports_exchange(directory: Dir) -> bool:
    before = directory.inode(_ONE)
    try:
        exchange(directory, _ONE, directory, _OTHER)
    except RenameUnsupportedError:
        return False
    return directory.inode(_OTHER) == before


def _supports_lease(directory: Dir) -> bool:
    with directory.open(_ONE, os.O_RDONLY) as fd, read_lease(fd) as writers:
        return writers is OpenWriters.NONE


def _supports_hard_link(directory: Dir) -> bool:
    directory.unlink(_OTHER)
    with suppress(OSError):
        os.link(_ONE, _OTHER, src_dir_fd=directory.fd, dst_dir_fd=directory.fd)
        return True
    return False


TRANSIENT_ERRNOS = frozenset({errno.EIO, errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EINTR, errno.EAGAIN})
"""Errors that are no property of the file. It may be readable the next time."""
_MAX_SKEW_SECONDS = 60.0
"""The clocks of a file server and of this machine differ by less."""


class Snapshot(NamedTuple):
    """A file's content at one moment. `data` is None if there was no file."""

    path: Path
    data: bytes | None
    mtime_ns: int  # modification time in nanoseconds; 0 if there was no file
    inode: int  # inode number; 0 if there was no file
    writers: OpenWriters  # the kernel's answer about open writers while the file was read

    @property
    def digest(self) -> str | None:
        """The digest of the content, for a change set; None if there was no file."""
        return None if self.data is None else content_digest(self.data)

    @property
    def text(self) -> bytes:
        """The content, empty if there was no file."""
        return self.data or b""


def replacement_problem(path: Path, status: os.stat_result) -> str | None:
    """Return why echod does not replace a file with this status; None if it may."""
    if not stat.S_ISREG(status.st_mode):
        return f"{path} is a symbolic link or not a plain file; echod does not change it. Put a plain file there."
    if not status.st_mode & stat.S_IWUSR:
        return f"{path} is read-only; echod does not change it. Make it writable (chmod u+w) to allow changes."
    return None


def find_replacement_problem(path: Path) -> str | None:
    """Return why a change of the file at `path` would be refused; None if nothing is known against it."""
    try:
        return replacement_problem(path, path.lstat())
    except OSError:
        return None  # a new file is allowed, and what cannot be examined is reported by who reads it


class UnavailableFile(NamedTuple):
    """A file that cannot be read reliably now."""

    path: Path
    reason: str  # a sentence for the user
    # when the file becomes available if it is not changed again (Unix seconds); None if that is unknown
    until: float | None = None
    permanent: bool = False  # whether waiting does not help because the user must fix it


class FileUnavailableError(BusyError):
    """A file cannot be read reliably now. `file` has the details."""

    def __init__(self, file: UnavailableFile) -> None:
        super().__init__(file.reason)
        self.file = file


def is_settled(changed_at: float, now: float, settle_seconds: float) -> bool:
    """Return whether a file has been unchanged for a while. A time far in the future comes from a wrong clock."""
    return not -_MAX_SKEW_SECONDS < now - changed_at < settle_seconds


def too_large_file(path: Path) -> UnavailableFile:
    """Return the `UnavailableFile` for a file above `MAX_FILE_BYTES`."""
    reason = f"{path.name} is larger than {MAX_FILE_BYTES >> 20} MiB; echod does not change it."
    return UnavailableFile(path, reason, permanent=True)


def read_snapshot(directory: Dir, name: str, *, now: float, settle_seconds: float) -> Snapshot | UnavailableFile:
    """Read a file of `directory` as of one moment.

    If leases do not work, it must have been unchanged for `settle_seconds` at `now` (Unix seconds).
    """
    path = directory.path / name
    try:
        with directory.open(name, os.O_RDONLY) as fd:
            return _read_open_file(fd, path, now, settle_seconds)
    except FileNotFoundError:
        return Snapshot(path, None, 0, 0, OpenWriters.UNKNOWN)


def _read_open_file(fd: int, path: Path, now: float, settle_seconds: float) -> Snapshot | UnavailableFile:
    with read_lease(fd) as writers:
        if writers is OpenWriters.SOME:
            return UnavailableFile(path, f"{path.name} is open for writing by another program.")
        before = os.fstat(fd)
        if before.st_size > MAX_FILE_BYTES:
            return too_large_file(path)
        if writers is OpenWriters.UNKNOWN and not is_settled(before.st_mtime, now, settle_seconds):
            return UnavailableFile(path, f"{path.name} was changed less than {settle_seconds:g} s ago.")
        data = read_all(fd, MAX_FILE_BYTES)
        after = os.fstat(fd)
    if len(data) > MAX_FILE_BYTES:
        return too_large_file(path)
    if writers is OpenWriters.UNKNOWN and file_version(before) != file_version(after):
        return UnavailableFile(path, f"{path.name} was changed while it was read.")
    return Snapshot(path, data, after.st_mtime_ns, after.st_ino, writers)
