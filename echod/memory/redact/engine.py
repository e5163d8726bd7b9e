"""Run all rules over a text or a file, the most certain first, and replace the secrets they find.

The finds of one rule are masked for the next. The rules run until none finds anything more. To the rules a redacted
text looks like the last pass over the original, because redaction markers are masked too. Redacting it again therefore
changes nothing.

The text of a single entry also loses the e-mail addresses in its evidence, which name people and teach nothing. Where
the learning itself is about e-mail, the addresses are the knowledge and stay.

In a file, each block is searched on its own. The text of a secret is never shown, not even in the title of its entry.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import NamedTuple

from echod.lazy import lazy_imports, lazy_pattern
from echod.memory.model import Block, Unreadable
from echod.memory.redact.commands import find_command_credentials
from echod.memory.redact.layouts import find_layout_secrets, find_named_secrets
from echod.memory.redact.patterns import (
    find_keyword_credentials,
    find_private_keys,
    find_tokens,
    find_url_credentials,
    find_vendor_tokens,
)
from echod.memory.redact.spans import Redaction, Secret, build_text_view, replace_spans

with lazy_imports(__name__):
    from echod.memory import document as document_module

_SECRET_FINDERS = (
    find_private_keys,
    find_tokens,
    find_vendor_tokens,
    find_url_credentials,
    find_keyword_credentials,
    find_command_credentials,
    find_layout_secrets,
    find_named_secrets,
)
# In practice one pass finds everything. More are needed only where a redaction uncovers a neighbor. The bound keeps the
# work linear for a text that was made to uncover one secret in each pass.
_MAX_PASSES = 8

_EVIDENCE = lazy_pattern(
    r"^(?P<indent>[ \t>]{0,8})(?:[-*+][ \t]+)?\*{0,2}evidence\*{0,2}[ \t]*:.*(?:\n[ \t]+\S.*)*",
    re.IGNORECASE | re.MULTILINE,
)
_EMAIL_ADDRESS = lazy_pattern(
    r"(?<![A-Za-z0-9._%+-])(?!git@)[A-Za-z0-9._%+-]{1,64}@(?:[A-Za-z0-9-]{1,63}\.){1,8}"
    r"(?!(?:png|jpe?g|gif|svg|webp|ico|css|js|ts)\b)[A-Za-z]{2,24}(?![A-Za-z0-9-])"  # icon@2x.png
)
_ABOUT_EMAIL = lazy_pattern(
    r"\b(?:e-?mails?|mail(?:s|er|ers|box|boxes|ing|to)?|smtp|imap|pop3|inbox|recipients?|dkim|spf|dmarc|mime|newsletters?)\b",
    re.IGNORECASE,
)


def find_secrets(text: str) -> tuple[Secret, ...]:
    """Return every secret in a text in order of appearance, without overlaps. Takes time linear in the text."""
    view = build_text_view(text)
    secrets: list[Secret] = []
    for _ in range(_MAX_PASSES):
        new: list[Secret] = []
        for find in _SECRET_FINDERS:
            matches = find(view.text)
            if matches:
                new += matches
                view = view.masked(matches)
        if not new:
            break
        secrets += map(view.to_original, new)
        view = view.lines_containing(new)
    return tuple(sorted(secrets, key=lambda secret: secret.start))


def redact(text: str) -> Redaction:
    """Return the text with every secret replaced by `[REDACTED:kind]`; nothing else changes.

    A private key may span lines and is replaced as a whole. Every other secret is within one line, so headings, fields
    and fences stay where they are. Redacting twice gives the same result as redacting once.
    """
    return replace_spans(text, find_secrets(text))


def redact_bytes(data: bytes) -> bytes:
    """Return the bytes of a file without its secrets; bytes that are not UTF-8 are kept as they are."""
    return redact(data.decode("utf-8", "surrogateescape")).text.encode("utf-8", "surrogateescape")


def find_email_in_evidence(entry: str) -> tuple[Secret, ...]:
    """Return the e-mail addresses in an entry's evidence lines, or nothing where its learning is about e-mail.

    The text is a single entry, because the rest of a file must not decide what this learning is about.
    """
    if "@" not in entry:
        return ()
    evidence = list(_EVIDENCE.finditer(entry))
    if not any("@" in lines[0] for lines in evidence) or _ABOUT_EMAIL.search(_EVIDENCE.sub("", entry)):
        return ()
    return tuple(
        Secret("email", address.start(), address.end())
        for lines in evidence
        for address in _EMAIL_ADDRESS.finditer(entry, lines.start(), lines.end())
    )


def redact_entry(entry: str) -> Redaction:
    """Redact the text of one entry, including the e-mail addresses in its evidence."""
    secrets = find_secrets(entry)
    emails = [
        email
        for email in find_email_in_evidence(entry)
        if not any(secret.start < email.end and email.start < secret.end for secret in secrets)
    ]
    return replace_spans(entry, (*secrets, *emails))


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
    document = document_module.parse(data)
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
