"""The lock that upstream writers take around a role: an empty directory `tmp/.rune-echo-lock-{role}` in the project.

They wait for it a few seconds and give up; they call it stale after 30 s. So we hold it shortly, keep it empty,
never wait for it (the job is deferred instead), and break only one that is older than that.
"""

from __future__ import annotations

import errno
import os
from dataclasses import dataclass
from pathlib import Path

from echod.store.faults import Busy, told
from echod.store.fsops import Dir, move_new, open_dir
from echod.store.journal import RoleJournal
from echod.store.layout import Role

STALE_SECONDS = 30.0


def lock_name(role: Role) -> str:
    """The directory's name in the project's `tmp`."""
    return f".rune-echo-lock-{role.name}"


@dataclass(frozen=True, slots=True)
class RoleLock:
    """A lock we hold; `inode` is None where the project has no `tmp`, and so nobody locks."""

    role: Role
    inode: int | None
    since: float

    def age(self, now: float) -> float:
        """Seconds we have held it."""
        return now - self.since


def acquire(role: Role, journal: RoleJournal, *, now: float) -> RoleLock:
    """Take the lock without waiting.

    Raises:
        Busy: another writer holds it.
        StoreFault: it cannot be made.
    """
    try:
        tmp = open_dir(role.store.project, ("tmp",))
    except (FileNotFoundError, NotADirectoryError):
        return RoleLock(role, None, now)
    except OSError as error:
        if error.errno == errno.ELOOP:
            return RoleLock(role, None, now)
        raise
    with tmp, told("take the writers' lock in", tmp.path):
        name = lock_name(role)
        if not _make(tmp, name):
            _break_stale(tmp, name, journal, now=now)
            if not _make(tmp, name):
                raise _busy(tmp, name)
        inode = tmp.inode(name)
        if inode is not None:
            journal.note_lock(inode)
        return RoleLock(role, inode, now)


def release(lock: RoleLock, journal: RoleJournal) -> None:
    """Give the lock back, unless somebody took it from us in the meantime."""
    if lock.inode is not None:
        _remove_own(lock.role, lock.inode)
    journal.clear_lock()


def release_left_behind(role: Role, journal: RoleJournal) -> None:
    """Release a lock that a killed process of ours left (recovery)."""
    inode = journal.noted_lock()
    if inode is not None:
        _remove_own(role, inode)
        journal.clear_lock()


def _remove_own(role: Role, inode: int) -> None:
    try:
        with open_dir(role.store.project, ("tmp",)) as tmp:
            if tmp.inode(lock_name(role)) == inode:
                os.rmdir(lock_name(role), dir_fd=tmp.fd)
    except OSError:
        return  # gone, or no longer empty: whoever broke or filled it owns it now, and after 30 s it is stale


def _make(tmp: Dir, name: str) -> bool:
    try:
        os.mkdir(name, 0o755, dir_fd=tmp.fd)
    except FileExistsError:
        return False
    return True


def _break_stale(tmp: Dir, name: str, journal: RoleJournal, *, now: float) -> None:
    found = tmp.stat(name)
    if found is None:
        return
    ours = found.st_ino == journal.noted_lock()
    if not ours and now - found.st_mtime <= STALE_SECONDS:
        raise _busy(tmp, name)
    # Another breaker may have been faster and hold a fresh lock now: move it aside and look which one it was.
    aside = f"{name}.{journal.tag}"
    try:
        move_new(tmp, name, tmp, aside)
    except (FileNotFoundError, FileExistsError, PermissionError):
        raise _busy(tmp, name) from None
    if tmp.inode(aside) != found.st_ino:
        move_new(tmp, aside, tmp, name)
        raise _busy(tmp, name)
    try:
        os.rmdir(aside, dir_fd=tmp.fd)
    except OSError:
        move_new(tmp, aside, tmp, name)
        raise Busy(f"{tmp.path / name} is not empty, so it is no lock echod may break; remove it by hand.") from None


def _busy(tmp: Dir, name: str) -> Busy:
    return Busy(f"Another writer holds {_short(tmp.path / name)}.")


def _short(path: Path) -> str:
    return "/".join(path.parts[-2:])
