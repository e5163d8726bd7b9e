"""Compress: a knowledge file over its limit becomes one block for each topic; the oldest blocks go if it still is.

Nothing is lost by it: every text that no longer stands in the file goes to the archive verbatim. Etched entries,
notes, pinned entries, what is no entry, and what reads like an instruction to agents stay as they are.
"""

from __future__ import annotations

from datetime import date
from typing import NamedTuple

from echod.memory.document import parse
from echod.memory.knowledge import Source, compress
from echod.memory.model import Document
from echod.memory.policy.archive import ArchivedEntry, archived_entry
from echod.memory.policy.candidates import may_be_told
from echod.memory.policy.scoring import Facts, document_lines, room, standings
from echod.memory.policy_model import Policy, Rule

KNOWLEDGE = "knowledge.md"
_CHARACTERS_OF_A_TOKEN = 4


class CompressPlan(NamedTuple):
    """What compress would do today.

    Attributes:
        role: the role.
        knowledge: the new bytes of the knowledge file; None if nothing changes.
        archived: what goes to the archive, in file order.
        lines_before: lines of the file now.
        lines_after: lines of the file then.
        tokens_before: about how many tokens an agent reads now.
        tokens_after: about how many then.
        limit: the limit in lines. A file that is still over it holds protected text and waits for a person.
    """

    role: str
    knowledge: bytes | None
    archived: tuple[ArchivedEntry, ...]
    lines_before: int
    lines_after: int
    tokens_before: int
    tokens_after: int
    limit: int

    @property
    def summary(self) -> str:
        """The plan in one line."""
        merged = sum(entry.rule == Rule.TOPIC.value for entry in self.archived)
        dropped = len(self.archived) - merged
        told = [f"{merged} compressed"] * bool(merged) + [f"{dropped} archived"] * bool(dropped)
        return f"{', '.join(told) or 'nothing to do'}; {self.lines_before} -> {self.lines_after} lines"


def plan_compress(role: str, document: Document, facts: Facts, policy: Policy, today: date) -> CompressPlan:
    """Decide what becomes of a knowledge file today. Arguments as in `plan_prune`, `document` is the knowledge file."""
    before = document.render()
    lines = document_lines(document)
    archived: list[ArchivedEntry] = []
    after = before
    if lines > policy.knowledge_line_limit:
        found = {s.index: s for s in standings(role, document, facts, policy, today)}
        sources = [Source(s.index, s.block, s.entry, s.verified) for s in found.values() if s.free and may_be_told(s)]
        result = compress(document, sources, policy.knowledge_line_limit)
        merged = set(result.merged)
        if _keeps_others(document, result.data, merged | set(result.dropped)):
            after = result.data
            archived = [
                archived_entry(
                    found[index].block,
                    found[index].id,
                    role,
                    Rule.TOPIC if index in merged else Rule.OLDEST_KNOWLEDGE,
                    today,
                    file=KNOWLEDGE,
                )
                for index in sorted((*result.merged, *result.dropped))
            ]
    return CompressPlan(
        role=role,
        knowledge=after if archived else None,
        archived=tuple(archived),
        lines_before=lines,
        lines_after=room(after.decode()),
        tokens_before=len(before.decode()) // _CHARACTERS_OF_A_TOKEN,
        tokens_after=len(after.decode()) // _CHARACTERS_OF_A_TOKEN,
        limit=policy.knowledge_line_limit,
    )


def _keeps_others(document: Document, data: bytes, gone: set[int]) -> bool:
    """Whether every block that was not compressed reads as before."""
    again = parse(data)
    if not isinstance(again, Document) or again.preamble != document.preamble:
        return False
    standing = {block.text.rstrip() for block in again.blocks}
    kept = [block for index, block in enumerate(document.blocks) if index not in gone]
    return len(again.blocks) >= len(kept) and all(block.text.rstrip() in standing for block in kept)
