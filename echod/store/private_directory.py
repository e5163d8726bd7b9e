"""The private directory of a store, `.echod/`, for files that no other program may take.

Staged, displaced and claimed files contain text that was never redacted. Beside their target git, a sync tool or
another user would take them. So they are in one directory of the store, with the mode 0700 and a `.gitignore` that
excludes everything, itself included. `git clean -x` and a removed worktree may delete it at any time, so it is looked
up again whenever it is needed.

An exchange needs both names on one mounted file system. A role (or its archive) that is a mount of its own has its own
private directory.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from echod.files import full_fsync, read_regular, write_all
from echod.lazy import lazy_pattern
from echod.paths import PRIVATE_DIR_MODE, PRIVATE_FILE_MODE
from echod.store.errors import RefusedError
from echod.store.fs import Dir

PRIVATE_DIRECTORY = ".echod"
IGNORE_FILE = ".gitignore"

_IGNORE_EVERYTHING = b"*\n"
_OWN_NAME = lazy_pattern(r"\..+\.echod-(?P<journal_id>[0-9a-f]{6,12})-(?P<seq>\d{6,})-\d+(?:\.old)?")
_OWN_NAMES_OUTSIDE = lazy_pattern(rf"{_OWN_NAME.pattern}|\.MEMORY\.md\.echod-init-\d+|\.echod-probe-(?:one|two)")
_MOUNT_ID = lazy_pattern(rb"^mnt_id:\s*(\d+)", re.MULTILINE)


def own_file_name(name: str, journal_id: str, seq: int, number: int) -> str:
    """Return the name in the private directory of the `number`-th staged or claimed file of a commit."""
    return f".{name}.echod-{journal_id}-{seq:06d}-{number}"


def commit_of(name: str, journal_id: str) -> int | None:
    """Return the number of the commit that a name in the private directory belongs to; None if not to this journal."""
    match = _OWN_NAME.fullmatch(name)
    return int(match["seq"]) if match and match["journal_id"] == journal_id else None


def is_own_name(name: str) -> bool:
    """Return whether only echod creates files of that name. Earlier versions created them beside the target."""
    return _OWN_NAMES_OUTSIDE.fullmatch(name) is not None


def find_private_directory(parent: Dir) -> Dir | None:
    """Open the private directory in `parent`, or return None if it does not exist. Nothing is created."""
    with suppress(FileNotFoundError):
        return parent.open_subdir(PRIVATE_DIRECTORY)
    return None


def open_private_directory(parent: Dir) -> Dir:
    """Open the private directory in `parent`, after creating or repairing it.

    Raises:
        OSError: something else is in its place (a symbolic link: ELOOP or ENOTDIR).
        RefusedError: it belongs to another user.
    """
    directory = find_private_directory(parent)
    if directory is None:
        with suppress(FileExistsError):
            os.mkdir(PRIVATE_DIRECTORY, PRIVATE_DIR_MODE, dir_fd=parent.fd)
        directory = parent.open_subdir(PRIVATE_DIRECTORY)
        _give_to_owner_of(parent, directory.fd)
        parent.sync()
    try:
        _require_private(parent, directory)
        _write_ignore_file(directory)
    except BaseException:
        directory.close()
        raise
    return directory


def remove_if_unused(parent: Dir) -> None:
    """Remove the private directory in `parent` if it contains nothing but its `.gitignore`."""
    directory = find_private_directory(parent)
    if directory is None:
        return
    with directory:
        if set(directory.list_names()) <= {IGNORE_FILE}:
            directory.unlink(IGNORE_FILE)
            with suppress(OSError):  # another process has just put a file there
                os.rmdir(PRIVATE_DIRECTORY, dir_fd=parent.fd)


def own_files(directory: Path) -> Iterator[Path]:
    """Yield echod's own files in a private directory, and of an earlier version in any other directory."""
    with suppress(FileNotFoundError, NotADirectoryError), os.scandir(directory) as entries:
        names = sorted(e.name for e in entries if is_own_name(e.name) and e.is_file(follow_symlinks=False))
        yield from (directory / name for name in names)


def same_mount(one: Dir, other: Dir) -> bool:
    """Return whether names can be exchanged between two directories. A bind mount has the same device and cannot."""
    first, second = (os.fstat(directory.fd).st_dev for directory in (one, other))
    return first == second and _mount_id(one) == _mount_id(other)


def _mount_id(directory: Dir) -> bytes:
    """Return the kernel's number of the mount; empty where the system has none (macOS, which has no bind mounts)."""
    with suppress(OSError):
        match = _MOUNT_ID.search(read_regular(Path(f"/proc/self/fdinfo/{directory.fd}"), 64 * 1024))
        return match[1] if match else b""
    return b""


def _require_private(parent: Dir, directory: Dir) -> None:
    status = os.fstat(directory.fd)
    if status.st_uid not in {os.geteuid(), os.fstat(parent.fd).st_uid}:
        raise RefusedError(
            f"{directory.path} belongs to another user, who could read what echod puts there; remove it."
        )
    if stat.S_IMODE(status.st_mode) != PRIVATE_DIR_MODE:
        os.fchmod(directory.fd, PRIVATE_DIR_MODE)


def _write_ignore_file(directory: Dir) -> None:
    with suppress(OSError):  # missing, or not a plain file
        if directory.read(IGNORE_FILE, len(_IGNORE_EVERYTHING)) == _IGNORE_EVERYTHING:
            return
    # git does not follow a link of this name, and a hard link must not be written through.
    directory.unlink(IGNORE_FILE)
    with directory.open(IGNORE_FILE, os.O_WRONLY | os.O_CREAT | os.O_EXCL, PRIVATE_FILE_MODE) as fd:
        write_all(fd, _IGNORE_EVERYTHING)
        full_fsync(fd)
        _give_to_owner_of(directory, fd)
    directory.sync()


def _give_to_owner_of(directory: Dir, fd: int) -> None:
    """Let a file that root creates belong to the owner of its directory, whose own commands must work afterwards."""
    owner = os.fstat(directory.fd)
    if os.geteuid() == 0 and owner.st_uid != 0:
        os.fchown(fd, owner.st_uid, owner.st_gid)
