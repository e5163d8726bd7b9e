"""Plan the compression of a knowledge file over its limit, the oldest entries first and no further than needed.

Nothing is lost, because every text that leaves the file is archived verbatim. Protected and pinned entries, opaque
blocks, and entries that read like instructions to agents are unchanged.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from datetime import date
from typing import NamedTuple

from echod.memory.document import count_lines, parse
from echod.memory.knowledge import CompressibleEntry, compress_knowledge
from echod.memory.model import KNOWLEDGE_FILE, Document
from echod.memory.policy.archive import ArchivedEntry, to_archived_entry
from echod.memory.policy.candidates import allowed_in_knowledge
from echod.memory.policy.scoring import Facts, count_document_lines, entry_statuses
from echod.memory.policy_model import PolicySettings, Rule

_CHARACTERS_PER_TOKEN = 4


class CompressPlan(NamedTuple):
    """The compression of today."""

    role: str
    knowledge: bytes | None  # the new bytes of the knowledge file; None if unchanged
    archived: tuple[ArchivedEntry, ...]  # the entries for the archive, in file order
    lines_before: int  # lines of the file now
    lines_after: int  # lines of the new file
    tokens_before: int  # the approximate number of tokens that an agent reads now
    tokens_after: int  # the approximate number of tokens in the new file
    limit: int  # lines; a file that is still over it contains protected text and waits for the user

    @property
    def summary(self) -> str:
        """The plan in one line."""
        counts = Counter(entry.rule for entry in self.archived)
        words = {Rule.CONDENSED: "condensed", Rule.TOPIC: "compressed", Rule.OLDEST_KNOWLEDGE: "archived"}
        parts = [f"{counts[rule.value]} {word}" for rule, word in words.items() if counts[rule.value]]
        return f"{', '.join(parts) or 'nothing to do'}; {self.lines_before} -> {self.lines_after} lines"


def plan_compress(role: str, document: Document, facts: Facts, policy: PolicySettings, today: date) -> CompressPlan:
    """Plan what happens to a knowledge file today. The arguments are those of `plan_prune`, with the knowledge file."""
    old_data = document.render()
    lines = count_document_lines(document)
    archived: list[ArchivedEntry] = []
    new_data = old_data
    if lines > policy.knowledge_line_limit:
        statuses = {s.index: s for s in entry_statuses(role, document, facts, policy, today)}
        sources = [
            CompressibleEntry(s.index, s.block, s.entry, s.verified)
            for s in statuses.values()
            if s.is_removable and allowed_in_knowledge(s)
        ]
        result = compress_knowledge(document, sources, policy.knowledge_line_limit)
        rules = dict.fromkeys(result.condensed, Rule.CONDENSED)
        rules |= dict.fromkeys(result.merged, Rule.TOPIC)
        rules |= dict.fromkeys(result.dropped, Rule.OLDEST_KNOWLEDGE)
        if _preserves_other_blocks(document, result.data, rules.keys()):
            new_data = result.data
            for index, rule in sorted(rules.items()):
                status = statuses[index]
                entry = to_archived_entry(status.block, status.id, role, rule, today, file=KNOWLEDGE_FILE)
                archived.append(entry)
    return CompressPlan(
        role=role,
        knowledge=new_data if archived else None,
        archived=tuple(archived),
        lines_before=lines,
        lines_after=count_lines(new_data.decode()),
        tokens_before=len(old_data.decode()) // _CHARACTERS_PER_TOKEN,
        tokens_after=len(new_data.decode()) // _CHARACTERS_PER_TOKEN,
        limit=policy.knowledge_line_limit,
    )


def _preserves_other_blocks(document: Document, data: bytes, compressed: Collection[int]) -> bool:
    """Return whether every block that was not compressed reads as before."""
    reparsed = parse(data)
    if not isinstance(reparsed, Document) or reparsed.preamble != document.preamble:
        return False
    present_texts = {block.text.rstrip() for block in reparsed.blocks}
    untouched = [block for index, block in enumerate(document.blocks) if index not in compressed]
    return len(reparsed.blocks) >= len(untouched) and all(block.text.rstrip() in present_texts for block in untouched)
