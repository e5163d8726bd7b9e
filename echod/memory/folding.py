"""Puts together what was received: the memory file as it will be, and what each entry is called then."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from echod.memory.compose import compose_entry, form_for, newline_of, with_entries
from echod.memory.consolidation.deduplicate import Reception
from echod.memory.document import parse_block
from echod.memory.identity import entry_ids
from echod.memory.model import Block, Document, Unreadable


@dataclass(frozen=True, slots=True)
class Folded:
    """The outcome, by place as in `Reception`.

    Attributes:
        after: the file as it will be.
        ids: the id of each entry, then; of one that gave way, the one it had.
        gone: the blocks of what gave way, as they stood, or would have stood.
        renumbered: old id -> new id of entries that stay under another one.
    """

    after: Document
    ids: Mapping[int, str]
    gone: Mapping[int, Block]
    renumbered: Mapping[str, str]


def without(document: Document, reception: Reception, going: Collection[int]) -> Document:
    """The old file with what was found again refreshed, and without what gives way."""
    blocks = tuple(block for place, block in enumerate(reception.blocks) if place not in going)
    return replace(document, blocks=blocks)


def fold(role: str, document: Document, reception: Reception, going: Collection[int]) -> Folded | Unreadable:
    """The file with all new findings that did not give way themselves.

    `Unreadable` is returned where the file would grow too large to be read again.

    Args:
        role: the role's name; part of the entries' ids.
        document: the file as it was.
        reception: what was received for it.
        going: the places of what gives way.

    Raises:
        ComposeError: the file cannot take one of the findings.
    """
    old = range(len(document.blocks))
    new = range(len(old), len(old) + len(reception.new))
    coming = [place for place in new if place not in going]
    rest = without(document, reception, going)
    after = with_entries(rest, [reception.new[place - len(old)] for place in coming])
    if isinstance(after, Unreadable):
        return after
    form, newline = form_for(rest), newline_of(rest)
    # What gave way is kept as it stood, not as it would have been refreshed.
    gone = {place: document.blocks[place] for place in old if place in going}
    never_stood = {
        place: parse_block(compose_entry(reception.new[place - len(old)], form, newline))
        for place in new
        if place in going
    }
    before = _named(old, entry_ids(role, document))
    places = [*(place for place in old if place not in going), *coming, *never_stood]
    ids = _named(places, entry_ids(role, replace(after, blocks=(*after.blocks, *never_stood.values()))))
    return Folded(
        after=after,
        ids={**before, **ids},
        gone={**gone, **never_stood},
        renumbered={
            identity: ids[place] for place, identity in before.items() if place in ids and ids[place] != identity
        },
    )


def _named(places: Collection[int], ids: Collection[str | None]) -> dict[int, str]:
    return {place: identity for place, identity in zip(places, ids, strict=True) if identity is not None}
