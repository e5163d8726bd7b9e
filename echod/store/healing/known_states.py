"""The known contents of a memory file as documents, which lineage compares with the file on disk.

Also the blocks consumed from findings seconds ago that must be restored if they vanish, with a limit of restores for
each block.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from echod.memory.identity import BlockKey, block_content, numbered_keys
from echod.memory.lineage import (
    BlockTexts,
    CurrentVersion,
    Descent,
    KnownVersion,
    StaleWrite,
    SuspectedStaleWrite,
    classify_descent,
)
from echod.memory.model import Block, Document
from echod.store.commit.context import CommitContext
from echod.store.healing.recovery import ArchiveContents
from echod.store.journal.journal import KnownState
from echod.store.journal.records import CommitRecord, RecordState


class KnownDocument(NamedTuple):
    """A known state with its document."""

    version: KnownVersion
    document: Document
    head: str | None


def recent_states(context: CommitContext) -> tuple[KnownDocument, ...]:
    """Return the known states within the history, oldest first, without those whose content was lost.

    The history ends with the newest state. So an overwrite is recognized however long nothing looked at the file.
    """
    timeline, states = context.journal.timeline(context.clock()), context.journal.states()
    oldest = timeline.earliest(states[-1].since) - context.limits.history_seconds if states else 0.0
    recent = (state for state in states if timeline.latest(state.since) >= oldest)
    bounded = (state._replace(since=timeline.earliest(state.since)) for state in recent)
    return tuple(known for state in bounded if (known := load_state(context, state)) is not None)


def load_state(context: CommitContext, state: KnownState) -> KnownDocument | None:
    """Return a known state with its document, or None if its content was lost."""
    document = context.cache.parse_blob(context.journal, state.digest)
    if document is None:
        return None
    shape = context.cache.shape(state.digest, document)
    return KnownDocument(KnownVersion(state.digest, state.since, shape), document, state.head)


def load_newest_state(context: CommitContext) -> KnownDocument | None:
    """Return the newest known state with its document, or None if it does not exist or its content was lost."""
    state = context.journal.newest_state()
    return load_state(context, state) if state else None


def classify_known_descent(context: CommitContext, current: CurrentVersion, known: Iterable[KnownDocument]) -> Descent:
    """Return how a version descends from the known states.

    A stale write is only certain within the history. Later the user may have removed the same blocks, and is asked.
    """
    versions, now = [k.version for k in known], context.clock()
    descent = classify_descent(current, versions, now=now, young_seconds=context.limits.young_seconds)
    if isinstance(descent, StaleWrite) and now - versions[-1].visible_since > context.limits.history_seconds:
        return SuspectedStaleWrite(descent.missing)
    return descent


def keyed_blocks(document: Document) -> zip[tuple[BlockKey, Block]]:
    """Return the blocks of a document with their keys."""
    return zip(numbered_keys(document), document.blocks, strict=True)


def restore_key(key: BlockKey) -> str:
    """Return the name under which the restores of a block are counted."""
    return hashlib.sha256(repr(key).encode()).hexdigest()[:16]


def restored_too_often(context: CommitContext, keys: Iterable[BlockKey]) -> set[BlockKey]:
    """Return the blocks that were restored so often that now the user decides."""
    counts = Counter(name for record in context.journal.open_records() for name in record.restored_blocks)
    return {key for key in keys if counts[restore_key(key)] >= context.limits.max_restores}


def blocks_to_restore(context: CommitContext, data: bytes, archives: ArchiveContents) -> dict[BlockKey, Block]:
    """Return the blocks that were consumed from findings moments ago and are in neither the memory nor an archive.

    What later jobs did to such a block counts: an edited one is restored as edited, a removed one is not restored.
    """
    document, young = context.cache.parse_document(data), recently_consumed(context)
    if document is None or not young:
        return {}
    pending: dict[BlockKey, Block] = {}
    for record in context.journal.open_records():
        for change in _memory_changes(context, record):
            if record.job is not None and pending:
                pending = _after_change(pending, change)
            if record.seq in young:
                pending.update((k, b) for k, b in keyed_blocks(change.after) if k not in change.texts_before)
    present, keys = {block_content(block) for block in document.blocks}, set(numbered_keys(document))
    contents = ((key, block, block_content(block)) for key, block in pending.items() if key not in keys)
    missing = {k: block for k, block, content in contents if content not in present and content not in archives}
    exhausted = restored_too_often(context, missing)
    return {key: block for key, block in missing.items() if key not in exhausted}


def recently_consumed(context: CommitContext) -> frozenset[int]:
    """Return the numbers of the young commits that consumed findings and were not undone."""
    now = context.clock()
    timeline, since = context.journal.timeline(now), now - context.limits.young_seconds
    records = context.journal.open_records()
    undone = {seq for record in records for seq in record.undoes}
    return frozenset(
        record.seq
        for record in records
        if record.state is RecordState.APPLIED and (record.consumes or record.partial_consumes)
        if timeline.earliest(record.at) >= since and record.seq not in undone
    )


class _MemoryChange(NamedTuple):
    """The memory after a commit, and the texts of its blocks before and after."""

    after: Document
    texts_before: BlockTexts
    texts_after: BlockTexts


def _memory_changes(context: CommitContext, record: CommitRecord) -> Iterator[_MemoryChange]:
    """Yield the change of the memory by an applied commit, as far as the journal still has the contents."""
    for write in record.writes if record.state is RecordState.APPLIED else ():
        if write.path != context.memory_path:
            continue
        after = context.cache.parse_blob(context.journal, write.after_digest)
        before = context.cache.parse_before(context.journal, write.before_digest)
        if before is not None and after is not None:
            texts_before = context.cache.shape(write.before_digest, before) if write.before_digest else {}
            yield _MemoryChange(after, texts_before, context.cache.shape(write.after_digest, after))


def _after_change(pending: Mapping[BlockKey, Block], change: _MemoryChange) -> dict[BlockKey, Block]:
    """Return what a job left of these blocks."""
    left = {k: b for k, b in pending.items() if k in change.texts_after or k not in change.texts_before}
    edited = {k for k, b in left.items() if change.texts_after.get(k, block_content(b)) != block_content(b)}
    return left | {k: b for k, b in keyed_blocks(change.after) if k in edited} if edited else left
