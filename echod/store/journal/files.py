"""Read and write the private files of the journal, durably or lazily, and store contents by their digest.

Every file of the journal is written by `_replace` or `_append` and read by `read_if_exists`. Stored contents (blobs)
are exact, private (0600), written once, and durable after `sync`.
"""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from echod.files import FileVersion, content_digest, file_version, full_fsync, read_regular, write_all
from echod.paths import PRIVATE_FILE_MODE, make_private_directory
from echod.store.errors import StoreError

_MAX_FILE_BYTES = 64 * 1024 * 1024
"""Retention keeps every file of the journal far below this."""


def write_durable(path: Path, data: bytes) -> None:
    """Write a private file in one step and durably: its content is the old one or the new one, never torn."""
    _replace(path, data, sync=True)
    fsync_directory(path.parent)


def write_fast(path: Path, data: bytes) -> None:
    """Write a private file in one step. A power cut may lose it: the operating system decides when it is on disk."""
    _replace(path, data, sync=False)


def append_durable(path: Path, line: str) -> None:
    """Add a line to a private file and make it durable. A torn last line is ended first."""
    _append(path, line, sync=True)


def append_fast(path: Path, line: str) -> None:
    """Add a line to a private file. A power cut may lose it. A torn last line is ended first."""
    _append(path, line, sync=False)


def fsync_directory(path: Path) -> None:
    """Make the names in a directory of the journal durable."""
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        full_fsync(fd)
    finally:
        os.close(fd)


def read_if_exists(path: Path) -> bytes | None:
    """Return the content of a file, or None if it does not exist."""
    try:
        return read_regular(path, _MAX_FILE_BYTES)
    except FileNotFoundError:
        return None


def read_lines(path: Path) -> Iterator[str]:
    """Yield the lines of a file that are not empty, none if there is no file. Bytes garbled by a disk cost one line."""
    text = (read_if_exists(path) or b"").decode(errors="replace")
    yield from (line for line in text.split("\n") if line)


def read_json_lines(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the objects in a file, one on each line. Lines torn by a power cut and other values are skipped."""
    for line in read_lines(path):
        try:
            value = json.loads(line)
        except (ValueError, RecursionError):
            continue  # its content is unknown, or was written a second time
        if isinstance(value, dict):
            yield value


def version_of(path: Path) -> FileVersion | None:
    """Return the version of a file, or None if it does not exist."""
    try:
        return file_version(path.stat())
    except FileNotFoundError:
        return None


def _replace(path: Path, data: bytes, *, sync: bool) -> None:
    temporary = path.with_name(f"{path.name}.part")
    with _open_private(temporary, os.O_WRONLY | os.O_TRUNC) as fd:
        write_all(fd, data)
        if sync:
            full_fsync(fd)
    temporary.replace(path)


def _append(path: Path, line: str, *, sync: bool) -> None:
    with _open_private(path, os.O_RDWR | os.O_APPEND) as fd:
        size = os.fstat(fd).st_size
        has_torn_line = size > 0 and os.pread(fd, 1, size - 1) != b"\n"
        write_all(fd, ("\n" * has_torn_line + line + "\n").encode())
        if sync:
            full_fsync(fd)


@contextmanager
def _open_private(path: Path, flags: int) -> Iterator[int]:
    flags |= os.O_CREAT | os.O_CLOEXEC
    try:
        fd = os.open(path, flags, PRIVATE_FILE_MODE)
    except FileNotFoundError:
        make_private_directory(path.parent)
        fd = os.open(path, flags, PRIVATE_FILE_MODE)
    try:
        yield fd
    finally:
        os.close(fd)


class BlobMissingError(StoreError):
    """A blob is missing or damaged. The caller must do without it."""

    def __init__(self, path: Path) -> None:
        super().__init__(f"The journal has lost {path}. The operation that needs it is no longer possible.")


class BlobStore(NamedTuple):
    """A directory of contents."""

    root: Path

    def put(self, data: bytes) -> str:
        """Store a content and return its name. It is durable after the next `sync`."""
        name = content_digest(data)
        path = self.root / name
        if not path.exists():
            _replace(path, data, sync=True)
        return name

    def get(self, name: str) -> bytes:
        """Return the content of that name. `BlobMissingError` if it is missing, or its bytes do not match its name."""
        data = read_if_exists(self.root / name)
        if data is None or content_digest(data) != name:
            raise BlobMissingError(self.root / name)
        return data

    def size(self, name: str) -> int:
        """Return the number of bytes of a content; 0 if it is missing."""
        try:
            return (self.root / name).stat().st_size
        except FileNotFoundError:
            return 0

    def sync(self) -> None:
        """Make every stored blob durable."""
        if self.root.exists():
            fsync_directory(self.root)

    def delete_unreferenced(self, referenced: Collection[str]) -> int:
        """Remove unreferenced contents (and files that a crash left half-written) and return the freed bytes."""
        if not self.root.exists():
            return 0
        freed = 0
        for path in self.root.iterdir():
            if path.name not in referenced:
                freed += path.stat().st_size
                path.unlink()
        return freed
