"""Looks for secrets that already stand on the disk: which files of a store, and where in them. Writes nothing.

What was found in a file is remembered as long as the file is the same, so that looking again costs a stat a file.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from echod.files import FileVersion, file_version
from echod.log import get_logger
from echod.memory.exposed_secrets import SecretLocation, locate_secrets
from echod.memory.model import MAX_FILE_BYTES
from echod.store import layout
from echod.store.layout import Role, Store

log = get_logger(__name__)

_STAT_COST_BYTES = 128
"""A look at a file's state takes as long as so many bytes of text."""

_SCANNED_DIRECTORIES = ("", "archive", layout.FINDINGS_ARCHIVE, layout.QUARANTINE)


class ScanCandidate(NamedTuple):
    """A file in which secrets may stand; `problem` says why it cannot be looked at."""

    role: Role
    path: Path
    version: FileVersion | None = None
    size: int = 0
    problem: str | None = None


def list_scan_candidates(role: Role) -> Iterator[ScanCandidate]:
    """The memory, knowledge and findings of a role, its archives and backups, and what was quarantined."""
    for folder in _SCANNED_DIRECTORIES:
        directory = role.path / folder
        if folder and not _is_directory(role.path, folder):
            continue
        try:
            with os.scandir(directory) as entries:
                names = sorted(e.name for e in entries if _may_hold_text(e))
        except OSError as error:
            yield ScanCandidate(role, directory, problem=f"It cannot be listed: {error.strerror}.")
            continue
        for name in names:
            yield _build_candidate(role, directory / name)


def read_candidate(candidate: ScanCandidate) -> bytes:
    """The bytes of a file, opened so that neither a link nor a FIFO in its place does harm.

    Raises:
        OSError: it cannot be read.
    """
    descriptor = os.open(candidate.path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as file:
        return file.read(MAX_FILE_BYTES)


_FileResult = tuple[FileVersion | None, int]


@dataclass(frozen=True, slots=True)
class _Pass:
    """One way through a store: what is left of it, and what was seen."""

    remaining: Iterator[ScanCandidate]
    results: dict[Path, _FileResult] = field(default_factory=dict)


class SecretScanner:
    """Remembers what was found in which file; one for a process, owned by one thread.

    Findings that wait are left out: they lose their secrets when they are folded in.
    """

    def __init__(self) -> None:
        self._results: dict[str, dict[Path, _FileResult]] = {}
        self._passes: dict[str, _Pass] = {}

    def scan(self, store: Store, budget_bytes: int) -> bool:
        """Go on with the round through a store, or begin one, as long as the budget lasts; whether it is at its end.

        What is as it was costs little of the budget, what is new or changed its size; one file at least is looked at.
        """
        known = self._results.get(store.key, {})
        current = self._passes.setdefault(store.key, _Pass(_store_candidates(store)))
        for candidate in current.remaining:
            result = known.get(candidate.path)
            if result is not None and result[0] == candidate.version:
                budget_bytes -= _STAT_COST_BYTES
            else:
                budget_bytes -= candidate.size
                result = (candidate.version, _count_secrets(candidate))
            current.results[candidate.path] = result
            if budget_bytes <= 0:
                return False
        self._results[store.key] = self._passes.pop(store.key).results
        return True

    def count(self, store: Store) -> int:
        """In how many places of a store secrets stand, as far as was looked."""
        current = self._passes.get(store.key)
        result = self._results.get(store.key, {}) | (current.results if current else {})
        return sum(places for _, places in result.values())


def _store_candidates(store: Store) -> Iterator[ScanCandidate]:
    try:
        roles = layout.find_roles(store)
    except OSError as error:
        log.info("scan_failed", store=store.key, error=error.strerror)
        return
    for role in roles:
        yield from (c for c in list_scan_candidates(role) if c.problem is None and not _is_waiting_findings(c))


def locate_secrets_in_file(candidate: ScanCandidate) -> tuple[SecretLocation, ...]:
    """The secrets of one file.

    Raises:
        OSError: it cannot be read.
    """
    return locate_secrets(read_candidate(candidate))


def _is_waiting_findings(candidate: ScanCandidate) -> bool:
    in_role = candidate.path.parent == candidate.role.path
    return in_role and layout.AGENT_FINDINGS.fullmatch(candidate.path.name) is not None


def _count_secrets(candidate: ScanCandidate) -> int:
    try:
        return len(locate_secrets_in_file(candidate))
    except OSError as error:
        log.info("scan_failed", store=str(candidate.path), error=error.strerror)
        return 0


def _build_candidate(role: Role, path: Path) -> ScanCandidate:
    try:
        status = path.lstat()
    except OSError as error:
        return ScanCandidate(role, path, problem=f"It cannot be read: {error.strerror}.")
    if status.st_size > MAX_FILE_BYTES:
        return ScanCandidate(role, path, problem=f"It has {status.st_size:,} bytes, more than echod reads.")
    return ScanCandidate(role, path, file_version(status), status.st_size)


def _may_hold_text(entry: os.DirEntry[str]) -> bool:
    return entry.name.endswith(".md") and not entry.name.startswith(".") and entry.is_file(follow_symlinks=False)


def _is_directory(role: Path, folder: str) -> bool:
    """Whether every part of the way is a real directory; a link is not followed."""
    here = role
    for part in Path(folder).parts:
        here /= part
        try:
            if not stat.S_ISDIR(here.lstat().st_mode):
                return False
        except OSError:
            return False
    return True
