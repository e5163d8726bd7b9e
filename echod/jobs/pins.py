"""Pinning what a person brought back: no rule takes it away again for a while.

Whoever takes back a prune wants the file as it was. So all of it is pinned then, or the entries that had stayed would
have to make room for those that came back.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date

from echod.inspection.entry_facts import note_entries
from echod.jobs.documents import read_document
from echod.memory.alignment import content
from echod.memory.identity import entry_ids
from echod.memory.model import Document
from echod.state.entries import EntryLog
from echod.state.job import JobKind
from echod.store.layout import Role, Store
from echod.store.undo import Undone


def pin_what_came_back(
    entries: EntryLog, store: Store, kind: str, undone: Iterable[Undone], today: date, until: date
) -> None:
    """Pin the entries that the undo of a job of this kind put into the memory files of a store again.

    Args:
        entries: where pins are kept.
        store: the store.
        kind: the kind of the job that was taken back.
        undone: what was taken back.
        today: the local day.
        until: the last day of the pins.
    """
    for done in undone:
        role, back = Role(store, done.role), {content(block) for block in done.restored}
        memory = read_document(role.memory) if back else None
        if memory is None:
            continue
        note_entries(entries, role, memory, today)
        if ids := _ids(role, memory, None if kind == JobKind.PRUNE else back):
            entries.pin(store.key, ids, until)


def _ids(role: Role, document: Document, contents: set[str] | None) -> list[str]:
    """The ids of the entries with these contents; of all entries if there are none named."""
    ids = entry_ids(role.name, document)
    pairs = zip(ids, document.blocks, strict=True)
    return [
        identity
        for identity, block in pairs
        if identity is not None and (contents is None or content(block) in contents)
    ]
