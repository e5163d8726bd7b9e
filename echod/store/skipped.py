"""Find what echod passes over in a project's memory although it looks like memory, and name the way out.

Two things are passed over: symbolic links, since they may lead out of the project, and names that no rule of the layout
covers. Agents write both all the same, so a user must learn of them. Read-only.
"""

from __future__ import annotations

import os
import re
import shlex
import stat
import unicodedata
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from echod.paths import expand_home
from echod.store import layout
from echod.store.layout import GLOBAL, KNOWLEDGE, MEMORY, ROLE_NAME, STORE_DIRS, Role, Store

MAX_SKIPPED: Final = 20
"""How many items of a store are listed. More would say nothing new."""

_FINDINGS_WORD: Final = re.compile(r"[\W_]*findings?[\W_]*", re.IGNORECASE)
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


def find_skipped(store: Store) -> tuple[SkippedItem, ...]:
    """Return what is passed over in a store, at most `MAX_SKIPPED` items. Unreadable directories are left out."""
    items: list[SkippedItem] = []
    for item in (*_skipped_roles(store), *(item for role in layout.list_roles(store).roles for item in _files(role))):
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
        path = store.root / entry.name
        if entry.name.startswith("."):
            continue
        if entry.is_symlink():
            if path.is_dir():
                yield _linked_role(path)
        elif entry.is_dir(follow_symlinks=False):
            if not ROLE_NAME.fullmatch(entry.name) and any(_is_markdown(inner.name) for inner in _scan(path)):
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
        path = role.path / entry.name
        if entry.name in _OWN_NAMES or entry.name.startswith(".") or not _is_markdown(entry.name):
            continue
        if layout.is_findings_name(entry.name):
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
    if not layout.is_findings_name(name) or os.path.lexists(path.with_name(name)):
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
