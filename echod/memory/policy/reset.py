"""A file as it was on its first day, and all that stood in it as the archive keeps it. Only a person asks for that."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date

from echod.memory.identity import entry_ids
from echod.memory.model import Block, Document
from echod.memory.policy.archive import ArchivedEntry, archived_entry
from echod.memory.policy.rules import Rule


@dataclass(frozen=True, slots=True)
class Reset:
    """What emptying a file means: its new bytes, how many entries go, and what the archive takes up, in file order.

    What is no entry has no id in the archive.
    """

    data: bytes
    entries: int
    archived: tuple[ArchivedEntry, ...]


def plan_reset(role: str, document: Document, new: bytes, day: date, *, file: str) -> Reset | None:
    """Empty a file; None where it holds nothing but its head.

    Args:
        role: the role's name; part of the entries' ids.
        document: the file.
        new: the bytes that a file of its kind begins with.
        day: the local day.
        file: the file's name.
    """
    if not document.blocks:
        return None
    ids = entry_ids(role, document)
    head = document.preamble
    pieces: list[tuple[Block, str | None]] = list(zip(document.blocks, ids, strict=True))
    if head.strip() and head.strip() != new.decode().strip():
        pieces.insert(0, (Block(head, None), None))
    kept = tuple(archived_entry(block, own or "", role, Rule.RESET, day, file=file) for block, own in pieces)
    return Reset(new, sum(own is not None for own in ids), kept)
