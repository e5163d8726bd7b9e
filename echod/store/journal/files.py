"""Small private files of the journal: replaced or added to, durably or lazily, never readable by others."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from echod.paths import PRIVATE_DIR_MODE, PRIVATE_FILE_MODE
from echod.store.fs import full_fsync, write_all


def write_durable(path: Path, data: bytes) -> None:
    """Write a private file of the journal in one step and durably: old or new, never torn."""
    temporary = path.with_name(f"{path.name}.part")
    fd = _open_private(temporary, os.O_WRONLY | os.O_TRUNC)
    try:
        write_all(fd, data)
        full_fsync(fd)
    finally:
        os.close(fd)
    temporary.replace(path)
    fsync_directory(path.parent)


def write_fast(path: Path, data: bytes) -> None:
    """The same for what may be forgotten by a power cut: the operating system decides when it reaches the disk."""
    temporary = path.with_name(f"{path.name}.part")
    fd = _open_private(temporary, os.O_WRONLY | os.O_TRUNC)
    try:
        write_all(fd, data)
    finally:
        os.close(fd)
    temporary.replace(path)


def _open_private(path: Path, flags: int) -> int:
    flags |= os.O_CREAT | os.O_CLOEXEC
    try:
        return os.open(path, flags, PRIVATE_FILE_MODE)
    except FileNotFoundError:
        path.parent.mkdir(mode=PRIVATE_DIR_MODE, parents=True, exist_ok=True)
        return os.open(path, flags, PRIVATE_FILE_MODE)


def append_durable(path: Path, line: str) -> None:
    """Add a line to a private file of the journal and make it durable; a torn last line is ended first."""
    append_fast(path, line)
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        full_fsync(fd)
    finally:
        os.close(fd)


def append_fast(path: Path, line: str) -> None:
    """The same for what may be forgotten by a power cut."""
    fd = _open_private(path, os.O_RDWR | os.O_APPEND)
    try:
        size = os.fstat(fd).st_size
        has_torn_line = size > 0 and os.pread(fd, 1, size - 1) != b"\n"
        write_all(fd, ("\n" * has_torn_line + line + "\n").encode())
    finally:
        os.close(fd)


def fsync_directory(path: Path) -> None:
    """Make the names in a directory of the journal durable."""
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        full_fsync(fd)
    finally:
        os.close(fd)


def read_lines(path: Path) -> Iterator[str]:
    """The lines of a file that are not empty; none where there is no file. What a disk garbled costs its line only."""
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return
    yield from (line for line in text.split("\n") if line)


def read_json_lines(path: Path) -> Iterator[dict[str, Any]]:
    """The objects in a file, one a line; what a power cut tore, or is no object, is passed over."""
    for line in read_lines(path):
        try:
            value = json.loads(line)
        except ValueError:
            continue  # what the line told is unknown to us, or was written once more
        if isinstance(value, dict):
            yield value
