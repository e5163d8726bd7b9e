"""The named moments of a commit, at which a test may kill it, look, or let somebody else write.

The production code walks through them with `untraced`, which does nothing.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Protocol


class Step(StrEnum):
    """In the order in which a commit passes them."""

    BEGIN = "begin"
    STAGED = "staged"
    IMAGES_KEPT = "images-kept"
    COMPARED = "compared"
    INTENDED = "intended"
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
    ABSORPTION_NOTED = "absorption-noted"
    APPLIED = "applied"
    SWEPT = "swept"
    REDOING = "redoing"
    CLOSING = "closing"
    FORGOTTEN = "forgotten"
    CLOSED = "closed"


class Tracer(Protocol):
    """Told about each step as it is passed."""

    def __call__(self, step: Step, /) -> None:
        """Passing `step` now."""


def untraced(step: Step) -> None:
    """Nobody is looking."""
