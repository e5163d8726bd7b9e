"""Finds secrets in text and replaces exactly them; everything else stays byte for byte.

Read in this order: `values` (what is returned), `view` (what the rules look at), `shapes` (the table of tokens that
are known by their form), `private_keys`, `urls`, `named` (values that stand next to a word such as "password"),
`innocent` (what looks like a secret and is none), `engine` (how the rules are run), `evidence` (e-mail addresses).
docs/security.md says what is found, what is not, and why.
"""

from __future__ import annotations

from echod.memory.redact.engine import find_email_in_evidence, find_secrets, redact, redact_bytes, redact_entry
from echod.memory.redact.spans import Redaction, Secret

__all__ = ["Redaction", "Secret", "find_email_in_evidence", "find_secrets", "redact", "redact_bytes", "redact_entry"]
