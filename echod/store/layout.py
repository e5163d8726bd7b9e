"""Where things lie in a project: its stores, their roles, and the files of a role. Looks, never writes.

Names are checked before they become paths. A store, role or file that is a symlink leading out of the project is
refused; below the project root nothing is followed.

The global store: the memory of a user that belongs to no project, in Claude Code's own directory.

    {home}/echoes/global/MEMORY.md                    entries that people elevated; the role ""
    {home}/echoes/global/doc-packs/{stack}/MEMORY.md  a role each, of a store of their own
    {home}/echoes/global/manifests/{stack}.json       what is known of a pack; no memory, written by `echod.packs`
    {home}/echoes/global/.lock, .global-echo-dirty    the lock and the signal of all programs that write there

Everything that holds for a project's store holds here, with other places for lock and signal.

What findings files are called where they are kept, set aside or given back, and what they were called before.

All paths are relative to the role. An agent's name is written without a secret in it.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from functools import cached_property
from itertools import islice
from pathlib import Path, PurePath, PurePosixPath
from typing import NamedTuple

from echod.memory.model import KNOWLEDGE_FILE, MEMORY_FILE

STORE_DIRS = (Path(".rune/echoes"), Path(".claude/echoes"))
ROLE_NAME = re.compile(r"[A-Za-z0-9_-]{1,128}")
AGENT_FINDINGS = re.compile(r"(?P<agent>[A-Za-z0-9_][A-Za-z0-9_.-]{0,199})-findings\.md")
_INVALID_NAME_CHARACTERS = re.compile(r"[^A-Za-z0-9_.-]+")
_MIN_SECRET_LENGTH = 16  # of those that are known by their form alone
MEMORY = MEMORY_FILE
KNOWLEDGE = KNOWLEDGE_FILE
FINDINGS_ARCHIVE = "archive/findings"
QUARANTINE = "quarantine"
QUARANTINE_REASONS = "REASONS.md"
DOC_PACKS = "doc-packs"
"""The store of the global doc packs; it lies one level deeper below its root than a project's store."""
MAX_SORTED_FINDINGS = 2_000
"""So many findings files are put in order. Whoever works through more of them cannot look at all of them each time."""


class Store(NamedTuple):
    """One echoes directory. `project` is the resolved project root, `root` the store below it."""

    project: Path
    root: Path

    @property
    def key(self) -> str:
        """The store's name in the queue and the journal: its absolute path."""
        return str(self.root)


@dataclass(frozen=True)
class Role:
    """A directory in a store; discovered, never taken from a fixed list.

    Its paths are made once: to join them again and again would be a tenth of a look at a hundred projects.
    """

    store: Store
    name: str

    @cached_property
    def path(self) -> Path:
        """The role's directory."""
        return self.store.root / self.name

    @cached_property
    def memory(self) -> Path:
        """What agents load: `MEMORY.md`."""
        return self.path / MEMORY

    @property
    def knowledge(self) -> Path:
        """Compressed learnings, loaded on demand: `knowledge.md`."""
        return self.path / KNOWLEDGE


def project_root(path: Path) -> Path:
    """The absolute, symlink-free form of a project's path."""
    return Path(os.path.realpath(path))


def find_stores(project: Path) -> tuple[Store, ...]:
    """The stores of a project, `.rune` before `.claude`. A symlinked store directory is none."""
    return find_stores_in_resolved_root(project_root(project))


def find_stores_in_resolved_root(root: Path) -> tuple[Store, ...]:
    """The same for a root that has no symlink on its way; to find that out again costs as much as the look."""
    return tuple(
        Store(root, root / below)
        for below in STORE_DIRS
        if _is_real_directory(root / below.parts[0]) and _is_real_directory(root / below)
    )


def store_at(root: Path) -> Store:
    """The store whose directory is `root` (the inverse of `Store.key`)."""
    return Store(root.parents[2 if root.name == DOC_PACKS else 1], root)


def find_roles(store: Store) -> tuple[Role, ...]:
    """The roles of a store in name order. Dot-directories, odd names and symlinks are none.

    Raises:
        OSError: the store cannot be listed; unreadable is not empty.
    """
    with os.scandir(store.root) as entries:
        names = sorted(e.name for e in entries if ROLE_NAME.fullmatch(e.name) and e.is_dir(follow_symlinks=False))
    return tuple(Role(store, name) for name in names)


class RoleListing(NamedTuple):
    """The roles of a store as far as it could be listed; `error` is why it could not."""

    roles: tuple[Role, ...]
    error: OSError | None = None


def list_roles(store: Store) -> RoleListing:
    """As `find_roles`, for whoever goes on where a store cannot be listed."""
    try:
        return RoleListing(find_roles(store))
    except OSError as error:
        return RoleListing((), error)


def iter_findings_files(role: Role) -> Iterator[str]:
    """The names of a role's findings files, as long as one asks; only plain files (no symlink, FIFO or device).

    In name order; of more than `MAX_SORTED_FINDINGS` the first come first, and the others in the directory's order.

    Raises:
        OSError: the role cannot be listed.
    """
    with os.scandir(role.path) as entries:
        found = (e.name for e in entries if AGENT_FINDINGS.fullmatch(e.name) and e.is_file(follow_symlinks=False))
        yield from sorted(islice(found, MAX_SORTED_FINDINGS))
        yield from found


def list_findings_files(role: Role, limit: int = MAX_SORTED_FINDINGS) -> tuple[Path, ...]:
    """The findings files of a role in name order; of more than `limit` only so many.

    Raises:
        OSError: the role cannot be listed.
    """
    return tuple(role.path / name for name in sorted(islice(iter_findings_files(role), limit)))


class RoleSummary(NamedTuple):
    """What a role's directory holds, by its names: findings files, and whether there may be the others."""

    findings_count: int
    has_knowledge: bool
    has_quarantine: bool


def summarize_role(role: Role, max_findings: int) -> RoleSummary:
    """One listing of a role's directory. It ends after `max_findings` findings files.

    Raises:
        OSError: the role cannot be listed.
    """
    findings, other_names = 0, set()
    with os.scandir(role.path) as entries:
        for entry in entries:
            if entry.name in (KNOWLEDGE, QUARANTINE):
                other_names.add(entry.name)
            elif AGENT_FINDINGS.fullmatch(entry.name) and entry.is_file(follow_symlinks=False):
                findings += 1
                if findings == max_findings:
                    return RoleSummary(findings, has_knowledge=True, has_quarantine=True)
    return RoleSummary(findings, has_knowledge=KNOWLEDGE in other_names, has_quarantine=QUARANTINE in other_names)


def agent_name(findings_file: PurePath) -> str:
    """The agent's name in a findings file's name, as it may be written elsewhere: without a secret in it."""
    match = AGENT_FINDINGS.fullmatch(findings_file.name)
    name = match["agent"] if match else findings_file.stem
    if len(name) < _MIN_SECRET_LENGTH:
        return name
    from echod.memory.redact import redact  # noqa: PLC0415  takes long to load, and such names are rare

    clean = redact(name).text
    return name if clean == name else _INVALID_NAME_CHARACTERS.sub("-", clean).strip("-")


def _is_real_directory(path: Path) -> bool:
    try:
        return stat.S_ISDIR(os.lstat(path).st_mode)
    except (FileNotFoundError, NotADirectoryError):
        return False


MANIFESTS = "manifests"
GLOBAL_LOCK = ".lock"
DIRTY_MARKER = ".global-echo-dirty"

_GLOBAL_PATH = ("echoes", "global")


def global_store(home: Path) -> Store:
    """The store of elevated entries. `home` is Claude Code's own directory, resolved; nothing needs to exist."""
    return Store(home, home.joinpath(*_GLOBAL_PATH))


def packs_store(home: Path) -> Store:
    """The store whose roles are the installed doc packs."""
    return Store(home, home.joinpath(*_GLOBAL_PATH, DOC_PACKS))


def global_role(home: Path) -> Role:
    """The global memory file's role: it has no directory of its own."""
    return Role(global_store(home), "")


def global_root(store: Store) -> tuple[str, ...] | None:
    """Where the global store is below `store.project`, if `store` is a part of it; None for a project's store."""
    parts = store.root.relative_to(store.project).parts
    return _GLOBAL_PATH if parts[: len(_GLOBAL_PATH)] == _GLOBAL_PATH else None


_QUARANTINED_NAME = re.compile(r"\d{4}-\d\d-\d\d-(?P<findings>.+-findings)(?:-\d+)?\.md")
_MAX_AGENT_LENGTH = 100


def findings_archive_path(file_name: str, day: date) -> PurePosixPath:
    """Where a file is kept that was consumed on a local day."""
    return PurePosixPath(FINDINGS_ARCHIVE) / f"{day.isoformat()}-{agent_name(PurePosixPath(file_name))}.md"


def quarantine_path(file_name: str, day: date) -> PurePosixPath:
    """Where a file waits for a person that could not be understood on a local day."""
    return PurePosixPath(QUARANTINE) / f"{day.isoformat()}-{file_name}"


def original_findings_name(name: str) -> str:
    """What a file in quarantine was called before; its own name where nothing tells that."""
    match = _QUARANTINED_NAME.fullmatch(name)
    return f"{match['findings']}.md" if match else name


def restored_findings_name(file_name: str, number: int) -> str:
    """What a file is called that is given back while another one has its name."""
    return _derived_findings_name(file_name, "restored", number)


def late_findings_name(file_name: str, number: int) -> str:
    """What a file is called with what an agent wrote into one that was just consumed."""
    return _derived_findings_name(file_name, "late", number)


def _derived_findings_name(file_name: str, label: str, number: int) -> str:
    return f"{agent_name(PurePosixPath(file_name))[:_MAX_AGENT_LENGTH]}-{label}-{number}-findings.md"
