"""One commit, from plan to done. The order of the steps is the point; docs/durability.md explains each.

    stage, keep images, compare with the disk, ask the gate, write the intent   -- until here nothing was changed
    archive, exchange, note absorptions, claim findings, mark as applied        -- from here only forward

`apply` is also the redo of recovery: every step looks first whether it was done.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import PurePosixPath

import structlog

from echod.store import archive, consume, publish
from echod.store.desk import Desk
from echod.store.faults import Busy, StoreFault, fault, told
from echod.store.plan import Committed, Gate, Overtaken, Plan, PlannedConsume, PlannedWrite, open_gate
from echod.store.records import (
    Absorption,
    AppendRecord,
    ConsumeRecord,
    Record,
    RecordState,
    WriteRecord,
)
from echod.store.signal import mark_dirty
from echod.store.stage import write_stage
from echod.store.steps import Step

__all__ = ["Committed", "Gate", "Overtaken", "apply", "commit", "note_absorption", "open_gate"]

log = structlog.get_logger(__name__)


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
    record = _prepare(desk, plan, head)
    try:
        desk.trace(Step.STAGED)
        overtaken = _compare(desk, plan, go_on)
        if overtaken is not None:
            _drop_stages(desk, record)
            return overtaken
        desk.trace(Step.COMPARED)
        _wait_where_exchange_is_missing(desk, plan)
        _last_word(desk, gate)
    except BaseException:
        _drop_stages(desk, record)
        raise
    _intend(desk, record)
    desk.trace(Step.INTENDED)
    apply(desk, record)
    return Committed(record.seq)


def apply(desk: Desk, record: Record) -> Record:
    """Do, or finish, what a record intends. Idempotent.

    Raises:
        StoreFault: the file system failed; if nothing visible had changed yet, the record was taken back.
    """
    try:
        record = _apply(desk, record)
    except OSError as error:
        _give_up_or_park(desk, record, error)
    done = replace(record, state=RecordState.APPLIED)
    desk.journal.save(done)
    desk.journal.note_own({w.path: w.mtime_ns for w in done.writes if w.mtime_ns})
    if done.writes:
        mark_dirty(desk.ground.role.store)
    desk.trace(Step.APPLIED)
    return done


def _prepare(desk: Desk, plan: Plan, head: str | None) -> Record:
    """Stages and images, all durable; nothing visible yet."""
    seq, images, tag = desk.journal.next_seq(), desk.journal.images, desk.journal.tag
    record = Record(
        seq, plan.job, plan.kind, desk.ground.role.name, plan.summary, desk.moment(), head=head,
        absorbs=plan.absorbs, reapplied=plan.reapplied, released=plan.released, undoes=plan.undoes,
        redacted=_redacts(plan),
    )  # fmt: skip
    try:
        for number, write in enumerate(plan.writes):
            staged = _stage(desk, write, f"echod-{tag}-{seq:06d}-{number}")
            record = replace(record, writes=(*record.writes, staged))
        with told("keep the journal's images of", desk.ground.role.path):
            texts: dict[str, bytes] = {}
            for path, text in (*plan.appends, *((c.archive, c.kept) for c in plan.consumes)):
                texts[path] = texts.get(path, b"") + text  # one write a file, so that a redo can tell what is there
            record = replace(
                record,
                appends=tuple(_append_record(desk, path, text) for path, text in texts.items()),
                consumes=tuple(
                    _consume_record(desk, c, f"echod-{tag}-{seq:06d}-{n}") for n, c in enumerate(plan.consumes)
                ),
            )
            images.sync()
        desk.trace(Step.IMAGES_KEPT)
    except BaseException:
        _drop_stages(desk, record)
        raise
    return record


def _redacts(plan: Plan) -> bool:
    """Whether the plan takes secrets out, so that its exact images must not be kept for long."""
    mark = b"[REDACTED:"
    more = (w.after.count(mark) > (w.before or b"").count(mark) for w in plan.writes)
    return any(c.before != c.kept for c in plan.consumes) or any(more)


def _stage(desk: Desk, write: PlannedWrite, mark: str) -> WriteRecord:
    path = desk.ground.role.store.root / write.path
    with told("write beside", path):
        directory, name = desk.ground.place(write.path)
        stage = f".{name}.{mark}"
        inode = write_stage(directory, stage, write.after, name)
        directory.sync()
    images = desk.journal.images
    with told("keep the journal's images of", path):
        pre, post = images.put(write.before or b""), images.put(write.after)
        return WriteRecord(write.path, None if write.before is None else pre, post, stage, inode, pre)


def _append_record(desk: Desk, path: str, text: bytes) -> AppendRecord:
    directory, name = desk.ground.place(path)
    return AppendRecord(path, desk.journal.images.put(text), archive.size(directory, name))


def _consume_record(desk: Desk, consumed: PlannedConsume, mark: str) -> ConsumeRecord:
    images = desk.journal.images
    pre, kept = images.put(consumed.before), images.put(consumed.kept)
    claim = f".{PurePosixPath(consumed.path).name}.{mark}"
    return ConsumeRecord(consumed.path, pre, kept, consumed.archive, claim, pre, consumed.keys)


def _drop_stages(desk: Desk, record: Record) -> None:
    for write in record.writes:
        directory, name = desk.ground.place(write.path)
        if publish.unpublished(directory, name, write):
            directory.unlink(write.stage)


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
            _drop_stages(desk, record)
        raise fault("write the journal of", desk.ground.role.path, error) from error


def _apply(desk: Desk, record: Record) -> Record:
    for added in record.appends:
        directory, name = desk.ground.place(added.path)
        archive.append(directory, name, desk.journal.images.get(added.image), added.offset)
    desk.trace(Step.ARCHIVED)
    for write in record.writes:
        record = record.with_write(_publish(desk, record, write))
    for absorbed in record.absorbs:
        note_absorption(desk, absorbed)
    for claimed in record.consumes:
        directory, name = desk.ground.place(claimed.path)
        consume.claim(directory, name, claimed)
        desk.trace(Step.CLAIMED)
    if record.consumes:
        desk.ground.home.sync()
        desk.trace(Step.CLAIMS_SYNCED)
    return record


def _publish(desk: Desk, record: Record, write: WriteRecord) -> WriteRecord:
    directory, name = desk.ground.place(write.path)
    if publish.publish(directory, name, write, desk.trace) is publish.Published.STAGE_LOST:
        write = _restage(desk, record, write)
    found = directory.stat(name)
    ours = found is not None and found.st_ino == write.inode
    return replace(write, mtime_ns=found.st_mtime_ns if found is not None and ours else 0)


def _restage(desk: Desk, record: Record, write: WriteRecord) -> WriteRecord:
    """Someone tidied our stage away. If the target is still the old one, stage again; else lineage decides later."""
    directory, name = desk.ground.place(write.path)
    before = None if write.pre is None else desk.journal.images.get(write.pre)
    if desk.read(write.path).data != before:
        return write
    inode = write_stage(directory, write.stage, desk.journal.images.get(write.post), name)
    directory.sync()
    write = replace(write, inode=inode)
    desk.journal.save(record.with_write(write))
    publish.publish(directory, name, write, desk.trace)
    return write


def note_absorption(desk: Desk, absorbed: Absorption) -> None:
    """Write into the older record what of its displaced or claimed file is merged now."""
    for older in desk.journal.open_records():
        if older.seq != absorbed.seq:
            continue
        for write in older.writes:
            if write.stage == absorbed.file:
                desk.journal.save(older.with_write(replace(write, absorbed=absorbed.digest)))
        for claimed in older.consumes:
            if claimed.claim == absorbed.file:
                desk.journal.save(older.with_consume(replace(claimed, absorbed=absorbed.digest)))
        desk.trace(Step.ABSORPTION_NOTED)


def _give_up_or_park(desk: Desk, record: Record, error: OSError) -> None:
    """After a failing call: take everything back while nothing is visible, else leave the record to recovery."""
    path = desk.ground.role.path
    begun = any(not publish.unpublished(*desk.ground.place(w.path), w) for w in record.writes)
    begun = begun or any(desk.ground.home.inode(c.claim) is not None for c in record.consumes)
    if begun:
        log.warning("commit_parked", role=str(path), seq=record.seq, error=repr(error))
        raise fault("finish a change in", path, error) from error
    for added in record.appends:
        directory, name = desk.ground.place(added.path)
        archive.take_back(directory, name, desk.journal.images.get(added.image), added.offset)
    _drop_stages(desk, record)
    desk.journal.forget(record)
    log.warning("commit_taken_back", role=str(path), seq=record.seq, error=repr(error))
    raise fault("change", path, error) from error
