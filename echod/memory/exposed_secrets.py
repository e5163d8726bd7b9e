"""Find and remove secrets that are already in a file.

The text of a secret is never shown, not even in the title of its entry.
"""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import NamedTuple

from echod.memory.document import parse
from echod.memory.model import Block, Unreadable
from echod.memory.redact import Redaction, Secret, redact, redact_entry
from echod.memory.redact.spans import replace_spans


class SecretLocation(NamedTuple):
    """The location of a secret."""

    line: int  # its first line, from 1
    kind: str  # its kind (docs/security.md)
    entry: str | None  # the title of its entry, redacted; None outside of entries
    needs_confirmation: bool  # its entry is etched or a note, so that it is removed only with the user's confirmation


def locate_secrets(data: bytes) -> tuple[SecretLocation, ...]:
    """Return the secrets in a file, in order. Bytes that are not UTF-8 are searched too."""
    return tuple(location for part in _split(data) for location in part.locations())


def strip_secrets(data: bytes, *, include_protected: bool) -> bytes:
    """Return the file without its secrets, etched entries and notes included only on request. All other bytes stay."""
    parts = (p.text if p.needs_confirmation and not include_protected else p.redaction.text for p in _split(data))
    return "".join(parts).encode("utf-8", "surrogateescape")


@dataclass(frozen=True, slots=True)
class RemovedSecrets:
    """Secrets that are in one version of a file but not in a later one, to be removed from earlier versions too."""

    secrets: frozenset[str] = field(repr=False)

    def __bool__(self) -> bool:
        return bool(self.secrets)

    def union(self, *others: RemovedSecrets) -> RemovedSecrets:
        """Return the secrets of all of these."""
        return RemovedSecrets(self.secrets.union(*(other.secrets for other in others)))

    def strip_from(self, data: bytes) -> bytes:
        """Return a version of the file without these secrets. Everything else stays, including other secrets."""
        text = data.decode("utf-8", "surrogateescape")
        if not any(secret in text for secret in self.secrets):
            return data
        clean = (replace_spans(part.text, part.spans_of(self.secrets)).text for part in _split(data))
        return "".join(clean).encode("utf-8", "surrogateescape")


NO_REMOVED_SECRETS = RemovedSecrets(frozenset())


def find_removed_secrets(before: bytes, after: bytes) -> RemovedSecrets:
    """Return the secrets of a file that are not in its later version."""
    after_text = after.decode("utf-8", "surrogateescape")
    secrets = (part.text[span.start : span.end] for part in _split(before) for span in part.redaction.spans)
    return RemovedSecrets(frozenset(secret for secret in secrets if secret not in after_text))


class _Part(NamedTuple):
    """A part of the file that is redacted on its own, because its text decides which of its values are secrets."""

    text: str
    redaction: Redaction
    first_line: int
    title: str | None
    needs_confirmation: bool

    def spans_of(self, secrets: AbstractSet[str]) -> Iterator[Secret]:
        return (span for span in self.redaction.spans if self.text[span.start : span.end] in secrets)

    def locations(self) -> Iterator[SecretLocation]:
        line, position = self.first_line, 0
        for secret in self.redaction.spans:
            line += self.text.count("\n", position, secret.start)
            position = secret.start
            yield SecretLocation(line, secret.kind, self.title, self.needs_confirmation)


def _split(data: bytes) -> Iterator[_Part]:
    document = parse(data)
    if isinstance(document, Unreadable):
        text = data.decode("utf-8", "surrogateescape")
        yield _Part(text, redact(text), 1, None, needs_confirmation=False)
        return
    yield _Part(document.preamble, redact(document.preamble), 1, None, needs_confirmation=False)
    line = 1 + document.preamble.count("\n")
    for block in document.blocks:
        yield _block_part(block, line)
        line += block.text.count("\n")


def _block_part(block: Block, line: int) -> _Part:
    if block.entry is None:
        return _Part(block.text, redact(block.text), line, None, needs_confirmation=False)
    title = redact(block.entry.title).text
    layer = block.entry.layer
    needs_confirmation = layer is not None and layer.protected
    return _Part(block.text, redact_entry(block.text), line, title, needs_confirmation=needs_confirmation)
