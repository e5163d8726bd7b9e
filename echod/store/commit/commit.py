"""One commit, from plan to done. The order of the steps is the point; docs/durability.md explains each.

    stage, keep images, compare with the disk, ask the gate, write the intent   -- until here nothing was changed
    archive, exchange, note absorptions, claim findings, mark as applied        -- from here only forward

The first line is `prepare` and this module, the second is `apply`, which is also the redo of recovery.

Holding a plan to the law of conservation before anything is staged; the law itself is in `memory.conservation`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from echod.memory.alignment import content
from echod.memory.conservation import Broken, Change, missing_findings, redaction_of, violations
from echod.memory.model import Document, Unreadable
from echod.memory.redact import redact, redact_entry
from echod.store.changes import Committed, Gate, Overtaken, Plan, PlannedConsume, PlannedWrite, open_gate
from echod.store.commit.apply import apply
from echod.store.commit.context import Desk
from echod.store.commit.prepare import drop_stages, prepare
from echod.store.commit.steps import Step
from echod.store.errors import Busy, Refused, StoreFault, fault, told
from echod.store.journal.records import Record

__all__ = ["Committed", "Gate", "Overtaken", "commit", "open_gate"]


def commit(
    desk: Desk, plan: Plan, *, gate: Gate, head: str | None, go_on: frozenset[str] = frozenset()
) -> Committed | Overtaken:
    """Carry out a plan.

    Args:
        desk: the role and its journal.
        plan: what to do.
        gate: asked just before the intent is written.
        head: git HEAD, remembered with the new state.
        go_on: paths that are written although someone else wrote them meanwhile; what they displace is merged.

    Raises:
        Busy: the gate closed, or the writers' lock was held too long; nothing was changed.
        Refused: a file's mode or owner cannot be kept; nothing was changed.
        StoreFault: the file system failed. Nothing was changed, or the record stays and recovery finishes it.
    """
    desk.trace(Step.BEGIN)
    record = prepare(desk, plan, head)
    try:
        desk.trace(Step.STAGED)
        overtaken = _compare(desk, plan, go_on)
        if overtaken is not None:
            drop_stages(desk, record)
            return overtaken
        desk.trace(Step.COMPARED)
        _wait_where_exchange_is_missing(desk, plan)
        _last_word(desk, gate)
    except BaseException:
        drop_stages(desk, record)
        raise
    _intend(desk, record)
    desk.trace(Step.INTENDED)
    apply(desk, record)
    return Committed(record.seq)


def _compare(desk: Desk, plan: Plan, go_on: frozenset[str]) -> Overtaken | None:
    """Whether the disk still is what the plan was made from."""
    expected: list[tuple[str, bytes | None]] = [(w.path, w.before) for w in plan.writes]
    expected += [(c.path, c.before) for c in plan.consumes]
    for path, before in expected:
        if path in go_on:
            continue
        try:
            current = desk.read(path).data
        except Busy:
            return Overtaken(path)
        if current != before:
            return Overtaken(path)
    return None


def _wait_where_exchange_is_missing(desk: Desk, plan: Plan) -> None:
    """Without an atomic exchange a file is replaced only if nobody has touched it for a while."""
    if not plan.writes or desk.probes.of(desk.ground.home).exchange:
        return
    for write in plan.writes:
        found = desk.read(write.path)
        if found.data is not None and desk.clock() - found.mtime_ns / 1e9 < desk.limits.settle_seconds:
            raise Busy(f"{write.path} was changed a moment ago, and this file system cannot exchange files safely.")


def _last_word(desk: Desk, gate: Gate) -> None:
    if not desk.ground.home.still_there():
        raise StoreFault(f"{desk.ground.home.path} was moved or replaced while it was being worked on; try again.")
    reason = gate()
    if reason is not None:
        raise Busy(reason)
    if desk.lock.age(desk.clock()) > desk.limits.lock_seconds:
        raise Busy(f"The writers' lock was held for {desk.limits.lock_seconds:g} s; others come first.")


def _intend(desk: Desk, record: Record) -> None:
    """Write the intent. If that fails nothing is intended; if even that cannot be said, recovery decides."""
    try:
        desk.journal.save(record)
    except OSError as error:
        with told("write the journal of", desk.ground.role.path):
            desk.journal.forget(record)
            drop_stages(desk, record)
        raise fault("write the journal of", desk.ground.role.path, error) from error
    desk.journal.clear_staging()


Reader = Callable[[bytes], Document | Unreadable]


def hold(plan: Plan, read: Reader, *, asked: bool) -> None:
    """Refuse a plan that would lose something.

    Args:
        plan: what a job wants.
        read: how contents become documents.
        asked: a person asked for it.

    Raises:
        Refused: the sentence names the file and the block.
    """
    rewritten = [w for w in plan.writes if w.before is not None]
    changes = [(w.path, _change(w, read)) for w in rewritten]
    archived = [text for _, text in plan.appends] + [c.kept for c in plan.consumes]
    archived += [w.after for w in plan.writes if w.before is None]
    texts = [text.decode(errors="replace") for text in archived]
    found = violations([change for _, change in changes], texts, redacted=_redacted, asked=asked)
    if found:
        raise _refusal(plan, found[0].broken, found[0].heading)
    posts = [change.after for _, change in changes] + [
        d for w in plan.writes if isinstance(d := read(w.after), Document)
    ]
    standing = {content(block) for document in posts for block in document.blocks} if plan.consumes else set()
    for consumed in plan.consumes:
        _hold_findings(plan, consumed, read, standing)


def _change(write: PlannedWrite, read: Reader) -> Change:
    before, after = read(write.before or b""), read(write.after)
    if isinstance(before, Unreadable):
        raise Refused(f"{write.path} cannot be read, so it is not written over. {before.reason}")
    if isinstance(after, Unreadable):
        raise Refused(f"{write.path} would become unreadable, so it is not written. {after.reason}")
    return Change(before, after)


def _hold_findings(plan: Plan, consumed: PlannedConsume, read: Reader, standing: set[str]) -> None:
    kept = consumed.kept.decode(errors="surrogateescape")
    if redaction_of(kept, consumed.before.decode(errors="surrogateescape")):
        return
    document = read(consumed.before)
    if isinstance(document, Unreadable):
        raise _refusal(plan, Broken.LOST, consumed.path)
    blocks = [b for b in document.blocks if content(b) not in standing]
    found = missing_findings(blocks, kept, redacted=_redacted)
    if found or not _stands(document.preamble, kept):
        raise _refusal(plan, Broken.LOST, found[0].heading if found else consumed.path)


def _stands(preamble: str, kept: str) -> bool:
    return any(form.strip() in kept for form in (preamble, *_redacted(preamble)))


def _redacted(text: str) -> Iterable[str]:
    yield redact(text).text
    yield redact_entry(text).text


def _refusal(plan: Plan, broken: Broken, heading: str) -> Refused:
    return Refused(f"The {plan.kind} job was refused: {heading!r} {broken}. Nothing was changed; please report this.")
