"""Prepare a commit: staged files beside their targets, contents in the journal, the record.

Nothing is visible yet.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import PurePosixPath

from echod.memory.exposed_secrets import strip_secrets
from echod.store.changes import CommitPlan, PlannedConsume, PlannedWrite
from echod.store.commit import file_steps
from echod.store.commit.context import CommitContext, CommitStep
from echod.store.errors import as_store_error
from echod.store.journal.records import AppendRecord, CommitRecord, ConsumeRecord, WriteRecord

_REDACTION_MARKER = b"[REDACTED:"


def prepare_commit(context: CommitContext, plan: CommitPlan, head: str | None) -> CommitRecord:
    """Write staged files and blobs, all durable, and return the record.

    Raises:
        RefusedError: a file's mode, owner or attributes cannot be preserved.
        StoreError: the file system failed. Nothing is left behind.
    """
    seq, blobs, journal_id = context.journal.next_seq(), context.journal.blobs, context.journal.journal_id
    record = CommitRecord(
        seq,
        plan.job,
        plan.kind,
        context.role.name,
        plan.summary,
        context.next_timestamp(),
        head=head,
        late_merges=plan.late_merges,
        restored_blocks=plan.restored_blocks,
        unconsumed_keys=plan.unconsumed_keys,
        undoes=plan.undoes,
        redacted=_removes_secrets(plan),
        partial_consumes=plan.partial_consumes,
        withdrawn_consumes=plan.withdrawn_consumes,
    )
    try:
        context.journal.record_staging()
        for number, write in enumerate(plan.writes):
            staged = _stage_write(context, write, f"echod-{journal_id}-{seq:06d}-{number}")
            record = replace(record, writes=(*record.writes, staged))
        with as_store_error("store the journal's copies of", context.role.path):
            texts: dict[str, bytes] = {}
            for path, text in (*plan.appends, *((c.archive, c.archived_text) for c in plan.consumes)):
                texts[path] = texts.get(path, b"") + text  # one write per file, so that a redo finds the written part
            record = replace(
                record,
                appends=tuple(_build_append_record(context, path, text) for path, text in texts.items()),
                consumes=tuple(
                    _build_consume_record(context, consume, f"echod-{journal_id}-{seq:06d}-{number}")
                    for number, consume in enumerate(plan.consumes)
                ),
            )
            blobs.sync()
        context.trace(CommitStep.BLOBS_STORED)
    except BaseException:
        remove_staged_files(context, record)
        raise
    return record


def remove_staged_files(context: CommitContext, record: CommitRecord) -> None:
    """Remove the staged files of a record that was not applied. One that was exchanged is left where it is."""
    for write in record.writes:
        directory, name = context.directory.resolve(write.path)
        if file_steps.is_unpublished(directory, name, write):
            directory.unlink(write.staged_name)
    context.journal.clear_staging()


def _removes_secrets(plan: CommitPlan) -> bool:
    """Return whether the plan removes secrets, so that its exact blobs must not be kept for long.

    Text removed from one file may be added to another, so all results of the plan count together. Searching for secrets
    takes long. Redaction markers are counted first: there are more of them only if a secret was removed or text copied.
    """
    if any(c.before != c.archived_text for c in plan.consumes):
        return True
    before_texts = [w.before for w in plan.writes if w.before is not None]
    after_texts = [*(w.after for w in plan.writes), *(text for _, text in plan.appends)]
    return _count_redaction_markers(after_texts) > _count_redaction_markers(before_texts) and any(
        strip_secrets(text, include_protected=True) != text for text in before_texts
    )


def _count_redaction_markers(texts: Iterable[bytes]) -> int:
    return sum(text.count(_REDACTION_MARKER) for text in texts)


def _stage_write(context: CommitContext, write: PlannedWrite, suffix: str) -> WriteRecord:
    path = context.role.store.root / write.path
    with as_store_error("write beside", path):
        directory, name = context.directory.resolve(write.path)
        staged_name = f".{name}.{suffix}"
        inode = file_steps.write_staged_file(directory, staged_name, write.after, name)
        directory.sync()
    blobs = context.journal.blobs
    with as_store_error("store the journal's copies of", path):
        before_digest, after_digest = blobs.put(write.before or b""), blobs.put(write.after)
        return WriteRecord(
            write.path, None if write.before is None else before_digest, after_digest, staged_name, inode, before_digest
        )


def _build_append_record(context: CommitContext, path: str, text: bytes) -> AppendRecord:
    directory, name = context.directory.resolve(path)
    return AppendRecord(path, context.journal.blobs.put(text), file_steps.file_size(directory, name))


def _build_consume_record(context: CommitContext, planned: PlannedConsume, suffix: str) -> ConsumeRecord:
    blobs = context.journal.blobs
    before_digest, archived_digest = blobs.put(planned.before), blobs.put(planned.archived_text)
    claimed_name = f".{PurePosixPath(planned.path).name}.{suffix}"
    return ConsumeRecord(
        planned.path, before_digest, archived_digest, planned.archive, claimed_name, before_digest, planned.keys
    )
