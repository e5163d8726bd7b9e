"""Everything a commit needs before it may begin: stages beside their targets, contents in the journal, the record."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import PurePosixPath

from echod.memory.exposed_secrets import strip_secrets
from echod.store.changes import CommitPlan, PartialConsume, PlannedConsume, PlannedWrite
from echod.store.commit import file_steps
from echod.store.commit.context import CommitContext
from echod.store.commit.file_steps import write_staged_file
from echod.store.commit.steps import CommitStep
from echod.store.errors import as_store_error
from echod.store.journal.records import AppendRecord, CommitRecord, ConsumeRecord, PartialConsumeRecord, WriteRecord


def prepare_commit(context: CommitContext, plan: CommitPlan, head: str | None) -> CommitRecord:
    """Write stages and images, all durable; nothing is visible yet.

    Raises:
        RefusedError: a file's mode, owner or attributes cannot be kept.
        StoreError: the file system failed; nothing is left behind.
    """
    seq, blobs, journal_id = context.journal.next_seq(), context.journal.blobs, context.journal.journal_id
    record = CommitRecord(
        seq,
        plan.job,
        plan.kind,
        context.directory.role.name,
        plan.summary,
        context.next_timestamp(),
        head=head,
        late_merges=plan.late_merges,
        restored_blocks=plan.restored_blocks,
        unconsumed_keys=plan.unconsumed_keys,
        undoes=plan.undoes,
        redacted=_removes_secrets(plan),
        partial_consumes=_partial_consume_records(plan.partial_consumes),
        withdrawn_consumes=_partial_consume_records(plan.withdrawn_consumes),
    )
    try:
        context.journal.record_staging()
        for number, write in enumerate(plan.writes):
            staged = _stage_write(context, write, f"echod-{journal_id}-{seq:06d}-{number}")
            record = replace(record, writes=(*record.writes, staged))
        with as_store_error("keep the journal's images of", context.directory.role.path):
            texts: dict[str, bytes] = {}
            for path, text in (*plan.appends, *((c.archive, c.archived_text) for c in plan.consumes)):
                texts[path] = texts.get(path, b"") + text  # one write a file, so that a redo can tell what is there
            record = replace(
                record,
                appends=tuple(_build_append_record(context, path, text) for path, text in texts.items()),
                consumes=tuple(
                    _build_consume_record(context, c, f"echod-{journal_id}-{seq:06d}-{n}")
                    for n, c in enumerate(plan.consumes)
                ),
            )
            blobs.sync()
        context.trace(CommitStep.BLOBS_STORED)
    except BaseException:
        remove_staged_files(context, record)
        raise
    return record


def _partial_consume_records(partial_consumes: tuple[PartialConsume, ...]) -> tuple[PartialConsumeRecord, ...]:
    return tuple(PartialConsumeRecord(begin.before, begin.keys) for begin in partial_consumes)


def _removes_secrets(plan: CommitPlan) -> bool:
    """Whether the plan takes secrets out, so that its exact images must not be kept for long.

    What leaves one file stands in another, so it is all that the plan leaves that counts. Looking for secrets takes
    long; markers are counted first, of which there are more only where a secret went, or where text was copied.
    """
    if any(c.before != c.archived_text for c in plan.consumes):
        return True
    before_texts = [w.before for w in plan.writes if w.before is not None]
    after_texts = [*(w.after for w in plan.writes), *(text for _, text in plan.appends)]
    return _count_redaction_markers(after_texts) > _count_redaction_markers(before_texts) and any(
        strip_secrets(text, include_protected=True) != text for text in before_texts
    )


def _count_redaction_markers(texts: Iterable[bytes]) -> int:
    return sum(text.count(b"[REDACTED:") for text in texts)


def _stage_write(context: CommitContext, write: PlannedWrite, suffix: str) -> WriteRecord:
    path = context.directory.role.store.root / write.path
    with as_store_error("write beside", path):
        directory, name = context.directory.resolve(write.path)
        staged_name = f".{name}.{suffix}"
        inode = write_staged_file(directory, staged_name, write.after, name)
        directory.sync()
    blobs = context.journal.blobs
    with as_store_error("keep the journal's images of", path):
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


def remove_staged_files(context: CommitContext, record: CommitRecord) -> None:
    """Remove the stages of a record that came to nothing; one that was used is left where it is."""
    for write in record.writes:
        directory, name = context.directory.resolve(write.path)
        if file_steps.is_unpublished(directory, name, write):
            directory.unlink(write.staged_name)
    context.journal.clear_staging()
