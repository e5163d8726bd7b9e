"""Merge late writes: bytes that reach a file after it was displaced or claimed.

The writer still had a descriptor open. Once the lease shows that no process can write to the file any more, late bytes
are merged as a commit of their own. A displaced file may itself be a stale overwrite, so its own lineage is healed
first. Late findings are written to a new findings file, which the next consolidation reads like any other.

A commit ends when its files are old enough, cannot be written to, and contain nothing new. Then its displaced and
claimed files are removed and its record becomes history.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import PurePosixPath
from typing import NamedTuple

from echod.files import content_digest
from echod.log import get_logger
from echod.memory import MAX_FILE_BYTES
from echod.memory.document import parse
from echod.memory.identity import block_content, block_texts
from echod.memory.lineage import CurrentVersion, InterleavedWrite, StaleWrite
from echod.memory.merge import MergeFailure, MergeResult, merge, restrict_removals
from echod.memory.model import Document, Unreadable
from echod.memory.redact import redact, redact_bytes
from echod.store.changes import CommitPlan, CommitResult, LateMerge, PlannedWrite, no_gate
from echod.store.commit.apply import record_late_merge
from echod.store.commit.commit import commit
from echod.store.commit.context import CommitContext, CommitStep
from echod.store.errors import MAX_MERGE_ATTEMPTS, BusyError, as_store_error
from echod.store.fs import OpenWriters, is_settled, read_all, read_lease
from echod.store.healing.heal import git_head, read_healed_memory, reconcile_with_known
from echod.store.healing.recovery import archive_appends, classify_known_descent, read_archives, recent_states
from echod.store.journal.journal import KnownState, RoleJournal
from echod.store.journal.records import CommitRecord, ConsumeRecord, RecordState, WriteRecord
from echod.store.layout import late_findings_name

log = get_logger(__name__)


class _LateWrite(NamedTuple):
    """The present content of a displaced or claimed file."""

    data: bytes | None  # its content; None if the file does not exist
    is_final: bool  # whether no process can write to it, as far as can be known
    is_certain: bool  # whether the kernel confirmed that

    def is_merged(self, merged_digest: str) -> bool:
        """Return whether it contains nothing beyond the content with `merged_digest`, which is merged already."""
        return self.data is None or content_digest(self.data) == merged_digest


def needs_late_merge(context: CommitContext) -> bool:
    """Return whether `merge_late_writes` would find anything to do. Read-only."""
    records = context.journal.open_records()
    expired = _expired(context, records)
    if any(r.state is RecordState.INTENT or _has_late_write(context, r) for r in records):
        return True
    if any(_can_close(context, record) for record in expired):
        return True
    newest = context.journal.newest_state()
    if newest is None or not records:
        return False
    try:
        return newest.digest != content_digest(context.read(context.memory_path).text)
    except BusyError:
        return False


def merge_late_writes(context: CommitContext) -> tuple[int, ...]:
    """Merge the late writes of every open record, close finished records, and return the numbers of the new commits.

    After an error the rest waits.
    """
    seqs: list[int] = []
    for record in context.journal.open_records():
        if record.state is RecordState.APPLIED and _has_late_write(context, record):
            seqs += _merge_record(context, record)
    for record in _expired(context, context.journal.open_records()):
        if record.state is RecordState.APPLIED and _can_close(context, record):
            _close_record(context, record)
    return tuple(seqs)


def merge_late_writes_of(context: CommitContext, seq: int | None) -> None:
    """Merge the late writes to the files of the commit `seq` (None: nothing was committed)."""
    for record in context.journal.open_records():
        if record.seq == seq:
            _merge_record(context, record)


def _merge_record(context: CommitContext, record: CommitRecord) -> tuple[int, ...]:
    """Merge the late writes to the files of one record, and return the numbers of the new commits."""
    seqs = [_merge_late_write(context, record, write) for write in record.writes]
    seqs += [_restore_late_findings(context, record, consume) for consume in record.consumes]
    return tuple(seq for seq in seqs if seq is not None)


def close_orphaned(journal: RoleJournal, *, now: float, older_than: float) -> None:
    """Close the open records of a role whose directory the user removed. Its contents remain in the journal for now."""
    timeline = journal.timeline(now)
    for record in journal.open_records():
        if timeline.latest(record.at) < older_than:
            log.warning("orphaned_commit_closed", role=record.role, seq=record.seq, state=record.state.value)
            closed = record._replace(state=RecordState.CLOSED)
            if record.state is RecordState.INTENT:  # it is unknown whether the findings are in any memory
                closed = closed._replace(consumes=(), partial_consumes=())
            journal.ledger.add(closed)
            journal.close(closed)


class _DisplacedFile(NamedTuple):
    """A displaced or claimed file of a commit."""

    path: str  # its former path, relative to the store
    private: str  # the private directory in which it is, relative to the store
    name: str  # its name there
    merged_digest: str  # the content that is merged already


def _displaced_files(record: CommitRecord) -> list[_DisplacedFile]:
    displaced = [_DisplacedFile(w.path, w.private, w.staged_name, w.merged_digest) for w in record.writes]
    return displaced + [_DisplacedFile(c.path, c.private, c.claimed_name, c.merged_digest) for c in record.consumes]


def _has_late_write(context: CommitContext, record: CommitRecord) -> bool:
    """Return whether there is a late write that can be merged now.

    If it is certain that there will never be one, the record is not checked again until it is closed: no process has a
    descriptor, and only echod knows the names.
    """
    if (record.seq, record.at) in context.journal.quiescent_commits:
        return False
    is_quiescent = True
    for file in _displaced_files(record):
        late = _read_late_write(context, file.path, file.private, file.name)
        if late.is_final and not late.is_merged(file.merged_digest):
            return True
        is_quiescent = is_quiescent and late.is_certain and late.is_merged(file.merged_digest)
    if is_quiescent:
        context.journal.quiescent_commits.add((record.seq, record.at))
    return False


def _read_late_write(context: CommitContext, path: str, private: str, name: str) -> _LateWrite:
    """Read a displaced or claimed file of `path`, which is `name` in a private directory. Paths are the record's."""
    with as_store_error("read the replaced version of", context.role.store.root / path):
        directory = context.directory.find_private(private)
        if directory is None:
            return _LateWrite(None, is_final=True, is_certain=True)
        try:
            with directory.open(name, os.O_RDONLY) as fd, read_lease(fd) as writers:
                data = read_all(fd, MAX_FILE_BYTES)
                status = os.fstat(fd)
        except FileNotFoundError:
            return _LateWrite(None, is_final=True, is_certain=True)
    if len(data) > MAX_FILE_BYTES:
        return _LateWrite(b"", is_final=False, is_certain=False)  # too large to merge: it remains for the user
    has_settled = is_settled(max(status.st_mtime, status.st_ctime), context.clock(), context.limits.settle_seconds)
    is_certain = writers is OpenWriters.NONE
    is_final = is_certain or (writers is OpenWriters.UNKNOWN and has_settled)
    return _LateWrite(data, is_final=is_final, is_certain=is_certain)


def _expired(context: CommitContext, records: Sequence[CommitRecord]) -> list[CommitRecord]:
    """Return the records that are old enough to be closed."""
    now, limit = context.clock(), context.limits.displaced_seconds
    timeline = context.journal.timeline(now)
    return [record for record in records if limit <= 0 or now - timeline.latest(record.at) > limit]


def _can_close(context: CommitContext, record: CommitRecord) -> bool:
    """Return whether the files of a record contain nothing new and cannot be written to."""
    for file in _displaced_files(record):
        late = _read_late_write(context, file.path, file.private, file.name)
        if late.data is not None and not (late.is_final and late.is_merged(file.merged_digest)):
            context.journal.quiescent_commits.discard((record.seq, record.at))
            return False
    return True


def _close_record(context: CommitContext, record: CommitRecord) -> None:
    """Remove the displaced and claimed files, and move the record to the history."""
    context.trace(CommitStep.CLOSING)
    with as_store_error("clean up in", context.role.path):
        for file in _displaced_files(record):
            directory = context.directory.find_private(file.private)
            if directory is not None:
                directory.unlink(file.name)
        context.trace(CommitStep.DISPLACED_REMOVED)
        context.journal.ledger.add(record)
        for write in record.writes:
            if write.path == context.memory_path:
                digests = (write.before_digest, write.after_digest)
                states = [KnownState(digest, record.at, record.head, record.clock) for digest in digests if digest]
                context.journal.record_states(states)
        context.journal.close(record._replace(state=RecordState.CLOSED))
    context.trace(CommitStep.CLOSED)


def _merge_late_write(context: CommitContext, record: CommitRecord, write: WriteRecord) -> int | None:
    for attempt in range(MAX_MERGE_ATTEMPTS):
        late = _read_late_write(context, write.path, write.private, write.staged_name)
        if late.data is None or not late.is_final or late.is_merged(write.merged_digest):
            return None
        forced_paths = frozenset({write.path}) if attempt >= context.limits.max_replans else frozenset()
        outcome = _try_merge(context, record, write, late.data, forced_paths)
        if outcome is not None:
            return outcome.seq
    return None  # other programs keep writing; the displaced file remains on disk


def _try_merge(
    context: CommitContext, record: CommitRecord, write: WriteRecord, late: bytes, forced_paths: frozenset[str]
) -> CommitResult | None:
    """Try once to merge a late write. Return None if another program was faster."""
    late_merge = LateMerge(record.seq, write.staged_name, context.journal.blobs.put(late))
    visible = read_healed_memory(context) if write.path == context.memory_path else context.read(write.path)
    base = context.journal.blobs.get(write.merged_digest)
    visible_document, base_document, late_document = map(context.cache.parse, (visible.text, base, late))
    if isinstance(visible_document, Unreadable):
        raise BusyError(f"{write.path} cannot be read, so a late write to it waits. {visible_document.reason}")
    merged: MergeResult | MergeFailure
    if isinstance(base_document, Unreadable) or isinstance(late_document, Unreadable):
        merged = MergeFailure("the late write cannot be read")
    else:
        merged = _merge_documents(context, record, write, visible_document, base_document, late_document)
    if isinstance(merged, MergeFailure):
        merged = MergeResult(visible.text, (), (late.decode(errors="replace"),))
    archives = read_archives(context)
    lost = [text for text in merged.overridden if text.rstrip() not in archives]
    plan = CommitPlan(
        None,
        "late-write",
        "merged a write of another program to the file that was just replaced",
        () if merged.data == visible.text else (PlannedWrite(write.path, visible.data, merged.data),),
        archive_appends(context, lost, "written late and replaced by another edit"),
        late_merges=(late_merge,),
    )
    if not plan.writes and not plan.appends:
        context.journal.blobs.sync()
        record_late_merge(context, late_merge)
        return CommitResult(None)
    outcome = commit(context, plan, gate=no_gate, head=git_head(context), forced_paths=forced_paths)
    return outcome if isinstance(outcome, CommitResult) else None


def _merge_documents(
    context: CommitContext, record: CommitRecord, write: WriteRecord, visible: Document, base: Document, late: Document
) -> MergeResult | MergeFailure:
    if len(late.blocks) * 2 < len(base.blocks):
        # Half a file through an open descriptor is a torn write rather than an edit: merge its additions, no removals.
        return merge(restrict_removals(base, late, ()), visible, late)
    if write.path != context.memory_path:
        return merge(base, visible, late)
    healed = _healed_late_version(context, write, late)
    if isinstance(healed, MergeFailure):
        return healed
    return merge(base, visible, healed, older_texts=_older_texts(context, record, write))


def _older_texts(context: CommitContext, record: CommitRecord, write: WriteRecord) -> frozenset[str]:
    """Return the block texts of the memory files that were displaced before this one, as far as they are merged.

    A program that reads and replaces the file quickly has its first version displaced by one commit and its second by
    the next. When both are merged, the first one is in the memory and must be replaced by the second. The next commit
    may be the very one that merged the first.
    """
    records = context.journal.open_records()
    writes = [(r, w) for r in records for w in r.writes if w.path == write.path]
    earlier = {w.merged_digest for r, w in writes if r.seq < record.seq and w.merged_digest != w.before_digest}
    earlier.update(merged.digest for r, _ in writes for merged in r.late_merges if merged.seq < record.seq)
    documents = (context.cache.parse_blob(context.journal, digest) for digest in sorted(earlier))
    return frozenset(block_content(block) for document in documents if document for block in document.blocks)


def _healed_late_version(context: CommitContext, write: WriteRecord, late: Document) -> Document | MergeFailure:
    """Return `late` with the blocks that its own writer overwrote.

    Its newest possible ancestor is the version of the displaced file that was merged before.
    """
    known = recent_states(context)
    ancestors = [i for i, k in enumerate(known) if k.version.content_hash == write.merged_digest]
    if not ancestors:
        return late
    known = known[: ancestors[-1] + 1]
    current = CurrentVersion(content_digest(late.render()), None, block_texts(late))
    descent = classify_known_descent(context, current, known)
    if not isinstance(descent, StaleWrite | InterleavedWrite):
        return late
    merged = reconcile_with_known(descent, late, known, set(), read_archives(context))
    if isinstance(merged, MergeFailure):
        return merged
    healed = parse(merged.data)
    return late if isinstance(healed, Unreadable) else healed


def _restore_late_findings(context: CommitContext, record: CommitRecord, consume: ConsumeRecord) -> int | None:
    late = _read_late_write(context, consume.path, consume.private, consume.claimed_name)
    if late.data is None or not late.is_final or late.is_merged(consume.merged_digest):
        return None
    text = _added_findings(context.journal.blobs.get(consume.merged_digest), late.data)
    late_merge = LateMerge(record.seq, consume.claimed_name, context.journal.blobs.put(late.data))
    if not text.strip():
        context.journal.blobs.sync()
        record_late_merge(context, late_merge)
        return None
    path = PurePosixPath(consume.path)
    # A name that only echod uses: an agent that rewrites its own file must not overwrite this one.
    path = path.with_name(late_findings_name(path.name, context.journal.next_seq()))
    plan = CommitPlan(
        None,
        "late-findings",
        "restored findings that an agent wrote into a file that was just consumed",
        (PlannedWrite(str(path), None, text),),
        late_merges=(late_merge,),
    )
    outcome = commit(context, plan, gate=no_gate, head=None)
    return outcome.seq if isinstance(outcome, CommitResult) else None


def _added_findings(merged: bytes, late: bytes) -> bytes:
    """Return the new and changed blocks, or all of `late` if they cannot be identified.

    Secrets are removed, because the file is a new one.
    """
    before, after = parse(merged), parse(late)
    if isinstance(before, Unreadable) or isinstance(after, Unreadable):
        return redact_bytes(late)
    old = {block_content(block) for block in before.blocks}
    new = [block.text for block in after.blocks if block_content(block) not in old]
    preamble = "" if after.preamble.strip() == before.preamble.strip() else after.preamble
    return redact(preamble + "".join(new)).text.encode()
