"""The new content beside its target: same directory, dot-name, same mode, owner and extended attributes, durable.

A target that cannot be reproduced (foreign owner) or that its owner made read-only is refused before anything
is written down.
"""

from __future__ import annotations

import errno
import os
import stat

from echod.logger import get_logger
from echod.store.errors import Refused
from echod.store.fs import Dir, sync, write_all

log = get_logger(__name__)

_KEPT_ATTRIBUTES = ("user.", "system.posix_acl_access")
_NEW_FILE = 0o666  # less the umask, like any other program's new file
_BACKUP = 0o600


def write_stage(directory: Dir, name: str, data: bytes, target: str) -> int:
    """Write the stage for `target` and return its inode. Durable when this returns.

    Raises:
        Refused: mode, owner or attributes of the target cannot be kept, or it is read-only or no plain file.
        OSError: writing failed; nothing is left behind.
    """
    like = directory.stat(target)
    if like is not None:
        _check(directory, target, like)
        if like.st_nlink > 1:
            log.warning("file_has_other_names", path=str(directory.path / target), names=like.st_nlink)
    mode = _BACKUP if target.startswith("MEMORY-") else _NEW_FILE
    fd = directory.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    try:
        write_all(fd, data)
        if like is not None:
            _resemble(fd, directory, target, like)
        sync(fd)
        return os.fstat(fd).st_ino
    except BaseException:
        directory.unlink(name)
        raise
    finally:
        os.close(fd)


def _check(directory: Dir, target: str, like: os.stat_result) -> None:
    path = directory.path / target
    if not stat.S_ISREG(like.st_mode):
        raise Refused(f"{path} is a symbolic link or no plain file; echod leaves it alone. Put a real file there.")
    if not like.st_mode & 0o200:
        raise Refused(f"{path} is read-only; echod respects that. Make it writable (chmod u+w) to let it work.")


def _resemble(fd: int, directory: Dir, target: str, like: os.stat_result) -> None:
    path = directory.path / target
    made = os.fstat(fd)
    if (made.st_uid, made.st_gid) != (like.st_uid, like.st_gid):
        try:
            os.fchown(fd, like.st_uid, like.st_gid)
        except PermissionError as error:
            raise Refused(f"{path} belongs to another user or group, which echod could not keep; chown it.") from error
    os.fchmod(fd, stat.S_IMODE(like.st_mode))
    _copy_attributes(fd, directory, target)


def _copy_attributes(fd: int, directory: Dir, target: str) -> None:
    if not hasattr(os, "listxattr"):
        return
    old = directory.open(target, os.O_RDONLY)
    try:
        for name in _attributes(old):
            try:
                os.setxattr(fd, name, os.getxattr(old, name))
            except OSError as error:
                path = directory.path / target
                raise Refused(f"The extended attribute {name} of {path} could not be kept; remove it.") from error
    finally:
        os.close(old)


def _attributes(fd: int) -> list[str]:
    try:
        return [name for name in os.listxattr(fd) if name.startswith(_KEPT_ATTRIBUTES)]
    except OSError as error:
        if error.errno in (errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS):
            return []  # this file system has none to keep
        raise
