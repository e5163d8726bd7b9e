"""What we owe: blocks that were taken out of findings moments ago, and how often a block was put back already.

The known contents of a memory file as documents: what lineage compares with.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import NamedTuple

from echod.memory.alignment import BlockKey, block_content, numbered_keys
from echod.memory.lineage import KnownVersion
from echod.memory.model import Block, Document
from echod.store.commit.context import CommitContext
from echod.store.healing.archives import ArchiveContents
from echod.store.journal.journal import KnownState
from echod.store.journal.records import RecordState
from echod.store.layout import MEMORY

_HOUR = 3600.0


class KnownDocument(NamedTuple):
    """A known state with its document."""

    version: KnownVersion
    document: Document
    head: str | None


def recent_states(context: CommitContext) -> tuple[KnownDocument, ...]:
    """Known states young enough to matter, oldest first; those whose content was lost are left out."""
    oldest = context.clock() - context.limits.history_hours * _HOUR
    states = context.journal.states()
    young = (*(s for s in states[:-1] if s.since >= oldest), *states[-1:])
    return tuple(known for state in young if (known := load_state(context, state)) is not None)


def load_state(context: CommitContext, state: KnownState) -> KnownDocument | None:
    """A known state with its document; None where its content was lost."""
    document = context.cache.parse_blob(context.journal, state.digest)
    if document is None:
        return None
    state_shape = context.cache.shape(state.digest, document)
    return KnownDocument(KnownVersion(state.digest, state.since, state_shape), document, state.head)


def keyed_blocks(document: Document) -> zip[tuple[BlockKey, Block]]:
    """The blocks of a document with their keys."""
    return zip(numbered_keys(document), document.blocks, strict=True)


def restore_key(key: BlockKey) -> str:
    """How a block is named where it is counted how often it was put back."""
    return hashlib.sha256(repr(key).encode()).hexdigest()[:16]


def restored_too_often(context: CommitContext, keys: Iterable[BlockKey]) -> set[BlockKey]:
    """Blocks that were put back so often that now a person decides."""
    counts: dict[str, int] = {}
    for record in context.journal.open_records():
        for name in record.restored_blocks:
            counts[name] = counts.get(name, 0) + 1
    return {key for key in keys if counts.get(restore_key(key), 0) >= context.limits.max_restores}


def blocks_to_restore(context: CommitContext, data: bytes, archives: ArchiveContents) -> dict[BlockKey, Block]:
    """Blocks we took out of findings files moments ago that stand neither in the memory nor in an archive."""
    document = context.cache.parse_document(data)
    if document is None:
        return {}
    present = {block_content(b) for b in document.blocks}
    keys = set(numbered_keys(document))
    missing: dict[BlockKey, Block] = {}
    for pre, post in recently_consumed(context):
        before = set(numbered_keys(pre))
        new = [(key, block) for key, block in keyed_blocks(post) if key not in before and key not in keys]
        missing.update((k, b) for k, b in new if block_content(b) not in present and block_content(b) not in archives)
    for key in restored_too_often(context, missing):
        del missing[key]
    return missing


def recently_consumed(context: CommitContext) -> list[tuple[Document, Document]]:
    """Memory before and after each commit that consumed findings, is young and was not undone."""
    since = context.clock() - context.limits.young_seconds
    found = []
    records = context.journal.open_records()
    undone = {seq for record in records for seq in record.undoes}
    for record in records:
        consumed = record.consumes or record.partial_consumes
        if record.state is not RecordState.APPLIED or not consumed or record.at < since or record.seq in undone:
            continue
        for write in record.writes:
            post = context.cache.parse_blob(context.journal, write.after_digest)
            pre = (
                context.cache.parse_blob(context.journal, write.before_digest)
                if write.before_digest
                else Document("", ())
            )
            if write.path == context.directory.path_of(MEMORY) and pre is not None and post is not None:
                found.append((pre, post))
    return found
