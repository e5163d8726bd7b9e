"""Find the entries that the archives of removed text contain as forgotten and not restored."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from echod.memory.document import parse_block
from echod.memory.entry_matching import EntrySignature, entry_signature
from echod.memory.model import Block, Document
from echod.memory.policy.archive import ArchivedEntry, read_archive
from echod.memory.policy_model import Rule

IdParts = tuple[str, str, str]
"""The digests of an entry's title, date and source, which an edit of its text does not change."""

_FORGETTING_RULES = (Rule.FORGOTTEN, Rule.RESTORED)


def forgotten_signatures(archives: Iterable[bytes], undone_jobs: Collection[int] = ()) -> set[EntrySignature]:
    """Return the signatures of forgotten entries, by which they are recognized even if another program changed them.

    `archives` are the contents of `removed-*.md`, oldest first. Records of `undone_jobs` do not count.
    """
    events = [event for data in archives for event in read_archive(data).entries if event.rule in _FORGETTING_RULES]
    return {entry_signature(parse_block(event.text)) for event in _in_force(events, undone_jobs)}


def _in_force(events: Iterable[ArchivedEntry], undone_jobs: Collection[int]) -> list[ArchivedEntry]:
    events = list(events)
    last_rules = {event.id: event.rule for event in events if event.job not in undone_jobs}
    return [e for e in events if e.rule == Rule.FORGOTTEN and last_rules.get(e.id) == Rule.FORGOTTEN]


def forgotten_only_in(archives: Iterable[bytes], other_archives: Iterable[bytes]) -> set[IdParts]:
    """Return the entries, by title, date and source, that records of `archives` forget and `other_archives` lack."""
    known = {(e.id, e.day, e.job, e.text) for data in other_archives for e in read_archive(data).entries}
    events = [e for data in archives for e in read_archive(data).entries if e.rule in _FORGETTING_RULES]
    new = (e for e in _in_force(events, ()) if (e.id, e.day, e.job, e.text) not in known)
    return {entry_signature(parse_block(event.text)).id_parts for event in new}


def without_forgotten(merged: Document, side: Document, forgotten: Collection[IdParts]) -> Document:
    """Return `merged` without the entries that the writer of `side` forgot, in whatever version.

    An entry that is in `side` stays, because it was remembered again since.
    """
    if not forgotten:
        return merged
    kept = {entry_signature(block).id_parts for block in side.blocks if block.entry}

    def stays(block: Block) -> bool:
        return block.entry is None or (parts := entry_signature(block).id_parts) in kept or parts not in forgotten

    return Document(merged.preamble, tuple(block for block in merged.blocks if stays(block)))
