"""Taking a commit back: the reverse change set through the same path, merged if the files have moved on.

With nothing else changed the bytes come back exactly. Archives only grow: what undo takes out of a memory file is
kept in `archive/removed-{year}.md`, and texts that were archived stay there too.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import NamedTuple

from echod.memory.alignment import content
from echod.memory.document import parse
from echod.memory.identity import entry_ids
from echod.memory.merge import Unmergeable, merge
from echod.memory.model import Block, Document, Unreadable
from echod.memory.policy import ArchivedEntry, Rule
from echod.memory.redact import redact_entry
from echod.store.changes import Begin, Committed, Gate, Plan, PlannedConsume, PlannedWrite
from echod.store.commit.commit import commit, hold
from echod.store.commit.context import Desk
from echod.store.errors import Busy, Refused
from echod.store.healing.archives import as_kept, leaving
from echod.store.healing.heal import head_of, healed_memory, remember_absence
from echod.store.healing.late_writes import follow
from echod.store.journal.records import ConsumeRecord, Record, WriteRecord
from echod.store.layout import AGENT_FINDINGS, MEMORY, restored_name
from echod.store.snapshot import Snapshot

_KEPT_FOLDERS = ("archive/", "quarantine/")


class Undone(NamedTuple):
    """One commit was taken back.

    Attributes:
        seq: number of the commit that did it.
        undid: number of the commit that was taken back.
        restored: blocks that are in the memory file again (to be pinned).
        redacted: whether exact bytes were no longer kept, so that redacted text came back instead.
    """

    role: str
    seq: int | None
    undid: int
    restored: tuple[Block, ...]
    redacted: bool


class Preview(NamedTuple):
    """What taking one commit back would do now. Paths are relative to the store.

    Attributes:
        returns: findings files that come back.
        goes: files that the commit made and that go; their text is kept in the archive.
        restored: blocks that come back.
        leaving: blocks that go; their text is kept in the archive.
        exact: every file gets back the bytes that it had; else others have changed it since, and it is merged.
        redacted: whether exact bytes are no longer kept, so that redacted text comes back instead.
    """

    undoes: int
    returns: tuple[str, ...]
    goes: tuple[str, ...]
    restored: tuple[Block, ...]
    leaving: tuple[Block, ...]
    exact: bool
    redacted: bool


@dataclass(slots=True)
class _Reverse:
    """The reverse plan as it grows."""

    writes: list[PlannedWrite] = field(default_factory=list)
    consumes: list[PlannedConsume] = field(default_factory=list)
    leaving: list[str | ArchivedEntry] = field(default_factory=list)
    gone: list[Block] = field(default_factory=list)
    restored: list[Block] = field(default_factory=list)
    merged: bool = False


def undo_record(desk: Desk, record: Record, *, job: int, gate: Gate) -> Undone:
    """Take one commit of this role back.

    Raises:
        Busy: not now, or others kept writing.
        Refused: a file cannot be read any more, or the two versions cannot be put together.
        StoreFault: the file system failed, or the journal lost the content to go back to.
    """
    for _ in range(desk.limits.max_replans + 1):
        reverse = _reverse(desk, record, healed_memory)
        plan = Plan(
            job,
            "undo",
            f"took back: {record.summary}",
            tuple(reverse.writes),
            leaving(desk, reverse.leaving, f"taken out by undo (job {job})", job),
            tuple(reverse.consumes),
            begins=tuple(Begin(part.image, part.keys) for part in record.withheld),
            withholds=tuple(Begin(part.image, part.keys) for part in record.begun),
            released=tuple(key for consume in record.consumes for key in consume.keys),
            undoes=(record.seq,),
        )
        hold(plan, desk.readings.read, asked=True)
        done = commit(desk, plan, gate=gate, head=head_of(desk))
        if isinstance(done, Committed):
            for made in desk.journal.open_records():
                if made.seq == done.seq:
                    follow(desk, made)
            remember_absence(desk, plan)
            return Undone(desk.ground.role.name, done.seq, record.seq, tuple(reverse.restored), record.thinned)
    raise Busy("Other programs keep writing the same files; try again in a moment.")


def preview_record(desk: Desk, record: Record) -> Preview:
    """What `undo_record` would do now. Writes nothing and needs no lock.

    Raises:
        Busy, Refused, StoreFault: as `undo_record` would.
    """
    reverse = _reverse(desk, record, lambda at: at.read(at.ground.path_of(MEMORY)))
    return Preview(
        undoes=record.seq,
        returns=tuple(write.path for write in reverse.writes if write.before is None),
        goes=tuple(consume.path for consume in reverse.consumes),
        restored=tuple(reverse.restored),
        leaving=tuple(reverse.gone),
        exact=not reverse.merged,
        redacted=record.thinned,
    )


def _reverse(desk: Desk, record: Record, read_memory: Callable[[Desk], Snapshot]) -> _Reverse:
    reverse = _Reverse()
    for consume in record.consumes:
        reverse.writes.append(_give_back(desk, record, consume))
    for write in record.writes:
        if write.path.removeprefix(desk.ground.path_of("")).startswith(_KEPT_FOLDERS):
            continue
        current = read_memory(desk) if write.path == desk.ground.path_of(MEMORY) else desk.read(write.path)
        if write.pre is None and (current.digest == write.post or not _holds_more(desk, write, current)):
            _take_away(reverse, record, write, current)
        else:
            _turn_back(desk, reverse, write, current)
    return reverse


def _give_back(desk: Desk, record: Record, consume: ConsumeRecord) -> PlannedWrite:
    """The findings file under its old name, or under one of its own where the agent has written a new one."""
    path = PurePosixPath(consume.path)
    directory, _ = desk.ground.place(path)
    if directory.stat(path.name) is not None:
        path = path.with_name(restored_name(path.name, record.seq))
    return PlannedWrite(str(path), None, desk.journal.images.get(consume.pre))


def _take_away(reverse: _Reverse, record: Record, write: WriteRecord, current: Snapshot) -> None:
    """A file that the commit created goes, its text stays in the archive."""
    if current.data is None:
        return
    path = PurePosixPath(write.path)
    text = current.text.decode(errors="surrogateescape")
    kept = redact_entry(text).text.encode(errors="surrogateescape")
    archive = path.with_name("archive") / "findings" / f"undone-{record.seq}-{path.name}"
    keys = record.released if AGENT_FINDINGS.fullmatch(path.name) else ()
    reverse.consumes.append(PlannedConsume(write.path, current.text, kept, str(archive), keys))


def _holds_more(desk: Desk, write: WriteRecord, current: Snapshot) -> bool:
    """Whether a memory file that the commit created has got blocks since that are not the commit's."""
    visible, post = parse(current.text), parse(desk.journal.images.get(write.post))
    if write.path != desk.ground.path_of(MEMORY) or isinstance(visible, Unreadable) or isinstance(post, Unreadable):
        return False
    ours = {content(block) for block in post.blocks}
    return any(content(block) not in ours for block in visible.blocks)


def _emptied(desk: Desk, write: WriteRecord) -> bytes:
    """The memory file that the commit created, without what the commit put into it: its head alone."""
    post = parse(desk.journal.images.get(write.post))
    return b"" if isinstance(post, Unreadable) else post.preamble.encode()


def _turn_back(desk: Desk, reverse: _Reverse, write: WriteRecord, current: Snapshot) -> None:
    pre = _emptied(desk, write) if write.pre is None else desk.journal.images.get(write.pre)
    visible, before = parse(current.text), parse(pre)
    if isinstance(visible, Unreadable) or isinstance(before, Unreadable):
        raise Refused(f"{write.path} cannot be read as memory any more, so nothing was undone; repair it first.")
    reverse.merged |= current.digest != write.post
    data = _merged(desk, write, visible, before) if current.digest != write.post else pre
    after = parse(data)
    if isinstance(after, Unreadable):
        raise Refused(f"{write.path} would become unreadable, so nothing was undone. {after.reason}")
    if data == current.text:
        return
    reverse.writes.append(PlannedWrite(write.path, current.data, data))
    _note_difference(desk, reverse, PurePosixPath(write.path).name, visible, after)


def _merged(desk: Desk, write: WriteRecord, visible: Document, before: Document) -> bytes:
    post = parse(desk.journal.images.get(write.post))
    if isinstance(post, Unreadable):
        raise Refused(f"{write.path} cannot be read as memory any more, so nothing was undone; repair it first.")
    merged = merge(post, visible, before)
    if isinstance(merged, Unmergeable):
        raise Refused(f"{write.path} has changed too much since to undo this. {merged.reason}")
    return merged.data


def _note_difference(desk: Desk, reverse: _Reverse, file: str, visible: Document, after: Document) -> None:
    old, new = ({content(b) for b in d.blocks} for d in (visible, after))
    gone = [b for b in visible.blocks if content(b) not in new]
    reverse.gone += gone
    # Also what stands in an archive already: nothing leaves a file but by a commit that keeps it.
    ids = zip(entry_ids(desk.ground.role.name, visible), visible.blocks, strict=True)
    reverse.leaving += as_kept(desk, [(i, b) for i, b in ids if content(b) not in new], after, Rule.UNDONE, file)
    if visible.preamble.strip() and visible.preamble.strip() != after.preamble.strip():
        reverse.leaving.append(visible.preamble)
    reverse.restored += [b for b in after.blocks if content(b) not in old]
