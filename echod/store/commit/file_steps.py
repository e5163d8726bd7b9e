"""Putting a staged file in the place of its target without ever losing what stood there.

Afterwards the stage's *name* holds the displaced file, whose late bytes are followed. Every function
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
from echod.memory.model import MAX_FILE_BYTES
from echod.store.commit.steps import CommitStep, Tracer
from echod.store.errors import RefusedError
from echod.store.fs import (
    Dir,
    OpenWriters,
    RenameUnsupportedError,
    exchange,
    full_fsync,
    read_all,
    read_lease,
    rename_noreplace_or_link,
    write_all,
)
from echod.store.journal.records import ConsumeRecord, WriteRecord

log = get_logger(__name__)

_COPIED_XATTRS = ("user.", "system.posix_acl_access")
_NEW_FILE_MODE = 0o666  # less the umask, like any other program's new file
_BACKUP_MODE = 0o600


def write_staged_file(directory: Dir, name: str, data: bytes, target: str) -> int:
    """Write the stage for `target` and return its inode. Durable when this returns.

    Raises:
        RefusedError: mode, owner or attributes of the target cannot be kept, or it is read-only or no plain file.
        OSError: writing failed; nothing is left behind.
    """
    target_status = directory.stat(target)
    if target_status is not None:
        _check_target(directory, target, target_status)
        if target_status.st_nlink > 1:
            log.warning("file_has_hard_links", path=str(directory.path / target), names=target_status.st_nlink)
    mode = _BACKUP_MODE if target.startswith("MEMORY-") else _NEW_FILE_MODE
    fd = directory.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    try:
        write_all(fd, data)
        if target_status is not None:
            _copy_metadata(fd, directory, target, target_status)
        full_fsync(fd)
        return os.fstat(fd).st_ino
    except BaseException:
        directory.unlink(name)
        raise
    finally:
        os.close(fd)


def _check_target(directory: Dir, target: str, target_status: os.stat_result) -> None:
    path = directory.path / target
    if not stat.S_ISREG(target_status.st_mode):
        raise RefusedError(f"{path} is a symbolic link or no plain file; echod leaves it alone. Put a real file there.")
    if not target_status.st_mode & 0o200:
        raise RefusedError(f"{path} is read-only; echod respects that. Make it writable (chmod u+w) to let it work.")


def _copy_metadata(fd: int, directory: Dir, target: str, target_status: os.stat_result) -> None:
    path = directory.path / target
    staged_status = os.fstat(fd)
    if (staged_status.st_uid, staged_status.st_gid) != (target_status.st_uid, target_status.st_gid):
        try:
            os.fchown(fd, target_status.st_uid, target_status.st_gid)
        except PermissionError as error:
            raise RefusedError(
                f"{path} belongs to another user or group, which echod could not keep; chown it."
            ) from error
    os.fchmod(fd, stat.S_IMODE(target_status.st_mode))
    _copy_xattrs(fd, directory, target)


def _copy_xattrs(fd: int, directory: Dir, target: str) -> None:
    if not hasattr(os, "listxattr"):
        return
    target_fd = directory.open(target, os.O_RDONLY)
    try:
        for name in _list_xattrs(target_fd):
            try:
                os.setxattr(fd, name, os.getxattr(target_fd, name))
            except OSError as error:
                path = directory.path / target
                raise RefusedError(f"The extended attribute {name} of {path} could not be kept; remove it.") from error
    finally:
        os.close(target_fd)


def _list_xattrs(fd: int) -> list[str]:
    try:
        return [name for name in os.listxattr(fd) if name.startswith(_COPIED_XATTRS)]
    except OSError as error:
        if error.errno in (errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS):
            return []  # this file system has none to keep
        raise


_OLD_SUFFIX = ".old"


class PublishResult(Enum):
    """How it ended."""

    IN_PLACE = "our content stands in the target's place, or stood there"
    STAGE_LOST = "someone removed the stage before it was used"


def publish(directory: Dir, target: str, write: WriteRecord, trace: Tracer) -> PublishResult:
    """Exchange the stage with the target, or create the target. Durable when this returns.

    Raises:
        OSError: the file system refused; the stage still is where it was.
    """
    staged_inode, target_inode = directory.inode(write.staged_name), directory.inode(target)
    if target_inode == write.inode:
        _finish_link_fallback(directory, write)
    elif staged_inode == write.inode:
        _exchange_or_create(directory, target, write, trace)
    elif staged_inode is None and directory.inode(write.staged_name + _OLD_SUFFIX) is not None:
        rename_noreplace_or_link(directory, write.staged_name + _OLD_SUFFIX, directory, write.staged_name)
    elif staged_inode is None:
        return PublishResult.STAGE_LOST
    directory.sync()
    trace(CommitStep.PUBLISHED)
    return PublishResult.IN_PLACE


def is_unpublished(directory: Dir, target: str, write: WriteRecord) -> bool:
    """Whether nothing was done yet: the stage still is the stage."""
    return directory.inode(write.staged_name) == write.inode and directory.inode(target) != write.inode


def _exchange_or_create(directory: Dir, target: str, write: WriteRecord, trace: Tracer) -> None:
    # A descriptor kept open over the exchange makes the last events on the target ATTRIB and CLOSE_WRITE, which
    # watchers understand as "changed" (an exchange alone looks to them like a file that went away), and its fresh
    # time keeps the target's mtime from going backwards.
    fd = directory.open(write.staged_name, os.O_WRONLY)
    try:
        while True:
            try:
                _exchange_target(directory, target, write, trace)
                break
            except FileNotFoundError:
                if directory.inode(target) is not None or directory.inode(write.staged_name) != write.inode:
                    raise
            try:
                rename_noreplace_or_link(directory, write.staged_name, directory, target)
                trace(CommitStep.CREATED)
                break
            except FileExistsError:
                continue
        os.utime(fd)
        trace(CommitStep.TOUCHED)
    finally:
        os.close(fd)
    trace(CommitStep.RELEASED)


def _exchange_target(directory: Dir, target: str, write: WriteRecord, trace: Tracer) -> None:
    target_fd = directory.open(target, os.O_RDONLY)
    try:
        with read_lease(target_fd):
            trace(CommitStep.LEASED)
            try:
                exchange(directory, write.staged_name, target)
            except RenameUnsupportedError:
                _replace_with_link(directory, target, write, trace)
            trace(CommitStep.EXCHANGED)
    finally:
        os.close(target_fd)


def _replace_with_link(directory: Dir, target: str, write: WriteRecord, trace: Tracer) -> None:
    """Without exchange: keep the old file by a second name, then rename over it.

    A file that replaces the target between the two calls is lost; such file systems are written only when idle.
    """
    old_name = write.staged_name + _OLD_SUFFIX
    directory.unlink(old_name)
    os.link(target, old_name, src_dir_fd=directory.fd, dst_dir_fd=directory.fd, follow_symlinks=False)
    trace(CommitStep.LINKED)
    os.rename(write.staged_name, target, src_dir_fd=directory.fd, dst_dir_fd=directory.fd)
    _finish_link_fallback(directory, write)


def _finish_link_fallback(directory: Dir, write: WriteRecord) -> None:
    """Finish what a fallback began: the displaced file gets the stage's name, a second name of ours goes."""
    if directory.inode(write.staged_name) == write.inode:
        directory.unlink(write.staged_name)
    if directory.inode(write.staged_name + _OLD_SUFFIX) is not None:
        rename_noreplace_or_link(directory, write.staged_name + _OLD_SUFFIX, directory, write.staged_name)


def claim_findings(directory: Dir, name: str, consume: ConsumeRecord) -> None:
    """Move the findings file to its claim name; a file that is gone, or claimed already, is fine.

    Raises:
        OSError: the file system refused.
    """
    if directory.inode(consume.claimed_name) is not None:
        return
    try:
        rename_noreplace_or_link(directory, name, directory, consume.claimed_name)
    except (FileNotFoundError, FileExistsError):
        return


def file_size(directory: Dir, name: str) -> int:
    """Where the next text would start; 0 where there is no file."""
    found = directory.stat(name)
    return found.st_size if found else 0


def append_at(directory: Dir, name: str, data: bytes, offset: int) -> None:
    """Add `data`, planned for `offset`, unless it is there. Durable once `directory` is synced too.

    Raises:
        OSError: it could not be written; the file may end in a part of it, which the next call completes.
    """
    fd = directory.open(name, os.O_RDWR | os.O_CREAT | os.O_APPEND)
    try:
        remaining = _remaining_data(fd, data, offset)
        write_all(fd, remaining)
        full_fsync(fd)
    finally:
        os.close(fd)


def roll_back_append(directory: Dir, name: str, data: bytes, offset: int) -> None:
    """Undo `append` after a failure, if nobody wrote after it; else the text stays (twice is better than never)."""
    found = directory.stat(name)
    if found is None or found.st_size < offset:
        return
    fd = directory.open(name, os.O_RDONLY)
    try:
        with read_lease(fd) as writers:
            os.lseek(fd, offset, os.SEEK_SET)
            tail = read_all(fd, len(data))
            no_other_writer = writers is not OpenWriters.SOME
        if not no_other_writer or not data.startswith(tail):
            return
        if offset == 0:
            directory.unlink(name)
        elif tail:
            _truncate(directory, name, offset)
    finally:
        os.close(fd)


def _truncate(directory: Dir, name: str, offset: int) -> None:
    fd = directory.open(name, os.O_WRONLY)
    try:
        os.ftruncate(fd, offset)
    finally:
        os.close(fd)


def _remaining_data(fd: int, data: bytes, offset: int) -> bytes:
    """What of `data` still has to be written at the end."""
    os.lseek(fd, offset, os.SEEK_SET)
    tail = read_all(fd, MAX_FILE_BYTES)
    if tail and data.startswith(tail):
        return data[len(tail) :]
    return b"" if data in tail else data
