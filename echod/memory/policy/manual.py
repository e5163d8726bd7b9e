"""What a person asks for of single entries: another layer, taken out, brought back. The rules have no say here.

Each function gives the document as it would be then, or the reason why it cannot be done; nothing else in it changes.

A file as it was on its first day, and all that stood in it as the archive keeps it. Only a person asks for that.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from datetime import date
from typing import NamedTuple

from echod.memory.alignment import content
from echod.memory.compose import append_entries
from echod.memory.document import parse, parse_block
from echod.memory.edit import with_layer
from echod.memory.identity import entry_ids
from echod.memory.merge import reads_as_written
from echod.memory.model import Block, Document, Layer
from echod.memory.policy.archive import ArchivedEntry, archived_entry
from echod.memory.policy.candidates import is_condensed
from echod.memory.policy_model import Rule

_OPEN = "a code block or comment in this file is never closed, so that the text around the entry would change its sense"


class Impossible(NamedTuple):
    """Why it cannot be done: a sentence without its full stop."""

    reason: str


class TakenOut(NamedTuple):
    """A file without some entries, and those entries as the archive keeps them, in file order."""

    document: Document
    archived: tuple[ArchivedEntry, ...]


class BroughtBack(NamedTuple):
    """A file with an entry of the archive in it again.

    Attributes:
        document: the file.
        id: the entry's id there.
        short: the condensed text that gave way to it; None where there was none.
    """

    document: Document
    id: str
    short: str | None


def raised(role: str, document: Document, identity: str, layer: Layer) -> Document | Impossible:
    """The file with one entry in another layer, in its heading and its layer line as its form has them.

    The very same document comes back where the entry is in that layer already.

    Args:
        role: the role's name; part of the entries' ids.
        document: the memory file.
        identity: the entry's full id.
        layer: the layer that it is to have.
    """
    if (missing := _missing(role, document, [identity])) is not None:
        return missing
    ids = entry_ids(role, document)
    blocks = tuple(
        with_layer(block, layer) if own == identity else block for own, block in zip(ids, document.blocks, strict=True)
    )
    if blocks == document.blocks:
        return document
    return _checked(replace(document, blocks=blocks))


def taken_out(
    role: str, document: Document, identities: Collection[str], rule: Rule, day: date
) -> TakenOut | Impossible:
    """The file without these entries.

    Args:
        role: the role's name; part of the entries' ids.
        document: the memory file.
        identities: full ids, each of an entry in the file.
        rule: why they go, as the archive names it.
        day: the local day on which they go.
    """
    if (missing := _missing(role, document, identities)) is not None:
        return missing
    pairs = list(zip(entry_ids(role, document), document.blocks, strict=True))
    after = _checked(replace(document, blocks=tuple(block for own, block in pairs if own not in identities)))
    if isinstance(after, Impossible):
        return after
    gone = tuple(archived_entry(block, own, role, rule, day) for own, block in pairs if own and own in identities)
    return TakenOut(after, gone)


def brought_back(role: str, document: Document, kept: ArchivedEntry) -> BroughtBack | Impossible:
    """The file with an entry of the archive in it, verbatim: at its end, or in the place of what it was condensed to.

    Args:
        role: the role's name; part of the entries' ids.
        document: the file in which the entry stood.
        kept: the entry, as the archive has it.
    """
    wanted = content(parse_block(kept.text))
    if any(content(block) == wanted for block in document.blocks):
        return Impossible(f"{kept.id} stands in {kept.file} already")
    place = _condensed_to(role, document, kept.id)
    if place is None:
        after, at, before = _reread(append_entries(document, [kept.text])), len(document.blocks), None
    else:
        before = document.blocks[place].text
        full = Block(_in_place_of(before, kept.text), None)
        blocks = (*document.blocks[:place], full, *document.blocks[place + 1 :])
        after, at = _reread(replace(document, blocks=blocks).render()), place
    contents = [content(block) for block in document.blocks]
    contents[at : at + (place is not None)] = [wanted]
    if after is None or [content(block) for block in after.blocks] != contents:
        return Impossible(_OPEN)
    return BroughtBack(after, entry_ids(role, after)[at] or kept.id, before)


def _condensed_to(role: str, document: Document, identity: str) -> int | None:
    """Where the entry of that id stands, if what stands there is a short form of it."""
    for position, (own, block) in enumerate(zip(entry_ids(role, document), document.blocks, strict=True)):
        if own == identity and block.entry and is_condensed(block, block.entry):
            return position
    return None


def _in_place_of(short: str, text: str) -> str:
    """The text with the blank lines behind it that the short form had."""
    return text.rstrip() + short[len(short.rstrip()) :]


def _reread(data: bytes) -> Document | None:
    document = parse(data)
    return document if isinstance(document, Document) else None


def _missing(role: str, document: Document, identities: Collection[str]) -> Impossible | None:
    gone = sorted(set(identities) - set(entry_ids(role, document)))
    return Impossible(f"the file holds no entry {' or '.join(gone)} any more") if gone else None


def _checked(document: Document) -> Document | Impossible:
    return document if reads_as_written(document) else Impossible(_OPEN)


class Reset(NamedTuple):
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
