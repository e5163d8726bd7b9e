"""The first prune of a memory file: if it would take most of the file it waits for a day, for a person to look."""

from __future__ import annotations

HOLD_SECONDS = 86_400.0
"""How long the first prune of a memory file waits for a person if it takes more than half of the file."""


def takes_most(lines_before: int, lines_after: int) -> bool:
    """Whether a prune takes so much of a file that the first one waits for a person."""
    return 2 * lines_after < lines_before


def held_until(since: float, now: float) -> float | None:
    """Until when a first prune waits that was first held at `since` (Unix seconds); None: no longer at `now`.

    A clock that was set back must not hold it for longer than a day.
    """
    until = since + HOLD_SECONDS
    return until if since <= now < until else None
