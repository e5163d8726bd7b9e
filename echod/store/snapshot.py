"""Reading a file so that what was read was really its content at one moment.

Under a lease nobody can be in the middle of writing. Without one the file must have been still for a while and
must not move while it is read. A read that cannot promise this is `UnavailableFile`, never a shorter content.

What contents are named by.
"""

from __future__ import annotations

import errno
import hashlib
import os
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from echod.memory.model import MAX_FILE_BYTES
from echod.store.errors import BusyError
from echod.store.fs import Dir, OpenWriters, read_all, read_lease


def content_digest(data: bytes) -> str:
    """SHA-256 of a file's content, in hex; the name of that content everywhere in the journal."""
    return hashlib.sha256(data).hexdigest()


_TRANSIENT_ERRNOS = frozenset({errno.EIO, errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EINTR, errno.EAGAIN})
"""What says nothing about the file: another time it can be read."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A file's content at one moment. `data` is None where there was no file.

    Attributes:
        mtime_ns: modification time in nanoseconds; 0 where there was no file.
        inode: inode number; 0 where there was no file.
        writers: what the kernel said about open writers while it was read.
    """

    path: Path
    data: bytes | None
    mtime_ns: int
    inode: int
    writers: OpenWriters

    @property
    def digest(self) -> str | None:
        """The name of the content, as a change set wants it; None where there was no file."""
        return None if self.data is None else content_digest(self.data)

    @property
    def text(self) -> bytes:
        """The content, empty where there was no file."""
        return self.data or b""


class UnavailableFile(NamedTuple):
    """A file that cannot be read reliably now.

    Attributes:
        reason: a sentence for the person.
        until: when that ends if nobody touches the file (Unix seconds); None where that is not known.
        permanent: whether it stays so until somebody mends it; waiting does not help.
    """

    path: Path
    reason: str
    until: float | None = None
    permanent: bool = False


class FileUnavailableError(BusyError):
    """A file cannot be read reliably now, as `file` says."""

    def __init__(self, file: UnavailableFile) -> None:
        super().__init__(file.reason)
        self.file = file


def too_large_file(path: Path) -> UnavailableFile:
    """What is said of a file above `MAX_FILE_BYTES`."""
    reason = f"{path.name} is larger than {MAX_FILE_BYTES >> 20} MiB; echod leaves it alone."
    return UnavailableFile(path, reason, permanent=True)


def unreadable_file(path: Path, reason: str, error: OSError) -> UnavailableFile:
    """What is said of a file that the operating system did not let be read."""
    return UnavailableFile(path, reason, permanent=error.errno not in _TRANSIENT_ERRNOS)


def read_snapshot(directory: Dir, name: str, *, now: float, settle_seconds: float) -> Snapshot | UnavailableFile:
    """Read a file of `directory` as of one moment.

    Args:
        directory: where it lies.
        name: its name there.
        now: Unix seconds, compared with the modification time where leases do not work.
        settle_seconds: how long the file must have been still where leases do not work.

    Raises:
        OSError: it cannot be opened or read, or is a symlink or no plain file.
    """
    path = directory.path / name
    try:
        fd = directory.open(name, os.O_RDONLY)
    except FileNotFoundError:
        return Snapshot(path, None, 0, 0, OpenWriters.UNKNOWN)
    try:
        with read_lease(fd) as writers:
            if writers is OpenWriters.SOME:
                return UnavailableFile(path, f"{path.name} is open for writing by another program.")
            before = os.fstat(fd)
            if before.st_size > MAX_FILE_BYTES:
                return too_large_file(path)
            if writers is OpenWriters.UNKNOWN and now - before.st_mtime < settle_seconds:
                return UnavailableFile(path, f"{path.name} was changed less than {settle_seconds:g} s ago.")
            data = read_all(fd, MAX_FILE_BYTES)
            after = os.fstat(fd)
    finally:
        os.close(fd)
    if len(data) > MAX_FILE_BYTES:
        return too_large_file(path)
    if writers is OpenWriters.UNKNOWN and _fingerprint(before) != _fingerprint(after):
        return UnavailableFile(path, f"{path.name} was changed while it was read.")
    return Snapshot(path, data, after.st_mtime_ns, after.st_ino, writers)


def _fingerprint(status: os.stat_result) -> tuple[int, int, int]:
    return status.st_mtime_ns, status.st_ctime_ns, status.st_size
