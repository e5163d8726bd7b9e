"""Late bytes: what reaches a file after it was displaced or claimed, through a descriptor somebody still held.

Once the lease says that nobody can write to it any more, what came late is merged as a commit of its own. A
displaced file may itself be a stale overwrite, so its own lineage is healed first. Late findings are offered again
as a new findings file, for the consolidation to read like any other. A record is closed when its files are old
enough, cannot be written to, and hold nothing new.

Files that were displaced or claimed, as they are now: somebody may still hold them open and write.

The end of a commit: its displaced and claimed files are tidied away, the record becomes history.
"""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import PurePosixPath
from typing import NamedTuple

from echod.log import get_logger
from echod.memory.alignment import content
from echod.memory.document import parse
from echod.memory.lineage import Crossed, Found, Stale, judge, shape
from echod.memory.merge import Merged, Unmergeable, believe_removals, merge
from echod.memory.model import Document, Unreadable
from echod.memory.redact import redact, redact_bytes
from echod.store.changes import Committed, Plan, PlannedWrite, open_gate
from echod.store.commit.apply import note_absorption
from echod.store.commit.commit import commit
from echod.store.commit.context import Desk
from echod.store.commit.steps import Step
from echod.store.errors import Busy, told
from echod.store.fs import Writers, read_all, read_lease
from echod.store.healing.archives import archived, leaving
from echod.store.healing.heal import brought_in_line, head_of, healed_memory
from echod.store.healing.known_states import known_documents
from echod.store.journal.journal import KnownState, RoleJournal
from echod.store.journal.records import Absorption, ConsumeRecord, Record, RecordState, WriteRecord
from echod.store.layout import MEMORY, late_name
from echod.store.snapshot import MAX_FILE_BYTES, digest


class Late(NamedTuple):
    """A file as it is now.

    Attributes:
        data: its content; None where it is gone.
        final: nobody can write to it, as far as can be known.
        certain: the kernel says so.
    """

    data: bytes | None
    final: bool
    certain: bool

    def holds(self, absorbed: str) -> bool:
        """Whether there is nothing new in it: `absorbed` is the digest of what is merged of it."""
        return self.data is None or digest(self.data) == absorbed


def followed_files(record: Record) -> list[tuple[str, str, str]]:
    """Displaced and claimed files: the path they had, the name they have, what is merged of them."""
    displaced = [(w.path, w.stage, w.absorbed) for w in record.writes]
    return displaced + [(c.path, c.claim, c.absorbed) for c in record.consumes]


def has_late(desk: Desk, record: Record) -> bool:
    """Whether something came late that can be merged now.

    Where it is certain that nothing ever will, the record is not looked at again until it is closed: nobody has a
    descriptor, and nobody but us knows the names.
    """
    if (record.seq, record.at) in desk.journal.settled:
        return False
    settled = True
    for path, name, absorbed in followed_files(record):
        late = late_bytes(desk, path, name)
        if late.final and not late.holds(absorbed):
            return True
        settled = settled and late.certain and late.holds(absorbed)
    if settled:
        desk.journal.settled.add((record.seq, record.at))
    return False


def late_bytes(desk: Desk, path: str, name: str) -> Late:
    """Look at a displaced or claimed file that lies under `name` beside `path` (relative to the store)."""
    with told("look at the replaced file beside", desk.ground.role.store.root / path):
        directory, _ = desk.ground.place(path)
        try:
            fd = directory.open(name, os.O_RDONLY)
        except FileNotFoundError:
            return Late(None, final=True, certain=True)
        try:
            with read_lease(fd) as writers:
                data = read_all(fd, MAX_FILE_BYTES)
                stat = os.fstat(fd)
        finally:
            os.close(fd)
    if len(data) > MAX_FILE_BYTES:
        return Late(data[:0], final=False, certain=False)  # too big to be merged: it stays for a person to look at
    still = desk.clock() - max(stat.st_mtime, stat.st_ctime) >= desk.limits.settle_seconds
    certain = writers is Writers.NONE
    return Late(data, final=certain or (writers is Writers.UNKNOWN and still), certain=certain)


log = get_logger(__name__)

_HOUR = 3600.0


def is_over(desk: Desk, record: Record) -> bool:
    """Whether a record is old enough, and nobody can write to its files, and they hold nothing new."""
    if desk.clock() - record.at <= desk.limits.displaced_hours * _HOUR:
        return False
    for path, name, absorbed in followed_files(record):
        late = late_bytes(desk, path, name)
        if late.data is not None and not (late.final and late.holds(absorbed)):
            desk.journal.settled.discard((record.seq, record.at))
            return False
    return True


def abandon(journal: RoleJournal, *, older_than: float) -> None:
    """Close what is open in a role whose directory a person removed; its contents stay in the journal for a while."""
    for record in journal.open_records():
        if record.at < older_than:
            log.warning("commit_abandoned", role=record.role, seq=record.seq, state=record.state.value)
            journal.enter_ledger(record)
            journal.close(replace(record, state=RecordState.CLOSED))


def close(desk: Desk, record: Record) -> None:
    """Remove what was displaced and claimed, and move the record to the history."""
    desk.trace(Step.CLOSING)
    with told("tidy up in", desk.ground.role.path):
        for path, name, _ in followed_files(record):
            directory, _ = desk.ground.place(path)
            directory.unlink(name)
        desk.trace(Step.FORGOTTEN)
        desk.journal.enter_ledger(record)
        for write in record.writes:
            if write.path == desk.ground.path_of(MEMORY):
                states = [KnownState(i, record.at, record.head) for i in (write.pre, write.post) if i]
                desk.journal.note_states(states)
        desk.journal.close(replace(record, state=RecordState.CLOSED))
    desk.trace(Step.CLOSED)


_ROUNDS = 4


def settle(desk: Desk) -> tuple[int, ...]:
    """Merge what came late in every open record and close what can be closed; the new commits' numbers.

    Raises:
        Busy: the memory file is being written; the rest waits.
        StoreFault: the file system failed; the rest waits.
    """
    made: list[int] = []
    for record in desk.journal.open_records():
        if record.state is RecordState.APPLIED and has_late(desk, record):
            made += follow(desk, record)
    for record in desk.journal.open_records():
        if record.state is RecordState.APPLIED and is_over(desk, record):
            close(desk, record)
    return tuple(made)


def follow(desk: Desk, record: Record) -> tuple[int, ...]:
    """Merge what came late into the files of one record; the new commits' numbers."""
    made = [_absorb_write(desk, record, write) for write in record.writes]
    made += [_offer_again(desk, record, consume) for consume in record.consumes]
    return tuple(seq for seq in made if seq is not None)


def due(desk: Desk) -> bool:
    """Whether `settle` would find anything to do, without touching a thing."""
    records = desk.journal.open_records()
    if any(r.state is RecordState.INTENT or is_over(desk, r) or has_late(desk, r) for r in records):
        return True
    newest = desk.journal.newest_state()
    if newest is None or not records:
        return False
    try:
        return newest.image != digest(desk.read(desk.ground.path_of(MEMORY)).text)
    except Busy:
        return False


def _absorb_write(desk: Desk, record: Record, write: WriteRecord) -> int | None:
    for attempt in range(_ROUNDS):
        late = late_bytes(desk, write.path, write.stage)
        if late.data is None or not late.final or digest(late.data) == write.absorbed:
            return None
        insisting = frozenset({write.path}) if attempt >= desk.limits.max_replans else frozenset()
        outcome = _merge_late(desk, record, write, late.data, insisting)
        if outcome is not None:
            return outcome.seq
    return None  # others keep writing; the displaced file waits on the disk


def _merge_late(
    desk: Desk, record: Record, write: WriteRecord, late: bytes, insisting: frozenset[str]
) -> Committed | None:
    """One try; None where someone else was faster."""
    note = Absorption(record.seq, write.stage, desk.journal.images.put(late))
    visible = healed_memory(desk) if _is_memory(desk, write) else desk.read(write.path)
    base = desk.journal.images.get(write.absorbed)
    now, before, then = map(desk.readings.read, (visible.text, base, late))
    if isinstance(now, Unreadable):
        raise Busy(f"{write.path} cannot be read, so what came late waits. {now.reason}")
    merged: Merged | Unmergeable
    if isinstance(before, Unreadable) or isinstance(then, Unreadable):
        merged = Unmergeable("what came late cannot be read")
    else:
        merged = _fold(desk, record, write, now, before, then)
    if isinstance(merged, Unmergeable):
        merged = Merged(visible.text, (), (late.decode(errors="replace"),))
    old = archived(desk)
    plan = Plan(
        None,
        "absorb",
        "merged what another program wrote into the file that was just replaced",
        () if merged.data == visible.text else (PlannedWrite(write.path, visible.data, merged.data),),
        leaving(desk, (text for text in merged.lost if text.rstrip() not in old), "came late and gave way"),
        absorbs=(note,),
    )
    if not plan.writes and not plan.appends:
        desk.journal.images.sync()
        note_absorption(desk, note)
        return Committed(None)
    outcome = commit(desk, plan, gate=open_gate, head=head_of(desk), go_on=insisting)
    return outcome if isinstance(outcome, Committed) else None


def _is_memory(desk: Desk, write: WriteRecord) -> bool:
    return write.path == desk.ground.path_of(MEMORY)


def _fold(
    desk: Desk, record: Record, write: WriteRecord, visible: Document, base: Document, late: Document
) -> Merged | Unmergeable:
    if len(late.blocks) * 2 < len(base.blocks):
        # Half a file through a held descriptor is a torn write rather than a wish: take what it adds, no removals.
        return merge(believe_removals(base, late, ()), visible, late)
    if not _is_memory(desk, write):
        return merge(base, visible, late)
    origin = _straightened(desk, write, late)
    if isinstance(origin, Unmergeable):
        return origin
    return merge(base, visible, origin, older=_said_before(desk, record, write))


def _said_before(desk: Desk, record: Record, write: WriteRecord) -> frozenset[str]:
    """What blocks said in the memory files that were displaced before this one, as far as that is merged.

    A program that reads and replaces the file quickly has its first version displaced by one commit and its second by
    the next; when both are merged the first one stands in the memory, and gives way to the second. The next commit may
    be the very one that merged the first.
    """
    records = desk.journal.open_records()
    writes = [(r, w) for r in records for w in r.writes if w.path == write.path]
    earlier = {w.absorbed for r, w in writes if r.seq < record.seq and w.absorbed != w.pre}
    earlier.update(merged.digest for r, _ in writes for merged in r.absorbs if merged.seq < record.seq)
    documents = (desk.readings.document(desk.journal, image) for image in sorted(earlier))
    return frozenset(content(block) for document in documents if document for block in document.blocks)


def _straightened(desk: Desk, write: WriteRecord, late: Document) -> Document | Unmergeable:
    """`late` with what its own writer overwrote: its newest possible ancestor is what was absorbed of it before."""
    known = known_documents(desk)
    ancestors = [i for i, k in enumerate(known) if k.known.image == write.absorbed]
    if not ancestors:
        return late
    known = known[: ancestors[-1] + 1]
    found = Found(digest(late.render()), None, shape(late))
    descent = judge(found, [k.known for k in known], now=desk.clock(), young_seconds=desk.limits.young_seconds)
    if not isinstance(descent, Stale | Crossed):
        return late
    merged = brought_in_line(descent, late, known, set(), archived(desk))
    if isinstance(merged, Unmergeable):
        return merged
    straight = parse(merged.data)
    return late if isinstance(straight, Unreadable) else straight


def _offer_again(desk: Desk, record: Record, consume: ConsumeRecord) -> int | None:
    late = late_bytes(desk, consume.path, consume.claim)
    if late.data is None or not late.final or digest(late.data) == consume.absorbed:
        return None
    text = _new_findings(desk.journal.images.get(consume.absorbed), late.data)
    note = Absorption(record.seq, consume.claim, desk.journal.images.put(late.data))
    if not text.strip():
        desk.journal.images.sync()
        note_absorption(desk, note)
        return None
    plan = Plan(
        None,
        "late-findings",
        "offered again what an agent wrote into findings that were just consumed",
        (PlannedWrite(_late_name(desk, consume), None, text),),
        absorbs=(note,),
    )
    outcome = commit(desk, plan, gate=open_gate, head=None)
    return outcome.seq if isinstance(outcome, Committed) else None


def _late_name(desk: Desk, consume: ConsumeRecord) -> str:
    """A name that only we use: an agent that rewrites its own file must not overwrite this one."""
    path = PurePosixPath(consume.path)
    return str(path.with_name(late_name(path.name, desk.journal.next_seq())))


def _new_findings(absorbed: bytes, late: bytes) -> bytes:
    """The blocks that came or changed; all of it where it cannot be told. Without secrets, as the file is a new one."""
    before, after = parse(absorbed), parse(late)
    if isinstance(before, Unreadable) or isinstance(after, Unreadable):
        return redact_bytes(late)
    old = {content(block) for block in before.blocks}
    new = [block.text for block in after.blocks if content(block) not in old]
    preamble = "" if after.preamble.strip() == before.preamble.strip() else after.preamble
    return redact(preamble + "".join(new)).text.encode()
