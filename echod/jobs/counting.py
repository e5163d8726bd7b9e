"""Counting what is in a memory or knowledge file, once it has been read."""

from __future__ import annotations

from collections import Counter

from echod.jobs.count import Count
from echod.memory.document import parse
from echod.memory.model import Document, Unreadable
from echod.memory.policy.lines import document_lines, room
from echod.memory.policy.scoring import PROTECTED_LAYERS, stays_open
from echod.memory.prompt_injection import may_speak_to_agents, speaks_to_agents


def count(name: str, data: bytes) -> Count:
    """What is in the file of this name."""
    document = parse(data)
    if isinstance(document, Unreadable):
        return Count(None, problem=f"{name} is left alone: {document.reason}")
    layers = Counter(
        block.entry.layer.value if block.entry.layer is not None else "unknown"
        for block in document.blocks
        if block.entry is not None
    )
    speaks = may_speak_to_agents(data.decode()) and any(
        block.entry is not None and speaks_to_agents(block.text) for block in document.blocks
    )
    lines = data.count(b"\n") + (not data.endswith(b"\n") and bool(data))
    return Count(lines, dict(layers), None, _staying(document), speaks)


def _staying(document: Document) -> int:
    lines, entries = room(document.preamble), 0
    above_is_open = False
    for block in document.blocks:
        entries += block.entry is not None
        if block.entry is None or block.entry.layer is None or block.entry.layer in PROTECTED_LAYERS or above_is_open:
            lines += room(block.text)
        above_is_open = stays_open(block.text)
    # The last entry of a file stays whatever it is.
    return document_lines(document) if entries <= 1 else lines
