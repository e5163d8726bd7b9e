"""Which entries stand in a memory file, each with its likeness, by which `likeness` recognises it later.

Likenesses are made of texts without secrets, so that an entry looks the same before and after it was scrubbed, and
nothing can be read from them.
"""

from __future__ import annotations

import hashlib
from functools import lru_cache

from echod.memory.alignment import key
from echod.memory.document import parse_block
from echod.memory.entry_matching import Likeness, Present
from echod.memory.identity import entry_ids
from echod.memory.model import Block, Document
from echod.memory.redact import redact_entry

_DIGITS = 16

_REMEMBERED = 2_048
"""A file is looked at several times for each change of one entry, and looking for secrets is most of the look."""


def present_in(role: str, document: Document) -> tuple[Present, ...]:
    """The entries of a role's memory file in file order."""
    pairs = zip(entry_ids(role, document), document.blocks, strict=True)
    return tuple(
        Present(identity, block.entry.layer, likeness_of(block))
        for identity, block in pairs
        if identity is not None and block.entry is not None
    )


def likeness_of(block: Block) -> Likeness:
    """What an entry can be recognised by later.

    Raises:
        ValueError: the block is opaque.
    """
    redacted = _without_secrets(block.text)
    if redacted != block.text and (plain := parse_block(redacted)).entry is not None:
        block = plain
    if block.entry is None:
        raise ValueError("an opaque block is no entry")
    _, title, day, source = key(block)
    body = block.text[block.entry.body.start : block.entry.body.end].replace("\r\n", "\n")
    return Likeness(_digest(title), _digest(day), _digest(source), _digest(body) if body.strip() else "")


@lru_cache(maxsize=_REMEMBERED)
def _without_secrets(text: str) -> str:
    return redact_entry(text).text


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:_DIGITS]
