"""Why an agent's word that its finding replaces an entry is left to a person."""

from __future__ import annotations

from enum import StrEnum


class Doubt(StrEnum):
    """Why nothing gave way to a finding that says what it replaces."""

    NONE = "none"
    SEVERAL = "several"
    NEWER = "newer"
    PROTECTED = "protected"
    PINNED = "pinned"
    STUCK = "stuck"
