"""The steps of a commit on single files: stage, publish, claim, append.

Each step may be repeated after a crash at any point.

Stage: the new content is written in the private directory, with the mode, owner and extended attributes of the
target, durable. A target that cannot be reproduced (foreign owner) or that its owner made read-only is refused before
anything is recorded.

Publish: the stage replaces the target without ever losing the old file. Afterwards the stage's *name* names the
displaced file, which is followed for late writes. Whether the exchange happened is decided by inodes and contents
together, because others may remove the private directory, and then its inode numbers are used again.

Claim: a findings file is renamed into the private directory, never checked and unlinked. Its agent may continue to
write through an open descriptor, or create the name again at any time. The first is followed as a late write, the
second is simply a new file.

Append: text is added to an archive in one write at a known offset, durably, and removed again if a commit fails early.
After a crash the same call completes a torn write and adds nothing twice. An archive that has another name (a hard
link) is copied first, so that the other name keeps its content.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable
from contextlib import suppress
from enum import Enum

from echod.files import content_digest, full_fsync, write_all
from echod.log import get_logger
from echod.memory import MAX_FILE_BYTES
from echod.paths import PRIVATE_FILE_MODE
from echod.store.commit.context import CommitStep, Tracer
from echod.store.errors import RefusedError
from echod.store.fs import (
    NEW_FILE_MODE,
    Dir,
    OpenWriters,
    RenameUnsupportedError,
    exchange,
    read_all,
    read_lease,
    rename_noreplace_or_link,
    replacement_problem,
)
from echod.store.journal.records import ConsumeRecord, WriteRecord
from echod.store.layout import MEMORY_BACKUP_PREFIX

log = get_logger(__name__)

_COPIED_XATTRS = ("user.", "system.posix_acl_access")
_NO_XATTRS_ERRNOS = (errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS)
_OLD_SUFFIX = ".old"
_COPY_SUFFIX = "echod-copy"
_COPY_BYTES = 1 << 20


def write_staged_file(private: Dir, name: str, data: bytes, directory: Dir, target: str) -> int:
    """Write the stage for `target` and return its inode. Durable when this returns; a failure leaves nothing behind.

    Refused if the target's mode, owner or attributes cannot be kept, or it is read-only or not a plain file.
    """
    status = directory.stat(target)
    if status is not None:
        _check_target(directory, target, status)
        if status.st_nlink > 1:
            log.warning("file_has_hard_links", path=str(directory.path / target), names=status.st_nlink)
    mode = PRIVATE_FILE_MODE if target.startswith(MEMORY_BACKUP_PREFIX) else NEW_FILE_MODE
    inode = _write_copy(private, name, data, directory, target, status, mode)
    private.sync()
    return inode


def _write_copy(
    private: Dir, name: str, data: bytes, directory: Dir, target: str, status: os.stat_result | None, mode: int
) -> int:
    """Write a file that can take the place of `target`, whose status is given, and return its inode."""
    with private.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode) as fd:
        try:
            write_all(fd, data)
            if status is not None:
                _copy_metadata(fd, directory, target, status)
            full_fsync(fd)
            return os.fstat(fd).st_ino
        except BaseException:
            private.unlink(name)
            raise


def _check_target(directory: Dir, target: str, status: os.stat_result) -> None:
    if (problem := replacement_problem(directory.path / target, status)) is not None:
        raise RefusedError(problem)


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


class StageState(Enum):
    """The progress of one write of a recorded commit."""

    WAITING = "the stage is in its place and was not used"
    PUBLISHED = "the new content is, or was, in the target's place"
    LOST = "another program removed or replaced the stage before it was used"


ShowsResult = Callable[[bytes], bool]
"""Return whether a content of the target shows that the write was done, even if it was edited since."""


def stage_state(private: Dir | None, directory: Dir, target: str, write: WriteRecord, shows: ShowsResult) -> StageState:
    """Return the progress of a write. `private` is None if the private directory does not exist any more."""
    staged = None if private is None else private.inode(write.staged_name)
    target_inode = directory.inode(target)
    if private is None or staged is None:
        return _state_without_stage(private, directory, target, write, shows)
    if staged == target_inode == write.inode:
        return StageState.PUBLISHED  # the link fallback was killed before it removed the second name
    is_stage = _digest_at(private, write.staged_name) == write.after_digest
    if staged == write.inode and is_stage:
        return StageState.WAITING
    if staged != write.inode and not is_stage:
        return StageState.PUBLISHED  # this is the displaced file
    return StageState.PUBLISHED if _shows_result(directory, target, write, shows) else StageState.LOST


def _state_without_stage(
    private: Dir | None, directory: Dir, target: str, write: WriteRecord, shows: ShowsResult
) -> StageState:
    old = None if private is None else private.inode(write.staged_name + _OLD_SUFFIX)
    if old is not None and directory.inode(target) == write.inode:
        return StageState.PUBLISHED
    return StageState.PUBLISHED if _shows_result(directory, target, write, shows) else StageState.LOST


def _shows_result(directory: Dir, target: str, write: WriteRecord, shows: ShowsResult) -> bool:
    try:
        data = directory.read(target, MAX_FILE_BYTES)
    except OSError:
        return False
    digest = content_digest(data)
    return digest == write.after_digest or (digest != write.before_digest and shows(data))


def _digest_at(directory: Dir, name: str) -> str | None:
    try:
        return content_digest(directory.read(name, MAX_FILE_BYTES))
    except OSError:
        return None


def publish(private: Dir, directory: Dir, target: str, write: WriteRecord, trace: Tracer) -> None:
    """Exchange the stage, which waits, with the target, or create the target. Durable when this returns.

    After an `OSError` the stage is still in its place.
    """
    _exchange_or_create(private, directory, target, write, trace)
    _sync_publication(private, directory, trace)


def finish_publishing(private: Dir, directory: Dir, write: WriteRecord, trace: Tracer) -> None:
    """Finish a publication that was done before a crash. Durable when this returns."""
    _finish_link_fallback(private, write)
    _sync_publication(private, directory, trace)


def _sync_publication(private: Dir, directory: Dir, trace: Tracer) -> None:
    private.sync()
    directory.sync()
    trace(CommitStep.PUBLISHED)


def is_unpublished(private: Dir | None, directory: Dir, target: str, write: WriteRecord) -> bool:
    """Return whether this process, which wrote the stage, did nothing yet: the stage's name still names the stage."""
    staged = None if private is None else private.inode(write.staged_name)
    return staged == write.inode and directory.inode(target) != write.inode


def _exchange_or_create(private: Dir, directory: Dir, target: str, write: WriteRecord, trace: Tracer) -> None:
    # A descriptor kept open over the exchange makes the last events on the target ATTRIB and CLOSE_WRITE, which
    # watchers understand as "changed" (an exchange alone looks to them like a removed file), and its fresh time keeps
    # the target's mtime from going backwards.
    with private.open(write.staged_name, os.O_WRONLY) as fd:
        while True:
            try:
                _exchange_target(private, directory, target, write, trace)
                break
            except FileNotFoundError:
                if directory.inode(target) is not None or private.inode(write.staged_name) != write.inode:
                    raise
            try:
                rename_noreplace_or_link(private, write.staged_name, directory, target)
                trace(CommitStep.CREATED)
                break
            except FileExistsError:
                continue
        os.utime(fd)
        trace(CommitStep.TOUCHED)
    trace(CommitStep.RELEASED)


def _exchange_target(private: Dir, directory: Dir, target: str, write: WriteRecord, trace: Tracer) -> None:
    with directory.open(target, os.O_RDONLY) as target_fd, read_lease(target_fd):
        trace(CommitStep.LEASED)
        try:
            exchange(private, write.staged_name, directory, target)
        except RenameUnsupportedError:
            _replace_with_link(private, directory, target, write, trace)
        trace(CommitStep.EXCHANGED)


def _replace_with_link(private: Dir, directory: Dir, target: str, write: WriteRecord, trace: Tracer) -> None:
    """Replace the target without exchange: keep the old file by a second name, then rename over it.

    A file that replaces the target between the two calls is lost. Such file systems are written only when idle.
    """
    old_name = write.staged_name + _OLD_SUFFIX
    private.unlink(old_name)
    os.link(target, old_name, src_dir_fd=directory.fd, dst_dir_fd=private.fd, follow_symlinks=False)
    trace(CommitStep.LINKED)
    os.rename(write.staged_name, target, src_dir_fd=private.fd, dst_dir_fd=directory.fd)
    _finish_link_fallback(private, write)


def _finish_link_fallback(private: Dir, write: WriteRecord) -> None:
    """Finish a fallback: the displaced file gets the stage's name, and the second name of the new file is removed."""
    if private.inode(write.staged_name) == write.inode:
        private.unlink(write.staged_name)
    if private.inode(write.staged_name + _OLD_SUFFIX) is not None:
        rename_noreplace_or_link(private, write.staged_name + _OLD_SUFFIX, private, write.staged_name)


def claim_findings(private: Dir, directory: Dir, name: str, consume: ConsumeRecord) -> None:
    """Rename the findings file to its claim name. A file that is missing or already claimed is not an error."""
    if private.inode(consume.claimed_name) is None:
        with suppress(FileNotFoundError, FileExistsError):
            rename_noreplace_or_link(directory, name, private, consume.claimed_name)


def file_size(directory: Dir, name: str) -> int:
    """Return the offset at which the next text would start; 0 if there is no file."""
    status = directory.stat(name)
    return status.st_size if status else 0


def append_at(private: Dir, directory: Dir, name: str, data: bytes, offset: int) -> None:
    """Append `data`, planned for `offset`, unless it is already there. Durable once `directory` is synced too.

    After an `OSError` the file may end in a part of it, which the next call completes. A file with other names (hard
    links) is replaced by a copy first, so that those keep their content.
    """
    status = directory.stat(name)
    if status is not None and stat.S_ISREG(status.st_mode) and status.st_nlink > 1:
        _replace_hard_link(private, directory, name, status)
    with directory.open(name, os.O_RDWR | os.O_CREAT | os.O_APPEND) as fd:
        os.lseek(fd, offset, os.SEEK_SET)
        tail = read_all(fd, MAX_FILE_BYTES)
        if tail and data.startswith(tail):
            write_all(fd, data[len(tail) :])
        elif data not in tail:
            write_all(fd, data)
        full_fsync(fd)


def _replace_hard_link(private: Dir, directory: Dir, name: str, status: os.stat_result) -> None:
    """Give an archive a copy of its own. Its other name, which may be anywhere, keeps the old file."""
    copy = f".{name}.{_COPY_SUFFIX}"
    private.unlink(copy)  # a leftover of a crash
    with directory.open(name, os.O_RDONLY) as source, read_lease(source) as writers:
        if writers is OpenWriters.SOME:
            raise OSError(errno.EBUSY, os.strerror(errno.EBUSY), name)
        with private.open(copy, os.O_WRONLY | os.O_CREAT | os.O_EXCL, PRIVATE_FILE_MODE) as target:
            while part := os.read(source, _COPY_BYTES):
                write_all(target, part)
            _copy_metadata(target, directory, name, status)
            full_fsync(target)
    os.rename(copy, name, src_dir_fd=private.fd, dst_dir_fd=directory.fd)
    directory.sync()
    log.warning("hard_link_replaced", path=str(directory.path / name), names=status.st_nlink)


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
