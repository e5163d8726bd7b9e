"""What is known about the entries of a memory file: asked for by every plan, told by whoever looked at the file."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date

from echod.memory.entry_matching import NOTHING
from echod.memory.identity import entry_ids
from echod.memory.model import Document
from echod.memory.policy import Facts, Policy
from echod.memory.presence import present_in
from echod.state.entries import EntryLog
from echod.store.layout import Role


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
