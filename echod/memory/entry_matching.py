"""Recognising an entry whose id changed: a person corrected its title, a secret was taken out of it, a repeat went.

What is kept of an entry between two looks is its likeness, digests of what it says; `presence` takes it.

A wrong guess would give one entry's references to another, which is worse than to forget them. So only what leaves no
doubt counts; docs/formats.md lists it for users.

Which entries stand in a memory file, each with its likeness, by which `likeness` recognises it later.

Likenesses are made of texts without secrets, so that an entry looks the same before and after it was scrubbed, and
nothing can be read from them.
"""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import NamedTuple

from echod.memory.alignment import block_key
from echod.memory.document import parse_block
from echod.memory.identity import entry_ids
from echod.memory.model import Block, Document, Layer
from echod.memory.redact import redact_entry

NO_ID_CHANGES: Mapping[str, str] = MappingProxyType({})

_DIGEST_LENGTH = 16

_MAX_CACHED_REDACTIONS = 2_048
"""A file is looked at several times for each change of one entry, and looking for secrets is most of the look."""


class EntrySignature(NamedTuple):
    """Digests of an entry's title, date, source and body; `body` is empty where the entry has none."""

    title: str
    day: str
    source: str
    body: str

    @property
    def id_parts(self) -> tuple[str, str, str]:
        """What its id is made of."""
        return self.title, self.day, self.source


class PresentEntry(NamedTuple):
    """An entry as it stands in a memory file now."""

    id: str
    layer: Layer | None
    signature: EntrySignature


def present_entries(role: str, document: Document) -> tuple[PresentEntry, ...]:
    """The entries of a role's memory file in file order."""
    pairs = zip(entry_ids(role, document), document.blocks, strict=True)
    return tuple(
        PresentEntry(entry_id, block.entry.layer, entry_signature(block))
        for entry_id, block in pairs
        if entry_id is not None and block.entry is not None
    )


def entry_signature(block: Block) -> EntrySignature:
    """What an entry can be recognised by later.

    Raises:
        ValueError: the block is opaque.
    """
    redacted = _redacted_text(block.text)
    if redacted != block.text and (plain := parse_block(redacted)).entry is not None:
        block = plain
    if block.entry is None:
        raise ValueError("an opaque block is no entry")
    _, title, day, source = block_key(block)
    body = block.body.replace("\r\n", "\n")
    return EntrySignature(_digest(title), _digest(day), _digest(source), _digest(body) if body.strip() else "")


@lru_cache(maxsize=_MAX_CACHED_REDACTIONS)
def _redacted_text(text: str) -> str:
    return redact_entry(text).text


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:_DIGEST_LENGTH]


def match_entries(
    previous: Mapping[str, EntrySignature | None],
    removed: Mapping[str, EntrySignature | None],
    current: Mapping[str, EntrySignature],
    id_changes: Mapping[str, str] = NO_ID_CHANGES,
) -> Mapping[str, str]:
    """Which of the entries that stand in a file now are known, and by which id: id now -> id then.

    Both ids are the same for most entries, and no id stands twice on either side. All pairs hold at once: two entries
    can have exchanged their ids.

    Args:
        previous: the entries of the file at the last look, by id; None where only the id is known.
        removed: the entries that left the file before, likewise.
        current: the entries of the file as it is.
        id_changes: id then -> id now, from whoever changed the file and knows better than any likeness.
    """
    unmatched = dict(current)
    in_file, returning = _Matcher(dict(previous), unmatched), _Matcher(dict(removed), unmatched)
    for previous_id, entry_id in id_changes.items():
        in_file.match(previous_id, entry_id)
    for pairs in (in_file, returning):
        pairs.match_unchanged()
        pairs.match_identical()
    in_file.match_edited(previous, current)
    in_file.match_unique(lambda signature: signature.id_parts)
    in_file.match_same_ids()
    returning.match_same_ids()
    return {**in_file.matches, **returning.matches}


class _Matcher:
    """Pairs of an entry then and an entry now as they are found; what has a partner is out of the search.

    `unmatched` are the entries now that have none yet; two searches may share them.
    """

    def __init__(self, previous: dict[str, EntrySignature | None], unknown: dict[str, EntrySignature]) -> None:
        self.matches: dict[str, str] = {}
        self.unmatched = unknown
        self._previous = previous

    def match(self, previous_id: str, current_id: str) -> None:
        if previous_id in self._previous and current_id in self.unmatched:
            del self._previous[previous_id], self.unmatched[current_id]
            self.matches[current_id] = previous_id

    def match_unchanged(self) -> None:
        for entry_id, signature in list(self.unmatched.items()):
            if self._previous.get(entry_id) == signature:
                self.match(entry_id, entry_id)

    def match_same_ids(self) -> None:
        for entry_id in list(self.unmatched):
            self.match(entry_id, entry_id)

    def match_identical(self) -> None:
        """Entries that say the very same: then they are as good as each other, however many there are."""
        candidates = self._group_by(lambda signature: signature)
        for entry_id, signature in sorted(self.unmatched.items(), key=lambda item: item[0]):
            if candidates[signature]:
                self.match(candidates[signature].pop(0), entry_id)

    def match_unique(self, key_of: Callable[[EntrySignature], Hashable]) -> None:
        """What agrees in `key_of`, where just one entry does on each side."""
        candidates = self._group_by(key_of)
        counts = Counter(key_of(signature) for signature in self.unmatched.values())
        for entry_id, signature in list(self.unmatched.items()):
            kind = key_of(signature)
            if counts[kind] == len(candidates[kind]) == 1:
                self.match(candidates[kind][0], entry_id)

    def match_edited(self, before: Mapping[str, EntrySignature | None], after: Mapping[str, EntrySignature]) -> None:
        """Entries with a body that no other one has on either side, and of title, date and source but one changed.

        Tasks that come again are reported in the same words on another day from another workflow; those are two. And
        where an id still stands for an entry, that one was edited.
        """
        bodies = [Counter(x.body for x in side.values() if x is not None) for side in (before, after)]
        by_body = self._group_by(lambda signature: signature.body)
        for entry_id, signature in list(self.unmatched.items()):
            body = signature.body
            if not body or any(count[body] != 1 for count in bodies) or not by_body[body]:
                continue
            previous_id = by_body[body][0]
            old = self._previous.get(previous_id)
            if old is None or previous_id in self.unmatched:
                continue
            if sum(a != b for a, b in zip(old.id_parts, signature.id_parts, strict=True)) == 1:
                self.match(previous_id, entry_id)

    def _group_by(self, key_of: Callable[[EntrySignature], Hashable]) -> defaultdict[Hashable, list[str]]:
        grouped: defaultdict[Hashable, list[str]] = defaultdict(list)
        for entry_id, signature in sorted(self._previous.items(), key=lambda item: item[0]):
            if signature is not None:
                grouped[key_of(signature)].append(entry_id)
        return grouped
