"""Putting a staged file in the place of its target without ever losing what stood there.

Afterwards the stage's *name* holds the displaced file, whose late bytes are followed (`absorb`). Every function
may be called again after a crash at any point: whether the exchange happened is judged by inodes, never by content.
"""

from __future__ import annotations

import os
from enum import Enum

from echod.store.commit.steps import Step, Tracer
from echod.store.fs import Dir
from echod.store.journal.records import WriteRecord
from echod.store.lease import read_lease
from echod.store.renames import UnsupportedError, exchange, move_new

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
