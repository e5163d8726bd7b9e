"""Finish the commits that a crash interrupted, or take them back if others have changed the files since.

Recovery first sweeps staged files without a record, because afterwards its own commits would have files that look the
same. Then it goes through every intent, oldest first. A crash inside recovery is the same case again.

Between the crash and now anything may have happened: `git clean` took the stage, a checkout put another version in
place, an agent edited the file. So an intent without a visible change is redone only if the files still have the
contents it was planned from. Otherwise it is rolled back, and the job plans again. And findings are consumed only if
their entries are seen in the memory or in an archive. Otherwise they get their names back.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import NamedTuple

from echod.log import get_logger
from echod.memory.conservation import missing_additions
from echod.memory.identity import block_content
from echod.memory.model import MAX_FILE_BYTES
from echod.store.commit.apply import apply_record, is_claimed, remove_staged_files, roll_back, write_state
from echod.store.commit.context import CommitContext, CommitStep
from echod.store.commit.file_steps import StageState
from echod.store.errors import as_store_error
from echod.store.fs import NEW_FILE_MODE, create_durable_file, rename_noreplace_or_link
from echod.store.healing.archives import read_archives
from echod.store.journal.files import BlobMissingError
from echod.store.journal.records import CommitRecord, ConsumeRecord, RecordState, WriteRecord
from echod.store.layout import restored_findings_name
from echod.store.private_directory import commit_of
from echod.store.snapshot import content_digest

log = get_logger(__name__)


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
            if _is_outdated(context, record):
                _take_back(context, record)
                continue
            redone.append(apply_record(context, record, _release_unseen))
            log.info("commit_redone", role=str(context.role.path), seq=record.seq, kind=record.kind)
    return RecoveryReport(tuple(redone), swept)


def _sweep_staged_files(context: CommitContext, records: tuple[CommitRecord, ...]) -> int:
    known_seqs = {record.seq for record in records}
    swept = 0
    with as_store_error("list", context.directory.root.path):
        for directory in context.directory.private_directories():
            for name in directory.list_names():
                seq = commit_of(name, context.journal.journal_id)
                if seq is not None and seq not in known_seqs:
                    directory.unlink(name)
                    swept += 1
    context.journal.clear_staging()
    context.journal.staged_files_swept = True
    return swept


def _is_outdated(context: CommitContext, record: CommitRecord) -> bool:
    """Return whether nothing of a commit is visible, and a file is no longer the one that it was planned from."""
    if any(is_claimed(context, consume) for consume in record.consumes):
        return False
    if any(write_state(context, write) is StageState.PUBLISHED for write in record.writes):
        return False
    if any(_digest(context, write.path) != write.before_digest for write in record.writes):
        return True
    if not (record.consumes or record.partial_consumes) or _memory_write(context, record) is not None:
        return False
    return not _is_memory_known(context)


def _take_back(context: CommitContext, record: CommitRecord) -> None:
    """Roll back a commit without a visible change.

    If the stage was lost, claimed findings may have been lost with it. They get their names back from the journal.
    """
    if any(write_state(context, write) is StageState.LOST for write in record.writes):
        for consume in record.consumes:
            _give_back(context, record, consume)
        context.directory.root.sync()
    # If a findings file is not there any more, the text that the archive got may be its only copy.
    if all(_digest(context, consume.path) == consume.before_digest for consume in record.consumes):
        roll_back(context, record)
    else:
        remove_staged_files(context, record)
        context.journal.discard(record)
    log.warning("commit_taken_back", role=str(context.role.path), seq=record.seq, kind=record.kind)


def _release_unseen(context: CommitContext, record: CommitRecord) -> CommitRecord:
    """Give findings their names back if their entries are in neither the memory nor an archive.

    What an undo consumes are files of echod's own, whose text is in the archive.
    """
    if record.undoes or not (record.consumes or record.partial_consumes) or _is_seen(context, record):
        return record
    for consume in record.consumes:
        _give_back(context, record, consume)
    context.directory.root.sync()
    record = replace(record, consumes=(), partial_consumes=())
    context.journal.save(record)
    log.warning("findings_given_back", role=str(context.role.path), seq=record.seq)
    return record


def _is_seen(context: CommitContext, record: CommitRecord) -> bool:
    write = _memory_write(context, record)
    if write is None:
        return _is_memory_known(context)
    before = context.cache.parse_before(context.journal, write.before_digest)
    after = context.cache.parse_blob(context.journal, write.after_digest)
    visible = context.cache.parse_document(_read(context, write.path) or b"")
    if before is None or after is None or visible is None:
        return False
    missing = missing_additions(before, after, visible)
    archives = read_archives(context) if missing else ()
    return all(block_content(block) in archives for block in missing)


def _memory_write(context: CommitContext, record: CommitRecord) -> WriteRecord | None:
    return next((write for write in record.writes if write.path == context.memory_path), None)


def _is_memory_known(context: CommitContext) -> bool:
    """Return whether the memory is as it was when a plan was made that did not change it."""
    newest = context.journal.newest_state()
    return newest is not None and newest.digest == content_digest(_read(context, context.memory_path) or b"")


def _give_back(context: CommitContext, record: CommitRecord, consume: ConsumeRecord) -> None:
    directory, name = context.directory.resolve(consume.path)
    private = context.directory.open_private(consume.private)
    if private.inode(consume.claimed_name) is None:
        if directory.inode(name) is not None:
            return  # it was not claimed
        with suppress(BlobMissingError):
            data = context.journal.blobs.get(consume.before_digest)
            create_durable_file(private, consume.claimed_name, data, NEW_FILE_MODE)
    for new_name in (name, restored_findings_name(name, record.seq)):
        with suppress(FileExistsError, FileNotFoundError):
            rename_noreplace_or_link(private, consume.claimed_name, directory, new_name)
            return


def _digest(context: CommitContext, path: str) -> str | None:
    data = _read(context, path)
    return None if data is None else content_digest(data)


def _read(context: CommitContext, path: str) -> bytes | None:
    """Return the content of a file as it is now, perhaps half-written, or None if there is no such file."""
    directory, name = context.directory.resolve(path)
    try:
        return directory.read(name, MAX_FILE_BYTES)
    except FileNotFoundError:
        return None
