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

from echod.files import Stamp, stamp_of
from echod.log import get_logger
from echod.memory.exposed_secrets import Place, find_places
from echod.memory.model import SIZE_LIMIT
from echod.store import layout
from echod.store.layout import Role, Store

log = get_logger(__name__)

_GLANCE_BYTES = 128
"""A look at a file's state takes as long as so many bytes of text."""

_FOLDERS = ("", "archive", layout.FINDINGS_ARCHIVE, layout.QUARANTINE)


class Candidate(NamedTuple):
    """A file in which secrets may stand; `problem` says why it cannot be looked at."""

    role: Role
    path: Path
    same: Stamp | None = None
    size: int = 0
    problem: str | None = None


def candidates(role: Role) -> Iterator[Candidate]:
    """The memory, knowledge and findings of a role, its archives and backups, and what was quarantined."""
    for folder in _FOLDERS:
        directory = role.path / folder
        if folder and not _is_directory(role.path, folder):
            continue
        try:
            with os.scandir(directory) as entries:
                names = sorted(e.name for e in entries if _may_hold_text(e))
        except OSError as error:
            yield Candidate(role, directory, problem=f"It cannot be listed: {error.strerror}.")
            continue
        for name in names:
            yield _candidate(role, directory / name)


def read(candidate: Candidate) -> bytes:
    """The bytes of a file, opened so that neither a link nor a FIFO in its place does harm.

    Raises:
        OSError: it cannot be read.
    """
    descriptor = os.open(candidate.path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as file:
        return file.read(SIZE_LIMIT)


_Seen = tuple[Stamp | None, int]


@dataclass(frozen=True, slots=True)
class _Round:
    """One way through a store: what is left of it, and what was seen."""

    left: Iterator[Candidate]
    seen: dict[Path, _Seen] = field(default_factory=dict)


class Scan:
    """Remembers what was found in which file; one for a process, owned by one thread.

    Findings that wait are left out: they lose their secrets when they are folded in.
    """

    def __init__(self) -> None:
        self._known: dict[str, dict[Path, _Seen]] = {}
        self._rounds: dict[str, _Round] = {}

    def look(self, store: Store, budget_bytes: int) -> bool:
        """Go on with the round through a store, or begin one, as long as the budget lasts; whether it is at its end.

        What is as it was costs little of the budget, what is new or changed its size; one file at least is looked at.
        """
        known = self._known.get(store.key, {})
        going = self._rounds.setdefault(store.key, _Round(_candidates_in(store)))
        for candidate in going.left:
            seen = known.get(candidate.path)
            if seen is not None and seen[0] == candidate.same:
                budget_bytes -= _GLANCE_BYTES
            else:
                budget_bytes -= candidate.size
                seen = (candidate.same, _count(candidate))
            going.seen[candidate.path] = seen
            if budget_bytes <= 0:
                return False
        self._known[store.key] = self._rounds.pop(store.key).seen
        return True

    def found(self, store: Store) -> int:
        """In how many places of a store secrets stand, as far as was looked."""
        going = self._rounds.get(store.key)
        seen = self._known.get(store.key, {}) | (going.seen if going else {})
        return sum(places for _, places in seen.values())


def _candidates_in(store: Store) -> Iterator[Candidate]:
    try:
        roles = layout.roles_of(store)
    except OSError as error:
        log.info("scan_not_possible", store=store.key, error=error.strerror)
        return
    for role in roles:
        yield from (c for c in candidates(role) if c.problem is None and not _waiting(c))


def places_in(candidate: Candidate) -> tuple[Place, ...]:
    """The secrets of one file.

    Raises:
        OSError: it cannot be read.
    """
    return find_places(read(candidate))


def _waiting(candidate: Candidate) -> bool:
    in_role = candidate.path.parent == candidate.role.path
    return in_role and layout.AGENT_FINDINGS.fullmatch(candidate.path.name) is not None


def _count(candidate: Candidate) -> int:
    try:
        return len(places_in(candidate))
    except OSError as error:
        log.info("scan_not_possible", store=str(candidate.path), error=error.strerror)
        return 0


def _candidate(role: Role, path: Path) -> Candidate:
    try:
        status = path.lstat()
    except OSError as error:
        return Candidate(role, path, problem=f"It cannot be read: {error.strerror}.")
    if status.st_size > SIZE_LIMIT:
        return Candidate(role, path, problem=f"It has {status.st_size:,} bytes, more than echod reads.")
    return Candidate(role, path, stamp_of(status), status.st_size)


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
