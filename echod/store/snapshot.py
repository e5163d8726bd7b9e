"""Read a file so that the result was its content at one moment, and name contents by their digest.

Under a lease no process can be in the middle of writing. Without a lease the file must have been unchanged for a while
and must not change while it is read. A read that cannot promise this returns `UnavailableFile`, never a shorter
content.
"""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from echod.files import file_version
from echod.memory import MAX_FILE_BYTES
from echod.store.errors import BusyError
from echod.store.fs import Dir, OpenWriters, read_all, read_lease

TRANSIENT_ERRNOS = frozenset({errno.EIO, errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EINTR, errno.EAGAIN})
"""Errors that are no property of the file. It may be readable the next time."""
_MAX_SKEW_SECONDS = 60.0
"""The clocks of a file server and of this machine differ by less."""


def content_digest(data: bytes) -> str:
    """Return the SHA-256 of a content in hex, which names that content everywhere in the journal."""
    return hashlib.sha256(data).hexdigest()


@dataclass(frozen=True, slots=True)
class Snapshot:
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
