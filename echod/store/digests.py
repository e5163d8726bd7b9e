"""What contents are named by."""

from __future__ import annotations

import hashlib


def digest(data: bytes) -> str:
    """SHA-256 of a file's content, in hex; the name of that content everywhere in the journal."""
    return hashlib.sha256(data).hexdigest()
