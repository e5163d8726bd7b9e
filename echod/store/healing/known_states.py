"""What we owe: blocks that were taken out of findings moments ago, and how often a block was put back already.

The known contents of a memory file as documents: what lineage compares with.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import NamedTuple

from echod.memory.alignment import Key, content, numbered_keys
from echod.memory.lineage import Known
from echod.memory.model import Block, Document
from echod.store.commit.context import Desk
from echod.store.healing.archives import Archived
from echod.store.journal.journal import KnownState
from echod.store.journal.records import RecordState
from echod.store.layout import MEMORY

_HOUR = 3600.0


class KnownDocument(NamedTuple):
    """A known state with its document."""

    known: Known
    document: Document
    head: str | None


def known_documents(desk: Desk) -> tuple[KnownDocument, ...]:
    """Known states young enough to matter, oldest first; those whose content was lost are left out."""
    oldest = desk.clock() - desk.limits.history_hours * _HOUR
    states = desk.journal.states()
    young = (*(s for s in states[:-1] if s.since >= oldest), *states[-1:])
    return tuple(known for state in young if (known := known_document(desk, state)) is not None)


def known_document(desk: Desk, state: KnownState) -> KnownDocument | None:
    """A known state with its document; None where its content was lost."""
    document = desk.readings.document(desk.journal, state.image)
    if document is None:
        return None
    seen = desk.readings.shape(state.image, document)
    return KnownDocument(Known(state.image, state.since, seen), document, state.head)


def named(document: Document) -> zip[tuple[Key, Block]]:
    """The blocks of a document with their keys."""
    return zip(numbered_keys(document), document.blocks, strict=True)


def reapplied_name(key: Key) -> str:
    """How a block is named where it is counted how often it was put back."""
    return hashlib.sha256(repr(key).encode()).hexdigest()[:16]


def worn_out(desk: Desk, keys: Iterable[Key]) -> set[Key]:
    """Blocks that were put back so often that now a person decides."""
    counted: dict[str, int] = {}
    for record in desk.journal.open_records():
        for name in record.reapplied:
            counted[name] = counted.get(name, 0) + 1
    return {key for key in keys if counted.get(reapplied_name(key), 0) >= desk.limits.max_reapply}


def owed_blocks(desk: Desk, data: bytes, old: Archived) -> dict[Key, Block]:
    """Blocks we took out of findings files moments ago that stand neither in the memory nor in an archive."""
    document = desk.readings.remember(data)
    if document is None:
        return {}
    standing = {content(b) for b in document.blocks}
    keys = set(numbered_keys(document))
    owed: dict[Key, Block] = {}
    for pre, post in recent_consumptions(desk):
        before = set(numbered_keys(pre))
        new = [(key, block) for key, block in named(post) if key not in before and key not in keys]
        owed.update((k, b) for k, b in new if content(b) not in standing and content(b) not in old)
    for key in worn_out(desk, owed):
        del owed[key]
    return owed


def recent_consumptions(desk: Desk) -> list[tuple[Document, Document]]:
    """Memory before and after each commit that consumed findings, is young and was not undone."""
    since = desk.clock() - desk.limits.young_seconds
    found = []
    records = desk.journal.open_records()
    undone = {seq for record in records for seq in record.undoes}
    for record in records:
        took = record.consumes or record.begun
        if record.state is not RecordState.APPLIED or not took or record.at < since or record.seq in undone:
            continue
        for write in record.writes:
            post = desk.readings.document(desk.journal, write.post)
            pre = desk.readings.document(desk.journal, write.pre) if write.pre else Document("", ())
            if write.path == desk.ground.path_of(MEMORY) and pre is not None and post is not None:
                found.append((pre, post))
    return found
