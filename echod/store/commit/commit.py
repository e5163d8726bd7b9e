"""Commit one plan, from staging to the result.

The order of the steps is the point, and docs/durability.md explains each of them:

    stage, store blobs, compare with the disk, ask the gate, write the intent   -- until here nothing was changed
    archive, exchange, record late merges, claim findings, mark as applied      -- from here only forward

The first line is `prepare` and this module. The second is `apply`, which recovery uses to redo a commit.

Before anything is staged, `check_conservation` checks a plan against the law of conservation. The law itself is in
`memory.conservation`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from echod.memory.conservation import FileChange, ViolationKind, find_missing_findings, find_violations, is_redaction_of
from echod.memory.identity import block_content
from echod.memory.model import Document, Unreadable
from echod.memory.redact import redact, redact_entry
from echod.store.changes import CommitConflict, CommitGate, CommitPlan, CommitResult, PlannedConsume, PlannedWrite
from echod.store.commit.apply import apply_record
from echod.store.commit.context import CommitContext, CommitStep
from echod.store.commit.prepare import prepare_commit, remove_staged_files
from echod.store.errors import BusyError, RefusedError, StoreError, as_store_error, store_error
from echod.store.journal.records import CommitRecord

ParseContent = Callable[[bytes], Document | Unreadable]


def commit(
    context: CommitContext,
    plan: CommitPlan,
    *,
    gate: CommitGate,
    head: str | None,
    forced_paths: frozenset[str] = frozenset(),
) -> CommitResult | CommitConflict:
    """Carry out a plan.

    Args:
        context: the role and its journal.
        plan: the changes.
        gate: called just before the intent is written.
        head: git HEAD, recorded with the new state.
        forced_paths: paths that are written even if other programs wrote them meanwhile. Displaced files are merged.

    Raises:
        BusyError: the gate closed, or the writers' lock was held too long. Nothing was changed.
        RefusedError: a file's mode or owner cannot be kept. Nothing was changed.
        StoreError: the file system failed. Nothing was changed, or the record remains and recovery finishes it.
    """
    context.trace(CommitStep.BEGIN)
    record = prepare_commit(context, plan, head)
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


def _find_conflict(context: CommitContext, plan: CommitPlan, forced_paths: frozenset[str]) -> CommitConflict | None:
    """Return the first path whose content is no longer the one that the plan was made from, or None."""
    expected: list[tuple[str, bytes | None]] = [(w.path, w.before) for w in plan.writes]
    expected += [(c.path, c.before) for c in plan.consumes]
    for path, before in expected:
        if path in forced_paths:
            continue
        try:
            current = context.read(path).data
        except BusyError:
            return CommitConflict(path)
        if current != before:
            return CommitConflict(path)
    return None


def _require_settled_without_exchange(context: CommitContext, plan: CommitPlan) -> None:
    """Check that files have been unchanged for a while if they cannot be exchanged atomically."""
    if not plan.writes or context.capabilities.get(context.directory.root).exchange:
        return
    for write in plan.writes:
        snapshot = context.read(write.path)
        if snapshot.data is not None and context.clock() - snapshot.mtime_ns / 1e9 < context.limits.settle_seconds:
            raise BusyError(
                f"{write.path} was changed a moment ago, and this file system cannot exchange files safely."
            )


def _check_before_intent(context: CommitContext, gate: CommitGate) -> None:
    if not context.directory.root.is_current():
        raise StoreError(f"{context.directory.root.path} was moved or replaced during the commit; try again.")
    reason = gate()
    if reason is not None:
        raise BusyError(reason)
    if context.lock.age(context.clock()) > context.limits.lock_seconds:
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
    """Refuse a plan that would lose something.

    Args:
        plan: the changes of a job.
        parse: turns contents into documents.
        by_user: whether the user asked for the changes.

    Raises:
        RefusedError: the message names the file and the block.
    """
    rewritten = [w for w in plan.writes if w.before is not None]
    changes = [_parse_change(write, parse) for write in rewritten]
    archived = [text for _, text in plan.appends] + [c.archived_text for c in plan.consumes]
    archived += [w.after for w in plan.writes if w.before is None]
    texts = [text.decode(errors="replace") for text in archived]
    violations = find_violations(changes, texts, redacted_forms=_redacted_forms, user_requested=by_user)
    if violations:
        raise _conservation_error(plan, violations[0].kind, violations[0].heading)
    after_documents = [change.after for change in changes]
    after_documents += [d for w in plan.writes if isinstance(d := parse(w.after), Document)]
    present = (
        {block_content(block) for document in after_documents for block in document.blocks} if plan.consumes else set()
    )
    for consume in plan.consumes:
        _check_findings(plan, consume, parse, present)


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
    if missing or not _contains_preamble(document.preamble, archived):
        raise _conservation_error(plan, ViolationKind.LOST, missing[0].heading if missing else consume.path)


def _contains_preamble(preamble: str, archived: str) -> bool:
    return any(form.strip() in archived for form in (preamble, *_redacted_forms(preamble)))


def _redacted_forms(text: str) -> Iterable[str]:
    yield redact(text).text
    yield redact_entry(text).text


def _conservation_error(plan: CommitPlan, violation: ViolationKind, heading: str) -> RefusedError:
    return RefusedError(
        f"The {plan.kind} job was refused: {heading!r} {violation}. Nothing was changed; please report this."
    )
