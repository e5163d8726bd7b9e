"""The names of the rules that move entries, and what they do with them. `explain`, dry runs and archives show these."""

from __future__ import annotations

from enum import StrEnum


class Action(StrEnum):
    """What becomes of an entry."""

    KEEP = "keep"
    ARCHIVE = "archive"
    COMPRESS = "compress"
    CONDENSE = "condense"


class Rule(StrEnum):
    """Why. docs/lifecycle.md tells each in words."""

    EXPIRED = "expired"
    SAME_TITLE = "same-title"
    LOWEST_TRACED = "lowest-traced"
    MIDDLE_TRACED = "middle-traced"
    NOISE_BUDGET = "noise-budget"
    LONG = "long"
    REMAINING_NOISE = "remaining-noise"
    LOWEST_INSCRIBED = "lowest-inscribed"
    PROMOTE = "promote"
    TOPIC = "topic"
    OLDEST_KNOWLEDGE = "oldest-knowledge"
    SUPERSEDED = "superseded"
    FORGOTTEN = "forgotten"
    RESTORED = "restored"
    RESET = "reset"
    UNDONE = "undone"
    LEFT = "left"
