"""Days as people count them: what is told and decided by the day goes by the local calendar."""

from __future__ import annotations

from datetime import date, datetime


def local_date(timestamp: float) -> date:
    """The local day of a moment (Unix seconds)."""
    return datetime.fromtimestamp(timestamp).astimezone().date()
