"""Apply a commit record: archive, exchange, record late merges, claim findings, mark as applied.

Recovery after a crash uses the same code to redo a record, so every step first checks whether it was done. Afterwards
the upstream search index is notified by a signal file. The index removes that file itself, and echod only touches it.

`healing.recovery` decides which records are redone.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from functools import partial

from echod.log import get_logger
from echod.memory.conservation import shows_changes
from echod.store.changes import LateMerge
from echod.store.commit import file_steps
from echod.store.commit.context import CommitContext, CommitStep
from echod.store.errors import store_error
from echod.store.fs import Dir, make_dir, open_dir
from echod.store.journal.records import CommitRecord, ConsumeRecord, RecordState, WriteRecord
from echod.store.layout import ARCHIVE, DIRTY_MARKER, MEMORY, Store, global_root

log = get_logger(__name__)

_SEARCH_INDEX = ".search-index.db"
_SIGNAL_DIRECTORY = ".rune-signals"
_DIRTY_SIGNAL = ".echo-dirty"


ConsumeCheck = Callable[["CommitContext", CommitRecord], CommitRecord]
"""Called when all writes of a record are published. Returns it with the findings that may be consumed now."""


def consume_all(context: CommitContext, record: CommitRecord) -> CommitRecord:
    """Return the record unchanged: a process that has just published it consumes all of its findings."""
    del context
    return record


def apply_record(context: CommitContext, record: CommitRecord, check: ConsumeCheck = consume_all) -> CommitRecord:
    """Apply a record, or finish applying it, and return it as applied. Idempotent.

    If the file system fails before anything visible has changed, the record is rolled back.
    """
    try:
        record = _apply_steps(context, record, check)
    except OSError as error:
        _roll_back_or_defer(context, record, error)
    applied = record._replace(state=RecordState.APPLIED)
    context.journal.save(applied)
    # The times of files in archives are never used, and archives get new files forever.
    archives = context.directory.path_of(f"{ARCHIVE}/")
    own_writes = (write for write in applied.writes if write.mtime_ns and not write.path.startswith(archives))
    context.journal.record_own_mtimes({write.path: write.mtime_ns for write in own_writes})
    if applied.writes or any(claimed.path.rpartition("/")[2] == MEMORY for claimed in applied.consumes):
        touch_search_signal(context.role.store)
    context.trace(CommitStep.APPLIED)
    return applied


def _apply_steps(context: CommitContext, record: CommitRecord, check: ConsumeCheck) -> CommitRecord:
    _write_archives(context, record)
    context.trace(CommitStep.ARCHIVED)
    for write in record.writes:
        record = _publish_write(context, record, write)
    for late_merge in record.late_merges:
        record_late_merge(context, late_merge)
    record = check(context, record)
    for consume in record.consumes:
        private = context.directory.open_private(consume.private)
        file_steps.claim_findings(private, *context.directory.resolve(consume.path), consume)
        context.trace(CommitStep.CLAIMED)
    if record.consumes:
        for path in {consume.private for consume in record.consumes}:
            context.directory.open_private(path).sync()
        context.directory.root.sync()
        context.trace(CommitStep.CLAIMS_SYNCED)
    return record


def _write_archives(context: CommitContext, record: CommitRecord) -> None:
    directories = {}
    for append in record.appends:
        directory, name = context.directory.resolve(append.path)
        private = context.directory.open_private(context.directory.private_path(append.path))
        file_steps.append_at(private, directory, name, context.journal.blobs.get(append.digest), append.offset)
        directories[directory.fd] = directory
    for directory in directories.values():
        directory.sync()


def _publish_write(context: CommitContext, record: CommitRecord, write: WriteRecord) -> CommitRecord:
    """Publish one write, or finish that, and return the record with it."""
    directory, name = context.directory.resolve(write.path)
    state = write_state(context, write)
    if state is file_steps.StageState.LOST:
        write = _stage_again(context, record, write)
    private = context.directory.open_private(write.private)
    if state is file_steps.StageState.PUBLISHED:
        file_steps.finish_publishing(private, directory, write, context.trace)
    else:
        file_steps.publish(private, directory, name, write, context.trace)
    status = directory.stat(name)
    is_ours = status is not None and status.st_ino == write.inode
    mtime_ns = status.st_mtime_ns if status is not None and is_ours else 0
    return record.with_write(write._replace(mtime_ns=mtime_ns))


def write_state(context: CommitContext, write: WriteRecord) -> file_steps.StageState:
    """Return the progress of one write of a recorded commit."""
    directory, name = context.directory.resolve(write.path)
    private = context.directory.find_private(write.private)
    return file_steps.stage_state(private, directory, name, write, partial(_shows_result, context, write))


def _shows_result(context: CommitContext, write: WriteRecord, data: bytes) -> bool:
    """Return whether a content has every block that the write added, and none that it removed."""
    before = context.cache.parse_before(context.journal, write.before_digest)
    after, visible = context.cache.parse_blob(context.journal, write.after_digest), context.cache.parse_document(data)
    if before is None or after is None or visible is None:
        return False
    return shows_changes(before, after, visible)


def _stage_again(context: CommitContext, record: CommitRecord, write: WriteRecord) -> WriteRecord:
    """Write a stage again that another program removed, under the same name."""
    directory, name = context.directory.resolve(write.path)
    private = context.directory.open_private(write.private)
    private.unlink(write.staged_name)  # at most a copy of the stage, as a restored backup would bring it
    after = context.journal.blobs.get(write.after_digest)
    write = write._replace(inode=file_steps.write_staged_file(private, write.staged_name, after, directory, name))
    context.journal.save(record.with_write(write))
    log.warning("stage_written_again", role=str(context.role.path), seq=record.seq)
    return write


def record_late_merge(context: CommitContext, late_merge: LateMerge) -> None:
    """Record in the older commit how much of its displaced or claimed file is merged now."""
    for older in context.journal.open_records():
        if older.seq != late_merge.seq:
            continue
        for write in older.writes:
            if write.staged_name == late_merge.file_name:
                context.journal.save(older.with_write(write._replace(merged_digest=late_merge.digest)))
        for consume in older.consumes:
            if consume.claimed_name == late_merge.file_name:
                context.journal.save(older.with_consume(consume._replace(merged_digest=late_merge.digest)))
        context.trace(CommitStep.LATE_MERGE_RECORDED)


def _roll_back_or_defer(context: CommitContext, record: CommitRecord, error: OSError) -> None:
    """Roll back after a failing call while nothing is visible, else leave the record to recovery."""
    path = context.role.path
    if not is_invisible(context, record):
        log.warning("commit_deferred", role=str(path), seq=record.seq, error=repr(error))
        raise store_error("finish a change in", path, error) from error
    roll_back(context, record)
    log.warning("commit_rolled_back", role=str(path), seq=record.seq, error=repr(error))
    raise store_error("change", path, error) from error


def is_invisible(context: CommitContext, record: CommitRecord) -> bool:
    """Return whether nothing of a commit is visible yet, except for text in archives."""
    if any(is_claimed(context, consume) for consume in record.consumes):
        return False
    return all(write_state(context, write) is file_steps.StageState.WAITING for write in record.writes)


def is_claimed(context: CommitContext, consume: ConsumeRecord) -> bool:
    """Return whether a findings file was renamed into the private directory."""
    private = context.directory.find_private(consume.private)
    return private is not None and private.inode(consume.claimed_name) is not None


def roll_back(context: CommitContext, record: CommitRecord) -> None:
    """Undo a recorded commit that changed nothing visible yet, and discard its record."""
    for append in record.appends:
        directory, name = context.directory.resolve(append.path)
        file_steps.roll_back_append(directory, name, context.journal.blobs.get(append.digest), append.offset)
    remove_staged_files(context, record)
    context.journal.discard(record)


def remove_staged_files(context: CommitContext, record: CommitRecord) -> None:
    """Remove the staged files of a record that was not applied. One that was exchanged is left where it is."""
    for write in record.writes:
        directory, name = context.directory.resolve(write.path)
        private = context.directory.find_private(write.private)
        if private is not None and file_steps.is_unpublished(private, directory, name, write):
            private.unlink(write.staged_name)
    context.journal.clear_staging()


def touch_search_signal(store: Store) -> None:
    """Touch `tmp/.rune-signals/.echo-dirty` if the store has an index or the project has a signal directory.

    The global store has a signal of its own, which is always touched. Best effort: without it the index is merely
    older than the memory.
    """
    if (root_parts := global_root(store)) is not None:
        with suppress(OSError), open_dir(store.project, root_parts) as root:
            _touch(root, DIRTY_MARKER)
        return
    signal_directory = store.project / "tmp" / _SIGNAL_DIRECTORY
    has_index = (store.root / _SEARCH_INDEX).exists()
    if not has_index and (not signal_directory.is_dir() or signal_directory.is_symlink()):
        return
    try:
        with open_dir(store.project, ("tmp",)) as tmp:
            make_dir(tmp, _SIGNAL_DIRECTORY)
            with tmp.open_subdir(_SIGNAL_DIRECTORY) as signals:
                _touch(signals, _DIRTY_SIGNAL)
    except OSError:
        return  # no `tmp`, or something else in its place: then no index listens there


def _touch(directory: Dir, name: str) -> None:
    with directory.open(name, os.O_WRONLY | os.O_CREAT) as fd:
        os.utime(fd)
