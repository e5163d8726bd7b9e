"""Apply the user's own edits (layer, removal, restoration, reset), and plan the promotion of observations.

Each function returns the document with the edit, or why the edit is refused. Nothing else in the document changes.

Only the layer changes, wherever it is written. An entry that reads like an instruction to agents is left to the user,
and a pinned entry is unchanged.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import date
from typing import NamedTuple

from echod.memory.archive import ArchivedEntry, to_archived_entry
from echod.memory.compose import append_entries
from echod.memory.document import parse, parse_block, round_trips
from echod.memory.edit import with_layer, with_verified
from echod.memory.identity import block_content, block_contents, entry_ids
from echod.memory.model import Block, Document, Layer
from echod.memory.policy.scoring import Facts, entry_statuses, is_promotable
from echod.memory.policy_model import SHORTENING_RULES, PolicySettings, Rule
from echod.memory.prompt_injection import find_injection

_UNCLOSED_BLOCK = (
    "a code block or comment in this file is never closed, so that the text around the entry would change its meaning"
)


class EditRefusal(NamedTuple):
    """Why an edit is refused: a sentence without its full stop."""

    reason: str


class AlreadyRestored(EditRefusal):
    """There is nothing to restore, because the file contains the entry."""


class Removal(NamedTuple):
    """A file without some entries, and those entries for the archive, in file order."""

    document: Document
    archived: tuple[ArchivedEntry, ...]


class Restoration(NamedTuple):
    """A file with an entry restored from the archive."""

    document: Document
    id: str  # the entry's id in it
    condensed_text: str | None  # the condensed text that the entry replaced; None if there was none


class ResetPlan(NamedTuple):
    """An emptied file: its new bytes, the number of removed entries, and the blocks for the archive, in file order.

    Opaque blocks have no id in the archive.
    """

    data: bytes
    entry_count: int
    archived: tuple[ArchivedEntry, ...]


def change_layer(role: str, document: Document, entry_id: str, layer: Layer) -> Document | EditRefusal:
    """Return the file with one entry in another layer, in its heading and its layer line as its form has them.

    The same document is returned where the entry is in that layer already. The id is a full one.
    """
    if (missing := _refuse_missing(role, document, [entry_id])) is not None:
        return missing
    ids = entry_ids(role, document)
    blocks = tuple(
        with_layer(block, layer) if block_id == entry_id else block
        for block_id, block in zip(ids, document.blocks, strict=True)
    )
    if blocks == document.blocks:
        return document
    return _check_round_trip(document.with_blocks(blocks))


def change_verified(role: str, document: Document, entry_id: str, day: date) -> Document | EditRefusal:
    """Return the file with a day as the date on which one entry was last verified. The id is a full one.

    The same document is returned where the entry has that day already.
    """
    if (missing := _refuse_missing(role, document, [entry_id])) is not None:
        return missing
    ids = entry_ids(role, document)
    blocks = tuple(
        with_verified(block, day) if block_id == entry_id else block
        for block_id, block in zip(ids, document.blocks, strict=True)
    )
    if blocks == document.blocks:
        return document
    return _check_round_trip(document.with_blocks(blocks))


def remove_entries(
    role: str, document: Document, ids_to_remove: Collection[str], rule: Rule, day: date
) -> Removal | EditRefusal:
    """Return the file without the entries with these full ids. The archive names the rule and the local day."""
    if (missing := _refuse_missing(role, document, ids_to_remove)) is not None:
        return missing
    pairs = list(zip(entry_ids(role, document), document.blocks, strict=True))
    remaining = tuple(block for block_id, block in pairs if block_id not in ids_to_remove)
    after = _check_round_trip(document.with_blocks(remaining))
    if isinstance(after, EditRefusal):
        return after
    archived = tuple(
        to_archived_entry(block, block_id, role, rule, day)
        for block_id, block in pairs
        if block_id and block_id in ids_to_remove
    )
    return Removal(after, archived)


def restore_entry(role: str, document: Document, archived: ArchivedEntry) -> Restoration | EditRefusal:
    """Return the file with an archived entry, verbatim, at its end or in the position of its condensed form."""
    restored_content = block_content(parse_block(archived.text))
    contents = block_contents(document)
    if restored_content in contents:
        return AlreadyRestored(f"{archived.id} is in {archived.file} already")
    condensed_index = _find_shortened(role, document, archived)
    if condensed_index is None:
        after, position, before = _parse_or_none(append_entries(document, [archived.text])), len(document.blocks), None
    else:
        before = document.blocks[condensed_index].text
        full = Block(archived.text.rstrip() + before[len(before.rstrip()) :], None)  # the blank lines below it stay
        blocks = (*document.blocks[:condensed_index], full, *document.blocks[condensed_index + 1 :])
        after, position = _parse_or_none(document.with_blocks(blocks).render()), condensed_index
    contents[position : position + (condensed_index is not None)] = [restored_content]
    if after is None or block_contents(after) != contents:
        return EditRefusal(_UNCLOSED_BLOCK)
    return Restoration(after, entry_ids(role, after)[position] or archived.id, before)


def _find_shortened(role: str, document: Document, archived: ArchivedEntry) -> int | None:
    """Return the position of the entry that is the shortened form of the archived one; None if there is none."""
    if archived.rule not in SHORTENING_RULES:
        return None
    return next((i for i, block_id in enumerate(entry_ids(role, document)) if block_id == archived.id), None)


def _parse_or_none(data: bytes) -> Document | None:
    document = parse(data)
    return document if isinstance(document, Document) else None


def plan_reset(role: str, document: Document, new: bytes, day: date, *, file: str) -> ResetPlan | None:
    """Empty a file: `new` are the bytes of an empty one of its kind. None if it has no blocks."""
    if not document.blocks:
        return None
    ids = entry_ids(role, document)
    preamble = document.preamble
    pieces: list[tuple[Block, str | None]] = list(zip(document.blocks, ids, strict=True))
    if preamble.strip() and preamble.strip() != new.decode().strip():
        pieces.insert(0, (Block(preamble, None), None))
    archived = (
        to_archived_entry(block, block_id or "", role, Rule.RESET, day, file=file) for block, block_id in pieces
    )
    return ResetPlan(new, sum(block_id is not None for block_id in ids), tuple(archived))


def _refuse_missing(role: str, document: Document, requested_ids: Collection[str]) -> EditRefusal | None:
    missing = sorted(set(requested_ids) - set(entry_ids(role, document)))
    return EditRefusal(f"the file no longer contains entry {' or '.join(missing)}") if missing else None


def _check_round_trip(document: Document) -> Document | EditRefusal:
    return document if round_trips(document) else EditRefusal(_UNCLOSED_BLOCK)


class PromotedEntry(NamedTuple):
    """An observation that becomes inscribed."""

    id: str
    title: str
    references: int


class BlockedPromotion(NamedTuple):
    """An observation with enough references that is not promoted; `reason` is a few words for the user."""

    id: str
    title: str
    reason: str


class PromotionPlan(NamedTuple):
    """The promotions of today, with the new bytes of the memory file (None if unchanged)."""

    role: str
    memory: bytes | None
    promoted: tuple[PromotedEntry, ...]
    blocked: tuple[BlockedPromotion, ...]

    @property
    def summary(self) -> str:
        """The plan in one line."""
        blocked = f", {len(self.blocked)} left for you" if self.blocked else ""
        return f"{len(self.promoted)} promoted{blocked}"


def plan_promotion(role: str, document: Document, facts: Facts, policy: PolicySettings, today: date) -> PromotionPlan:
    """Plan which observations become inscribed today. The arguments are those of `plan_prune`."""
    promotable = [s for s in entry_statuses(role, document, facts, policy, today) if is_promotable(s, policy)]
    reasons = {s.index: find_injection(s.block.text) for s in promotable}
    chosen = {s.index: s for s in promotable if reasons[s.index] is None}
    blocks = enumerate(document.blocks)
    new_blocks = tuple(with_layer(block, Layer.INSCRIBED) if index in chosen else block for index, block in blocks)
    after = document.with_blocks(new_blocks)
    if not round_trips(after):
        reasons |= dict.fromkeys(chosen, "the file would no longer read the same")
        chosen = {}
    promoted = tuple(PromotedEntry(s.id, s.entry.title, s.history.references) for s in chosen.values())
    blocked = tuple(BlockedPromotion(s.id, s.entry.title, why) for s in promotable if (why := reasons[s.index]))
    return PromotionPlan(role, after.render() if chosen else None, promoted, blocked)
