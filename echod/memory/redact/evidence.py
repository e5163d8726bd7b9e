"""E-mail addresses in the evidence of an entry, which name people and teach nothing.

Where the learning itself is about e-mail the addresses are the knowledge and stay.
"""

from __future__ import annotations

import re

from echod.memory.redact.engine import find_secrets
from echod.memory.redact.values import Redaction, Secret, replace

_EVIDENCE = re.compile(
    r"^(?P<indent>[ \t>]{0,8})(?:[-*+][ \t]+)?\*{0,2}evidence\*{0,2}[ \t]*:.*(?:\n[ \t]+\S.*)*",
    re.IGNORECASE | re.MULTILINE,
)
_ADDRESS = re.compile(
    r"(?<![A-Za-z0-9._%+-])(?!git@)[A-Za-z0-9._%+-]{1,64}@(?:[A-Za-z0-9-]{1,63}\.){1,8}"
    r"(?!(?:png|jpe?g|gif|svg|webp|ico|css|js|ts)\b)[A-Za-z]{2,24}(?![A-Za-z0-9-])"  # icon@2x.png
)
_ABOUT_EMAIL = re.compile(
    r"\b(?:e-?mails?|mail(?:s|er|ers|box|boxes|ing|to)?|smtp|imap|pop3|inbox|recipients?|dkim|spf|dmarc|mime|newsletters?)\b",
    re.IGNORECASE,
)


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
        for address in _ADDRESS.finditer(entry, lines.start(), lines.end())
    )


def redact_entry(entry: str) -> Redaction:
    """`redact` for the text of one entry, and the e-mail addresses in its evidence too."""
    secrets = find_secrets(entry)
    emails = [
        email
        for email in find_email_in_evidence(entry)
        if not any(secret.start < email.end and email.start < secret.end for secret in secrets)
    ]
    return replace(entry, (*secrets, *emails))
