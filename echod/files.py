"""Read files of other programs safely, write private files atomically, and detect that a file is unchanged.

Three parts, which know nothing of what a file contains:

- `open_regular` and `read_regular` never wait for a FIFO, never read a device, and never read more than a bound. A path
  is looked at before it is opened and may be something else by then, so it is checked again once it is open.
- `write_private` and `write_private_durable` replace a file as a whole: readers see the old content or the new one.
  They differ in what a power cut may lose.
- `FileVersion` identifies a file's content without reading it, and `VersionedCache` keeps what was made of it.
  `content_digest` names a content.

`echod.store.fs` has the same for files below a project root, where every directory on the way is held open.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import stat
from collections.abc import Callable, Hashable
from pathlib import Path
from typing import BinaryIO, Generic, TypeAlias, TypeVar

from echod.lazy import lazy_imports
from echod.paths import PRIVATE_FILE_MODE, make_private_directory

with lazy_imports(__name__):
    import hashlib

FileVersion: TypeAlias = tuple[int, int, int, int]
"""Inode, size in bytes, modification time and change time (both in nanoseconds). No tool can set back the last one."""

Value = TypeVar("Value")

_NO_FULL_SYNC_ERRNOS = {errno.ENOTSUP, errno.ENOTTY, errno.EINVAL}
"""The answers of file systems on macOS, such as those of networks, that have no `F_FULLFSYNC`."""


def open_regular(path: Path, *, follow_symlinks: bool = True, dir_fd: int | None = None) -> BinaryIO:
    """Open a regular file for reading. Without `follow_symlinks`, a `path` that is itself a link is an error (ELOOP).

    Raises:
        OSError: it is missing, may not be read, or is not a regular file (EINVAL).
    """
    _require_regular(os.stat(path, dir_fd=dir_fd, follow_symlinks=follow_symlinks), path)
    # O_NONBLOCK: should a FIFO have taken its place, opening it would wait for a writer for ever.
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
    descriptor = os.open(path, flags if follow_symlinks else flags | os.O_NOFOLLOW, dir_fd=dir_fd)
    try:
        _require_regular(os.fstat(descriptor), path)
        return os.fdopen(descriptor, "rb")
    except BaseException:
        os.close(descriptor)
        raise


def _require_regular(status: os.stat_result, path: Path) -> None:
    if stat.S_ISLNK(status.st_mode):
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path))
    if not stat.S_ISREG(status.st_mode):
        raise OSError(errno.EINVAL, "not a plain file", str(path))


def read_regular(path: Path, limit: int, *, follow_symlinks: bool = True, dir_fd: int | None = None) -> bytes:
    """Return the content of a regular file of at most `limit` bytes.

    Raises:
        OSError: as `open_regular`, or it is larger (EFBIG).
    """
    with open_regular(path, follow_symlinks=follow_symlinks, dir_fd=dir_fd) as file:
        data = file.read(limit + 1)
    if len(data) > limit:
        raise OSError(errno.EFBIG, "too large", str(path))
    return data


def open_private_log(path: Path) -> int:
    """Open a private file (0600) to append to it, and return its descriptor. A missing file is created.

    Raises:
        OSError: it cannot be opened, or is not a regular file (EINVAL; ENXIO for a FIFO that nothing reads).
    """
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY
    descriptor = os.open(path, flags, PRIVATE_FILE_MODE)
    try:
        _require_regular(os.fstat(descriptor), path)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def write_private(path: Path, data: bytes) -> None:
    """Replace the file at `path` by a private one (0600). A power cut may lose it.

    The directory is made if it is missing, for some systems clean runtime directories while programs run.

    Raises:
        OSError: the directory cannot be made or written, or the disk is full; the old file is unchanged.
    """
    _replace(path, data, durable=False)


def write_private_durable(path: Path, data: bytes) -> None:
    """Replace the file at `path` by a private one (0600), which a power cut leaves with the old content or the new one.

    Raises:
        OSError: the directory cannot be made or written, or the disk is full. The old file is unchanged, unless the
            directory could not be synced.
    """
    _replace(path, data, durable=True)
    sync_directory(path.parent)


def write_runtime_file(path: Path, text: str) -> None:
    """Replace a small text file in the runtime directory; see `write_private`."""
    write_private(path, text.encode())


def _replace(path: Path, data: bytes, *, durable: bool) -> None:
    # A random name with O_EXCL: neither two threads nor a file that was put there before can share it.
    temporary = path.with_name(f".{path.name}.{os.urandom(6).hex()}")
    descriptor = _create_private(temporary)
    try:
        try:
            write_all(descriptor, data)
            if durable:
                full_fsync(descriptor)
        finally:
            os.close(descriptor)
        temporary.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise


def _create_private(path: Path) -> int:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
    try:
        return os.open(path, flags, PRIVATE_FILE_MODE)
    except FileNotFoundError:
        make_private_directory(path.parent)
        return os.open(path, flags, PRIVATE_FILE_MODE)


def write_all(descriptor: int, data: bytes) -> None:
    """Write every byte, however short the single writes are."""
    remaining = memoryview(data)
    while remaining:
        remaining = remaining[os.write(descriptor, remaining) :]


def full_fsync(descriptor: int) -> None:
    """Sync a file, and on macOS the drive's own cache too. An error is final: never sync that file again."""
    full_sync = getattr(fcntl, "F_FULLFSYNC", None)
    if full_sync is not None:
        try:
            fcntl.fcntl(descriptor, full_sync)
        except OSError as error:
            if error.errno not in _NO_FULL_SYNC_ERRNOS:
                raise
        else:
            return
    os.fsync(descriptor)


def sync_directory(path: Path) -> None:
    """Make the names in a directory durable; a file system that cannot sync directories (EINVAL) is accepted."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        full_fsync(descriptor)
    except OSError as error:
        if error.errno != errno.EINVAL:
            raise
    finally:
        os.close(descriptor)


def file_version(status: os.stat_result) -> FileVersion:
    """Return the version of a file from its status."""
    return status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def regular_file_version(file: Path, limit: int) -> FileVersion | None:
    """Return the version of a regular file of at most `limit` bytes; None for everything else, a missing file too."""
    try:
        status = file.lstat()
    except FileNotFoundError:
        return None
    return file_version(status) if stat.S_ISREG(status.st_mode) and status.st_size <= limit else None


def insecure_file_warnings(file: Path, uid: int) -> tuple[str, ...]:
    """Return a warning for each way in which users other than `uid` can change or replace a file of echod."""
    try:
        status, directory_status = file.stat(), file.parent.stat()
    except OSError:
        return ()  # left to the check
    messages = []
    if status.st_uid not in (uid, 0):
        messages.append(f"{file} belongs to another user, who can change what echod does here. Change its owner.")
    if status.st_mode & stat.S_IWOTH:
        messages.append(f"{file} can be changed by every user of this machine. Run: chmod o-w {file}")
    if directory_status.st_uid not in (uid, 0):
        messages.append(f"{file.parent} belongs to another user, who can replace {file.name}. Change its owner.")
    # In a sticky directory like /tmp only the owner of a file can rename it.
    if directory_status.st_mode & stat.S_IWOTH and not directory_status.st_mode & stat.S_ISVTX:
        messages.append(f"{file} can be replaced by every user of this machine. Run: chmod o-w {file.parent}")
    return tuple(messages)


class VersionedCache(Generic[Value]):
    """Values computed from versioned things, kept while unchanged and in use. Many threads may compute, one evicts."""

    def __init__(self) -> None:
        self._cache: dict[Hashable, tuple[Hashable, Value]] = {}
        self._used: set[Hashable] = set()

    def get_or_compute(self, key: Hashable, version: Hashable, compute: Callable[[], Value]) -> Value:
        """Return the value of the thing `key`, computed only if the thing has another version than before.

        If `compute` raises, nothing is kept.
        """
        self._used.add(key)
        cached = self._cache.get(key)
        if cached is None or cached[0] != version:
            cached = self._cache[key] = (version, compute())
        return cached[1]

    def evict_unused(self) -> None:
        """Forget the values that were not asked for since the last call."""
        for unused in self._cache.keys() - self._used:
            del self._cache[unused]
        self._used.clear()


def content_digest(data: bytes) -> str:
    """Return the SHA-256 of a content in hex, which names that content everywhere in the journal."""
    return hashlib.sha256(data).hexdigest()
