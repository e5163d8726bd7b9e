"""The named steps of a commit, at which a test may kill it, look, or let another program write.

A module of its own, because the daemon's progress tracer needs the steps without the engine. Production code that is
not traced uses `no_trace`, which does nothing.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Protocol


class CommitStep(StrEnum):
    """The steps in the order in which a commit passes them."""

    BEGIN = "begin"
    STAGED = "staged"
    BLOBS_STORED = "blobs-stored"
    COMPARED = "compared"
    INTENT_WRITTEN = "intent-written"
    ARCHIVED = "archived"
    LEASED = "leased"
    EXCHANGED = "exchanged"
    TOUCHED = "touched"
    RELEASED = "released"
    PUBLISHED = "published"
    CREATED = "created"
    LINKED = "linked"
    CLAIMED = "claimed"
    CLAIMS_SYNCED = "claims-synced"
    LATE_MERGE_RECORDED = "late-merge-recorded"
    APPLIED = "applied"
    SWEPT = "swept"
    REDOING = "redoing"
    CLOSING = "closing"
    DISPLACED_REMOVED = "displaced-removed"
    CLOSED = "closed"


class Tracer(Protocol):
    """Called with each step as it is passed."""

    def __call__(self, step: CommitStep, /) -> None:
        """Handle `step`, which is being passed now."""


def no_trace(step: CommitStep) -> None:
    """Do nothing."""
