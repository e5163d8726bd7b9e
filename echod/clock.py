"""Convert moments to local calendar days, by which everything is shown and decided that depends on a day.

A module of its own because it is at the bottom, below every package that needs a day.
"""

from __future__ import annotations

from datetime import UTC, date, datetime

_MIN_TIMESTAMP = datetime(1900, 1, 2, tzinfo=UTC).timestamp()
_MAX_TIMESTAMP = datetime(9999, 12, 30, tzinfo=UTC).timestamp()


def local_datetime(timestamp: float) -> datetime:
    """Return a moment (Unix seconds) in the local zone.

    A moment that the calendar lacks is the nearest one that it has: a file may have any time, also one beyond 9999.
    """
    # In this order, a value that is not a number is the earliest moment.
    return datetime.fromtimestamp(min(max(_MIN_TIMESTAMP, timestamp), _MAX_TIMESTAMP)).astimezone()


def local_date(timestamp: float) -> date:
    """Return the local day of a moment (Unix seconds)."""
    return local_datetime(timestamp).date()
