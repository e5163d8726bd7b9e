"""Everything a commit needs before it may begin: stages beside their targets, contents in the journal, the record."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import PurePosixPath

from echod.memory.exposed_secrets import strip
from echod.store.changes import Begin, Plan, PlannedConsume, PlannedWrite
from echod.store.commit import file_steps
from echod.store.commit.context import Desk
from echod.store.commit.file_steps import write_stage
from echod.store.commit.steps import Step
from echod.store.errors import told
from echod.store.journal.records import AppendRecord, BegunRecord, ConsumeRecord, Record, WriteRecord


def prepare(desk: Desk, plan: Plan, head: str | None) -> Record:
    """Write stages and images, all durable; nothing is visible yet.

    Raises:
        Refused: a file's mode, owner or attributes cannot be kept.
        StoreFault: the file system failed; nothing is left behind.
    """
    seq, images, tag = desk.journal.next_seq(), desk.journal.images, desk.journal.tag
    record = Record(
        seq, plan.job, plan.kind, desk.ground.role.name, plan.summary, desk.moment(), head=head,
        absorbs=plan.absorbs, reapplied=plan.reapplied, released=plan.released, undoes=plan.undoes,
        redacted=_redacts(plan), begun=_begun(plan.begins), withheld=_begun(plan.withholds),
    )  # fmt: skip
    try:
        desk.journal.note_staging()
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
        drop_stages(desk, record)
        raise
    return record


def _begun(begins: tuple[Begin, ...]) -> tuple[BegunRecord, ...]:
    return tuple(BegunRecord(begin.before, begin.keys) for begin in begins)


def _redacts(plan: Plan) -> bool:
    """Whether the plan takes secrets out, so that its exact images must not be kept for long.

    What leaves one file stands in another, so it is all that the plan leaves that counts. Looking for secrets takes
    long; markers are counted first, of which there are more only where a secret went, or where text was copied.
    """
    if any(c.before != c.kept for c in plan.consumes):
        return True
    stood = [w.before for w in plan.writes if w.before is not None]
    left = [*(w.after for w in plan.writes), *(text for _, text in plan.appends)]
    return _marks(left) > _marks(stood) and any(strip(text, confirmed=True) != text for text in stood)


def _marks(texts: Iterable[bytes]) -> int:
    return sum(text.count(b"[REDACTED:") for text in texts)


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
    return AppendRecord(path, desk.journal.images.put(text), file_steps.size(directory, name))


def _consume_record(desk: Desk, consumed: PlannedConsume, mark: str) -> ConsumeRecord:
    images = desk.journal.images
    pre, kept = images.put(consumed.before), images.put(consumed.kept)
    claim = f".{PurePosixPath(consumed.path).name}.{mark}"
    return ConsumeRecord(consumed.path, pre, kept, consumed.archive, claim, pre, consumed.keys)


def drop_stages(desk: Desk, record: Record) -> None:
    """Remove the stages of a record that came to nothing; one that was used is left where it is."""
    for write in record.writes:
        directory, name = desk.ground.place(write.path)
        if file_steps.unpublished(directory, name, write):
            directory.unlink(write.stage)
    desk.journal.clear_staging()
