"""Small private files of the journal: replaced or added to, durably or lazily, never readable by others."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from echod.paths import PRIVATE_DIR, PRIVATE_FILE
from echod.store.fs import sync, write_all


def replace_file(path: Path, data: bytes) -> None:
    """Write a private file of the journal in one step and durably: old or new, never torn."""
    part = path.with_name(f"{path.name}.part")
    fd = _open_private(part, os.O_WRONLY | os.O_TRUNC)
    try:
        write_all(fd, data)
        sync(fd)
    finally:
        os.close(fd)
    part.replace(path)
    sync_dir(path.parent)


def replace_lazily(path: Path, data: bytes) -> None:
    """The same for what may be forgotten by a power cut: the operating system decides when it reaches the disk."""
    part = path.with_name(f"{path.name}.part")
    fd = _open_private(part, os.O_WRONLY | os.O_TRUNC)
    try:
        write_all(fd, data)
    finally:
        os.close(fd)
    part.replace(path)


def _open_private(path: Path, flags: int) -> int:
    flags |= os.O_CREAT | os.O_CLOEXEC
    try:
        return os.open(path, flags, PRIVATE_FILE)
    except FileNotFoundError:
        path.parent.mkdir(mode=PRIVATE_DIR, parents=True, exist_ok=True)
        return os.open(path, flags, PRIVATE_FILE)


def append_line(path: Path, line: str) -> None:
    """Add a line to a private file of the journal and make it durable; a torn last line is ended first."""
    append_lazily(path, line)
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        sync(fd)
    finally:
        os.close(fd)


def append_lazily(path: Path, line: str) -> None:
    """The same for what may be forgotten by a power cut."""
    fd = _open_private(path, os.O_RDWR | os.O_APPEND)
    try:
        size = os.fstat(fd).st_size
        torn = size > 0 and os.pread(fd, 1, size - 1) != b"\n"
        write_all(fd, ("\n" * torn + line + "\n").encode())
    finally:
        os.close(fd)


def sync_dir(path: Path) -> None:
    """Make the names in a directory of the journal durable."""
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        sync(fd)
    finally:
        os.close(fd)


def lines_of(path: Path) -> Iterator[str]:
    """The lines of a file that are not empty; none where there is no file. What a disk garbled costs its line only."""
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return
    yield from (line for line in text.split("\n") if line)


def json_lines(path: Path) -> Iterator[dict[str, Any]]:
    """The objects in a file, one a line; what a power cut tore, or is no object, is passed over."""
    for line in lines_of(path):
        try:
            found = json.loads(line)
        except ValueError:
            continue  # what the line told is unknown to us, or was written once more
        if isinstance(found, dict):
            yield found
