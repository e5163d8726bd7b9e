"""Decide which project a path belongs to, and find the stores of the projects that echod maintains.

A project is the nearest directory at or above the path that has a store, not above the root of its git repository. The
home directory, `/` and the agent's own configuration directory are never projects: what is found there belongs to
everything below. A path in a worktree without a store belongs to the project that the worktree is a copy of.

Looks at directories only, and creates nothing.

Agents work in copies of a project: linked git worktrees, and those below `.claude/worktrees/`. Their findings belong to
the project itself, since the copy is deleted afterwards.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Self

from echod.errors import GARBLED_ERRORS, ConfigurationError
from echod.files import open_regular
from echod.paths import MAX_PATH_LENGTH, claude_home, home_directory
from echod.store import layout
from echod.store.layout import Store, find_linked_stores

if TYPE_CHECKING:
    from echod.store.layout import SkippedItem

_CLAUDE_WORKTREES = (".claude", "worktrees")
_MAX_POINTER_BYTES = 2 * MAX_PATH_LENGTH


def main_worktree_path(directory: Path) -> Path:
    """Return the same directory in the project that `directory` is a copy of; itself, resolved, if it is not in a copy.

    Neither needs to exist: a copy may be deleted before its events are read. A copy of a repository without a main
    working tree (a bare one) belongs to no other project.

    Raises:
        OSError, ValueError: `directory` is not a path that any file system could have.
    """
    current = Path(os.path.realpath(directory))
    visited = {current}
    while (origin := _containing_project_path(current)) not in visited:
        visited.add(origin)
        current = origin
    return current


def _containing_project_path(directory: Path) -> Path:
    project_path = _strip_claude_worktree(directory)
    if project_path is not None:
        return project_path
    for root in (directory, *directory.parents):
        main = _main_worktree(root)
        if main is not None:
            return main / directory.relative_to(root)
        if (root / ".git").is_dir():
            break
    return directory


def _strip_claude_worktree(directory: Path) -> Path | None:
    """Return `project/sub` for `project/.claude/worktrees/name/sub`, and None for any other path."""
    parts = directory.parts
    for index in range(1, len(parts) - 2):
        if parts[index : index + 2] == _CLAUDE_WORKTREES:
            return Path(*parts[:index], *parts[index + 3 :])
    return None


def _main_worktree(root: Path) -> Path | None:
    """Return the main working tree of the repository that `root` is a linked worktree of; None if it is not one."""
    pointer = _read_pointer(root / ".git")
    if pointer is None or not pointer.startswith("gitdir:"):
        return None
    git = _resolve_pointer(root, pointer.removeprefix("gitdir:").strip())
    commondir = _read_pointer(git / "commondir")
    if commondir is None:
        return None  # a submodule, or a repository that was moved: a project of its own
    common_directory = _resolve_pointer(git, commondir.strip())
    # The repository must list this copy too: the pointer alone could be forged by the author of the directory.
    back_pointer = _read_pointer(git / "gitdir")
    if back_pointer is None or _resolve_pointer(git, back_pointer.strip()) != root / ".git":
        return None
    own = git.parent == common_directory / "worktrees" and common_directory.name == ".git"
    return common_directory.parent if own else None


def _resolve_pointer(base: Path, pointer: str) -> Path:
    return Path(os.path.realpath(base / pointer))


def _read_pointer(path: Path) -> str | None:
    """Return the text of a small plain file; None if it cannot be read, or names no path that a system could open."""
    try:
        with open_regular(path) as file:
            text = file.read(_MAX_POINTER_BYTES).decode("utf-8", "surrogateescape")
    except OSError:
        return None
    return None if "\0" in text or len(text) > MAX_PATH_LENGTH else text


_GIT = ".git"


class ProjectLocator(NamedTuple):
    """Finds projects for one user. Both directories are resolved; `home` is None where there is no home directory."""

    home: Path | None
    agent_home: Path

    @classmethod
    def from_environment(cls, environ: Mapping[str, str]) -> Self:
        """Return the locator of the user whose environment this is."""
        try:
            home = layout.project_root(home_directory(environ))
        except ConfigurationError:
            home = None
        return cls(home, layout.project_root(claude_home(environ)))

    def exclusion_reason(self, root: Path) -> str | None:
        """Return why a resolved directory is never a project, as part of a sentence; None if it may be one."""
        if root == self.home:
            return "it is your home directory"
        if root == self.agent_home:
            return "it is the agent's own configuration directory"
        return "it is the root of the file system" if root == Path(root.anchor) else None

    def find_stores(self, project: Path) -> tuple[Store, ...]:
        """Return the stores of a resolved directory if it is a project, else none.

        Raises:
            OSError: it cannot be looked at.
        """
        if self.exclusion_reason(project) is not None:
            return ()
        stores = layout.find_stores_in_resolved_root(project)
        # The global store of an agent whose configuration is in a project, or is linked to from there.
        return tuple(store for store in stores if store.root.parent != self.agent_home)

    def find_project(self, start: Path) -> Path | None:
        """Return the project of a resolved path; None if it is in none.

        Raises:
            OSError, ValueError: `start` is not a path, or a directory above it cannot be looked at.
        """
        found = next((directory for directory in self._candidates(start) if self.find_stores(directory)), None)
        if found is not None:
            return found
        main = main_worktree_path(start)
        return None if main == start else self.find_project(main)

    def find_init_root(self, start: Path) -> Path:
        """Return where a project is begun for a resolved directory that is in none.

        That is the root of its git repository, else the directory itself. It may be excluded (`exclusion_reason`).
        """
        repository = next((directory for directory in self._candidates(start) if _is_repository(directory)), None)
        if repository is not None:
            return repository
        return self.agent_home if start.is_relative_to(self.agent_home) else start

    def _candidates(self, start: Path) -> Iterator[Path]:
        """Yield the directories from `start` upwards that may be its project."""
        for directory in (start, *start.parents):
            if self.exclusion_reason(directory) is not None:
                return
            yield directory
            if _is_repository(directory):
                return


def repository_root(directory: Path) -> Path | None:
    """Return the root of the git repository that contains a resolved directory; None if there is none."""
    return next((above for above in (directory, *directory.parents) if _is_repository(above)), None)


def _is_repository(directory: Path) -> bool:
    # A directory in a main working tree, a file in a linked one and in a submodule.
    return os.path.lexists(directory / _GIT)


class ExcludedDirectory(NamedTuple):
    """A directory that is in the list of projects and never a project. `reason` is part of a sentence."""

    root: Path
    reason: str


class _StoreFields(NamedTuple):
    stores: tuple[Store, ...] = ()
    missing: tuple[Path, ...] = ()
    without_store: tuple[Path, ...] = ()
    expected_roots: frozenset[Path] = frozenset()
    linked: tuple[SkippedItem, ...] = ()
    excluded: tuple[ExcludedDirectory, ...] = ()


class DiscoveredStores(_StoreFields):
    """The stores of some projects at one moment.

    The directories of `missing` projects cannot be seen (deleted, not mounted); they stay registered. `expected_roots`
    are directories that would be stores if they were made. `linked` are memory directories that are not used, because
    a symbolic link is in their path. `excluded` are listed directories that are never projects.
    """

    @cached_property
    def stores_by_root(self) -> Mapping[Path, Store]:
        """The stores by their directories."""
        return {store.root: store for store in self.stores}

    def store_containing(self, path: Path) -> Store | None:
        """Return the store that contains `path`; None if none does."""
        return next((store for above in (path, *path.parents) if (store := self.stores_by_root.get(above))), None)

    def stores_in(self, project: Path) -> tuple[Store, ...]:
        """Return the stores of one project."""
        return tuple(store for store in self.stores if store.project == project)

    @property
    def projects(self) -> tuple[Path, ...]:
        """The projects that have a store, in order, each once."""
        return tuple(dict.fromkeys(store.project for store in self.stores))


def _resolve(project: Path) -> Path:
    try:
        return layout.project_root(project)
    except (OSError, *GARBLED_ERRORS):
        return project  # it counts as missing


def discover_stores(projects: Iterable[Path], locator: ProjectLocator) -> DiscoveredStores:
    """Find the stores of each project. A project whose directory cannot be read counts as missing."""
    stores: list[Store] = []
    missing: list[Path] = []
    without_store: list[Path] = []

    linked: list[SkippedItem] = []
    excluded: list[ExcludedDirectory] = []
    expected_roots: set[Path] = set()
    for project in dict.fromkeys(map(_resolve, projects)):
        if (reason := locator.exclusion_reason(project)) is not None:
            excluded.append(ExcludedDirectory(project, reason))
            continue
        expected_roots.update(project / below for below in layout.STORE_DIRS)
        try:
            found_stores = locator.find_stores(project) if project.is_dir() else None
        except (OSError, *GARBLED_ERRORS):
            found_stores = None
        if found_stores is None:
            missing.append(project)
            continue
        links = find_linked_stores(project)
        linked.extend(links)
        if found_stores:
            stores.extend(found_stores)
        elif not links:
            without_store.append(project)
    expected_roots.difference_update(store.root for store in stores)
    return DiscoveredStores(
        tuple(stores), tuple(missing), tuple(without_store), frozenset(expected_roots), tuple(linked), tuple(excluded)
    )
