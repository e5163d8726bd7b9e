"""Find secrets in text and replace exactly them; all other text stays byte for byte.

Read in this order: `spans` (results, and the view of a text that the rules search), `patterns` (tokens, URLs, headers
and private keys, recognized by their form, and tokens of many more services), `commands` (command lines of well-known
programs), `layouts` (netrc, cookies, tables, and values beside a word such as "password"), `plausibility` (rates such
names, and values that look like secrets but are not) and `engine` (runs the rules). docs/security.md lists what is
found, what is not, and why.
"""

from __future__ import annotations

from echod.memory.redact.engine import (
    NO_REMOVED_SECRETS,
    RemovedSecrets,
    SecretLocation,
    find_email_in_evidence,
    find_removed_secrets,
    find_secrets,
    locate_secrets,
    redact,
    redact_bytes,
    redact_entry,
    strip_secrets,
)
from echod.memory.redact.spans import Redaction, Secret, replace_spans

__all__ = [
    "NO_REMOVED_SECRETS", "Redaction", "RemovedSecrets", "Secret", "SecretLocation", "find_email_in_evidence",
    "find_removed_secrets", "find_secrets", "locate_secrets", "redact", "redact_bytes", "redact_entry",
    "replace_spans", "strip_secrets",
]  # fmt: skip
