"""Open a role's directories once for a commit, so that none of them can be replaced meanwhile.

Paths are relative to the store and must be in the role. Only `archive/` and `quarantine/` are created if missing, and
the private directories for staged, displaced and claimed files (`private_directory`).
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import PurePosixPath

from echod.store.errors import RefusedError, as_store_error
from echod.store.fs import Dir, make_dir, open_dir
from echod.store.layout import ARCHIVE, FINDINGS_ARCHIVE, QUARANTINE, ROLE_NAME, Role
from echod.store.private_directory import (
    PRIVATE_DIRECTORY,
    find_private_directory,
    open_private_directory,
    same_mount,
)

_CREATED_ON_DEMAND = (ARCHIVE, QUARANTINE)
_PRIVATE = (PRIVATE_DIRECTORY,)
_REPAIRED = "repaired"  # a part of the key of a private directory whose mode and .gitignore were checked


@dataclass(frozen=True, slots=True)
class RoleDirectory:
    """The open directories of a role, created by `open_role_directory`."""

    role: Role
    store: Dir  # the store's directory
    root: Dir  # the role's own directory
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

    def private_path(self, path: str | PurePosixPath) -> str:
        """Return the private directory, relative to the store, for files that are exchanged with the one at `path`.

        It is the store's, or one beside the file if that is on another mount.
        """
        directory, _ = self.resolve(path)
        if same_mount(self.store, directory):
            return PRIVATE_DIRECTORY
        return str(PurePosixPath(path).with_name(PRIVATE_DIRECTORY))

    def open_private(self, path: str) -> Dir:
        """Open the private directory at a path that `private_path` returned. It is created if it is missing.

        Raises:
            OSError: it cannot be created, or something else is in its place.
            RefusedError: it belongs to another user.
        """
        parent, key = self._private_parent(path)
        opened = self._opened_private(path)
        if opened is None or self._opened.get((*key, _REPAIRED)) is not opened:
            opened = self._stack.enter_context(open_private_directory(parent))
            self._opened[key] = self._opened[*key, _REPAIRED] = opened
        return opened

    def find_private(self, path: str) -> Dir | None:
        """Open the private directory at a path, or return None if it does not exist."""
        opened = self._opened_private(path)
        if opened is None:
            parent, key = self._private_parent(path)
            opened = find_private_directory(parent)
            if opened is not None:
                self._opened[key] = self._stack.enter_context(opened)
        return opened

    def private_directories(self) -> Iterator[Dir]:
        """Yield the private directories that exist: the store's, and those of mounts in the role."""
        paths = [PRIVATE_DIRECTORY] if self.root is not self.store else []
        folders = ("", ARCHIVE, FINDINGS_ARCHIVE, QUARANTINE)
        paths += [self.path_of(f"{folder}/{PRIVATE_DIRECTORY}".lstrip("/")) for folder in folders if self._has(folder)]
        for path in paths:
            directory = self.find_private(path)
            if directory is not None:
                yield directory

    def _has(self, folder: str) -> bool:
        """Return whether a folder of the role exists and no part of its path is a link."""
        directory = self.root
        with ExitStack() as stack:
            for part in PurePosixPath(folder).parts:
                status = directory.stat(part)
                if status is None or not stat.S_ISDIR(status.st_mode):
                    return False
                directory = stack.enter_context(directory.open_subdir(part))
        return True

    def _private_parent(self, path: str) -> tuple[Dir, tuple[str, ...]]:
        if path == PRIVATE_DIRECTORY:
            return self.store, _PRIVATE
        directory, _ = self.resolve(PurePosixPath(path).with_name("x"))
        return directory, (*PurePosixPath(path).parts[len(self._prefix()) : -1], *_PRIVATE, "")

    def _opened_private(self, path: str) -> Dir | None:
        """Return the directory opened before, unless it was deleted or replaced since."""
        parent, key = self._private_parent(path)
        opened = self._opened.get(key)
        if opened is None or parent.inode(PRIVATE_DIRECTORY) != os.fstat(opened.fd).st_ino:
            return None
        return opened

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
            store = stack.enter_context(open_dir(project, role.store.root.relative_to(project).parts))
            root = stack.enter_context(store.open_subdir(role.name)) if role.name else store
        yield RoleDirectory(role, store, root, {}, stack)
