"""Undo a commit: the reverse change set through the same path, merged if the files have changed since.

If nothing else has changed, the exact bytes are restored. Archives only grow: text that an undo removes from a memory
file is stored in `archive/removed-{year}.md`, and texts that were archived remain there too.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import NamedTuple

from echod.memory.archive import ArchivedEntry
from echod.memory.document import parse
from echod.memory.identity import block_content, entry_ids
from echod.memory.merge import MergeFailure, merge
from echod.memory.model import Block, Document, Unreadable
from echod.memory.policy_model import Rule
from echod.memory.redact import redact_entry
from echod.store.changes import CommitGate, CommitPlan, CommitResult, PlannedConsume, PlannedWrite
from echod.store.commit.commit import check_conservation, commit
from echod.store.commit.context import CommitContext
from echod.store.errors import BusyError, RefusedError
from echod.store.fs import Snapshot
from echod.store.healing.heal import git_head, read_healed_memory, record_deletion
from echod.store.healing.late_writes import merge_late_writes_of
from echod.store.healing.recovery import archive_appends, archive_entries
from echod.store.journal.records import CommitRecord, ConsumeRecord, WriteRecord
from echod.store.layout import ARCHIVE, QUARANTINE, is_findings_name, restored_findings_name

_APPEND_ONLY_DIRECTORIES = (f"{ARCHIVE}/", f"{QUARANTINE}/")


class UndoResult(NamedTuple):
    """One undone commit."""

    role: str
    seq: int | None  # number of the commit that undid it
    undone_seq: int  # number of the undone commit
    restored_blocks: tuple[Block, ...]  # blocks that are in the memory file again (to be pinned)
    redacted: bool  # whether the exact bytes were no longer available, so that redacted text was restored instead


class UndoPreview(NamedTuple):
    """The effect of undoing one commit now. Paths are relative to the store."""

    undone_seq: int
    restored_files: tuple[str, ...]  # findings files that would be restored
    # files created by the commit that would be removed; their text is kept in the archive
    removed_files: tuple[str, ...]
    restored_blocks: tuple[Block, ...]  # blocks that would be restored
    removed_blocks: tuple[Block, ...]  # blocks that would be removed; their text is kept in the archive
    exact: bool  # whether every file gets its former bytes; else it was changed since and is merged
    redacted: bool  # whether the exact bytes are no longer available, so that redacted text is restored instead


@dataclass(slots=True)
class _ReversePlan:
    """The reverse plan as it grows."""

    writes: list[PlannedWrite] = field(default_factory=list)
    consumes: list[PlannedConsume] = field(default_factory=list)
    archived: list[str | ArchivedEntry] = field(default_factory=list)
    removed_blocks: list[Block] = field(default_factory=list)
    restored_blocks: list[Block] = field(default_factory=list)
    merged: bool = False


def undo_record(context: CommitContext, record: CommitRecord, *, job: int, gate: CommitGate) -> UndoResult:
    """Undo one commit of this role.

    Raises:
        BusyError: not now, or other programs kept writing.
        RefusedError: a file cannot be read any more, or the two versions cannot be merged.
        StoreError: the file system failed, or the journal lost the content to restore.
    """
    for _ in range(context.limits.max_replans + 1):
        reverse = _plan_reverse(context, record, read_healed_memory)
        plan = CommitPlan(
            job,
            "undo",
            f"undid: {record.summary}",
            tuple(reverse.writes),
            archive_appends(context, reverse.archived, f"removed by undo (job {job})", job),
            tuple(reverse.consumes),
            partial_consumes=record.withdrawn_consumes,
            withdrawn_consumes=record.partial_consumes,
            unconsumed_keys=tuple(key for consume in record.consumes for key in consume.keys),
            undoes=(record.seq,),
        )
        check_conservation(plan, context.cache.parse, by_user=True)
        result = commit(context, plan, gate=gate, head=git_head(context))
        if isinstance(result, CommitResult):
            merge_late_writes_of(context, result.seq)
            record_deletion(context, plan)
            return UndoResult(
                context.role.name, result.seq, record.seq, tuple(reverse.restored_blocks), record.blobs_redacted
            )
    raise BusyError("Other programs keep writing the same files; try again in a moment.")


def preview_record(context: CommitContext, record: CommitRecord) -> UndoPreview:
    """Return the effect that `undo_record` would have now, or raise the same errors. Read-only, needs no lock."""
    reverse = _plan_reverse(context, record, lambda reader: reader.read(reader.memory_path))
    return UndoPreview(
        undone_seq=record.seq,
        restored_files=tuple(write.path for write in reverse.writes if write.before is None),
        removed_files=tuple(consume.path for consume in reverse.consumes),
        restored_blocks=tuple(reverse.restored_blocks),
        removed_blocks=tuple(reverse.removed_blocks),
        exact=not reverse.merged,
        redacted=record.blobs_redacted,
    )


def _plan_reverse(
    context: CommitContext, record: CommitRecord, read_memory: Callable[[CommitContext], Snapshot]
) -> _ReversePlan:
    reverse = _ReversePlan([_restore_findings(context, record, consume) for consume in record.consumes])
    for write in record.writes:
        if write.path.removeprefix(context.directory.path_of("")).startswith(_APPEND_ONLY_DIRECTORIES):
            continue
        current = read_memory(context) if write.path == context.memory_path else context.read(write.path)
        if write.before_digest is None and not _has_foreign_blocks(context, write, current):
            _remove_created_file(reverse, record, write, current)
        else:
            _revert_file(context, reverse, write, current)
    return reverse


def _restore_findings(context: CommitContext, record: CommitRecord, consume: ConsumeRecord) -> PlannedWrite:
    """Restore the findings file under its old name, or under another one if the agent has written a new file."""
    path = PurePosixPath(consume.path)
    directory, _ = context.directory.resolve(path)
    if directory.stat(path.name) is not None:
        path = path.with_name(restored_findings_name(path.name, record.seq))
    return PlannedWrite(str(path), None, context.journal.blobs.get(consume.before_digest))


def _remove_created_file(reverse: _ReversePlan, record: CommitRecord, write: WriteRecord, current: Snapshot) -> None:
    """Remove a file that the commit created. Its text remains in the archive."""
    if current.data is None:
        return
    path = PurePosixPath(write.path)
    text = current.text.decode(errors="surrogateescape")
    archived_text = redact_entry(text).text.encode(errors="surrogateescape")
    archive = path.with_name(ARCHIVE) / "findings" / f"undone-{record.seq}-{path.name}"
    keys = record.unconsumed_keys if is_findings_name(path.name) else ()
    reverse.consumes.append(PlannedConsume(write.path, current.text, archived_text, str(archive), keys))


def _has_foreign_blocks(context: CommitContext, write: WriteRecord, current: Snapshot) -> bool:
    """Return whether a memory file that the commit created contains blocks that are not the commit's."""
    if current.digest == write.after_digest:
        return False
    visible, after = parse(current.text), parse(context.journal.blobs.get(write.after_digest))
    if write.path != context.memory_path or isinstance(visible, Unreadable) or isinstance(after, Unreadable):
        return False
    own_contents = {block_content(block) for block in after.blocks}
    return any(block_content(block) not in own_contents for block in visible.blocks)


def _revert_file(context: CommitContext, reverse: _ReversePlan, write: WriteRecord, current: Snapshot) -> None:
    target = context.journal.blobs.get(write.before_digest or write.after_digest)
    if write.before_digest is None:  # only the header remains of a memory file that the commit created
        created = parse(target)
        target = b"" if isinstance(created, Unreadable) else created.preamble.encode()
    visible, before = parse(current.text), parse(target)
    if isinstance(visible, Unreadable) or isinstance(before, Unreadable):
        raise _unreadable_error(write)
    has_changed = current.digest != write.after_digest
    reverse.merged |= has_changed
    data = _merge_revert(context, write, visible, before) if has_changed else target
    after = parse(data)
    if isinstance(after, Unreadable):
        raise RefusedError(f"{write.path} would become unreadable, so nothing was undone. {after.reason}")
    if data == current.text:
        return
    reverse.writes.append(PlannedWrite(write.path, current.data, data))
    _record_difference(context, reverse, PurePosixPath(write.path).name, visible, after)


def _merge_revert(context: CommitContext, write: WriteRecord, visible: Document, before: Document) -> bytes:
    after = parse(context.journal.blobs.get(write.after_digest))
    if isinstance(after, Unreadable):
        raise _unreadable_error(write)
    merged = merge(after, visible, before)
    if isinstance(merged, MergeFailure):
        raise RefusedError(f"{write.path} has changed too much since to undo this. {merged.reason}")
    return merged.data


def _unreadable_error(write: WriteRecord) -> RefusedError:
    return RefusedError(f"{write.path} cannot be read as memory any more, so nothing was undone; repair it first.")


def _record_difference(
    context: CommitContext, reverse: _ReversePlan, file: str, visible: Document, after: Document
) -> None:
    old, new = ({block_content(b) for b in d.blocks} for d in (visible, after))
    reverse.removed_blocks += [b for b in visible.blocks if block_content(b) not in new]
    # Blocks that an archive contains already are archived too: every commit that removes a block also stores it.
    ids = zip(entry_ids(context.role.name, visible), visible.blocks, strict=True)
    removed = [(entry_id, block) for entry_id, block in ids if block_content(block) not in new]
    reverse.archived += archive_entries(context, removed, after, Rule.UNDONE, file)
    if visible.preamble.strip() and visible.preamble.strip() != after.preamble.strip():
        reverse.archived.append(visible.preamble)
    reverse.restored_blocks += [b for b in after.blocks if block_content(b) not in old]
