"""Compute inspections: read a changed file, count what is in it, and plan its maintenance.

Read-only, apart from the entries that `plan_maintenance` records on request. Imported by `inspection.cache` and
`inspection.review` when a file has changed, because it loads the parser and every policy.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator
from datetime import date
from pathlib import Path

from echod.files import FileVersion
from echod.inspection.cache import EntrySummary, FileInspection, MaintenancePlan, PrunePreview
from echod.inspection.entry_facts import get_facts, get_knowledge_facts, record_and_get_facts
from echod.memory.document import count_lines, parse
from echod.memory.identity import entry_ids, normalize_title
from echod.memory.model import Document, Unreadable
from echod.memory.policy import Facts, PolicySettings, plan_compress, plan_prune
from echod.memory.policy.scoring import count_document_lines, leaves_block_open
from echod.memory.prompt_injection import find_injection, might_contain_injection
from echod.memory.similarity import bare_title, learning_of
from echod.state.entries import EntryStore
from echod.store.layout import MEMORY, Role
from echod.store.snapshot import content_digest


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
    )
    return inspection, document


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


def plan_maintenance(
    role: Role,
    file: Path,
    document: Document,
    entries: EntryStore | None,
    policy: PolicySettings,
    today: date,
    *,
    record: bool,
) -> MaintenancePlan:
    """Plan pruning a memory file or compressing a knowledge file.

    Args:
        role: the role.
        file: its memory or knowledge file.
        document: the parsed file.
        entries: facts about entries; None without a database.
        policy: the numbers of the project.
        today: the local day.
        record: also record which entries a memory file contains.
    """
    if file.name != MEMORY:
        facts = Facts() if entries is None else get_knowledge_facts(role, entries, policy, today, document)
        compress = plan_compress(role.name, document, facts, policy, today)
        return MaintenancePlan(None if compress.knowledge is None else compress.summary)
    if entries is None:
        facts = Facts()
    elif record:
        facts = record_and_get_facts(role, entries, policy, today, document)
    else:
        facts = get_facts(role, entries, policy, today, document)
    prune = plan_prune(role.name, document, facts, policy, today)
    preview = PrunePreview(prune.summary, prune.lines_before, prune.lines_after, prune.over_limit)
    return MaintenancePlan(None if prune.memory is None else prune.summary, preview)


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
