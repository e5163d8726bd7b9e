"""Decide which project a path belongs to: the one rule of all commands, of hook events and of the list of projects.

A project is the nearest directory at or above the path that has a store, not above the root of its git repository. The
home directory, `/` and the agent's own configuration directory are never projects: what is found there belongs to
everything below. A path in a worktree without a store belongs to the project that the worktree is a copy of.

Looks at directories only, and creates nothing.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple, Self

from echod.errors import ConfigurationError
from echod.paths import claude_home, home_directory
from echod.projects.worktrees import main_worktree_path
from echod.store import layout
from echod.store.layout import Store

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
