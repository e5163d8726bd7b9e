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
    CurrentVersion,
    Descent,
    KnownVersion,
    StaleWrite,
    SuspectedStaleWrite,
    classify_descent,
)
from echod.memory.model import Block, Document
from echod.store.commit.context import CommitContext
from echod.store.healing.archives import ArchiveContents
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
    timeline = context.journal.timeline(context.clock())
    states = [state._replace(since=timeline.earliest(state.since)) for state in context.journal.states()]
    oldest = states[-1].since - context.limits.history_seconds if states else 0.0
    recent = (state for state in states if state.since >= oldest)
    return tuple(known for state in recent if (known := load_state(context, state)) is not None)


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
    document = context.cache.parse_document(data)
    if document is None:
        return {}
    present = {block_content(b) for b in document.blocks}
    keys = set(numbered_keys(document))
    missing: dict[BlockKey, Block] = {}
    for seq, before, after in recently_consumed(context):
        old = keys.union(numbered_keys(before))
        new = {key: block for key, block in keyed_blocks(after) if key not in old}
        kept = _after_later_jobs(context, seq, new)
        contents = ((key, block, block_content(block)) for key, block in kept.items())
        missing.update((k, b) for k, b, content in contents if content not in present and content not in archives)
    exhausted = restored_too_often(context, missing)
    return {key: block for key, block in missing.items() if key not in exhausted}


def _after_later_jobs(context: CommitContext, seq: int, blocks: Mapping[BlockKey, Block]) -> dict[BlockKey, Block]:
    """Return what the jobs after the commit `seq` left of blocks that it added."""
    kept = dict(blocks)
    for record in context.journal.open_records():
        if record.seq <= seq or record.job is None or record.state is not RecordState.APPLIED:
            continue
        for before, after in _memory_changes(context, record):
            had, has = dict(keyed_blocks(before)), dict(keyed_blocks(after))
            kept = {key: has.get(key, block) for key, block in kept.items() if key in has or key not in had}
    return kept


def recently_consumed(context: CommitContext) -> list[tuple[int, Document, Document]]:
    """Return the number, and the memory before and after, of each young commit that consumed findings.

    Undone commits are left out.
    """
    now = context.clock()
    timeline, since = context.journal.timeline(now), now - context.limits.young_seconds
    records = context.journal.open_records()
    undone = {seq for record in records for seq in record.undoes}
    return [
        (record.seq, before, after)
        for record in records
        if record.state is RecordState.APPLIED and (record.consumes or record.partial_consumes)
        if timeline.earliest(record.at) >= since and record.seq not in undone
        for before, after in _memory_changes(context, record)
    ]


def _memory_changes(context: CommitContext, record: CommitRecord) -> Iterator[tuple[Document, Document]]:
    """Yield the memory before and after a commit that wrote it, as far as the journal still has it."""
    for write in record.writes:
        after = context.cache.parse_blob(context.journal, write.after_digest)
        before = context.cache.parse_before(context.journal, write.before_digest)
        if write.path == context.memory_path and before is not None and after is not None:
            yield before, after
