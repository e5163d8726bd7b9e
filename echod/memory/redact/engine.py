"""Run all rules over a text, the most certain first, and replace the secrets they find.

The finds of one rule are masked for the next. The rules run until none finds anything more. To the rules a redacted
text looks like the last pass over the original, because redaction markers are masked too. Redacting it again therefore
changes nothing.

The text of a single entry also loses the e-mail addresses in its evidence, which name people and teach nothing. Where
the learning itself is about e-mail, the addresses are the knowledge and stay.
"""

from __future__ import annotations

import re

from echod.lazy import lazy_pattern
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
