"""Commit one plan, from staging to the result.

The order of the steps is the point, and docs/durability.md explains each of them:

    stage, store blobs, compare with the disk, ask the gate, write the intent   -- until here nothing was changed
    archive, exchange, record late merges, claim findings, mark as applied      -- from here only forward

The first line is this module. The second is `apply`, which recovery uses to redo a commit.

Before anything is staged, `check_conservation` checks a plan against the law of conservation. The law itself is in
`memory.conservation`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import PurePosixPath

from echod.memory.archive import PRUNED_STEM, REMOVED_STEM
from echod.memory.branches import missing_records
from echod.memory.conservation import FileChange, ViolationKind, find_missing_findings, find_violations, is_redaction_of
from echod.memory.identity import block_content
from echod.memory.model import Document, Unreadable
from echod.memory.redact import redact, redact_entry, strip_secrets
from echod.store.changes import CommitConflict, CommitGate, CommitPlan, CommitResult, PlannedConsume, PlannedWrite
from echod.store.commit import file_steps
from echod.store.commit.apply import apply_record, remove_staged_files
from echod.store.commit.context import CommitContext, CommitStep
from echod.store.errors import BusyError, RefusedError, StoreError, as_store_error, store_error
from echod.store.fs import is_settled
from echod.store.journal.records import AppendRecord, CommitRecord, ConsumeRecord, WriteRecord
from echod.store.layout import ARCHIVE
from echod.store.private_directory import own_file_name

_REDACTION_MARKER = b"[REDACTED:"

ParseContent = Callable[[bytes], Document | Unreadable]


def commit(
    context: CommitContext,
    plan: CommitPlan,
    *,
    gate: CommitGate,
    head: str | None,
    forced_paths: frozenset[str] = frozenset(),
) -> CommitResult | CommitConflict:
    """Carry out a plan. `gate` is called just before the intent, and `head` (git HEAD) is recorded with the new state.

    `forced_paths` are written even if other programs wrote them meanwhile. Displaced files are merged.

    Raises:
        BusyError: the gate closed, or the writers' lock was held too long. Nothing was changed.
        RefusedError: a file's mode or owner cannot be kept. Nothing was changed.
        StoreError: the file system failed. Nothing was changed, or the record remains and recovery finishes it.
    """
    context.trace(CommitStep.BEGIN)
    record = _prepare_commit(context, plan, head)
    try:
        context.trace(CommitStep.STAGED)
        conflict = _find_conflict(context, plan, forced_paths)
        if conflict is not None:
            remove_staged_files(context, record)
            return conflict
        context.trace(CommitStep.COMPARED)
        _require_settled_without_exchange(context, plan)
        _check_before_intent(context, gate)
    except BaseException:
        remove_staged_files(context, record)
        raise
    _write_intent(context, record)
    context.trace(CommitStep.INTENT_WRITTEN)
    apply_record(context, record)
    return CommitResult(record.seq)


def _prepare_commit(context: CommitContext, plan: CommitPlan, head: str | None) -> CommitRecord:
    """Write staged files and blobs, all durable, and return the record. Nothing is visible yet."""
    journal, seq = context.journal, context.journal.next_seq()
    record = CommitRecord(
        seq,
        plan.job,
        plan.kind,
        context.role.name,
        plan.summary,
        context.next_timestamp(),
        head=head,
        clock=context.clock(),
        late_merges=plan.late_merges,
        restored_blocks=plan.restored_blocks,
        unconsumed_keys=plan.unconsumed_keys,
        undoes=plan.undoes,
        redacted=_removes_secrets(plan),
        partial_consumes=plan.partial_consumes,
        withdrawn_consumes=plan.withdrawn_consumes,
    )
    try:
        journal.record_staging()
        for number, write in enumerate(plan.writes):
            staged = _stage_write(context, write, seq, number)
            record = record._replace(writes=(*record.writes, staged))
        with as_store_error("store the journal's copies of", context.role.path):
            texts: dict[str, bytes] = {}
            for path, text in (*plan.appends, *((c.archive, c.archived_text) for c in plan.consumes)):
                texts[path] = texts.get(path, b"") + text  # one write per file, so that a redo finds the written part
            record = record._replace(
                appends=tuple(_build_append_record(context, path, text) for path, text in texts.items()),
                consumes=tuple(
                    _build_consume_record(context, consume, seq, number) for number, consume in enumerate(plan.consumes)
                ),
            )
            journal.blobs.sync()
        context.trace(CommitStep.BLOBS_STORED)
    except BaseException:
        remove_staged_files(context, record)
        raise
    return record


def _removes_secrets(plan: CommitPlan) -> bool:
    """Return whether the plan removes secrets, so that its exact blobs must not be kept for long.

    Text removed from one file may be added to another, so all results of the plan count together. Searching for secrets
    takes long. Redaction markers are counted first: there are more of them only if a secret was removed or text copied.
    """
    if any(c.before != c.archived_text for c in plan.consumes):
        return True
    before = [w.before for w in plan.writes if w.before is not None]
    after = [*(w.after for w in plan.writes), *(text for _, text in plan.appends)]
    added = sum(t.count(_REDACTION_MARKER) for t in after) - sum(t.count(_REDACTION_MARKER) for t in before)
    return added > 0 and any(strip_secrets(text, include_protected=True) != text for text in before)


def _stage_write(context: CommitContext, write: PlannedWrite, seq: int, number: int) -> WriteRecord:
    path = context.role.store.root / write.path
    with as_store_error("prepare a new version of", path):
        directory, name = context.directory.resolve(write.path)
        private_path = context.directory.private_path(write.path)
        private = context.directory.open_private(private_path)
        staged_name = own_file_name(name, context.journal.journal_id, seq, number)
        inode = file_steps.write_staged_file(private, staged_name, write.after, directory, name)
    with as_store_error("store the journal's copies of", path):
        displaced, after = map(context.journal.blobs.put, (write.before or b"", write.after))
    before = None if write.before is None else displaced
    return WriteRecord(write.path, before, after, staged_name, inode, displaced, private=private_path)


def _build_append_record(context: CommitContext, path: str, text: bytes) -> AppendRecord:
    directory, name = context.directory.resolve(path)
    return AppendRecord(path, context.journal.blobs.put(text), file_steps.file_size(directory, name))


def _build_consume_record(context: CommitContext, planned: PlannedConsume, seq: int, number: int) -> ConsumeRecord:
    before, archived = map(context.journal.blobs.put, (planned.before, planned.archived_text))
    claimed_name = own_file_name(PurePosixPath(planned.path).name, context.journal.journal_id, seq, number)
    private = context.directory.private_path(planned.path)
    return ConsumeRecord(planned.path, before, archived, planned.archive, claimed_name, before, planned.keys, private)


def _find_conflict(context: CommitContext, plan: CommitPlan, forced_paths: frozenset[str]) -> CommitConflict | None:
    """Return the first path whose content is no longer the one that the plan was made from, or None."""
    expected: list[PlannedWrite | PlannedConsume] = [*plan.writes, *plan.consumes]
    for planned in expected:
        if planned.path in forced_paths:
            continue
        try:
            changed = context.read(planned.path).data != planned.before
        except BusyError:
            changed = True
        if changed:
            return CommitConflict(planned.path)
    return None


def _require_settled_without_exchange(context: CommitContext, plan: CommitPlan) -> None:
    """Check that files have been unchanged for a while if they cannot be exchanged atomically."""
    if not plan.writes:
        return
    private = context.directory.open_private(context.directory.private_path(plan.writes[0].path))
    if context.capabilities.get(private).exchange:
        return
    for write in plan.writes:
        snapshot = context.read(write.path)
        settled = is_settled(snapshot.mtime_ns / 1e9, context.clock(), context.limits.settle_seconds)
        if snapshot.data is not None and not settled:
            raise BusyError(
                f"{write.path} was changed a moment ago, and this file system cannot exchange files safely."
            )


def _check_before_intent(context: CommitContext, gate: CommitGate) -> None:
    if not context.directory.root.is_current():
        raise StoreError(f"{context.directory.root.path} was moved or replaced during the commit; try again.")
    reason = gate()
    if reason is not None:
        raise BusyError(reason)
    if context.clock() - context.lock.acquired_at > context.limits.lock_seconds:
        raise BusyError(
            f"The writers' lock was held for {context.limits.lock_seconds:g} s and is released for other writers."
        )


def _write_intent(context: CommitContext, record: CommitRecord) -> None:
    """Write the intent. If that fails, the record is discarded. If even that fails, recovery decides."""
    try:
        context.journal.save(record)
    except OSError as error:
        with as_store_error("write the journal of", context.role.path):
            context.journal.discard(record)
            remove_staged_files(context, record)
        raise store_error("write the journal of", context.role.path, error) from error
    context.journal.clear_staging()


def check_conservation(plan: CommitPlan, parse: ParseContent, *, by_user: bool) -> None:
    """Refuse a plan that would lose something. The `RefusedError` names the file and the block."""
    replaced = [write for write in plan.writes if write.before is not None]
    archives = [write for write in replaced if _is_archive(write.path)]
    changes = [_parse_change(write, parse) for write in replaced if write not in archives]
    archived = [write.after for write in archives]
    archived += [text for _, text in plan.appends] + [c.archived_text for c in plan.consumes]
    archived += [w.after for w in plan.writes if w.before is None]
    texts = [text.decode(errors="replace") for text in archived]
    for write in archives:
        missing = missing_records(write.before or b"", write.after)
        if missing and not _keeps_blocks(write, parse, texts, by_user=by_user):
            raise _conservation_error(plan, ViolationKind.LOST, f"a record of {write.path}")
    violations = find_violations(changes, texts, redacted_forms=_redacted_forms, user_requested=by_user)
    if violations:
        raise _conservation_error(plan, violations[0].kind, violations[0].heading)
    if plan.consumes:
        documents = [d for w in plan.writes if isinstance(d := parse(w.after), Document)]
        present = {block_content(block) for document in documents for block in document.blocks}
        for consume in plan.consumes:
            _check_findings(plan, consume, parse, present)


def _is_archive(path: str) -> bool:
    """Return whether a path is an archive of entries, whose records may be rearranged but not changed."""
    parts = PurePosixPath(path)
    return parts.parent.name == ARCHIVE and parts.name.startswith((f"{PRUNED_STEM}-", f"{REMOVED_STEM}-"))


def _keeps_blocks(write: PlannedWrite, parse: ParseContent, texts: Sequence[str], *, by_user: bool) -> bool:
    """Return whether a rewritten archive has every block, perhaps redacted, so that its records may differ."""
    before, after = parse(write.before or b""), parse(write.after)
    if isinstance(before, Unreadable) or isinstance(after, Unreadable):
        return False
    change = FileChange(before, after)
    return not find_violations([change], texts, redacted_forms=_redacted_forms, user_requested=by_user)


def _parse_change(write: PlannedWrite, parse: ParseContent) -> FileChange:
    before, after = parse(write.before or b""), parse(write.after)
    if isinstance(before, Unreadable):
        raise RefusedError(f"{write.path} cannot be read, so it is not overwritten. {before.reason}")
    if isinstance(after, Unreadable):
        raise RefusedError(f"{write.path} would become unreadable, so it is not written. {after.reason}")
    return FileChange(before, after)


def _check_findings(plan: CommitPlan, consume: PlannedConsume, parse: ParseContent, present: set[str]) -> None:
    archived = consume.archived_text.decode(errors="surrogateescape")
    if is_redaction_of(archived, consume.before.decode(errors="surrogateescape")):
        return
    document = parse(consume.before)
    if isinstance(document, Unreadable):
        raise _conservation_error(plan, ViolationKind.LOST, consume.path)
    blocks = [b for b in document.blocks if block_content(b) not in present]
    missing = find_missing_findings(blocks, archived, redacted_forms=_redacted_forms)
    preambles = (document.preamble, *_redacted_forms(document.preamble))
    if missing or not any(form.strip() in archived for form in preambles):
        raise _conservation_error(plan, ViolationKind.LOST, missing[0].heading if missing else consume.path)


def _redacted_forms(text: str) -> Iterable[str]:
    yield redact(text).text
    yield redact_entry(text).text


def _conservation_error(plan: CommitPlan, violation: ViolationKind, heading: str) -> RefusedError:
    return RefusedError(
        f"The {plan.kind} job was refused: {heading!r} {violation}. Nothing was changed; please report this."
    )
