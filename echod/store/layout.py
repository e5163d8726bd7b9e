"""Find the files of a project: its stores, their roles, the files of a role, and what is passed over. Read-only.

Names are checked before they become paths. A store, role or file that is a symbolic link leading out of the project is
refused. Below the project root no link is followed.

The global store is the memory of a user that belongs to no project, in Claude Code's own directory:

    {home}/echoes/global/MEMORY.md                    elevated entries; the role ""
    {home}/echoes/global/doc-packs/{stack}/MEMORY.md  one role each, of a store of their own
    {home}/echoes/global/manifests/{stack}.json       metadata of a pack; not memory, written by `echod.packs`
    {home}/echoes/global/.lock, .global-echo-dirty    lock and signal of all programs that write there

All rules for a project's store apply to the global store too, except for the places of lock and signal.

A section has the names of findings files that are archived, quarantined or restored, relative to the role. An
agent's name is written without a secret in it.

Two things are passed over: symbolic links, since they may lead out of the project, and names that no rule of the layout
covers. Agents write both all the same, so a user must learn of them, with the way out.
"""

from __future__ import annotations

import os
import re
import shlex
import stat
import unicodedata
from collections.abc import Iterable, Iterator
from datetime import date
from functools import cached_property
from itertools import islice
from pathlib import Path, PurePath, PurePosixPath
from typing import Final, NamedTuple

from echod.lazy import lazy_imports, lazy_pattern
from echod.memory import KNOWLEDGE_FILE, MEMORY_FILE
from echod.paths import expand_home

with lazy_imports(__name__):
    from echod.memory import redact


STORE_DIRS = (Path(".rune/echoes"), Path(".claude/echoes"))
ROLE_NAME = lazy_pattern(r"[A-Za-z0-9_-]{1,128}")
_FINDINGS_NAME = lazy_pattern(r"(?P<agent>\w[\w .-]{0,199})-findings\.md")
_MAX_FINDINGS_NAME_BYTES = 212
"""So that the longer names that echod derives from a findings file's name still fit into a directory."""
MEMORY = MEMORY_FILE
MEMORY_BACKUP_PREFIX = "MEMORY-"
KNOWLEDGE = KNOWLEDGE_FILE
ARCHIVE = "archive"
FINDINGS_ARCHIVE = f"{ARCHIVE}/findings"
QUARANTINE = "quarantine"
QUARANTINE_REASONS = "REASONS.md"
DOC_PACKS = "doc-packs"
"""The store of the global doc packs. It is one level deeper below its root than a project's store."""
MANIFESTS = "manifests"
SOLUTIONS = Path("docs/solutions")
"""The solutions of a project, below its root. Their categories are the roles of a store of their own."""
GLOBAL = "global"
GLOBAL_LOCK = ".lock"
DIRTY_MARKER = ".global-echo-dirty"
MAX_SORTED_FINDINGS = 2_000
"""How many findings files are sorted. A caller with more of them cannot look at all of them each time."""

_GLOBAL_PATH = ("echoes", GLOBAL)
_QUARANTINED_NAME = lazy_pattern(r"\d{4}-\d\d-\d\d-(?P<findings>.+-findings)(?:-\d+)?\.md")
_MAX_AGENT_BYTES = 100
_INVALID_NAME_CHARACTERS = lazy_pattern(r"[^A-Za-z0-9_.-]+")
_MIN_SECRET_LENGTH = 16  # of those that are recognized by their form alone


class Store(NamedTuple):
    """One echoes directory. `project` is the resolved project root, `root` the store below it."""

    project: Path
    root: Path

    @property
    def key(self) -> str:
        """The store's name in the queue and the journal: its absolute path."""
        return str(self.root)


class _RoleFields(NamedTuple):
    store: Store
    name: str


class Role(_RoleFields):
    """A directory in a store, discovered rather than taken from a fixed list.

    Its paths are cached: joining them again each time would be a tenth of the time to list a hundred projects.
    """

    @cached_property
    def path(self) -> Path:
        """The role's directory."""
        return self.store.root / self.name

    @cached_property
    def memory(self) -> Path:
        """The memory file, which agents load: `MEMORY.md`."""
        return self.path / MEMORY

    @property
    def knowledge(self) -> Path:
        """The knowledge file, which agents load on demand: `knowledge.md`."""
        return self.path / KNOWLEDGE


def project_root(path: Path) -> Path:
    """Return the absolute form of a project's path without symbolic links."""
    return Path(os.path.realpath(path))


def find_stores(project: Path) -> tuple[Store, ...]:
    """Return the stores of a project, `.rune` before `.claude`. A symlinked directory is not a store."""
    return find_stores_in_resolved_root(project_root(project))


def find_stores_in_resolved_root(root: Path) -> tuple[Store, ...]:
    """Return the stores of a resolved project root. Resolving it again would cost as much as finding the stores."""
    return tuple(
        Store(root, root / below)
        for below in STORE_DIRS
        if is_real_directory(root / below.parts[0]) and is_real_directory(root / below)
    )


def is_real_directory(path: Path) -> bool:
    """Return whether a path is a directory and no symbolic link. A path that cannot be looked at is an `OSError`."""
    try:
        return stat.S_ISDIR(os.lstat(path).st_mode)
    except (FileNotFoundError, NotADirectoryError):
        return False


def store_at(root: Path) -> Store:
    """Return the store in the directory `root` (the inverse of `Store.key`)."""
    return Store(root.parents[2 if root.name == DOC_PACKS else 1], root)


def solutions_store(project: Path) -> Store:
    """Return the store whose roles are the categories of a project's solutions. Agents write no memory there."""
    return Store(project, project / SOLUTIONS)


def global_store(home: Path) -> Store:
    """Return the store of elevated entries. `home` is Claude Code's own directory, resolved. Neither need exist."""
    return Store(home, home.joinpath(*_GLOBAL_PATH))


def packs_store(home: Path) -> Store:
    """Return the store whose roles are the installed doc packs."""
    return Store(home, home.joinpath(*_GLOBAL_PATH, DOC_PACKS))


def global_role(home: Path) -> Role:
    """Return the role of the global memory file. It has no directory of its own."""
    return Role(global_store(home), "")


def global_root(store: Store) -> tuple[str, ...] | None:
    """Return the path of the global store below `store.project`, or None for a project's store."""
    parts = store.root.relative_to(store.project).parts
    return _GLOBAL_PATH if parts[: len(_GLOBAL_PATH)] == _GLOBAL_PATH else None


def find_roles(store: Store) -> tuple[Role, ...]:
    """Return the roles of a store in name order, without dot-directories, invalid names and symbolic links.

    An unreadable store is an `OSError`, not an empty store.
    """
    with os.scandir(store.root) as entries:
        names = sorted(e.name for e in entries if ROLE_NAME.fullmatch(e.name) and e.is_dir(follow_symlinks=False))
    return tuple(Role(store, name) for name in names)


class RoleListing(NamedTuple):
    """The roles of a store as far as it could be listed. `error` is the reason if it could not."""

    roles: tuple[Role, ...]
    error: OSError | None = None


def list_roles(store: Store) -> RoleListing:
    """Return the roles of a store, or the error if it cannot be listed, for callers that continue without."""
    try:
        return RoleListing(find_roles(store))
    except OSError as error:
        return RoleListing((), error)


def is_findings_name(name: str) -> bool:
    """Return whether a file of this name in a role is a findings file: an agent's name and `-findings.md`.

    The agent's name consists of letters and digits of any script, blanks, `_`, `.` and `-`.
    """
    return _FINDINGS_NAME.fullmatch(name) is not None and len(os.fsencode(name)) <= _MAX_FINDINGS_NAME_BYTES


def iter_findings_files(role: Role) -> Iterator[str]:
    """Yield the names of a role's findings files, plain files only (no symbolic link, FIFO or device).

    The names are in order. Of more than `MAX_SORTED_FINDINGS` the first ones are sorted, and the others follow in the
    directory's order. A role that cannot be listed is an `OSError`, here and in the next two functions.
    """
    with os.scandir(role.path) as entries:
        names = (e.name for e in entries if is_findings_name(e.name) and e.is_file(follow_symlinks=False))
        yield from sorted(islice(names, MAX_SORTED_FINDINGS))
        yield from names


def list_findings_files(role: Role, limit: int = MAX_SORTED_FINDINGS) -> tuple[Path, ...]:
    """Return at most `limit` findings files of a role, in name order."""
    return tuple(role.path / name for name in sorted(islice(iter_findings_files(role), limit)))


class RoleSummary(NamedTuple):
    """The content of a role's directory by name: the number of findings files, and which other files may exist."""

    findings_count: int
    has_knowledge: bool
    has_quarantine: bool


def summarize_role(role: Role, max_findings: int) -> RoleSummary:
    """List a role's directory once. The listing ends after `max_findings` findings files."""
    findings, others = 0, set()
    with os.scandir(role.path) as entries:
        for entry in entries:
            if entry.name in (KNOWLEDGE, QUARANTINE):
                others.add(entry.name)
            elif is_findings_name(entry.name) and entry.is_file(follow_symlinks=False):
                findings += 1
                if findings == max_findings:
                    return RoleSummary(findings, has_knowledge=True, has_quarantine=True)
    return RoleSummary(findings, has_knowledge=KNOWLEDGE in others, has_quarantine=QUARANTINE in others)


def findings_archive_path(file_name: str, day: date) -> PurePosixPath:
    """Return the archive path of a findings file that was consumed on a local day."""
    return PurePosixPath(FINDINGS_ARCHIVE) / f"{day.isoformat()}-{agent_name(PurePosixPath(file_name))}.md"


def quarantine_path(file_name: str, day: date) -> PurePosixPath:
    """Return the quarantine path of a file that could not be read on a local day."""
    return PurePosixPath(QUARANTINE) / f"{day.isoformat()}-{file_name}"


def original_findings_name(name: str) -> str:
    """Return the earlier name of a file in quarantine, or its own name if that is unknown."""
    match = _QUARANTINED_NAME.fullmatch(name)
    return f"{match['findings']}.md" if match else name


def restored_findings_name(file_name: str, number: int) -> str:
    """Return the name of a restored findings file whose own name is taken."""
    return _derived_findings_name(file_name, "restored", number)


def late_findings_name(file_name: str, number: int) -> str:
    """Return the name of the file for findings that an agent wrote into a file that was just consumed."""
    return _derived_findings_name(file_name, "late", number)


def _derived_findings_name(file_name: str, label: str, number: int) -> str:
    agent = os.fsencode(agent_name(PurePosixPath(file_name)))[:_MAX_AGENT_BYTES].decode(errors="ignore")
    return f"{agent}-{label}-{number}-findings.md"


def agent_name(findings_file: PurePath) -> str:
    """Return the agent's name in a findings file's name, without a secret, so that it may be written elsewhere."""
    match = _FINDINGS_NAME.fullmatch(findings_file.name)
    name = match["agent"] if match else findings_file.stem
    if len(name) < _MIN_SECRET_LENGTH:
        return name
    # Every command loads this module, redaction takes long to load, and such names are rare.

    clean = redact.redact(name).text
    return name if clean == name else _INVALID_NAME_CHARACTERS.sub("-", clean).strip("-")


MAX_SKIPPED: Final = 20
"""How many items of a store are listed. More would say nothing new."""

_FINDINGS_WORD: Final = lazy_pattern(r"[\W_]*findings?[\W_]*", re.IGNORECASE)
_MARKDOWN: Final = (".md", ".markdown", ".txt")
_OWN_NAMES: Final = frozenset({MEMORY, KNOWLEDGE})
_MAX_LOOKED_AT: Final = 2_000


class SkippedItem(NamedTuple):
    """A file or directory that is passed over. `reason` is a sentence about it, and `fix` one with the way out."""

    path: Path
    reason: str
    fix: str

    def describe(self) -> str:
        """Return reason and way out as one text."""
        return f"{self.reason} {self.fix}"


def find_linked_stores(project: Path) -> tuple[SkippedItem, ...]:
    """Return the directories of a resolved project that would be stores if no symbolic link were in their path."""
    return tuple(item for below in STORE_DIRS if (item := _linked_store(project, below)) is not None)


def find_skipped(store: Store, roles: Iterable[Role] | None = None) -> tuple[SkippedItem, ...]:
    """Return what is passed over in a store, at most `MAX_SKIPPED` items. Unreadable directories are left out.

    `roles` are those of the store, if the caller has listed them.
    """
    roles = list_roles(store).roles if roles is None else roles
    items: list[SkippedItem] = []
    for item in (*_skipped_roles(store), *(item for role in roles for item in _files(role))):
        items.append(item)
        if len(items) == MAX_SKIPPED:
            break
    return tuple(items)


def _linked_store(project: Path, below: Path) -> SkippedItem | None:
    path = project / below
    link = next((part for part in (path.parent, path) if _is_link(part)), None)
    # The agent's own configuration directory has a global store. A link to that is not a project's memory.
    if link is None or all(entry.name == GLOBAL for entry in _scan(path) if not entry.name.startswith(".")):
        return None
    target, store = Path(os.path.realpath(link)), Path(os.path.realpath(path))
    reason = f"{link} is a symbolic link to {target}. echod follows no link, so the memory in it is not maintained."
    return SkippedItem(link, reason, _owner_fix(store, 0) or _copy_fix(link, target))


def _owner_fix(path: Path, depth: int) -> str | None:
    """Return how to maintain a resolved path in the project where it is; None if it is in no other project's store.

    `depth` is how many directories below the store it is.
    """
    root = path.parents[depth - 1] if depth else path
    for below in STORE_DIRS:
        if root.parts[-len(below.parts) :] == below.parts:
            owner = root.parents[len(below.parts) - 1]
            return (
                None if owner == expand_home("~") else f"To maintain it where it is: {_command('echod', 'add', owner)}"
            )
    return None


def _skipped_roles(store: Store) -> Iterator[SkippedItem]:
    for entry in _scan(store.root):
        if entry.name.startswith("."):
            continue
        is_directory = entry.is_dir(follow_symlinks=False)
        if is_directory and ROLE_NAME.fullmatch(entry.name):
            continue  # nearly all of them
        path = store.root / entry.name
        if entry.is_symlink():
            if path.is_dir():
                yield _linked_role(path)
        elif is_directory:
            if any(_is_markdown(inner.name) for inner in _scan(path)):
                yield _misnamed_role(path)
        elif _is_markdown(entry.name) and "findings" in entry.name.lower():
            reason = f"{_shown(path)} is in no role, so no agent's memory gets these findings."
            yield SkippedItem(path, reason, "Move it into the directory of a role, as AGENT-findings.md.")


def _linked_role(path: Path) -> SkippedItem:
    target = Path(os.path.realpath(path))
    reason = (
        f"{_shown(path)} is a symbolic link to {_shown(target)}. echod follows no link, so it maintains no role there."
    )
    return SkippedItem(path, reason, _owner_fix(target, 1) or _copy_fix(path, target))


def _misnamed_role(path: Path) -> SkippedItem:
    reason = (
        f"{_shown(path)} is not maintained: the name of a role consists of the letters a to z, digits, - and _, in at "
        "most 128 characters."
    )
    name = re.sub(r"[^A-Za-z0-9_-]+", "-", _ascii(path.name)).strip("-")
    if not name or os.path.lexists(path.with_name(name)):
        return SkippedItem(path, reason, "Rename it.")
    return SkippedItem(path, reason, f"Rename it: {_command('mv', path, path.with_name(name))}")


def _files(role: Role) -> Iterator[SkippedItem]:
    """Yield the files of a role that look like findings or memory and are neither."""
    for entry in _scan(role.path):
        if entry.name in _OWN_NAMES or entry.name.startswith(".") or not _is_markdown(entry.name):
            continue
        path = role.path / entry.name
        if is_findings_name(entry.name):
            if entry.is_symlink():
                reason = f"{_shown(path)} is a symbolic link. echod follows no link, so it is not read as findings."
                yield SkippedItem(path, reason, "Replace it with the file itself.")
        elif "finding" in entry.name.lower():
            if entry.is_file():
                yield _misnamed_findings(role, path)
        elif entry.name.lower() == MEMORY.lower() and not role.memory.exists():
            reason = f"{_shown(path)} is not read: the memory file of a role is named {MEMORY}."
            yield SkippedItem(path, reason, f"Rename it: {_command('mv', path, role.memory)}")


def _misnamed_findings(role: Role, path: Path) -> SkippedItem:
    reason = f"{_shown(path)} is not read as findings: their files are named AGENT-findings.md."
    agent = re.sub(r"[^\w.-]+", "-", _FINDINGS_WORD.sub("-", _printable(path.stem))).strip("-._") or role.name
    name = f"{agent}-findings.md"
    if not is_findings_name(name) or os.path.lexists(path.with_name(name)):
        return SkippedItem(path, reason, "Rename it.")
    return SkippedItem(path, reason, f"Rename it: {_command('mv', path, path.with_name(name))}")


def _copy_fix(link: Path, target: Path) -> str:
    # A copy: other projects may link to the same directory.
    commands = f"{_command('rm', link)} && {_command('cp', '-R', target, link)}"
    return f"To maintain it here, replace the link with a copy of the directory: {commands}"


def _scan(directory: Path) -> list[os.DirEntry[str]]:
    """Return the first entries of a directory by name; none if it cannot be listed, which others report."""
    try:
        with os.scandir(directory) as entries:
            found = [entry for entry, _ in zip(entries, range(_MAX_LOOKED_AT), strict=False)]
    except OSError:
        return []
    return sorted(found, key=lambda entry: entry.name)


def _is_link(path: Path) -> bool:
    try:
        return stat.S_ISLNK(path.lstat().st_mode)
    except OSError:
        return False


def _is_markdown(name: str) -> bool:
    return name.lower().endswith(_MARKDOWN)


def _ascii(name: str) -> str:
    """Return a name without accents and without the letters that have no form in ASCII."""
    return unicodedata.normalize("NFKD", _printable(name)).encode("ascii", "ignore").decode()


def _printable(name: str) -> str:
    return "".join(character if character.isprintable() else "-" for character in name)


def _shown(path: Path) -> str:
    """Return a path for a sentence: what a terminal or a status cannot show is escaped."""
    text = str(path)
    return text if text.isprintable() else ascii(text)


def _command(*words: object) -> str:
    return " ".join(_quote(word) for word in words)


def _quote(word: object) -> str:
    """Quote a word for a shell, also one that cannot be shown as it is."""
    text = str(word)
    if text.isprintable():
        return shlex.quote(text)
    escaped = "".join(
        character if character.isascii() and character.isprintable() and character not in "'\\" else f"\\x{byte:02x}"
        for byte in os.fsencode(text)
        for character in (chr(byte),)
    )
    return f"$'{escaped}'"
