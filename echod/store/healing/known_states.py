"""The known contents of a memory file as documents, which lineage compares with the file on disk.

Also the blocks consumed from findings seconds ago that must be restored if they vanish, with a limit of restores for
each block.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable
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
from echod.store.journal.records import RecordState


class KnownDocument(NamedTuple):
    """A known state with its document."""

    version: KnownVersion
    document: Document
    head: str | None


def recent_states(context: CommitContext) -> tuple[KnownDocument, ...]:
    """Return the known states within the history, oldest first, without those whose content was lost.

    The history ends with the newest state. So an overwrite is recognized however long nothing looked at the file.
    """
    states = context.journal.states()
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
    """Return the blocks that were consumed from findings moments ago and are in neither the memory nor an archive."""
    document = context.cache.parse_document(data)
    if document is None:
        return {}
    present = {block_content(b) for b in document.blocks}
    keys = set(numbered_keys(document))
    missing: dict[BlockKey, Block] = {}
    for before, after in recently_consumed(context):
        old = keys.union(numbered_keys(before))
        new = [(key, block) for key, block in keyed_blocks(after) if key not in old]
        missing.update((k, b) for k, b in new if block_content(b) not in present and block_content(b) not in archives)
    exhausted = restored_too_often(context, missing)
    return {key: block for key, block in missing.items() if key not in exhausted}


def recently_consumed(context: CommitContext) -> list[tuple[Document, Document]]:
    """Return the memory before and after each commit that consumed findings, is young and was not undone."""
    since = context.clock() - context.limits.young_seconds
    documents = []
    records = context.journal.open_records()
    undone = {seq for record in records for seq in record.undoes}
    for record in records:
        consumed = record.consumes or record.partial_consumes
        if record.state is not RecordState.APPLIED or not consumed or record.at < since or record.seq in undone:
            continue
        for write in record.writes:
            after = context.cache.parse_blob(context.journal, write.after_digest)
            before = context.cache.parse_before(context.journal, write.before_digest)
            if write.path == context.memory_path and before is not None and after is not None:
                documents.append((before, after))
    return documents
