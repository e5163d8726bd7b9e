"""Convert moments to local calendar days, by which everything is shown and decided that depends on a day.

A module of its own because it is at the bottom, below every package that needs a day.
"""

from __future__ import annotations

from datetime import date, datetime


def local_date(timestamp: float) -> date:
    """Return the local day of a moment (Unix seconds)."""
    return datetime.fromtimestamp(timestamp).astimezone().date()
