"""How old a pack is, in whole days, and whether that is too old.

Two clocks count: when its text was last worked on (`last_updated`) and when it was put here (`installed_at`). A pack
is stale as soon as one of them is over the limit, unless a person has had it checked for something newer since.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime

_LONGEST = 64
_DATE_LENGTHS = (8, 10)  # 20261120, 2026-11-20, 2026-W47-5


@dataclass(frozen=True, slots=True)
class Ages:
    """Whole days since something happened; None where that is not known."""

    updated: int | None
    installed: int | None
    checked: int | None


def age_in_days(stamp: str | None, now: datetime) -> int | None:
    """Whole days from a date, or a moment in ISO 8601, until `now`; negative for the future, None for anything else.

    Args:
        stamp: a date alone, or with a time: with Z, an offset or neither (then local), with fractions of a second.
        now: an aware datetime; its zone is the local one.
    """
    text = (stamp or "").strip()
    if not text or len(text) > _LONGEST:
        return None
    try:
        if len(text) in _DATE_LENGTHS:
            return (now.date() - date.fromisoformat(text)).days
        moment = datetime.fromisoformat(text)
        return (now - (moment if moment.tzinfo else moment.replace(tzinfo=now.tzinfo))).days
    except (ValueError, OverflowError):
        return None


def is_stale(ages: Ages, days: int) -> bool | None:
    """Whether a pack is older than so many days; of exactly that age it is fresh. None: its age is not known."""
    if ages.checked is not None and ages.checked <= days:
        return False
    known = [age for age in (ages.updated, ages.installed) if age is not None]
    return any(age > days for age in known) if known else None
