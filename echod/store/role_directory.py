"""The ground a commit stands on: a role's directories, opened once, so that nothing can be swapped under it.

Paths are relative to the store and must lie in the role. Only `archive/` and `quarantine/` are made when missing.
"""

from __future__ import annotations

import stat
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import PurePosixPath

from echod.store.errors import RefusedError, as_store_error
from echod.store.fs import Dir, make_dir, open_dir
from echod.store.layout import ROLE_NAME, Role

_CREATED_ON_DEMAND = ("archive", "quarantine")
DIR_MODE = 0o777  # less the umask, like any other program's new directory


@dataclass(frozen=True, slots=True)
class RoleDirectory:
    """Open directories of a role. Get one by `open_role_directory`."""

    role: Role
    root: Dir
    _opened: dict[tuple[str, ...], Dir]
    _stack: ExitStack

    def resolve(self, path: str | PurePosixPath) -> tuple[Dir, str]:
        """The open directory and the name that a path (relative to the store) means.

        Raises:
            RefusedError: the path leads out of the role or to a hidden file.
            OSError: a directory on the way is missing, a symlink, or no directory.
        """
        parts = PurePosixPath(path).parts
        if parts[:-1][: len(self._prefix())] != self._prefix() or any(p in ("", "..") or p[0] == "." for p in parts):
            raise RefusedError(f"The path {path} does not lie in the role {self.role.name!r}; nothing was written.")
        subpath = parts[len(self._prefix()) : -1]
        return self._open_subdirectory(subpath), parts[-1]

    def path_of(self, name: str) -> str:
        """The path, relative to the store, of a file in the role's own directory."""
        return "/".join((*self._prefix(), name))

    def subdirectories(self) -> Iterator[Dir]:
        """The directories below the role in which echod writes, as far as they exist."""
        for name in _CREATED_ON_DEMAND:
            found = self.root.stat(name)
            if found is not None and stat.S_ISDIR(found.st_mode):
                yield self._open_subdirectory((name,))

    def _prefix(self) -> tuple[str, ...]:
        return (self.role.name,) if self.role.name else ()

    def _open_subdirectory(self, subpath: tuple[str, ...]) -> Dir:
        if not subpath:
            return self.root
        if subpath not in self._opened:
            parent = self._open_subdirectory(subpath[:-1])
            if subpath[0] in _CREATED_ON_DEMAND:
                make_dir(parent, subpath[-1], DIR_MODE)
            self._opened[subpath] = self._stack.enter_context(parent.open_subdir(subpath[-1]))
        return self._opened[subpath]


@contextmanager
def open_role_directory(role: Role) -> Iterator[RoleDirectory]:
    """Open a role's directory.

    Raises:
        RefusedError: the role's name is none, so that it could lead anywhere.
        StoreError: it is missing, a symlink, or may not be opened.
    """
    if role.name and not ROLE_NAME.fullmatch(role.name):
        raise RefusedError(f"{role.name!r} is no name of a role (letters, digits, - and _); nothing was done there.")
    with ExitStack() as stack:
        with as_store_error("open the role directory", role.path):
            root_parts = role.path.relative_to(role.store.project).parts
            root = stack.enter_context(open_dir(role.store.project, root_parts))
        yield RoleDirectory(role, root, {}, stack)
