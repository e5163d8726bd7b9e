"""Open a role's directories once for a commit, so that none of them can be replaced meanwhile.

Paths are relative to the store and must be in the role. Only `archive/` and `quarantine/` are created if missing.
"""

from __future__ import annotations

import stat
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import PurePosixPath

from echod.store.errors import RefusedError, as_store_error
from echod.store.fs import Dir, make_dir, open_dir
from echod.store.layout import ARCHIVE, QUARANTINE, ROLE_NAME, Role

_CREATED_ON_DEMAND = (ARCHIVE, QUARANTINE)


@dataclass(frozen=True, slots=True)
class RoleDirectory:
    """The open directories of a role, created by `open_role_directory`."""

    role: Role
    root: Dir
    _opened: dict[tuple[str, ...], Dir]
    _stack: ExitStack

    def resolve(self, path: str | PurePosixPath) -> tuple[Dir, str]:
        """Return the open directory and the name for a path (relative to the store).

        A path that leads out of the role or to a hidden file is refused.
        """
        parts, prefix = PurePosixPath(path).parts, self._prefix()
        if parts[:-1][: len(prefix)] != prefix or any(p in ("", "..") or p[0] == "." for p in parts):
            raise RefusedError(f"The path {path} is not in the role {self.role.name!r}. Nothing was written.")
        return self._open_subdirectory(parts[len(prefix) : -1]), parts[-1]

    def path_of(self, name: str) -> str:
        """Return the path, relative to the store, of a file in the role's own directory."""
        return "/".join((*self._prefix(), name))

    def archive(self) -> Dir | None:
        """Return the open archive directory, or None if the role has no archive."""
        return self._open_subdirectory((ARCHIVE,)) if self.root.stat(ARCHIVE) is not None else None

    def subdirectories(self) -> Iterator[Dir]:
        """Yield the existing directories below the role in which echod writes."""
        for name in _CREATED_ON_DEMAND:
            status = self.root.stat(name)
            if status is not None and stat.S_ISDIR(status.st_mode):
                yield self._open_subdirectory((name,))

    def _prefix(self) -> tuple[str, ...]:
        return (self.role.name,) if self.role.name else ()

    def _open_subdirectory(self, subpath: tuple[str, ...]) -> Dir:
        if not subpath:
            return self.root
        if subpath not in self._opened:
            parent = self._open_subdirectory(subpath[:-1])
            if subpath[0] in _CREATED_ON_DEMAND:
                make_dir(parent, subpath[-1])
            self._opened[subpath] = self._stack.enter_context(parent.open_subdir(subpath[-1]))
        return self._opened[subpath]


@contextmanager
def open_role_directory(role: Role) -> Iterator[RoleDirectory]:
    """Open a role's directory. An invalid name, which could lead anywhere, is refused."""
    if role.name and not ROLE_NAME.fullmatch(role.name):
        raise RefusedError(f"Invalid role name {role.name!r}: use letters, digits, - and _. Nothing was changed.")
    with ExitStack() as stack:
        with as_store_error("open the role directory", role.path):
            project = role.store.project
            root = stack.enter_context(open_dir(project, role.path.relative_to(project).parts))
        yield RoleDirectory(role, root, {}, stack)
