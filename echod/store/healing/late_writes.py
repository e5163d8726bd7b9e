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
from echod.memory.alignment import block_content
from echod.memory.document import parse
from echod.memory.lineage import CurrentVersion, InterleavedWrite, StaleWrite, block_texts, classify_descent
from echod.memory.merge import MergeFailure, MergeResult, merge, restrict_removals
from echod.memory.model import MAX_FILE_BYTES, Document, Unreadable
from echod.memory.redact import redact, redact_bytes
from echod.store.changes import CommitPlan, CommitResult, PlannedWrite, no_gate
from echod.store.commit.apply import record_late_merge
from echod.store.commit.commit import commit
from echod.store.commit.context import CommitContext
from echod.store.commit.steps import CommitStep
from echod.store.errors import BusyError, as_store_error
from echod.store.fs import OpenWriters, read_all, read_lease
from echod.store.healing.archives import archive_appends, read_archives
from echod.store.healing.heal import git_head, read_healed_memory, reconcile_with_known
from echod.store.healing.known_states import recent_states
from echod.store.journal.journal import KnownState, RoleJournal
from echod.store.journal.records import CommitRecord, ConsumeRecord, LateMerge, RecordState, WriteRecord
from echod.store.layout import MEMORY, late_findings_name
from echod.store.snapshot import content_digest


class LateWrite(NamedTuple):
    """A file as it is now.

    Attributes:
        data: its content; None where it is gone.
        is_final: nobody can write to it, as far as can be known.
        is_certain: the kernel says so.
    """

    data: bytes | None
    is_final: bool
    is_certain: bool

    def is_merged(self, merged_digest: str) -> bool:
        """Whether there is nothing new in it: `merged_digest` is the digest of what is merged of it."""
        return self.data is None or content_digest(self.data) == merged_digest


def displaced_files(record: CommitRecord) -> list[tuple[str, str, str]]:
    """Displaced and claimed files: the path they had, the name they have, what is merged of them."""
    displaced = [(w.path, w.staged_name, w.merged_digest) for w in record.writes]
    return displaced + [(c.path, c.claimed_name, c.merged_digest) for c in record.consumes]


def has_late_write(context: CommitContext, record: CommitRecord) -> bool:
    """Whether something came late that can be merged now.

    Where it is certain that nothing ever will, the record is not looked at again until it is closed: nobody has a
    descriptor, and nobody but us knows the names.
    """
    if (record.seq, record.at) in context.journal.quiescent_commits:
        return False
    is_quiescent = True
    for path, name, merged_digest in displaced_files(record):
        late = read_late_write(context, path, name)
        if late.is_final and not late.is_merged(merged_digest):
            return True
        is_quiescent = is_quiescent and late.is_certain and late.is_merged(merged_digest)
    if is_quiescent:
        context.journal.quiescent_commits.add((record.seq, record.at))
    return False


def read_late_write(context: CommitContext, path: str, name: str) -> LateWrite:
    """Look at a displaced or claimed file that lies under `name` beside `path` (relative to the store)."""
    with as_store_error("look at the replaced file beside", context.directory.role.store.root / path):
        directory, _ = context.directory.resolve(path)
        try:
            fd = directory.open(name, os.O_RDONLY)
        except FileNotFoundError:
            return LateWrite(None, is_final=True, is_certain=True)
        try:
            with read_lease(fd) as writers:
                data = read_all(fd, MAX_FILE_BYTES)
                stat = os.fstat(fd)
        finally:
            os.close(fd)
    if len(data) > MAX_FILE_BYTES:
        return LateWrite(
            data[:0], is_final=False, is_certain=False
        )  # too big to be merged: it stays for a person to look at
    has_settled = context.clock() - max(stat.st_mtime, stat.st_ctime) >= context.limits.settle_seconds
    is_certain = writers is OpenWriters.NONE
    return LateWrite(
        data, is_final=is_certain or (writers is OpenWriters.UNKNOWN and has_settled), is_certain=is_certain
    )


log = get_logger(__name__)

_HOUR = 3600.0


def can_close(context: CommitContext, record: CommitRecord) -> bool:
    """Whether a record is old enough, and nobody can write to its files, and they hold nothing new."""
    if context.clock() - record.at <= context.limits.displaced_hours * _HOUR:
        return False
    for path, name, merged_digest in displaced_files(record):
        late = read_late_write(context, path, name)
        if late.data is not None and not (late.is_final and late.is_merged(merged_digest)):
            context.journal.quiescent_commits.discard((record.seq, record.at))
            return False
    return True


def close_orphaned(journal: RoleJournal, *, older_than: float) -> None:
    """Close what is open in a role whose directory a person removed; its contents stay in the journal for a while."""
    for record in journal.open_records():
        if record.at < older_than:
            log.warning("orphaned_commit_closed", role=record.role, seq=record.seq, state=record.state.value)
            journal.add_to_ledger(record)
            journal.close(replace(record, state=RecordState.CLOSED))


def close_record(context: CommitContext, record: CommitRecord) -> None:
    """Remove what was displaced and claimed, and move the record to the history."""
    context.trace(CommitStep.CLOSING)
    with as_store_error("tidy up in", context.directory.role.path):
        for path, name, _ in displaced_files(record):
            directory, _ = context.directory.resolve(path)
            directory.unlink(name)
        context.trace(CommitStep.DISPLACED_REMOVED)
        context.journal.add_to_ledger(record)
        for write in record.writes:
            if write.path == context.directory.path_of(MEMORY):
                states = [KnownState(i, record.at, record.head) for i in (write.before_digest, write.after_digest) if i]
                context.journal.record_states(states)
        context.journal.close(replace(record, state=RecordState.CLOSED))
    context.trace(CommitStep.CLOSED)


_MAX_ROUNDS = 4


def merge_late_writes(context: CommitContext) -> tuple[int, ...]:
    """Merge what came late in every open record and close what can be closed; the new commits' numbers.

    Raises:
        BusyError: the memory file is being written; the rest waits.
        StoreError: the file system failed; the rest waits.
    """
    seqs: list[int] = []
    for record in context.journal.open_records():
        if record.state is RecordState.APPLIED and has_late_write(context, record):
            seqs += merge_late_writes_of(context, record)
    for record in context.journal.open_records():
        if record.state is RecordState.APPLIED and can_close(context, record):
            close_record(context, record)
    return tuple(seqs)


def merge_late_writes_of(context: CommitContext, record: CommitRecord) -> tuple[int, ...]:
    """Merge what came late into the files of one record; the new commits' numbers."""
    seqs = [_merge_late_write(context, record, write) for write in record.writes]
    seqs += [_restore_late_findings(context, record, consume) for consume in record.consumes]
    return tuple(seq for seq in seqs if seq is not None)


def needs_late_merge(context: CommitContext) -> bool:
    """Whether `merge_late_writes` would find anything to do, without touching a thing."""
    records = context.journal.open_records()
    if any(r.state is RecordState.INTENT or can_close(context, r) or has_late_write(context, r) for r in records):
        return True
    newest = context.journal.newest_state()
    if newest is None or not records:
        return False
    try:
        return newest.digest != content_digest(context.read(context.directory.path_of(MEMORY)).text)
    except BusyError:
        return False


def _merge_late_write(context: CommitContext, record: CommitRecord, write: WriteRecord) -> int | None:
    for attempt in range(_MAX_ROUNDS):
        late = read_late_write(context, write.path, write.staged_name)
        if late.data is None or not late.is_final or content_digest(late.data) == write.merged_digest:
            return None
        forced_paths = frozenset({write.path}) if attempt >= context.limits.max_replans else frozenset()
        outcome = _try_merge(context, record, write, late.data, forced_paths)
        if outcome is not None:
            return outcome.seq
    return None  # others keep writing; the displaced file waits on the disk


def _try_merge(
    context: CommitContext, record: CommitRecord, write: WriteRecord, late: bytes, forced_paths: frozenset[str]
) -> CommitResult | None:
    """One try; None where someone else was faster."""
    late_merge = LateMerge(record.seq, write.staged_name, context.journal.blobs.put(late))
    visible = read_healed_memory(context) if _is_memory(context, write) else context.read(write.path)
    base = context.journal.blobs.get(write.merged_digest)
    now, before, then = map(context.cache.parse, (visible.text, base, late))
    if isinstance(now, Unreadable):
        raise BusyError(f"{write.path} cannot be read, so what came late waits. {now.reason}")
    merged: MergeResult | MergeFailure
    if isinstance(before, Unreadable) or isinstance(then, Unreadable):
        merged = MergeFailure("what came late cannot be read")
    else:
        merged = _merge_documents(context, record, write, now, before, then)
    if isinstance(merged, MergeFailure):
        merged = MergeResult(visible.text, (), (late.decode(errors="replace"),))
    archives = read_archives(context)
    plan = CommitPlan(
        None,
        "late-write",
        "merged what another program wrote into the file that was just replaced",
        () if merged.data == visible.text else (PlannedWrite(write.path, visible.data, merged.data),),
        archive_appends(
            context, (text for text in merged.overridden if text.rstrip() not in archives), "came late and gave way"
        ),
        late_merges=(late_merge,),
    )
    if not plan.writes and not plan.appends:
        context.journal.blobs.sync()
        record_late_merge(context, late_merge)
        return CommitResult(None)
    outcome = commit(context, plan, gate=no_gate, head=git_head(context), forced_paths=forced_paths)
    return outcome if isinstance(outcome, CommitResult) else None


def _is_memory(context: CommitContext, write: WriteRecord) -> bool:
    return write.path == context.directory.path_of(MEMORY)


def _merge_documents(
    context: CommitContext, record: CommitRecord, write: WriteRecord, visible: Document, base: Document, late: Document
) -> MergeResult | MergeFailure:
    if len(late.blocks) * 2 < len(base.blocks):
        # Half a file through a held descriptor is a torn write rather than a wish: take what it adds, no removals.
        return merge(restrict_removals(base, late, ()), visible, late)
    if not _is_memory(context, write):
        return merge(base, visible, late)
    origin = _healed_late_version(context, write, late)
    if isinstance(origin, MergeFailure):
        return origin
    return merge(base, visible, origin, older_texts=_older_texts(context, record, write))


def _older_texts(context: CommitContext, record: CommitRecord, write: WriteRecord) -> frozenset[str]:
    """What blocks said in the memory files that were displaced before this one, as far as that is merged.

    A program that reads and replaces the file quickly has its first version displaced by one commit and its second by
    the next; when both are merged the first one stands in the memory, and gives way to the second. The next commit may
    be the very one that merged the first.
    """
    records = context.journal.open_records()
    writes = [(r, w) for r in records for w in r.writes if w.path == write.path]
    earlier = {w.merged_digest for r, w in writes if r.seq < record.seq and w.merged_digest != w.before_digest}
    earlier.update(merged.digest for r, _ in writes for merged in r.late_merges if merged.seq < record.seq)
    documents = (context.cache.parse_blob(context.journal, image) for image in sorted(earlier))
    return frozenset(block_content(block) for document in documents if document for block in document.blocks)


def _healed_late_version(context: CommitContext, write: WriteRecord, late: Document) -> Document | MergeFailure:
    """`late` with what its own writer overwrote: its newest possible ancestor is what was absorbed of it before."""
    known = recent_states(context)
    ancestors = [i for i, k in enumerate(known) if k.version.content_hash == write.merged_digest]
    if not ancestors:
        return late
    known = known[: ancestors[-1] + 1]
    found = CurrentVersion(content_digest(late.render()), None, block_texts(late))
    descent = classify_descent(
        found, [k.version for k in known], now=context.clock(), young_seconds=context.limits.young_seconds
    )
    if not isinstance(descent, StaleWrite | InterleavedWrite):
        return late
    merged = reconcile_with_known(descent, late, known, set(), read_archives(context))
    if isinstance(merged, MergeFailure):
        return merged
    healed = parse(merged.data)
    return late if isinstance(healed, Unreadable) else healed


def _restore_late_findings(context: CommitContext, record: CommitRecord, consume: ConsumeRecord) -> int | None:
    late = read_late_write(context, consume.path, consume.claimed_name)
    if late.data is None or not late.is_final or content_digest(late.data) == consume.merged_digest:
        return None
    text = _added_findings(context.journal.blobs.get(consume.merged_digest), late.data)
    late_merge = LateMerge(record.seq, consume.claimed_name, context.journal.blobs.put(late.data))
    if not text.strip():
        context.journal.blobs.sync()
        record_late_merge(context, late_merge)
        return None
    plan = CommitPlan(
        None,
        "late-findings",
        "offered again what an agent wrote into findings that were just consumed",
        (PlannedWrite(_late_findings_path(context, consume), None, text),),
        late_merges=(late_merge,),
    )
    outcome = commit(context, plan, gate=no_gate, head=None)
    return outcome.seq if isinstance(outcome, CommitResult) else None


def _late_findings_path(context: CommitContext, consume: ConsumeRecord) -> str:
    """A name that only we use: an agent that rewrites its own file must not overwrite this one."""
    path = PurePosixPath(consume.path)
    return str(path.with_name(late_findings_name(path.name, context.journal.next_seq())))


def _added_findings(merged: bytes, late: bytes) -> bytes:
    """The blocks that came or changed; all of it where it cannot be told. Without secrets, as the file is a new one."""
    before, after = parse(merged), parse(late)
    if isinstance(before, Unreadable) or isinstance(after, Unreadable):
        return redact_bytes(late)
    old = {block_content(block) for block in before.blocks}
    new = [block.text for block in after.blocks if block_content(block) not in old]
    preamble = "" if after.preamble.strip() == before.preamble.strip() else after.preamble
    return redact(preamble + "".join(new)).text.encode()
