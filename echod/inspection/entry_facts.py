"""Facts about the entries of a memory file, from the records in the database.

Every plan needs the facts. Every look at a changed memory file records which entries it contains.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import date
from pathlib import Path

from echod.files import read_regular
from echod.memory import MAX_FILE_BYTES
from echod.memory.document import parse
from echod.memory.entry_matching import NO_ID_CHANGES, present_entries
from echod.memory.identity import block_content, entry_ids
from echod.memory.model import Document, Unreadable
from echod.memory.policy import Facts, PolicySettings
from echod.memory.policy.scoring import count_document_lines
from echod.memory.specificity import find_confirmations
from echod.state.entries import EntryStore
from echod.state.job import JobKind
from echod.store.errors import StoreError
from echod.store.layout import Role, Store, list_roles
from echod.store.undo import UndoResult


def read_document(file: Path) -> Document | None:
    """Read a memory or knowledge file for read-only use; None if it is missing or cannot be parsed.

    Jobs read their files through the store, which checks them more carefully.

    Raises:
        OSError: it cannot be read.
    """
    try:
        document = parse(read_regular(file, MAX_FILE_BYTES))
    except FileNotFoundError:
        return None
    return None if isinstance(document, Unreadable) else document


def get_facts(
    role: Role, entries: EntryStore, policy: PolicySettings, today: date, memory: Document | None = None
) -> Facts:
    """Return the facts about the entries of a role, by their ids in `memory` (None: their ids at the last look)."""
    present = None if memory is None else present_entries(role.name, memory)
    days = policy.relevance_days
    facts = entries.get_facts(role.store.key, role.name, str(role.store.project), today, days, present)
    return facts if memory is None else with_confirmations(role, facts, memory, policy.memory_line_limit)


def get_knowledge_facts(
    role: Role, entries: EntryStore, policy: PolicySettings, today: date, knowledge: Document
) -> Facts:
    """Return the facts about the entries of a knowledge file."""
    ids = [identity for identity in entry_ids(role.name, knowledge) if identity is not None]
    days = policy.relevance_days
    return entries.get_facts(role.store.key, role.name, str(role.store.project), today, days, ids=ids)


def record_and_get_facts(
    role: Role, entries: EntryStore, policy: PolicySettings, today: date, memory: Document
) -> Facts:
    """Record the entries of a memory file and return the facts about them."""
    present = present_entries(role.name, memory)
    entries.record_present(role.store.key, role.name, present, today)
    ids = [entry.id for entry in present]
    days = policy.relevance_days
    facts = entries.get_facts(role.store.key, role.name, str(role.store.project), today, days, ids=ids)
    return with_confirmations(role, facts, memory, policy.memory_line_limit)


def with_confirmations(role: Role, facts: Facts, memory: Document, over_lines: int) -> Facts:
    """Return the facts with the roles that confirm the learnings of a memory file, if it has more than this many lines.

    Only a file over its limit needs them, and finding them reads the memory of all roles of the store.
    """
    if count_document_lines(memory) <= over_lines:
        return facts
    others = {}
    for other in list_roles(role.store).roles:
        if other.name != role.name:
            with suppress(OSError, StoreError):  # a file that cannot be read confirms nothing; the status reports it
                if (document := read_document(other.memory)) is not None:
                    others[other.name] = document
    return replace(facts, confirmations=find_confirmations(role.name, memory, others))


def record_entries(
    entries: EntryStore, role: Role, memory: Document, today: date, known_renames: Mapping[str, str] = NO_ID_CHANGES
) -> None:
    """Record which entries a memory file contains. Call this before recording anything about one of them.

    Args:
        entries: where to record them.
        role: the role.
        memory: its memory file as it is now.
        today: the local day.
        known_renames: old id -> new id of the entries whose change the caller made and therefore knows.
    """
    entries.record_present(role.store.key, role.name, present_entries(role.name, memory), today, known_renames)


def pin_restored(
    entries: EntryStore, store: Store, kind: str, undo_results: Iterable[UndoResult], today: date, until: date
) -> int:
    """Pin the entries that an undo restored, so that no rule removes them again for a while. Return their number.

    After the undo of a prune every entry of the file is pinned. The user wants the file as it was, and the entries that
    had stayed would otherwise be removed to make room for the restored ones.

    Args:
        entries: where pins are kept.
        store: the store.
        kind: the kind of the undone job.
        undo_results: what the undo did.
        today: the local day.
        until: the last day of the pins.
    """
    pinned = 0
    for result in undo_results:
        role, restored = Role(store, result.role), {block_content(block) for block in result.restored_blocks}
        memory = read_document(role.memory) if restored else None
        if memory is None:
            continue
        record_entries(entries, role, memory, today)
        if ids := _matching_ids(role, memory, None if kind == JobKind.PRUNE else restored):
            entries.pin(store.key, ids, until)
            pinned += len(ids)
    return pinned


def _matching_ids(role: Role, document: Document, contents: set[str] | None) -> list[str]:
    """Return the ids of the entries with one of these contents; of all entries if `contents` is None."""
    ids = entry_ids(role.name, document)
    pairs = zip(ids, document.blocks, strict=True)
    return [
        identity
        for identity, block in pairs
        if identity is not None and (contents is None or block_content(block) in contents)
    ]
