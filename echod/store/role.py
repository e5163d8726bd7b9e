"""Open a role's directories for a commit, and take the lock that upstream writers take around a role.

Paths are relative to the store and must be in the role. Only `archive/` and `quarantine/` are created if missing, and
the private directories for staged, displaced and claimed files (`private_directory`).

The lock of upstream writers is an empty directory, `tmp/.rune-echo-lock-{role}` in the project. The global store has
one lock for everything in it, `.lock`, beside its memory file.

Upstream writers wait for it a few seconds and give up. They treat it as stale after 30 s. So echod holds it briefly,
keeps it empty, never waits for it (the job is deferred instead), and breaks only one that is older than that.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import NamedTuple

from echod.store.errors import BusyError, RefusedError, as_store_error
from echod.store.fs import Dir, RenameUnsupportedError, make_dir, open_dir, rename_noreplace
from echod.store.journal.journal import RoleJournal
from echod.store.layout import ARCHIVE, FINDINGS_ARCHIVE, GLOBAL_LOCK, QUARANTINE, ROLE_NAME, Role, global_root
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


STALE_LOCK_SECONDS = 30.0

_LOCK_MODE = 0o755
_NO_PARENT_ERRNOS = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP)


def lock_name(role: Role) -> str:
    """Return the name of the lock directory, in the project's `tmp` or in the global store."""
    return GLOBAL_LOCK if global_root(role.store) else f".rune-echo-lock-{role.name}"


def _lock_parent(role: Role) -> tuple[str, ...]:
    """Return the path of the lock's parent directory below the project."""
    return global_root(role.store) or ("tmp",)


class RoleLock(NamedTuple):
    """A lock that echod holds."""

    role: Role
    token: str | None  # distinguishes it from other programs' locks; None if no program locks (a project without `tmp`)
    acquired_at: float  # Unix seconds


def is_locked(role: Role) -> bool:
    """Return whether any program holds the lock now."""
    return role.store.project.joinpath(*_lock_parent(role), lock_name(role)).is_dir()


def acquire_role_lock(role: Role, journal: RoleJournal, *, now: float) -> RoleLock:
    """Take the lock without waiting. `BusyError` if another writer holds it."""
    try:
        parent = open_dir(role.store.project, _lock_parent(role))
    except OSError as error:
        if error.errno in _NO_PARENT_ERRNOS:
            return RoleLock(role, None, now)
        raise
    with parent, as_store_error("take the writers' lock in", parent.path):
        name = lock_name(role)
        _clean_moved_lock(parent, f"{name}.{journal.journal_id}", name, now)
        token = _create_lock(parent, name, journal)
        if token is None:
            _break_stale_lock(parent, name, journal, now=now)
            token = _create_lock(parent, name, journal)
        if token is None:
            raise _lock_busy_error(parent, name)
        return RoleLock(role, token, now)


def release_role_lock(lock: RoleLock, journal: RoleJournal) -> None:
    """Release the lock, unless another program has taken it in the meantime."""
    if lock.token is not None:
        _remove_if_ours(lock.role, lock.token)
    journal.clear_lock()


def release_own_stale_lock(role: Role, journal: RoleJournal) -> None:
    """Release a lock that a killed process of echod left (recovery)."""
    token = journal.recorded_lock()
    if token is not None:
        _remove_if_ours(role, token)
        journal.clear_lock()


def _remove_if_ours(role: Role, token: str) -> None:
    try:
        with open_dir(role.store.project, _lock_parent(role)) as parent:
            if _read_token(parent, lock_name(role)) == token:
                os.rmdir(lock_name(role), dir_fd=parent.fd)
    except OSError:
        return  # missing, or no longer empty: the program that broke or filled it owns it, and after 30 s it is stale


def _create_lock(parent: Dir, name: str, journal: RoleJournal) -> str | None:
    """Create the lock and return its token, or None if another program holds the lock.

    The token is recorded before the lock is visible, so that a kill at any point leaves a lock that is known as ours.
    """
    prepared_name = f"{name}.{journal.journal_id}-new"
    with suppress(FileNotFoundError):
        os.rmdir(prepared_name, dir_fd=parent.fd)
    os.mkdir(prepared_name, _LOCK_MODE, dir_fd=parent.fd)
    token = _read_token(parent, prepared_name)
    try:
        journal.record_lock(token)
        rename_noreplace(parent, prepared_name, parent, name)
    except FileExistsError:
        os.rmdir(prepared_name, dir_fd=parent.fd)
        journal.clear_lock()
        return None
    except RenameUnsupportedError:
        os.rmdir(prepared_name, dir_fd=parent.fd)
        try:
            os.mkdir(name, _LOCK_MODE, dir_fd=parent.fd)
        except FileExistsError:
            return None
        token = _read_token(parent, name)
        journal.record_lock(token)
    return token


def _read_token(parent: Dir, name: str) -> str:
    """Return the token of a lock. A later lock of another program may well get the same inode number."""
    status = parent.stat(name)
    return f"{status.st_ino}:{status.st_mtime_ns}" if status else ""


def _break_stale_lock(parent: Dir, name: str, journal: RoleJournal, *, now: float) -> None:
    status = parent.stat(name)
    if status is None:
        return
    if not _is_stale(status, now):
        raise _lock_busy_error(parent, name)
    # Another breaker may have been faster and hold a fresh lock now. Move it aside and check which one it was.
    moved_name = f"{name}.{journal.journal_id}"
    _clean_moved_lock(parent, moved_name, name, now)
    try:
        rename_noreplace(parent, name, parent, moved_name)
    except RenameUnsupportedError:
        moved_name = name
    except (FileNotFoundError, FileExistsError):
        raise _lock_busy_error(parent, name) from None
    if parent.inode(moved_name) != status.st_ino:
        _rename_back(parent, moved_name, name)
        raise _lock_busy_error(parent, name)
    try:
        os.rmdir(moved_name, dir_fd=parent.fd)
    except OSError:
        _rename_back(parent, moved_name, name)
        raise BusyError(
            f"{parent.path / name} is not empty, so it is not a lock that echod may break; remove it by hand."
        ) from None


def _is_stale(status: os.stat_result, now: float) -> bool:
    """Return whether a lock is so old that its program is dead. One far in the future comes from a wrong clock."""
    return abs(now - status.st_mtime) > STALE_LOCK_SECONDS


def _clean_moved_lock(parent: Dir, moved_name: str, name: str, now: float) -> None:
    """Finish for a process that was killed after it had moved a lock aside. A fresh lock gets its name back."""
    status = parent.stat(moved_name)
    if status is None:
        return
    with suppress(OSError):
        if not _is_stale(status, now):
            rename_noreplace(parent, moved_name, parent, name)
            return
    try:
        os.rmdir(moved_name, dir_fd=parent.fd)
    except OSError:
        raise BusyError(f"{parent.path / moved_name} is in the way and is not an empty lock; remove it.") from None


def _rename_back(parent: Dir, moved_name: str, name: str) -> None:
    if moved_name != name:
        rename_noreplace(parent, moved_name, parent, name)


def _lock_busy_error(parent: Dir, name: str) -> BusyError:
    return BusyError(f"Another writer holds {'/'.join((parent.path / name).parts[-2:])}.")
