"""Condensing: a long entry becomes its heading, its metadata and the lead sentence of each learning.

The last line names where the full text is, and by it a condensed entry is known and never condensed again.
"""

from __future__ import annotations

import re

from echod.memory import markdown as scan
from echod.memory.document import parse_block
from echod.memory.knowledge.sentences import first_sentence
from echod.memory.knowledge.text import learnings
from echod.memory.model import Block, Entry
from echod.memory.policy.lines import entry_lines
from echod.memory.redact import redact

_POINTER = re.compile(r"- Full text: `archive/[\w.-]+`, entry [0-9a-f]{12}\.")


def condensed(block: Block, identity: str, archive: str) -> Block | None:
    """The block condensed; None where that would save no line or not read back as the same entry.

    Args:
        block: an entry.
        identity: its id, under which the archive has the full text.
        archive: the archive file, relative to the role (`archive/pruned-2026.md`).
    """
    entry = block.entry
    if entry is None or is_condensed(block, entry):
        return None
    text = block.text
    newline = "\r\n" if text.partition("\n")[0].endswith("\r") else "\n"
    kept = [
        text[_line_start(text, f.span.start) : f.span.end].rstrip()
        for f in entry.fields
        if f.span.start >= entry.body.start
    ]
    leads = dict.fromkeys(first_sentence(learning) for learning in learnings(text[entry.body.start : entry.body.end]))
    pointer = f"- Full text: `{archive}`, entry {identity}."
    body = [*kept, *([""] if kept else []), *(f"- {redact(lead).text}" for lead in leads), pointer]
    result = parse_block(text[: entry.body.start] + newline.join(body) + _tail(text, entry, newline))
    if entry_lines(result.text) >= entry_lines(text) or not _same_but_for_body(entry, result):
        return None
    return result


def is_condensed(block: Block, entry: Entry) -> bool:
    """Whether the entry's last line says that the full text is in the archive."""
    last_line = block.text[entry.body.start : entry.body.end].rpartition("\n")[2]
    return _POINTER.fullmatch(last_line.strip()) is not None


def _line_start(text: str, position: int) -> int:
    return text.rfind("\n", 0, position) + 1


def _tail(text: str, entry: Entry, newline: str) -> str:
    """What stands behind the body: blank lines, a separator, the file's rhythm."""
    tail = text[entry.body.end :].lstrip(" \t")
    # A separator right below text could make a heading of it.
    return newline + newline + tail.lstrip("\r\n") if tail.strip(" \t\r\n") else tail


def _same_but_for_body(entry: Entry, result: Block) -> bool:
    new = result.entry
    return (
        new is not None
        and (new.form, new.layer, new.title, new.kind, new.heading_date)
        == (entry.form, entry.layer, entry.title, entry.kind, entry.heading_date)
        and [(field.name, field.value) for field in new.fields] == [(f.name, f.value) for f in entry.fields]
        and is_condensed(result, new)
        and scan.structure(result.text).closing is None
    )
