"""Putting a staged file in the place of its target without ever losing what stood there.

Afterwards the stage's *name* holds the displaced file, whose late bytes are followed (`absorb`). Every function
may be called again after a crash at any point: whether the exchange happened is judged by inodes, never by content.

The new content beside its target: same directory, dot-name, same mode, owner and extended attributes, durable.

A target that cannot be reproduced (foreign owner) or that its owner made read-only is refused before anything
is written down.

Taking a findings file away: claimed by rename to a dot-name that only we use, never checked and unlinked.

Its agent may write on through a descriptor it holds, or make the name anew at any time: the first is followed as
late bytes, the second is simply a new file.

Adding text to an archive: one write at a known offset, durable; and taking it back where a commit fails early.

After a crash the same call finishes a torn write and adds nothing twice that is already there.
"""

from __future__ import annotations

import errno
import os
import stat
from enum import Enum

from echod.log import get_logger
from echod.store.commit.steps import Step, Tracer
from echod.store.errors import Refused
from echod.store.fs import Dir, UnsupportedError, Writers, exchange, move_new, read_all, read_lease, sync, write_all
from echod.store.journal.records import ConsumeRecord, WriteRecord
from echod.store.snapshot import MAX_FILE_BYTES

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


_OLD = ".old"


class Published(Enum):
    """How it ended."""

    IN_PLACE = "our content stands in the target's place, or stood there"
    STAGE_LOST = "someone removed the stage before it was used"


def publish(directory: Dir, target: str, write: WriteRecord, trace: Tracer) -> Published:
    """Exchange the stage with the target, or create the target. Durable when this returns.

    Raises:
        OSError: the file system refused; the stage still is where it was.
    """
    stage_inode, target_inode = directory.inode(write.stage), directory.inode(target)
    if target_inode == write.inode:
        _tidy_links(directory, write)
    elif stage_inode == write.inode:
        _put(directory, target, write, trace)
    elif stage_inode is None and directory.inode(write.stage + _OLD) is not None:
        move_new(directory, write.stage + _OLD, directory, write.stage)
    elif stage_inode is None:
        return Published.STAGE_LOST
    directory.sync()
    trace(Step.PUBLISHED)
    return Published.IN_PLACE


def unpublished(directory: Dir, target: str, write: WriteRecord) -> bool:
    """Whether nothing was done yet: the stage still is the stage."""
    return directory.inode(write.stage) == write.inode and directory.inode(target) != write.inode


def _put(directory: Dir, target: str, write: WriteRecord, trace: Tracer) -> None:
    # A descriptor kept open over the exchange makes the last events on the target ATTRIB and CLOSE_WRITE, which
    # watchers understand as "changed" (an exchange alone looks to them like a file that went away), and its fresh
    # time keeps the target's mtime from going backwards.
    fd = directory.open(write.stage, os.O_WRONLY)
    try:
        while True:
            try:
                _replace(directory, target, write, trace)
                break
            except FileNotFoundError:
                if directory.inode(target) is not None or directory.inode(write.stage) != write.inode:
                    raise
            try:
                move_new(directory, write.stage, directory, target)
                trace(Step.CREATED)
                break
            except FileExistsError:
                continue
        os.utime(fd)
        trace(Step.TOUCHED)
    finally:
        os.close(fd)
    trace(Step.RELEASED)


def _replace(directory: Dir, target: str, write: WriteRecord, trace: Tracer) -> None:
    held = directory.open(target, os.O_RDONLY)
    try:
        with read_lease(held):
            trace(Step.LEASED)
            try:
                exchange(directory, write.stage, target)
            except UnsupportedError:
                _replace_by_link(directory, target, write, trace)
            trace(Step.EXCHANGED)
    finally:
        os.close(held)


def _replace_by_link(directory: Dir, target: str, write: WriteRecord, trace: Tracer) -> None:
    """Without exchange: keep the old file by a second name, then rename over it.

    A file that replaces the target between the two calls is lost; such file systems are written only when idle.
    """
    old = write.stage + _OLD
    directory.unlink(old)
    os.link(target, old, src_dir_fd=directory.fd, dst_dir_fd=directory.fd, follow_symlinks=False)
    trace(Step.LINKED)
    os.rename(write.stage, target, src_dir_fd=directory.fd, dst_dir_fd=directory.fd)
    _tidy_links(directory, write)


def _tidy_links(directory: Dir, write: WriteRecord) -> None:
    """Finish what a fallback began: the displaced file gets the stage's name, a second name of ours goes."""
    if directory.inode(write.stage) == write.inode:
        directory.unlink(write.stage)
    if directory.inode(write.stage + _OLD) is not None:
        move_new(directory, write.stage + _OLD, directory, write.stage)


def claim(directory: Dir, name: str, consume: ConsumeRecord) -> None:
    """Move the findings file to its claim name; a file that is gone, or claimed already, is fine.

    Raises:
        OSError: the file system refused.
    """
    if directory.inode(consume.claim) is not None:
        return
    try:
        move_new(directory, name, directory, consume.claim)
    except (FileNotFoundError, FileExistsError):
        return


def size(directory: Dir, name: str) -> int:
    """Where the next text would start; 0 where there is no file."""
    found = directory.stat(name)
    return found.st_size if found else 0


def append(directory: Dir, name: str, data: bytes, offset: int) -> None:
    """Add `data`, planned for `offset`, unless it is there. Durable once `directory` is synced too.

    Raises:
        OSError: it could not be written; the file may end in a part of it, which the next call completes.
    """
    fd = directory.open(name, os.O_RDWR | os.O_CREAT | os.O_APPEND)
    try:
        rest = _missing(fd, data, offset)
        write_all(fd, rest)
        sync(fd)
    finally:
        os.close(fd)


def take_back(directory: Dir, name: str, data: bytes, offset: int) -> None:
    """Undo `append` after a failure, if nobody wrote after it; else the text stays (twice is better than never)."""
    found = directory.stat(name)
    if found is None or found.st_size < offset:
        return
    fd = directory.open(name, os.O_RDONLY)
    try:
        with read_lease(fd) as writers:
            os.lseek(fd, offset, os.SEEK_SET)
            tail = read_all(fd, len(data))
            alone = writers is not Writers.SOME
        if not alone or not data.startswith(tail):
            return
        if offset == 0:
            directory.unlink(name)
        elif tail:
            _cut(directory, name, offset)
    finally:
        os.close(fd)


def _cut(directory: Dir, name: str, offset: int) -> None:
    fd = directory.open(name, os.O_WRONLY)
    try:
        os.ftruncate(fd, offset)
    finally:
        os.close(fd)


def _missing(fd: int, data: bytes, offset: int) -> bytes:
    """What of `data` still has to be written at the end."""
    os.lseek(fd, offset, os.SEEK_SET)
    tail = read_all(fd, MAX_FILE_BYTES)
    if tail and data.startswith(tail):
        return data[len(tail) :]
    return b"" if data in tail else data
