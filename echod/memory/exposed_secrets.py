"""Secrets that already stand in a file: where, of which kind, and the file without them.

The text of a secret is never shown, not even in the title of its entry.
"""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import NamedTuple

from echod.memory.document import parse
from echod.memory.model import Block, Layer, Unreadable
from echod.memory.redact import Redaction, Secret, redact, redact_entry
from echod.memory.redact.spans import replace_spans

_PERSONS_OWN = (Layer.ETCHED, Layer.NOTES)


class Place(NamedTuple):
    """Where a secret stands.

    Attributes:
        line: its first line, from 1.
        kind: what it is (docs/security.md).
        entry: the title of its entry, redacted; None where it stands in none.
        confirm: whether a person must agree before it is taken out, since the entry is etched or a note.
    """

    line: int
    kind: str
    entry: str | None
    confirm: bool


def find_places(data: bytes) -> tuple[Place, ...]:
    """The secrets in a file, in order. Bytes that are no UTF-8 are looked through all the same."""
    return tuple(place for part in _parts(data) for place in part.places())


def strip(data: bytes, *, confirmed: bool) -> bytes:
    """The file without its secrets; all else byte for byte.

    Args:
        data: the file.
        confirmed: whether etched entries and notes lose theirs too.
    """
    parts = (part.text if part.confirm and not confirmed else part.redacted.text for part in _parts(data))
    return "".join(parts).encode("utf-8", "surrogateescape")


@dataclass(frozen=True, slots=True)
class Gone:
    """Secrets that one version of a file held and a later one does not; to be taken out of still earlier ones too."""

    secrets: frozenset[str] = field(repr=False)

    def __bool__(self) -> bool:
        return bool(self.secrets)

    def union(self, *others: Gone) -> Gone:
        """These secrets and those."""
        return Gone(self.secrets.union(*(other.secrets for other in others)))

    def out_of(self, data: bytes) -> bytes:
        """A version of the file without these secrets. What it holds besides stays, another secret too."""
        text = data.decode("utf-8", "surrogateescape")
        if not any(secret in text for secret in self.secrets):
            return data
        clean = (replace_spans(part.text, part.among(self.secrets)).text for part in _parts(data))
        return "".join(clean).encode("utf-8", "surrogateescape")


NOTHING = Gone(frozenset())


def taken_out(before: bytes, after: bytes) -> Gone:
    """The secrets of a file that do not stand in its later version any more."""
    left = after.decode("utf-8", "surrogateescape")
    secrets = (part.text[span.start : span.end] for part in _parts(before) for span in part.redacted.spans)
    return Gone(frozenset(secret for secret in secrets if secret not in left))


class _Part(NamedTuple):
    """A stretch of the file that is redacted by itself, as what it says decides what is a secret in it."""

    text: str
    redacted: Redaction
    first_line: int
    title: str | None
    confirm: bool

    def among(self, secrets: AbstractSet[str]) -> Iterator[Secret]:
        """Where one of these secrets stands."""
        return (span for span in self.redacted.spans if self.text[span.start : span.end] in secrets)

    def places(self) -> Iterator[Place]:
        line, done = self.first_line, 0
        for secret in self.redacted.spans:
            line += self.text.count("\n", done, secret.start)
            done = secret.start
            yield Place(line, secret.kind, self.title, self.confirm)


def _parts(data: bytes) -> Iterator[_Part]:
    document = parse(data)
    if isinstance(document, Unreadable):
        text = data.decode("utf-8", "surrogateescape")
        yield _Part(text, redact(text), 1, None, confirm=False)
        return
    yield _Part(document.preamble, redact(document.preamble), 1, None, confirm=False)
    line = 1 + document.preamble.count("\n")
    for block in document.blocks:
        yield _of(block, line)
        line += block.text.count("\n")


def _of(block: Block, line: int) -> _Part:
    if block.entry is None:
        return _Part(block.text, redact(block.text), line, None, confirm=False)
    title = redact(block.entry.title).text
    return _Part(block.text, redact_entry(block.text), line, title, confirm=block.entry.layer in _PERSONS_OWN)
