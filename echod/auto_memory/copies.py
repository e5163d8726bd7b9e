"""Keep copies of auto memory in the state directory, if the user wants them, so that a purge or reset can be undone.

    {state}/auto-memory/copies/{key}/source          the path of the directory
    {state}/auto-memory/copies/{key}/00000001.json   one copy: its files with digest, time and mode
    {state}/auto-memory/copies/{key}/blobs/{digest}  their contents

A copy is made when a file differs from the newest copy. A directory that is gone or empty is never copied: its copies
are then all that is left. Files of echod, and nothing of the host's, are written here.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterable, Mapping
from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, NamedTuple

from echod.auto_memory.changes import MAX_FILE_BYTES
from echod.auto_memory.places import MemoryPlace, find_places, iter_files
from echod.errors import GARBLED_ERRORS, EchodError, isolated, os_reason
from echod.files import read_regular, write_private_durable
from echod.log import get_logger
from echod.memory.auto_memory.checks import MemoryFinding

log = get_logger(__name__)

_SOURCE: Final = "source"
_KEPT: Final = 20
_MAX_KEPT: Final = 200
_MIN_LOST: Final = 3
_LOSS_SECONDS: Final = 30 * 86_400.0


class CopyError(EchodError):
    """A copy cannot be read."""


class CopiedFile(NamedTuple):
    """A file in a copy. `mtime_ns` and `size` are those of the original."""

    digest: str
    mtime_ns: int
    size: int


class MemoryCopy(NamedTuple):
    """The files of a directory at a moment (Unix seconds), by their names relative to it."""

    number: int
    at: float
    files: Mapping[str, CopiedFile]


class MemoryCopies:
    """The copies of one directory. `root` is the directory of all copies."""

    def __init__(self, root: Path, directory: Path) -> None:
        self.directory = directory
        self._root = root / sha256(os.fsencode(directory)).hexdigest()[:16]

    def copies(self) -> tuple[MemoryCopy, ...]:
        """Return all copies, the oldest first.

        Raises:
            CopyError: one of them cannot be read.
        """
        return tuple(map(_read_copy, self._paths()))

    def refresh(self, now: float) -> bool:
        """Make a copy if a file is not as in the newest one. Return whether one was made.

        Raises:
            OSError: the directory cannot be listed, a file cannot be read, or the disk is full.
        """
        found = {
            name: status
            for name, status in iter_files(self.directory)
            if stat.S_ISREG(status.st_mode) and status.st_size <= MAX_FILE_BYTES
        }
        paths = self._paths()
        newest = _read_copy(paths[-1]) if paths else None
        known = {} if newest is None else newest.files
        if not found or {n: (s.st_mtime_ns, s.st_size) for n, s in found.items()} == {
            name: (file.mtime_ns, file.size) for name, file in known.items()
        }:
            return False
        files = {name: self._copy_file(name, status, known.get(name)) for name, status in found.items()}
        if newest is None:
            write_private_durable(self._root / _SOURCE, os.fsencode(self.directory))
        number = 1 if newest is None else newest.number + 1
        values = {"number": number, "at": now, "files": {name: list(file) for name, file in files.items()}}
        write_private_durable(self._root / f"{number:08}.json", json.dumps(values, ensure_ascii=False).encode())
        self._apply_retention()
        return True

    def read(self, file: CopiedFile) -> bytes:
        """Return the content of a copied file.

        Raises:
            CopyError: it is missing or damaged.
        """
        path = self._root / "blobs" / file.digest
        try:
            data = read_regular(path, MAX_FILE_BYTES)
        except OSError as error:
            raise CopyError(f"{path} cannot be read: {os_reason(error)}.") from error
        if sha256(data).hexdigest() != file.digest:
            raise CopyError(f"{path} is damaged.")
        return data

    def newest_with_losses(self) -> MemoryCopy | None:
        """Return the newest copy with a file that the directory does not have now; None without one.

        Raises:
            CopyError: a copy cannot be read.
            OSError: the directory exists and cannot be listed.
        """
        present = self.present_names()
        return next((copy for copy in reversed(self.copies()) if copy.files.keys() - present), None)

    def present_names(self) -> frozenset[str]:
        """Return the names of the files that the directory has now; none if it does not exist."""
        try:
            return frozenset(name for name, _ in iter_files(self.directory))
        except FileNotFoundError:
            return frozenset()

    def loss(self, now: float) -> MemoryFinding | None:
        """Return a finding if at least half of the files of a copy of the last days are gone."""
        present = self.present_names()
        for copy in reversed(self.copies()):
            lost = copy.files.keys() - present
            if now - copy.at < _LOSS_SECONDS and len(lost) >= _MIN_LOST and 2 * len(lost) >= len(copy.files):
                text = f"{len(lost)} of {len(copy.files)} files that copy {copy.number} has are gone."
                return MemoryFinding("auto-lost", "", None, text, f"echod restore --auto-memory {self.directory}")
        return None

    def _copy_file(self, name: str, status: os.stat_result, known: CopiedFile | None) -> CopiedFile:
        if known is not None and (known.mtime_ns, known.size) == (status.st_mtime_ns, status.st_size):
            return known
        data = read_regular(self.directory / name, MAX_FILE_BYTES, follow_symlinks=False)
        digest = sha256(data).hexdigest()
        if not (path := self._root / "blobs" / digest).exists():
            write_private_durable(path, data)
        return CopiedFile(digest, status.st_mtime_ns, len(data))

    def _apply_retention(self) -> None:
        """Delete old copies, but never the last one that has a file, and never the newest ones."""
        copies = self.copies()
        kept = {copy.number for copy in copies[-_KEPT:]}
        for copy, following in pairwise(copies):
            if copy.files.keys() - following.files.keys():
                kept.add(copy.number)
        kept = set(sorted(kept)[-_MAX_KEPT:])
        needed = {file.digest for copy in copies if copy.number in kept for file in copy.files.values()}
        for path, copy in zip(self._paths(), copies, strict=True):
            if copy.number not in kept:
                path.unlink(missing_ok=True)
        for blob in (self._root / "blobs").iterdir():
            if blob.name not in needed and not blob.name.startswith("."):
                blob.unlink(missing_ok=True)

    def _paths(self) -> list[Path]:
        return sorted(self._root.glob("[0-9]*.json"))


def _read_copy(path: Path) -> MemoryCopy:
    try:
        raw: dict[str, Any] = json.loads(read_regular(path, MAX_FILE_BYTES * 8))
        files = {str(name): CopiedFile(str(d), int(m), int(s)) for name, (d, m, s) in raw["files"].items()}
        if any(name.startswith("/") or ".." in name.split("/") for name in files):
            raise CopyError(f"{path} is damaged.")
        return MemoryCopy(int(raw["number"]), float(raw["at"]), files)
    except OSError as error:
        raise CopyError(f"{path} cannot be read: {os_reason(error)}.") from error
    except GARBLED_ERRORS as error:
        raise CopyError(f"{path} is damaged. Move it away.") from error


def copied_directories(root: Path) -> tuple[Path, ...]:
    """Return the directories that have copies, also those that no longer exist."""
    sources = []
    for path in sorted(root.glob(f"*/{_SOURCE}")):
        try:
            sources.append(Path(os.fsdecode(read_regular(path, MAX_FILE_BYTES))))
        except OSError as error:
            log.warning("auto_memory_copy_unreadable", path=str(path), reason=os_reason(error))
    return tuple(sources)


def refresh_copies(root: Path, home: Path, projects: Iterable[Path], now: float) -> int:
    """Make the copies that are due, and return their number. A directory that fails is logged and left alone."""
    made = 0
    places: tuple[MemoryPlace, ...] = ()
    with isolated("The directories of auto memory"):
        places = find_places(home, projects, only=None).places
    for place in places:
        with isolated(str(place.path)):
            made += MemoryCopies(root, place.path).refresh(now)
    if made:
        log.info("auto_memory_copied", directories=made)
    return made
