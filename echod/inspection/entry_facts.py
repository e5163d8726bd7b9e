"""What is known about the entries of a memory file: asked for by every plan, told by whoever looked at the file.

Pinning what a person brought back: no rule takes it away again for a while.

Whoever takes back a prune wants the file as it was. So all of it is pinned then, or the entries that had stayed would
have to make room for those that came back.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import date

from echod.inspection.counts import read_document
from echod.memory.entry_matching import NO_ID_CHANGES, present_entries
from echod.memory.identity import block_content, entry_ids
from echod.memory.model import Document
from echod.memory.policy import Facts, PolicySettings
from echod.state.entries import EntryStore
from echod.state.job import JobKind
from echod.store.layout import Role, Store
from echod.store.undo import UndoResult


def get_facts(
    role: Role, entries: EntryStore, policy: PolicySettings, today: date, memory: Document | None = None
) -> Facts:
    """What is known about the entries of a role, under the ids that they have in `memory` (None: at the last look)."""
    present = None if memory is None else present_entries(role.name, memory)
    return entries.get_facts(role.store.key, role.name, str(role.store.project), today, policy.relevance_days, present)


def get_knowledge_facts(
    role: Role, entries: EntryStore, policy: PolicySettings, today: date, knowledge: Document
) -> Facts:
    """What is known about the entries that stand in a knowledge file."""
    ids = [identity for identity in entry_ids(role.name, knowledge) if identity is not None]
    days = policy.relevance_days
    return entries.get_facts(role.store.key, role.name, str(role.store.project), today, days, ids=ids)


def record_and_get_facts(
    role: Role, entries: EntryStore, policy: PolicySettings, today: date, memory: Document
) -> Facts:
    """`record_entries`, then `get_facts`, from one look at the memory file."""
    present = present_entries(role.name, memory)
    entries.record_present(role.store.key, role.name, present, today)
    ids = [entry.id for entry in present]
    return entries.get_facts(role.store.key, role.name, str(role.store.project), today, policy.relevance_days, ids=ids)


def record_entries(
    entries: EntryStore, role: Role, memory: Document, today: date, known_renames: Mapping[str, str] = NO_ID_CHANGES
) -> None:
    """Write down which entries there are. To be called before something is written down of one of them.

    Args:
        entries: where it is written down.
        role: the role.
        memory: its memory file as it is now.
        today: the local day.
        known_renames: id before -> id now, for entries of which whoever changed the file knows it.
    """
    entries.record_present(role.store.key, role.name, present_entries(role.name, memory), today, known_renames)


def pin_restored(
    entries: EntryStore, store: Store, kind: str, undo_results: Iterable[UndoResult], today: date, until: date
) -> None:
    """Pin the entries that the undo of a job of this kind put into the memory files of a store again.

    Args:
        entries: where pins are kept.
        store: the store.
        kind: the kind of the job that was taken back.
        undo_results: what was taken back.
        today: the local day.
        until: the last day of the pins.
    """
    for result in undo_results:
        role, restored = Role(store, result.role), {block_content(block) for block in result.restored_blocks}
        memory = read_document(role.memory) if restored else None
        if memory is None:
            continue
        record_entries(entries, role, memory, today)
        if ids := _matching_ids(role, memory, None if kind == JobKind.PRUNE else restored):
            entries.pin(store.key, ids, until)


def _matching_ids(role: Role, document: Document, contents: set[str] | None) -> list[str]:
    """The ids of the entries with these contents; of all entries if there are none named."""
    ids = entry_ids(role.name, document)
    pairs = zip(ids, document.blocks, strict=True)
    return [
        identity
        for identity, block in pairs
        if identity is not None and (contents is None or block_content(block) in contents)
    ]
