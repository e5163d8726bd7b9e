"""The steps of a commit on single files: stage, publish, claim, append.

Each step may be repeated after a crash at any point.

Stage: the new content is written beside its target, in the same directory under a dot-name, with the same mode, owner
and extended attributes, durable. A target that cannot be reproduced (foreign owner) or that its owner made read-only
is refused before anything is recorded.

Publish: the stage replaces the target without ever losing the old file. Afterwards the stage's *name* names the
displaced file, which is followed for late writes. Whether the exchange happened is decided by inodes, never by
content.

Claim: a findings file is renamed to a dot-name that only echod uses, never checked and unlinked. Its agent may
continue to write through an open descriptor, or create the name again at any time. The first is followed as a late
write, the second is simply a new file.

Append: text is added to an archive in one write at a known offset, durably, and removed again if a commit fails early.
After a crash the same call completes a torn write and adds nothing twice.
"""

from __future__ import annotations

import errno
import os
import stat
from contextlib import suppress
from enum import Enum

from echod.log import get_logger
from echod.memory.model import MAX_FILE_BYTES
from echod.paths import PRIVATE_FILE_MODE
from echod.store.commit.context import CommitStep, Tracer
from echod.store.errors import RefusedError
from echod.store.fs import (
    NEW_FILE_MODE,
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
from echod.store.layout import MEMORY_BACKUP_PREFIX

log = get_logger(__name__)

_COPIED_XATTRS = ("user.", "system.posix_acl_access")
_NO_XATTRS_ERRNOS = (errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS)
_OWNER_WRITE = 0o200
_OLD_SUFFIX = ".old"
_COPY_BYTES = 1 << 20


def write_staged_file(directory: Dir, name: str, data: bytes, target: str) -> int:
    """Write the stage for `target` and return its inode. Durable when this returns; a failure leaves nothing behind.

    Refused if the target's mode, owner or attributes cannot be kept, or it is read-only or not a plain file.
    """
    status = directory.stat(target)
    if status is not None:
        _check_target(directory, target, status)
        if status.st_nlink > 1:
            log.warning("file_has_hard_links", path=str(directory.path / target), names=status.st_nlink)
    mode = PRIVATE_FILE_MODE if target.startswith(MEMORY_BACKUP_PREFIX) else NEW_FILE_MODE
    with directory.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode) as fd:
        try:
            write_all(fd, data)
            if status is not None:
                _copy_metadata(fd, directory, target, status)
            full_fsync(fd)
            return os.fstat(fd).st_ino
        except BaseException:
            directory.unlink(name)
            raise


def _check_target(directory: Dir, target: str, status: os.stat_result) -> None:
    path = directory.path / target
    if not stat.S_ISREG(status.st_mode):
        raise RefusedError(
            f"{path} is a symbolic link or not a plain file; echod does not change it. Put a plain file there."
        )
    if not status.st_mode & _OWNER_WRITE:
        raise RefusedError(
            f"{path} is read-only; echod does not change it. Make it writable (chmod u+w) to allow changes."
        )


def _copy_metadata(fd: int, directory: Dir, target: str, status: os.stat_result) -> None:
    staged = os.fstat(fd)
    if (staged.st_uid, staged.st_gid) != (status.st_uid, status.st_gid):
        try:
            os.fchown(fd, status.st_uid, status.st_gid)
        except PermissionError as error:
            path = directory.path / target
            raise RefusedError(
                f"{path} belongs to another user or group, which echod could not keep; chown it."
            ) from error
    os.fchmod(fd, stat.S_IMODE(status.st_mode))
    _copy_xattrs(fd, directory, target)


def _copy_xattrs(fd: int, directory: Dir, target: str) -> None:
    if not hasattr(os, "listxattr"):
        return
    with directory.open(target, os.O_RDONLY) as target_fd:
        for name in _list_xattrs(target_fd):
            try:
                os.setxattr(fd, name, os.getxattr(target_fd, name))
            except OSError as error:
                path = directory.path / target
                raise RefusedError(f"The extended attribute {name} of {path} could not be kept; remove it.") from error


def _list_xattrs(fd: int) -> list[str]:
    try:
        return [name for name in os.listxattr(fd) if name.startswith(_COPIED_XATTRS)]
    except OSError as error:
        if error.errno in _NO_XATTRS_ERRNOS:
            return []  # this file system has no attributes to keep
        raise


class PublishResult(Enum):
    """The result of `publish`."""

    IN_PLACE = "the new content is, or was, in the target's place"
    STAGE_LOST = "another program removed the stage before it was used"


def publish(directory: Dir, target: str, write: WriteRecord, trace: Tracer) -> PublishResult:
    """Exchange the stage with the target, or create the target. Durable when this returns.

    After an `OSError` the stage is still in its place.
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
    """Return whether nothing was done yet: the stage's name still names the stage."""
    return directory.inode(write.staged_name) == write.inode and directory.inode(target) != write.inode


def _exchange_or_create(directory: Dir, target: str, write: WriteRecord, trace: Tracer) -> None:
    # A descriptor kept open over the exchange makes the last events on the target ATTRIB and CLOSE_WRITE, which
    # watchers understand as "changed" (an exchange alone looks to them like a removed file), and its fresh time keeps
    # the target's mtime from going backwards.
    with directory.open(write.staged_name, os.O_WRONLY) as fd:
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
    trace(CommitStep.RELEASED)


def _exchange_target(directory: Dir, target: str, write: WriteRecord, trace: Tracer) -> None:
    with directory.open(target, os.O_RDONLY) as target_fd, read_lease(target_fd):
        trace(CommitStep.LEASED)
        try:
            exchange(directory, write.staged_name, target)
        except RenameUnsupportedError:
            _replace_with_link(directory, target, write, trace)
        trace(CommitStep.EXCHANGED)


def _replace_with_link(directory: Dir, target: str, write: WriteRecord, trace: Tracer) -> None:
    """Replace the target without exchange: keep the old file by a second name, then rename over it.

    A file that replaces the target between the two calls is lost. Such file systems are written only when idle.
    """
    old_name = write.staged_name + _OLD_SUFFIX
    directory.unlink(old_name)
    os.link(target, old_name, src_dir_fd=directory.fd, dst_dir_fd=directory.fd, follow_symlinks=False)
    trace(CommitStep.LINKED)
    os.rename(write.staged_name, target, src_dir_fd=directory.fd, dst_dir_fd=directory.fd)
    _finish_link_fallback(directory, write)


def _finish_link_fallback(directory: Dir, write: WriteRecord) -> None:
    """Finish a fallback: the displaced file gets the stage's name, and the second name of the new file is removed."""
    if directory.inode(write.staged_name) == write.inode:
        directory.unlink(write.staged_name)
    if directory.inode(write.staged_name + _OLD_SUFFIX) is not None:
        rename_noreplace_or_link(directory, write.staged_name + _OLD_SUFFIX, directory, write.staged_name)


def claim_findings(directory: Dir, name: str, consume: ConsumeRecord) -> None:
    """Rename the findings file to its claim name. A file that is missing or already claimed is not an error."""
    if directory.inode(consume.claimed_name) is None:
        with suppress(FileNotFoundError, FileExistsError):
            rename_noreplace_or_link(directory, name, directory, consume.claimed_name)


def file_size(directory: Dir, name: str) -> int:
    """Return the offset at which the next text would start; 0 if there is no file."""
    status = directory.stat(name)
    return status.st_size if status else 0


def append_at(directory: Dir, name: str, data: bytes, offset: int) -> None:
    """Append `data`, planned for `offset`, unless it is already there. Durable once `directory` is synced too.

    After an `OSError` the file may end in a part of it, which the next call completes. A file with other names (hard
    links) is replaced by a copy first, so that those keep their content.
    """
    status = directory.stat(name)
    if status is not None and stat.S_ISREG(status.st_mode) and status.st_nlink > 1:
        _replace_by_copy(directory, name, status)
    with directory.open(name, os.O_RDWR | os.O_CREAT | os.O_APPEND) as fd:
        os.lseek(fd, offset, os.SEEK_SET)
        tail = read_all(fd, MAX_FILE_BYTES)
        if tail and data.startswith(tail):
            write_all(fd, data[len(tail) :])
        elif data not in tail:
            write_all(fd, data)
        full_fsync(fd)


def _replace_by_copy(directory: Dir, name: str, status: os.stat_result) -> None:
    # A leftover of a crash has the same name, so it is removed here.
    copy = f".{name}.echod-copy"
    directory.unlink(copy)
    with directory.open(name, os.O_RDONLY) as source, read_lease(source) as writers:
        if writers is OpenWriters.SOME:
            raise OSError(errno.EBUSY, os.strerror(errno.EBUSY), name)
        with directory.open(copy, os.O_WRONLY | os.O_CREAT | os.O_EXCL, PRIVATE_FILE_MODE) as target:
            while part := os.read(source, _COPY_BYTES):
                write_all(target, part)
            _copy_metadata(target, directory, name, status)
            full_fsync(target)
        os.rename(copy, name, src_dir_fd=directory.fd, dst_dir_fd=directory.fd)
    directory.sync()
    log.warning("hard_link_separated", path=str(directory.path / name), names=status.st_nlink)


def roll_back_append(directory: Dir, name: str, data: bytes, offset: int) -> None:
    """Undo `append_at` after a failure. If another program wrote after it, it remains: better twice than never."""
    status = directory.stat(name)
    if status is None or status.st_size < offset:
        return
    with directory.open(name, os.O_RDONLY) as fd:
        with read_lease(fd) as writers:
            os.lseek(fd, offset, os.SEEK_SET)
            tail = read_all(fd, len(data))
        if writers is OpenWriters.SOME or not data.startswith(tail):
            return
        if offset == 0:
            directory.unlink(name)
        elif tail:
            with directory.open(name, os.O_WRONLY) as writable:
                os.ftruncate(writable, offset)
