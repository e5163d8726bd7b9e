"""Adding text to an archive: one write at a known offset, durable; and taking it back where a commit fails early.

After a crash the same call finishes a torn write and adds nothing twice that is already there.
"""

from __future__ import annotations

import os

from echod.store.fs import Dir, read_all, sync, write_all
from echod.store.lease import Writers, read_lease
from echod.store.snapshot import MAX_FILE_BYTES


def size(directory: Dir, name: str) -> int:
    """Where the next text would start; 0 where there is no file."""
    found = directory.stat(name)
    return found.st_size if found else 0


def append(directory: Dir, name: str, data: bytes, offset: int) -> None:
    """Add `data`, planned for `offset`, unless it is there. Durable once `directory` is synced too.

    Raises:
        OSError: it could not be written; the file may end in a part of it, which the next call completes.
    """
    fd = directory.open(name, os.O_RDWR | os.O_CREAT | os.O_APPEND)
    try:
        rest = _missing(fd, data, offset)
        write_all(fd, rest)
        sync(fd)
    finally:
        os.close(fd)


def take_back(directory: Dir, name: str, data: bytes, offset: int) -> None:
    """Undo `append` after a failure, if nobody wrote after it; else the text stays (twice is better than never)."""
    found = directory.stat(name)
    if found is None or found.st_size < offset:
        return
    fd = directory.open(name, os.O_RDONLY)
    try:
        with read_lease(fd) as writers:
            os.lseek(fd, offset, os.SEEK_SET)
            tail = read_all(fd, len(data))
            alone = writers is not Writers.SOME
        if not alone or not data.startswith(tail):
            return
        if offset == 0:
            directory.unlink(name)
        elif tail:
            _cut(directory, name, offset)
    finally:
        os.close(fd)


def _cut(directory: Dir, name: str, offset: int) -> None:
    fd = directory.open(name, os.O_WRONLY)
    try:
        os.ftruncate(fd, offset)
    finally:
        os.close(fd)


def _missing(fd: int, data: bytes, offset: int) -> bytes:
    """What of `data` still has to be written at the end."""
    os.lseek(fd, offset, os.SEEK_SET)
    tail = read_all(fd, MAX_FILE_BYTES)
    if tail and data.startswith(tail):
        return data[len(tail) :]
    return b"" if data in tail else data
