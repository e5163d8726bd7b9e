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

STORE_DIRS = (Path(".rune/echoes"), Path(".claude/echoes"))
ROLE_NAME = re.compile(r"[A-Za-z0-9_-]{1,128}")
AGENT_FINDINGS = re.compile(r"(?P<agent>[A-Za-z0-9_][A-Za-z0-9_.-]{0,199})-findings\.md")
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_.-]+")
_SHORTEST_SECRET = 16  # of those that are known by their form alone
MEMORY = "MEMORY.md"
KNOWLEDGE = "knowledge.md"
FINDINGS_ARCHIVE = "archive/findings"
QUARANTINE = "quarantine"
REASONS = "REASONS.md"
PACKS = "doc-packs"
"""The store of the global doc packs; it lies one level deeper below its root than a project's store."""
MANY = 2_000
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


def stores_of(project: Path) -> tuple[Store, ...]:
    """The stores of a project, `.rune` before `.claude`. A symlinked store directory is none."""
    return stores_below(project_root(project))


def stores_below(root: Path) -> tuple[Store, ...]:
    """The same for a root that has no symlink on its way; to find that out again costs as much as the look."""
    return tuple(
        Store(root, root / below)
        for below in STORE_DIRS
        if _is_plain_dir(root / below.parts[0]) and _is_plain_dir(root / below)
    )


def store_at(root: Path) -> Store:
    """The store whose directory is `root` (the inverse of `Store.key`)."""
    return Store(root.parents[2 if root.name == PACKS else 1], root)


def roles_of(store: Store) -> tuple[Role, ...]:
    """The roles of a store in name order. Dot-directories, odd names and symlinks are none.

    Raises:
        OSError: the store cannot be listed; unreadable is not empty.
    """
    with os.scandir(store.root) as entries:
        names = sorted(e.name for e in entries if ROLE_NAME.fullmatch(e.name) and e.is_dir(follow_symlinks=False))
    return tuple(Role(store, name) for name in names)


class Roles(NamedTuple):
    """The roles of a store as far as it could be listed; `problem` is why it could not."""

    found: tuple[Role, ...]
    problem: OSError | None = None


def list_roles(store: Store) -> Roles:
    """As `roles_of`, for whoever goes on where a store cannot be listed."""
    try:
        return Roles(roles_of(store))
    except OSError as error:
        return Roles((), error)


def each_findings_file(role: Role) -> Iterator[str]:
    """The names of a role's findings files, as long as one asks; only plain files (no symlink, FIFO or device).

    In name order; of more than `MANY` the first that the directory has come first, and the others in its own order.

    Raises:
        OSError: the role cannot be listed.
    """
    with os.scandir(role.path) as entries:
        found = (e.name for e in entries if AGENT_FINDINGS.fullmatch(e.name) and e.is_file(follow_symlinks=False))
        yield from sorted(islice(found, MANY))
        yield from found


def findings_of(role: Role, most: int = MANY) -> tuple[Path, ...]:
    """The findings files of a role in name order; of more than `most` only so many.

    Raises:
        OSError: the role cannot be listed.
    """
    return tuple(role.path / name for name in sorted(islice(each_findings_file(role), most)))


class Contents(NamedTuple):
    """What a role's directory holds, by its names: findings files, and whether there may be the others."""

    findings: int
    knowledge: bool
    quarantine: bool


def contents_of(role: Role, most: int) -> Contents:
    """One listing of a role's directory. `most`: so many findings files are counted, and the listing ends there.

    Raises:
        OSError: the role cannot be listed.
    """
    findings, others = 0, set()
    with os.scandir(role.path) as entries:
        for entry in entries:
            if entry.name in (KNOWLEDGE, QUARANTINE):
                others.add(entry.name)
            elif AGENT_FINDINGS.fullmatch(entry.name) and entry.is_file(follow_symlinks=False):
                findings += 1
                if findings == most:
                    return Contents(findings, knowledge=True, quarantine=True)
    return Contents(findings, knowledge=KNOWLEDGE in others, quarantine=QUARANTINE in others)


def agent_of(findings: PurePath) -> str:
    """The agent's name in a findings file's name, as it may be written elsewhere: without a secret in it."""
    match = AGENT_FINDINGS.fullmatch(findings.name)
    name = match["agent"] if match else findings.stem
    if len(name) < _SHORTEST_SECRET:
        return name
    from echod.memory.redact import redact  # noqa: PLC0415  takes long to load, and such names are rare

    clean = redact(name).text
    return name if clean == name else _NOT_IN_NAMES.sub("-", clean).strip("-")


def _is_plain_dir(path: Path) -> bool:
    try:
        return stat.S_ISDIR(os.lstat(path).st_mode)
    except (FileNotFoundError, NotADirectoryError):
        return False


MANIFESTS = "manifests"
LOCK = ".lock"
DIRTY = ".global-echo-dirty"

_BELOW = ("echoes", "global")


def global_store(home: Path) -> Store:
    """The store of elevated entries. `home` is Claude Code's own directory, resolved; nothing needs to exist."""
    return Store(home, home.joinpath(*_BELOW))


def packs_store(home: Path) -> Store:
    """The store whose roles are the installed doc packs."""
    return Store(home, home.joinpath(*_BELOW, PACKS))


def global_role(home: Path) -> Role:
    """The global memory file's role: it has no directory of its own."""
    return Role(global_store(home), "")


def commons_of(store: Store) -> tuple[str, ...] | None:
    """Where the global store is below `store.project`, if `store` is a part of it; None for a project's store."""
    parts = store.root.relative_to(store.project).parts
    return _BELOW if parts[: len(_BELOW)] == _BELOW else None


_SET_ASIDE = re.compile(r"\d{4}-\d\d-\d\d-(?P<findings>.+-findings)(?:-\d+)?\.md")
_LONGEST_AGENT = 100


def kept_at(findings: str, day: date) -> PurePosixPath:
    """Where a file is kept that was consumed on a local day."""
    return PurePosixPath(FINDINGS_ARCHIVE) / f"{day.isoformat()}-{agent_of(PurePosixPath(findings))}.md"


def set_aside_at(findings: str, day: date) -> PurePosixPath:
    """Where a file waits for a person that could not be understood on a local day."""
    return PurePosixPath(QUARANTINE) / f"{day.isoformat()}-{findings}"


def before_set_aside(name: str) -> str:
    """What a file in quarantine was called before; its own name where nothing tells that."""
    match = _SET_ASIDE.fullmatch(name)
    return f"{match['findings']}.md" if match else name


def restored_name(findings: str, number: int) -> str:
    """What a file is called that is given back while another one has its name."""
    return _another(findings, "restored", number)


def late_name(findings: str, number: int) -> str:
    """What a file is called with what an agent wrote into one that was just consumed."""
    return _another(findings, "late", number)


def _another(findings: str, why: str, number: int) -> str:
    return f"{agent_of(PurePosixPath(findings))[:_LONGEST_AGENT]}-{why}-{number}-findings.md"
