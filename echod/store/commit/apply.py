"""Apply a commit record: archive, exchange, record late merges, claim findings, mark as applied.

Recovery after a crash uses the same code to redo a record, so every step first checks whether it was done. Afterwards
the upstream search index is notified by a signal file. The index removes that file itself, and echod only touches it.

Recovery first sweeps staged files without a record, because afterwards its own commits would have files that look the
same. Then it finishes every intent, oldest first. A crash inside recovery is the same case again.
"""

from __future__ import annotations

import os
import re
from contextlib import suppress
from dataclasses import replace
from typing import NamedTuple

from echod.log import get_logger
from echod.store.changes import LateMerge
from echod.store.commit import file_steps
from echod.store.commit.context import CommitContext, CommitStep
from echod.store.errors import as_store_error, store_error
from echod.store.fs import Dir, make_dir, open_dir
from echod.store.journal.records import CommitRecord, RecordState, WriteRecord
from echod.store.layout import ARCHIVE, DIRTY_MARKER, MEMORY, Store, global_root

log = get_logger(__name__)

_SEARCH_INDEX = ".search-index.db"
_SIGNAL_DIRECTORY = ".rune-signals"
_DIRTY_SIGNAL = ".echo-dirty"
_STAGED_NAME = re.compile(r"\..+\.echod-(?P<journal_id>[0-9a-f]{6})-(?P<seq>\d{6,})-\d+(?:\.old)?")


def apply_record(context: CommitContext, record: CommitRecord) -> CommitRecord:
    """Apply a record, or finish applying it, and return it as applied. Idempotent.

    If the file system fails before anything visible has changed, the record is rolled back.
    """
    try:
        record = _apply_steps(context, record)
    except OSError as error:
        _roll_back_or_defer(context, record, error)
    applied = replace(record, state=RecordState.APPLIED)
    context.journal.save(applied)
    # The times of files in archives are never used, and archives get new files forever.
    archives = context.directory.path_of(f"{ARCHIVE}/")
    own_writes = (write for write in applied.writes if write.mtime_ns and not write.path.startswith(archives))
    context.journal.record_own_mtimes({write.path: write.mtime_ns for write in own_writes})
    if applied.writes or any(claimed.path.rpartition("/")[2] == MEMORY for claimed in applied.consumes):
        touch_search_signal(context.role.store)
    context.trace(CommitStep.APPLIED)
    return applied


def _apply_steps(context: CommitContext, record: CommitRecord) -> CommitRecord:
    _write_archives(context, record)
    context.trace(CommitStep.ARCHIVED)
    for write in record.writes:
        record = record.with_write(_publish_write(context, record, write))
    for late_merge in record.late_merges:
        record_late_merge(context, late_merge)
    for consume in record.consumes:
        file_steps.claim_findings(*context.directory.resolve(consume.path), consume)
        context.trace(CommitStep.CLAIMED)
    if record.consumes:
        context.directory.root.sync()
        context.trace(CommitStep.CLAIMS_SYNCED)
    return record


def _write_archives(context: CommitContext, record: CommitRecord) -> None:
    directories = {}
    for append in record.appends:
        directory, name = context.directory.resolve(append.path)
        file_steps.append_at(directory, name, context.journal.blobs.get(append.digest), append.offset)
        directories[directory.fd] = directory
    for directory in directories.values():
        directory.sync()


def _publish_write(context: CommitContext, record: CommitRecord, write: WriteRecord) -> WriteRecord:
    directory, name = context.directory.resolve(write.path)
    if file_steps.publish(directory, name, write, context.trace) is file_steps.PublishResult.STAGE_LOST:
        write = _stage_again(context, record, write)
    status = directory.stat(name)
    is_ours = status is not None and status.st_ino == write.inode
    return replace(write, mtime_ns=status.st_mtime_ns if status is not None and is_ours else 0)


def _stage_again(context: CommitContext, record: CommitRecord, write: WriteRecord) -> WriteRecord:
    """Write a staged file again that another program removed. If the target has changed, lineage decides later."""
    directory, name = context.directory.resolve(write.path)
    before = None if write.before_digest is None else context.journal.blobs.get(write.before_digest)
    if context.read(write.path).data != before:
        return write
    after = context.journal.blobs.get(write.after_digest)
    inode = file_steps.write_staged_file(directory, write.staged_name, after, name)
    directory.sync()
    write = replace(write, inode=inode)
    context.journal.save(record.with_write(write))
    file_steps.publish(directory, name, write, context.trace)
    return write


def record_late_merge(context: CommitContext, late_merge: LateMerge) -> None:
    """Record in the older commit how much of its displaced or claimed file is merged now."""
    for older in context.journal.open_records():
        if older.seq != late_merge.seq:
            continue
        for write in older.writes:
            if write.staged_name == late_merge.file_name:
                context.journal.save(older.with_write(replace(write, merged_digest=late_merge.digest)))
        for consume in older.consumes:
            if consume.claimed_name == late_merge.file_name:
                context.journal.save(older.with_consume(replace(consume, merged_digest=late_merge.digest)))
        context.trace(CommitStep.LATE_MERGE_RECORDED)


def _roll_back_or_defer(context: CommitContext, record: CommitRecord, error: OSError) -> None:
    """Roll back after a failing call while nothing is visible, else leave the record to recovery."""
    path, resolve = context.role.path, context.directory.resolve
    if any(not file_steps.is_unpublished(*resolve(w.path), w) for w in record.writes) or any(
        context.directory.root.inode(c.claimed_name) is not None for c in record.consumes
    ):
        log.warning("commit_deferred", role=str(path), seq=record.seq, error=repr(error))
        raise store_error("finish a change in", path, error) from error
    for append in record.appends:
        file_steps.roll_back_append(*resolve(append.path), context.journal.blobs.get(append.digest), append.offset)
    remove_staged_files(context, record)
    context.journal.discard(record)
    log.warning("commit_rolled_back", role=str(path), seq=record.seq, error=repr(error))
    raise store_error("change", path, error) from error


def remove_staged_files(context: CommitContext, record: CommitRecord) -> None:
    """Remove the staged files of a record that was not applied. One that was exchanged is left where it is."""
    for write in record.writes:
        directory, name = context.directory.resolve(write.path)
        if file_steps.is_unpublished(directory, name, write):
            directory.unlink(write.staged_name)
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


class DeferredRecovery(NamedTuple):
    """A role whose recovery must wait, with the reason. Other roles are not affected."""

    role: str
    reason: str


class RecoveryReport(NamedTuple):
    """The result of a recovery: finished commits, the number of swept staged files, roles that must wait."""

    redone: tuple[CommitRecord, ...] = ()
    swept_files: int = 0
    deferred: tuple[DeferredRecovery, ...] = ()


def recover_role(context: CommitContext) -> RecoveryReport:
    """Finish everything that is half done in a role. After a `StoreError` everything remains for the next attempt."""
    records = context.journal.open_records()
    # The time to list a directory grows with its files, so it is listed only if a kill may have left staged files.
    may_have_staged_files = context.journal.staging_recorded() or not context.journal.staged_files_swept
    swept = _sweep_staged_files(context, records) if may_have_staged_files else 0
    context.trace(CommitStep.SWEPT)
    redone = []
    for record in records:
        if record.state is RecordState.INTENT:
            context.trace(CommitStep.REDOING)
            redone.append(apply_record(context, record))
            log.info("commit_redone", role=str(context.role.path), seq=record.seq, kind=record.kind)
    return RecoveryReport(tuple(redone), swept)


def _sweep_staged_files(context: CommitContext, records: tuple[CommitRecord, ...]) -> int:
    known_seqs = {record.seq for record in records}
    swept = 0
    with as_store_error("list", context.directory.root.path):
        for directory in (context.directory.root, *context.directory.subdirectories()):
            for name in directory.list_names():
                match = _STAGED_NAME.fullmatch(name)
                if match is None or match["journal_id"] != context.journal.journal_id:
                    continue
                if int(match["seq"]) not in known_seqs:
                    directory.unlink(name)
                    swept += 1
    context.journal.clear_staging()
    context.journal.staged_files_swept = True
    return swept
