"""Find secrets in the files of a store. Read-only.

The number of secrets of a file is kept in its stored inspection, so scanning an unchanged file again costs one `lstat`.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from echod.errors import error_reason
from echod.files import FileVersion, file_version, open_regular
from echod.inspection.cache import InspectionCache
from echod.log import get_logger
from echod.memory import MAX_FILE_BYTES
from echod.memory.redact import SecretLocation, locate_secrets
from echod.store import layout
from echod.store.layout import Role, Store

_STAT_COST_BYTES = 128
"""An `lstat` takes as long as scanning this many bytes."""

_SCANNED_DIRECTORIES = ("", "archive", layout.FINDINGS_ARCHIVE, layout.QUARANTINE)

log = get_logger(__name__)


class ScanCandidate(NamedTuple):
    """A file that may contain secrets. `problem` is why it cannot be read, or None."""

    role: Role
    path: Path
    version: FileVersion | None = None
    size: int = 0
    problem: str | None = None


def list_scan_candidates(role: Role) -> Iterator[ScanCandidate]:
    """Yield the memory, knowledge and findings files of a role, its archives and backups, and its quarantine."""
    for folder in _SCANNED_DIRECTORIES:
        directory = role.path / folder
        if folder and not _is_directory(role.path, folder):
            continue
        try:
            with os.scandir(directory) as entries:
                names = sorted(e.name for e in entries if _is_text_file(e))
        except OSError as error:
            yield ScanCandidate(role, directory, problem=f"It cannot be listed: {error.strerror}.")
            continue
        for name in names:
            yield _build_candidate(role, directory / name)


def _is_directory(role: Path, folder: str) -> bool:
    """Return whether every part of the path is a real directory. Symlinks are not followed."""
    directory = role
    for part in Path(folder).parts:
        directory /= part
        try:
            if not stat.S_ISDIR(directory.lstat().st_mode):
                return False
        except OSError:
            return False
    return True


def _is_text_file(entry: os.DirEntry[str]) -> bool:
    return entry.name.endswith(".md") and not entry.name.startswith(".") and entry.is_file(follow_symlinks=False)


def _build_candidate(role: Role, path: Path) -> ScanCandidate:
    try:
        status = path.lstat()
    except OSError as error:
        return ScanCandidate(role, path, problem=f"It cannot be read: {error.strerror}.")
    if status.st_size > MAX_FILE_BYTES:
        return ScanCandidate(role, path, problem=f"It has {status.st_size:,} bytes, more than echod reads.")
    return ScanCandidate(role, path, file_version(status), status.st_size)


def locate_secrets_in_file(candidate: ScanCandidate) -> tuple[SecretLocation, ...]:
    """Return the secrets of one file.

    Raises:
        OSError: it cannot be read.
    """
    return locate_secrets(read_candidate(candidate))


def read_candidate(candidate: ScanCandidate) -> bytes:
    """Return the bytes of a file. A symlink or FIFO in its place is not followed and does not block.

    Raises:
        OSError: it cannot be read.
    """
    with open_regular(candidate.path, follow_symlinks=False) as file:
        return file.read(MAX_FILE_BYTES)


@dataclass(frozen=True, slots=True)
class _Pass:
    """An unfinished pass through a store: the files that are left, and the number of secrets in the others."""

    remaining: Iterator[ScanCandidate]
    counts: dict[Path, int] = field(default_factory=dict)


class SecretScanner:
    """Counts the secrets in stores, a part at a time. One per process, used by one thread.

    Findings files that wait are left out. They lose their secrets when they are consolidated.
    """

    def __init__(self, inspections: InspectionCache) -> None:
        self._inspections = inspections
        self._counts: dict[str, dict[Path, int]] = {}
        self._passes: dict[str, _Pass] = {}

    def scan(self, store: Store, budget_bytes: int) -> bool:
        """Begin or continue a pass through a store until the budget is spent. Return whether the pass is complete.

        An unchanged file costs little of the budget, a new or changed one its size. At least one file is scanned.
        """
        current = self._passes.setdefault(store.key, _Pass(_store_candidates(store)))
        for candidate in current.remaining:
            count = self._inspections.secret_count(candidate.path, candidate.version)
            if count is not None:
                budget_bytes -= _STAT_COST_BYTES
            else:
                budget_bytes -= candidate.size
                count = self._count_secrets(candidate)
            current.counts[candidate.path] = count
            if budget_bytes <= 0:
                return False
        del self._passes[store.key]
        for deleted in self._counts.get(store.key, {}).keys() - current.counts.keys():
            self._inspections.forget(deleted)
        self._counts[store.key] = current.counts
        return True

    def count(self, store: Store) -> int:
        """Return the number of secrets in a store, as far as it was scanned."""
        current = self._passes.get(store.key)
        return sum((self._counts.get(store.key, {}) | (current.counts if current else {})).values())

    def _count_secrets(self, candidate: ScanCandidate) -> int:
        try:
            count = len(locate_secrets_in_file(candidate))
        except (OSError, MemoryError, RecursionError) as error:  # perhaps for a moment only, so this is not kept
            log.info("scan_failed", store=str(candidate.path), error=error_reason(error))
            return 0
        self._inspections.set_secret_count(candidate.path, candidate.version, count)
        return count


def _store_candidates(store: Store) -> Iterator[ScanCandidate]:
    try:
        roles = layout.find_roles(store)
    except OSError as error:
        log.info("scan_failed", store=store.key, error=error.strerror)
        return
    for role in roles:
        yield from (c for c in list_scan_candidates(role) if c.problem is None and not _is_waiting_findings(c))


def _is_waiting_findings(candidate: ScanCandidate) -> bool:
    in_role = candidate.path.parent == candidate.role.path
    return in_role and layout.is_findings_name(candidate.path.name)
