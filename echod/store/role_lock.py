"""The lock that upstream writers take around a role: an empty directory `tmp/.rune-echo-lock-{role}` in the project.

The global store has one lock for everything in it, `.lock`, beside its memory file.

They wait for it a few seconds and give up; they call it stale after 30 s. So we hold it shortly, keep it empty,
never wait for it (the job is deferred instead), and break only one that is older than that.
"""

from __future__ import annotations

import errno
import os
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from echod.store.errors import Busy, told
from echod.store.fs import Dir, UnsupportedError, open_dir, rename_new
from echod.store.journal.journal import RoleJournal
from echod.store.layout import LOCK, Role, commons_of

STALE_SECONDS = 30.0


def lock_name(role: Role) -> str:
    """The directory's name, in the project's `tmp` or in the global store."""
    return LOCK if commons_of(role.store) else f".rune-echo-lock-{role.name}"


def _place(role: Role) -> tuple[str, ...]:
    """Where the lock is made, below the project."""
    return commons_of(role.store) or ("tmp",)


class RoleLock(NamedTuple):
    """A lock we hold; `mark` tells it from others', and is None where nobody locks, as in a project without `tmp`."""

    role: Role
    mark: str | None
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
        tmp = open_dir(role.store.project, _place(role))
    except (FileNotFoundError, NotADirectoryError):
        return RoleLock(role, None, now)
    except OSError as error:
        if error.errno == errno.ELOOP:
            return RoleLock(role, None, now)
        raise
    with tmp, told("take the writers' lock in", tmp.path):
        name = lock_name(role)
        mark = _make(tmp, name, journal)
        if mark is None:
            _break_stale(tmp, name, journal, now=now)
            mark = _make(tmp, name, journal)
        if mark is None:
            raise _busy(tmp, name)
        return RoleLock(role, mark, now)


def release(lock: RoleLock, journal: RoleJournal) -> None:
    """Give the lock back, unless somebody took it from us in the meantime."""
    if lock.mark is not None:
        _remove_own(lock.role, lock.mark)
    journal.clear_lock()


def release_left_behind(role: Role, journal: RoleJournal) -> None:
    """Release a lock that a killed process of ours left (recovery)."""
    mark = journal.noted_lock()
    if mark is not None:
        _remove_own(role, mark)
        journal.clear_lock()


def _remove_own(role: Role, mark: str) -> None:
    try:
        with open_dir(role.store.project, _place(role)) as tmp:
            if _mark(tmp, lock_name(role)) == mark:
                os.rmdir(lock_name(role), dir_fd=tmp.fd)
    except OSError:
        return  # gone, or no longer empty: whoever broke or filled it owns it now, and after 30 s it is stale


def _make(tmp: Dir, name: str, journal: RoleJournal) -> str | None:
    """Make the lock, its mark noted before anybody can see it: a kill at any point leaves one we know as ours.

    The mark; None if another lock is there.
    """
    ready = f"{name}.{journal.tag}-new"
    with suppress(FileNotFoundError):
        os.rmdir(ready, dir_fd=tmp.fd)
    os.mkdir(ready, 0o755, dir_fd=tmp.fd)
    mark = _mark(tmp, ready)
    try:
        journal.note_lock(mark)
        rename_new(tmp, ready, tmp, name)
    except FileExistsError:
        os.rmdir(ready, dir_fd=tmp.fd)
        journal.clear_lock()
        return None
    except UnsupportedError:
        os.rmdir(ready, dir_fd=tmp.fd)
        return _make_at_once(tmp, name, journal)
    return mark


def _mark(tmp: Dir, name: str) -> str:
    """Tells a lock from one that another program makes later, which may well get the same inode number."""
    found = tmp.stat(name)
    return f"{found.st_ino}:{found.st_mtime_ns}" if found else ""


def _make_at_once(tmp: Dir, name: str, journal: RoleJournal) -> str | None:
    try:
        os.mkdir(name, 0o755, dir_fd=tmp.fd)
    except FileExistsError:
        return None
    mark = _mark(tmp, name)
    journal.note_lock(mark)
    return mark


def _break_stale(tmp: Dir, name: str, journal: RoleJournal, *, now: float) -> None:
    found = tmp.stat(name)
    if found is None:
        return
    if now - found.st_mtime <= STALE_SECONDS:
        raise _busy(tmp, name)
    # Another breaker may have been faster and hold a fresh lock now: move it aside and look which one it was.
    aside = f"{name}.{journal.tag}"
    try:
        rename_new(tmp, name, tmp, aside)
    except UnsupportedError:
        aside = name
    except (FileNotFoundError, FileExistsError):
        raise _busy(tmp, name) from None
    if tmp.inode(aside) != found.st_ino:
        _put_back(tmp, aside, name)
        raise _busy(tmp, name)
    try:
        os.rmdir(aside, dir_fd=tmp.fd)
    except OSError:
        _put_back(tmp, aside, name)
        raise Busy(f"{tmp.path / name} is not empty, so it is no lock echod may break; remove it by hand.") from None


def _put_back(tmp: Dir, aside: str, name: str) -> None:
    if aside != name:
        rename_new(tmp, aside, tmp, name)


def _busy(tmp: Dir, name: str) -> Busy:
    return Busy(f"Another writer holds {_short(tmp.path / name)}.")


def _short(path: Path) -> str:
    return "/".join(path.parts[-2:])
