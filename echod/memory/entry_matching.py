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

from echod.memory.alignment import key
from echod.memory.document import parse_block
from echod.memory.identity import entry_ids
from echod.memory.model import Block, Document, Layer
from echod.memory.redact import redact_entry

NOTHING: Mapping[str, str] = MappingProxyType({})


class Likeness(NamedTuple):
    """Digests of an entry's title, date, source and body; `body` is empty where the entry has none."""

    title: str
    day: str
    source: str
    body: str

    @property
    def heading(self) -> tuple[str, str, str]:
        """What its id is made of."""
        return self.title, self.day, self.source


class Present(NamedTuple):
    """An entry as it stands in a memory file now."""

    id: str
    layer: Layer | None
    likeness: Likeness


def recognise(
    here: Mapping[str, Likeness | None],
    gone: Mapping[str, Likeness | None],
    now: Mapping[str, Likeness],
    told: Mapping[str, str] = NOTHING,
) -> Mapping[str, str]:
    """Which of the entries that stand in a file now are known, and by which id: id now -> id then.

    Both ids are the same for most entries, and no id stands twice on either side. All pairs hold at once: two entries
    can have exchanged their ids.

    Args:
        here: the entries of the file at the last look, by id; None where only the id is known.
        gone: the entries that left the file before, likewise.
        now: the entries of the file as it is.
        told: id then -> id now, from whoever changed the file and knows better than any likeness.
    """
    unknown = dict(now)
    stayed, returned = _Pairs(dict(here), unknown), _Pairs(dict(gone), unknown)
    for then, identity in told.items():
        stayed.join(then, identity)
    for pairs in (stayed, returned):
        pairs.join_unchanged()
        pairs.join_alike()
    stayed.join_corrected(here, now)
    stayed.join_only_ones(lambda likeness: likeness.heading)
    stayed.join_same_ids()
    returned.join_same_ids()
    return {**stayed.found, **returned.found}


class _Pairs:
    """Pairs of an entry then and an entry now as they are found; what has a partner is out of the search.

    `unknown` are the entries now that have none yet; two searches may share them.
    """

    def __init__(self, then: dict[str, Likeness | None], unknown: dict[str, Likeness]) -> None:
        self.found: dict[str, str] = {}
        self.unknown = unknown
        self._then = then

    def join(self, then: str, now: str) -> None:
        if then in self._then and now in self.unknown:
            del self._then[then], self.unknown[now]
            self.found[now] = then

    def join_unchanged(self) -> None:
        for identity, likeness in list(self.unknown.items()):
            if self._then.get(identity) == likeness:
                self.join(identity, identity)

    def join_same_ids(self) -> None:
        for identity in list(self.unknown):
            self.join(identity, identity)

    def join_alike(self) -> None:
        """Entries that say the very same: then they are as good as each other, however many there are."""
        waiting = self._by(lambda likeness: likeness)
        for identity, likeness in sorted(self.unknown.items(), key=lambda item: item[0]):
            if waiting[likeness]:
                self.join(waiting[likeness].pop(0), identity)

    def join_only_ones(self, same: Callable[[Likeness], Hashable]) -> None:
        """What agrees in `same`, where just one entry does on each side."""
        waiting = self._by(same)
        counts = Counter(same(likeness) for likeness in self.unknown.values())
        for identity, likeness in list(self.unknown.items()):
            kind = same(likeness)
            if counts[kind] == len(waiting[kind]) == 1:
                self.join(waiting[kind][0], identity)

    def join_corrected(self, before: Mapping[str, Likeness | None], after: Mapping[str, Likeness]) -> None:
        """Entries with a body that no other one has on either side, and of title, date and source but one changed.

        Tasks that come again are reported in the same words on another day from another workflow; those are two. And
        where an id still stands for an entry, that one was edited.
        """
        bodies = [Counter(x.body for x in side.values() if x is not None) for side in (before, after)]
        by_body = self._by(lambda likeness: likeness.body)
        for identity, likeness in list(self.unknown.items()):
            body = likeness.body
            if not body or any(count[body] != 1 for count in bodies) or not by_body[body]:
                continue
            then = by_body[body][0]
            old = self._then.get(then)
            if old is None or then in self.unknown:
                continue
            if sum(a != b for a, b in zip(old.heading, likeness.heading, strict=True)) == 1:
                self.join(then, identity)

    def _by(self, same: Callable[[Likeness], Hashable]) -> defaultdict[Hashable, list[str]]:
        grouped: defaultdict[Hashable, list[str]] = defaultdict(list)
        for identity, likeness in sorted(self._then.items(), key=lambda item: item[0]):
            if likeness is not None:
                grouped[same(likeness)].append(identity)
        return grouped


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
