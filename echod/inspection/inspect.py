"""Compute inspections: read a changed file, count its content, plan its maintenance, and find open questions.

Read-only, apart from the entries that `plan_maintenance` records on request. Imported by `inspection.cache` and
`inspection.review` when a file has changed, because it loads the parser and every policy.

`get_facts` returns the facts that every plan needs. Every look at a changed memory file records which entries it
contains.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import date
from enum import Enum, auto
from pathlib import Path

from echod.evidence.entries import record_evidence, record_new_evidence
from echod.evidence.verifier import EvidenceVerifier
from echod.files import FileVersion, content_digest, read_regular
from echod.inspection.cache import EntrySummary, FileInspection, MaintenancePlan, PromotableEntry, PrunePreview
from echod.inspection.review import (
    Information,
    LayerClaim,
    OpenReviewItem,
    ProposedChange,
    RemovedEntries,
    ReviewKind,
    SupersededEntry,
    TrackedQuestion,
    new_item,
)
from echod.memory import MAX_FILE_BYTES
from echod.memory.consolidation.deduplicate import SupersedeProblem
from echod.memory.document import count_lines, parse
from echod.memory.entry_matching import NO_ID_CHANGES, present_entries
from echod.memory.identity import block_content, entry_ids, normalize_title
from echod.memory.model import Document, Layer, Unreadable
from echod.memory.policy import Facts, plan_compress, plan_prune
from echod.memory.policy.scoring import count_document_lines, find_recurring, leaves_block_open
from echod.memory.policy_model import PolicySettings
from echod.memory.prompt_injection import find_injection, might_contain_injection
from echod.memory.similarity import bare_title, learning_of
from echod.memory.solutions.promotion import entry_digest, sessions_to_promote, suggest_category
from echod.memory.specificity import find_confirmations
from echod.state.entries import EntryStore
from echod.state.jobs import JobKind
from echod.store.errors import StoreError
from echod.store.journal.ledger import CLAIM, PROPOSAL, Notice, Question
from echod.store.layout import MEMORY, Role, Store, global_root, list_roles
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


_NOT_REPLACED_REASONS: Mapping[str, str] = {
    SupersedeProblem.SEVERAL: "it is not the only one with that title",
    SupersedeProblem.NEWER: "it is newer",
    SupersedeProblem.PINNED: "it was pinned",
    SupersedeProblem.UNCLOSED_BLOCK: "a code block or comment above it is never closed",
}


def inspect_file(file: Path, version: FileVersion, data: bytes) -> tuple[FileInspection, Document | None]:
    """Return the inspection of a file with these bytes, and its document; None if it cannot be parsed."""
    document = parse(data)
    digest = content_digest(data)
    if isinstance(document, Unreadable):
        problem = f"{file.name} is left alone: {document.reason}"
        return FileInspection(version, None, problem=problem, unreadable=document.reason, digest=digest), None
    layers = Counter(
        block.entry.layer.value if block.entry.layer is not None else "unknown"
        for block in document.blocks
        if block.entry is not None
    )
    suspicious: tuple[EntrySummary, ...] = ()
    if file.name == MEMORY and might_contain_injection(data.decode()):
        summaries = summarize_entries(file.parent.name, document)
        suspicious = tuple(entry for entry in summaries if entry.suspicious_phrase is not None)
    inspection = FileInspection(
        version,
        lines=data.count(b"\n") + (not data.endswith(b"\n") and bool(data)),
        entries=dict(layers),
        protected_lines=_protected_lines(document),
        suspicious=suspicious,
        digest=digest,
        promotable=tuple(_promotable_entries(file.parent.name, document)) if file.name == MEMORY else (),
    )
    return inspection, document


def _promotable_entries(role_name: str, document: Document) -> Iterator[PromotableEntry]:
    """Yield the entries that `echod promote` would accept as they are, some only after enough references."""
    if not any(block.entry is not None and block.entry.is_lasting for block in document.blocks):
        return
    for identity, block in zip(entry_ids(role_name, document), document.blocks, strict=True):
        if identity is not None and block.entry is not None and (sessions := sessions_to_promote(block)) is not None:
            category = suggest_category(block).value
            raises = block.entry.layer is not Layer.ETCHED
            yield PromotableEntry(identity, block.entry.title, category, entry_digest(block), sessions, raises)


def summarize_entries(role_name: str, document: Document) -> Iterator[EntrySummary]:
    """Yield a summary of each entry of a role's memory file."""
    for identity, block in zip(entry_ids(role_name, document), document.blocks, strict=True):
        if identity is not None and block.entry is not None:
            yield EntrySummary(
                identity,
                block.entry.title,
                normalize_title(bare_title(learning_of(block, block.entry).title)),
                block.entry.layer,
                hashlib.sha256(block.text[block.entry.body.start : block.entry.body.end].encode()).hexdigest(),
                find_injection(block.text),
            )


class Recorded(Enum):
    """How much of a memory file a plan records: its entries with the evidence of those that are new, or of all."""

    NOTHING = auto()
    NEW_EVIDENCE = auto()
    ALL_EVIDENCE = auto()


def plan_maintenance(
    role: Role,
    file: Path,
    document: Document,
    entries: EntryStore | None,
    policy: PolicySettings,
    today: date,
    *,
    recorded: Recorded,
) -> MaintenancePlan:
    """Plan pruning a memory file or compressing a knowledge file. `entries` is None without a database."""
    if file.name != MEMORY:
        facts = Facts() if entries is None else get_knowledge_facts(role, entries, policy, today, document)
        compress = plan_compress(role.name, document, facts, policy, today)
        return MaintenancePlan(None if compress.knowledge is None else compress.summary)
    if entries is None:
        facts = Facts()
    else:
        if recorded is not Recorded.NOTHING:
            record_entries(entries, role, document, today)
            _record_evidence(role, entries, document, recorded)
        facts = get_facts(role, entries, policy, today, document)
    prune = plan_prune(role.name, document, facts, policy, today)
    preview = PrunePreview(prune.summary, prune.extent, prune.over_limit)
    recurring = find_recurring(role.name, document, facts, policy, today)
    return MaintenancePlan(None if prune.memory is None else prune.summary, preview, recurring)


def _record_evidence(role: Role, entries: EntryStore, document: Document, recorded: Recorded) -> None:
    if global_root(role.store) is not None:
        return  # its entries come from many projects
    verifier = EvidenceVerifier(role.store.project, time.time())
    record = record_evidence if recorded is Recorded.ALL_EVIDENCE else record_new_evidence
    try:
        record(entries.fingerprints, verifier, role.store.key, role.name, document)
    finally:
        verifier.close()


def _protected_lines(document: Document) -> int:
    lines, entries = count_lines(document.preamble), 0
    above_is_open = False
    for block in document.blocks:
        entries += block.entry is not None
        if block.entry is None or block.entry.layer is None or block.entry.layer.protected or above_is_open:
            lines += count_lines(block.text)
        above_is_open = leaves_block_open(block.text)
    # The last entry of a file is never removed.
    return count_document_lines(document) if entries <= 1 else lines


# Questions of agents (a claimed layer, a replacement that was not made), and notices of the store


def open_journal_items(
    role: Role, questions: Iterable[TrackedQuestion], notices: Iterable[Notice], entry_store: EntryStore | None
) -> Iterator[OpenReviewItem]:
    """Yield an item for each question about an entry in the role's memory file, and for each notice.

    Raises:
        OSError: the memory file cannot be read.
    """
    document = read_document(role.memory) if os.path.lexists(role.memory) else None
    entries = {} if document is None else {entry.id: entry for entry in summarize_entries(role.name, document)}
    yield from notice_items(role, notices, frozenset(entries))
    if document is None:
        return
    renames: Mapping[str, str] = {}
    if entry_store is not None:
        renames = entry_store.find_renames(role.store.key, role.name, present_entries(role.name, document))
    for question, identity in questions:
        entry = entries.get(renames.get(identity, identity))
        if entry is None:
            continue
        if question.kind == CLAIM:
            yield from _layer_claim_items(role, question, entry)
        elif question.kind == PROPOSAL:
            yield from _proposal_items(role, question, entries, renames)
        else:
            yield from _superseded_items(role, question, entry, entries)


def notice_items(role: Role, notices: Iterable[Notice], present: frozenset[str]) -> Iterator[OpenReviewItem]:
    """Yield an item for each notice, unless it is about entries that are all `present` in the memory again."""
    for notice in notices:
        missing = tuple(entry for entry in notice.entries if entry not in present)
        if notice.entries and not missing:
            continue
        subject = RemovedEntries(missing) if missing else Information()
        yield new_item(role, notice.kind, (notice.at, notice.text), notice.at, notice.text, notice.titles, subject)


def _layer_claim_items(role: Role, question: Question, entry: EntrySummary) -> Iterator[OpenReviewItem]:
    """Yield the item about a layer that an agent claims, unless the user gave one.

    The item's id is made of the question's entry and not of the entry's present id, so that an answer still applies
    when that id changes.
    """
    if entry.layer is None or entry.layer.protected:
        return
    layer = Layer(question.target)
    text = f"An agent wants this entry in the layer {layer.value}; it was stored as {entry.layer.value}."
    content = (question.entry, layer.value, entry.content_digest)
    yield new_item(role, ReviewKind.CLAIM, content, question.at, text, (entry.title,), LayerClaim(entry.id, layer))


def _proposal_items(
    role: Role, question: Question, entries: Mapping[str, EntrySummary], renames: Mapping[str, str]
) -> Iterator[OpenReviewItem]:
    """Yield the item about a proposal, unless one of its entries changed, is protected now, or is gone."""
    value = json.loads(question.target)
    found = [entries.get(renames.get(identity, identity)) for identity in value["entries"]]
    named = [entry for entry in found if entry is not None and entry.layer is Layer.INSCRIBED]
    if [entry.content_digest for entry in named] != value["digests"]:
        return
    title, text = value["title"], value["text"]
    what = "one entry in place of these" if text is not None else "another title for this entry"
    sentence = f"Your command proposes {what}: {title}" + (f"\n{text}" if text is not None else "")
    subject = ProposedChange(tuple(entry.id for entry in named), title, text)
    titles = tuple(entry.title for entry in named)
    yield new_item(role, ReviewKind.PROPOSAL, (question.key,), question.at, sentence, titles, subject)


def _superseded_items(
    role: Role, question: Question, entry: EntrySummary, entries: Mapping[str, EntrySummary]
) -> Iterator[OpenReviewItem]:
    """Yield an item for each entry that another one claims to replace, or one item if there is no such entry."""
    others = [other for other in entries.values() if other.normalized_title == question.target and other.id != entry.id]
    for other in others:
        reason = _not_replaced_reason(other, question)
        text = f"{entry.title!r} ({entry.id}) claims to replace this entry, which was kept because {reason}."
        content = (question.entry, entry.content_digest, other.id, other.content_digest)
        subject = SupersededEntry(other.id)
        yield new_item(role, ReviewKind.SUPERSEDES, content, question.at, text, (other.title,), subject)
    if not others and question.problem == SupersedeProblem.NONE:
        text = f"This entry claims to replace {question.target!r}, but no entry has that title."
        asked = (question.entry, question.target)
        yield new_item(role, ReviewKind.SUPERSEDES, asked, question.at, text, (entry.title,), Information())


def _not_replaced_reason(other: EntrySummary, question: Question) -> str:
    if other.layer is None or other.layer.protected:
        return f"it is {other.layer.value if other.layer else 'of an unknown layer'}"
    return _NOT_REPLACED_REASONS.get(question.problem, "it was added later")
