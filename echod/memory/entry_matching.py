"""Recognise entries whose ids changed: the user corrected a title, a secret was redacted, a repeat was removed.

Between two inspections of a file echod keeps a signature of each entry: digests of its title, date, source and body.
Signatures are made from redacted text, so that an entry matches before and after it was scrubbed, and no secret can be
derived from them.

A wrong match would give one entry's references to another, which is worse than losing them. So only unambiguous matches
count. docs/formats.md lists them for users.
"""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Hashable, Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import NamedTuple

from echod.memory.document import parse_block
from echod.memory.identity import block_key, entry_ids
from echod.memory.model import Block, Document, Layer
from echod.memory.redact import redact_entry

NO_ID_CHANGES: Mapping[str, str] = MappingProxyType({})
_NO_EARLIER: Mapping[str, Collection[EntrySignature]] = MappingProxyType({})

_DIGEST_LENGTH = 16
# A file is inspected several times for each change of one entry, and redaction takes most of the time.
_MAX_CACHED_REDACTIONS = 2_048


class EntrySignature(NamedTuple):
    """Digests of an entry's title, date, source and body; `body` is empty for an entry without one."""

    title: str
    day: str
    source: str
    body: str

    @property
    def id_parts(self) -> tuple[str, str, str]:
        """The digests of the values that the entry's id is made from."""
        return self.title, self.day, self.source


class PresentEntry(NamedTuple):
    """An entry that is in a memory file now."""

    id: str
    layer: Layer | None
    signature: EntrySignature


def present_entries(role: str, document: Document) -> tuple[PresentEntry, ...]:
    """Return the entries of a role's memory file in file order."""
    pairs = zip(entry_ids(role, document), document.blocks, strict=True)
    return tuple(
        PresentEntry(entry_id, block.entry.layer, entry_signature(block))
        for entry_id, block in pairs
        if entry_id is not None and block.entry is not None
    )


def entry_signature(block: Block) -> EntrySignature:
    """Return the signature by which an entry can be recognised later. An opaque block is a `ValueError`."""
    redacted = _redacted_text(block.text)
    if redacted != block.text and (plain := parse_block(redacted)).entry is not None:
        block = plain
    if block.entry is None:
        raise ValueError("an opaque block has no signature")
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
    earlier: Mapping[str, Collection[EntrySignature]] = _NO_EARLIER,
) -> Mapping[str, str]:
    """Match a file's entries with known ones: current id -> previous id.

    Both ids are equal for most entries, and no id occurs twice on either side. All pairs hold at once, because two
    entries can have exchanged their ids.

    `previous` are the entries at the last inspection, `removed` those that left the file before; None where only the id
    is known. `id_changes` (previous id -> current id, from the job that changed the file) takes precedence over
    signatures. `earlier` are the signatures that previous and removed entries had before their last one.
    """
    unmatched = dict(current)
    in_file, returning = _Matcher(dict(previous), unmatched), _Matcher(dict(removed), unmatched)
    for previous_id, entry_id in id_changes.items():
        in_file.match(previous_id, entry_id)
    for pairs in (in_file, returning):
        pairs.match_unchanged()
        pairs.match_identical()
    for pairs in (in_file, returning):
        pairs.match_earlier(earlier)
    in_file.match_edited(previous, current)
    in_file.match_unique(lambda signature: signature.id_parts)
    in_file.match_same_ids()
    returning.match_same_ids()
    return {**in_file.matches, **returning.matches}


class _Matcher:
    """Pairs of a previous and a current entry. Matched entries are excluded from the search.

    `unmatched` are the current entries without a partner. Two matchers may share them.
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
        """Match entries with equal signatures. They are interchangeable, so their number does not matter."""
        candidates = self._group_by(lambda signature: signature)
        for entry_id, signature in sorted(self.unmatched.items(), key=lambda item: item[0]):
            if candidates[signature]:
                self.match(candidates[signature].pop(0), entry_id)

    def match_earlier(self, earlier: Mapping[str, Collection[EntrySignature]]) -> None:
        """Match entries with a signature that exactly one previous entry had before: a stale writer put it back."""
        candidates: defaultdict[EntrySignature, list[str]] = defaultdict(list)
        for previous_id in self._previous.keys() & earlier.keys():
            for signature in earlier[previous_id]:
                candidates[signature].append(previous_id)
        for entry_id, signature in sorted(self.unmatched.items(), key=lambda item: item[0]):
            if len(candidates[signature]) == 1:
                self.match(candidates[signature][0], entry_id)

    def match_unique(self, key_of: Callable[[EntrySignature], Hashable]) -> None:
        """Match entries with equal `key_of` where exactly one on each side has that key."""
        candidates = self._group_by(key_of)
        counts = Counter(key_of(signature) for signature in self.unmatched.values())
        for entry_id, signature in list(self.unmatched.items()):
            kind = key_of(signature)
            if counts[kind] == len(candidates[kind]) == 1:
                self.match(candidates[kind][0], entry_id)

    def match_edited(self, before: Mapping[str, EntrySignature | None], after: Mapping[str, EntrySignature]) -> None:
        """Match entries whose body is unique on both sides and that differ in one of title, date and source.

        Recurring tasks are reported in the same words on another day from another workflow. Those are two entries. And
        if the previous id still belongs to an entry, that entry is the edited one.
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
