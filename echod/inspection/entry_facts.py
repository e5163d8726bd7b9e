"""What is known about the entries of a memory file: asked for by every plan, told by whoever looked at the file.

Pinning what a person brought back: no rule takes it away again for a while.

Whoever takes back a prune wants the file as it was. So all of it is pinned then, or the entries that had stayed would
have to make room for those that came back.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import date

from echod.inspection.counts import read_document
from echod.memory.alignment import content
from echod.memory.entry_matching import NOTHING, present_in
from echod.memory.identity import entry_ids
from echod.memory.model import Document
from echod.memory.policy import Facts, Policy
from echod.state.entries import EntryLog
from echod.state.job import JobKind
from echod.store.layout import Role, Store
from echod.store.undo import Undone


def facts_of(role: Role, entries: EntryLog, policy: Policy, today: date, memory: Document | None = None) -> Facts:
    """What is known about the entries of a role, under the ids that they have in `memory` (None: at the last look)."""
    present = None if memory is None else present_in(role.name, memory)
    return entries.facts(role.store.key, role.name, str(role.store.project), today, policy.relevance_days, present)


def facts_of_knowledge(role: Role, entries: EntryLog, policy: Policy, today: date, knowledge: Document) -> Facts:
    """What is known about the entries that stand in a knowledge file."""
    ids = [identity for identity in entry_ids(role.name, knowledge) if identity is not None]
    days = policy.relevance_days
    return entries.facts(role.store.key, role.name, str(role.store.project), today, days, ids=ids)


def noted_facts(role: Role, entries: EntryLog, policy: Policy, today: date, memory: Document) -> Facts:
    """`note_entries`, then `facts_of`, from one look at the memory file."""
    present = present_in(role.name, memory)
    entries.see(role.store.key, role.name, present, today)
    ids = [entry.id for entry in present]
    return entries.facts(role.store.key, role.name, str(role.store.project), today, policy.relevance_days, ids=ids)


def note_entries(
    entries: EntryLog, role: Role, memory: Document, today: date, told: Mapping[str, str] = NOTHING
) -> None:
    """Write down which entries there are. To be called before something is written down of one of them.

    Args:
        entries: where it is written down.
        role: the role.
        memory: its memory file as it is now.
        today: the local day.
        told: id before -> id now, for entries of which whoever changed the file knows it.
    """
    entries.see(role.store.key, role.name, present_in(role.name, memory), today, told)


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
