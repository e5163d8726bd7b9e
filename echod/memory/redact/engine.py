"""Runs the rules over a text, the most certain first; what one rule found is a wall for the next.

The rules are run until none finds anything more. A text that was redacted looks to the rules like the last round's
view of the original (markers are walls too), so redacting it again changes nothing.

E-mail addresses in the evidence of an entry, which name people and teach nothing.

Where the learning itself is about e-mail the addresses are the knowledge and stay.
"""

from __future__ import annotations

import re

from echod.memory.redact.named import find_named_secrets
from echod.memory.redact.patterns import find_keyword_credentials, find_private_keys, find_tokens, find_url_credentials
from echod.memory.redact.spans import Redaction, Secret, build_text_view, replace_spans

_SECRET_FINDERS = (find_private_keys, find_tokens, find_url_credentials, find_keyword_credentials, find_named_secrets)

# One round finds all in practice; a few more only where a redaction uncovers a neighbour. The bound keeps the work
# linear for a text that was made to uncover one secret a round.
_MAX_PASSES = 8

_EVIDENCE = re.compile(
    r"^(?P<indent>[ \t>]{0,8})(?:[-*+][ \t]+)?\*{0,2}evidence\*{0,2}[ \t]*:.*(?:\n[ \t]+\S.*)*",
    re.IGNORECASE | re.MULTILINE,
)
_EMAIL_ADDRESS = re.compile(
    r"(?<![A-Za-z0-9._%+-])(?!git@)[A-Za-z0-9._%+-]{1,64}@(?:[A-Za-z0-9-]{1,63}\.){1,8}"
    r"(?!(?:png|jpe?g|gif|svg|webp|ico|css|js|ts)\b)[A-Za-z]{2,24}(?![A-Za-z0-9-])"  # icon@2x.png
)
_ABOUT_EMAIL = re.compile(
    r"\b(?:e-?mails?|mail(?:s|er|ers|box|boxes|ing|to)?|smtp|imap|pop3|inbox|recipients?|dkim|spf|dmarc|mime|newsletters?)\b",
    re.IGNORECASE,
)


def find_secrets(text: str) -> tuple[Secret, ...]:
    """Every secret in a text in the order of appearance, not overlapping. Time is linear in the text."""
    view = build_text_view(text)
    found: list[Secret] = []
    for _ in range(_MAX_PASSES):
        new: list[Secret] = []
        for find in _SECRET_FINDERS:
            secrets = find(view.text)
            if secrets:
                new += secrets
                view = view.masked(secrets)
        if not new:
            break
        found += map(view.to_original, new)
        view = view.lines_containing(new)
    return tuple(sorted(found, key=lambda secret: secret.start))


def redact(text: str) -> Redaction:
    """The text with every secret replaced by `[REDACTED:kind]`; nothing else is touched.

    A private key may span lines and is replaced as a whole; all other secrets stand in one line, so headings, fields
    and fences stay where they are. Redacting twice is redacting once.
    """
    return replace_spans(text, find_secrets(text))


def redact_bytes(data: bytes) -> bytes:
    """The same for a whole file; what is no UTF-8 in it is kept byte for byte."""
    return redact(data.decode("utf-8", "surrogateescape")).text.encode("utf-8", "surrogateescape")


def find_email_in_evidence(entry: str) -> tuple[Secret, ...]:
    """The e-mail addresses in the evidence lines of one entry, none where its learning is about e-mail.

    `entry` is the text of a single entry: what else stands in a file must not decide what its learning is about.
    """
    evidence = list(_EVIDENCE.finditer(entry))
    if not any("@" in lines[0] for lines in evidence) or _ABOUT_EMAIL.search(_EVIDENCE.sub("", entry)):
        return ()
    return tuple(
        Secret("email", address.start(), address.end())
        for lines in evidence
        for address in _EMAIL_ADDRESS.finditer(entry, lines.start(), lines.end())
    )


def redact_entry(entry: str) -> Redaction:
    """`redact` for the text of one entry, and the e-mail addresses in its evidence too."""
    secrets = find_secrets(entry)
    emails = [
        email
        for email in find_email_in_evidence(entry)
        if not any(secret.start < email.end and email.start < secret.end for secret in secrets)
    ]
    return replace_spans(entry, (*secrets, *emails))
