"""The score of an entry: 0.4 importance + 0.3 relevance + 0.3 recency, each 0..1; and the days it counts from.

Relevance is the share of the recent workflows that referenced the entry, 0 where none was seen. Recency falls from 1
on the day of verification to 0 at the layer's age; etched and notes do not age.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta

from echod.memory.layers import Layer
from echod.memory.model import Entry
from echod.memory.policy.facts import History
from echod.memory.policy.model import Policy

EARLIEST = date(2000, 1, 1)
"""No agent wrote anything before; an older date is an accident and counts as missing."""

_FUTURE = timedelta(days=1)  # a writer's time zone may be a day ahead of ours
_DIGITS = 9


@dataclass(frozen=True, slots=True)
class Terms:
    """What a score is made of, each 0..1."""

    importance: float
    relevance: float
    recency: float


def terms_of(layer: Layer, verified: date, history: History, workflows_seen: int, policy: Policy, today: date) -> Terms:
    """The terms of an entry's score on the day `today`."""
    relevance = history.workflows / workflows_seen if workflows_seen > 0 else 0.0
    return Terms(policy.importance(layer), _within(relevance), recency(layer, verified, policy, today))


def recency(layer: Layer, verified: date, policy: Policy, today: date) -> float:
    """1 on the day of verification, 0 from the layer's age on; always 1 for a layer that does not age."""
    age = policy.max_age(layer)
    if age is None:
        return 1.0
    days = max(0, (today - verified).days)
    return _within(1 - days / age) if age > 0 else float(days == 0)


def score_of(terms: Terms, policy: Policy) -> float:
    """The weighted sum, 0..1. Nine digits, so that what is 0.3 by hand is never below 0.3 here."""
    total = (
        policy.importance_weight * terms.importance
        + policy.relevance_weight * terms.relevance
        + policy.recency_weight * terms.recency
    )
    return round(_within(total), _DIGITS)


def plausible(day: date | None, today: date) -> date | None:
    """The day, unless it is more than a day in the future or before there were agents."""
    return day if day is not None and EARLIEST <= day <= today + _FUTURE else None


def verified_on(entry: Entry, history: History, today: date) -> date:
    """When the entry was last verified: what it says, else its heading's date, else when echod first saw it."""
    for day in (entry.verified, entry.heading_date, history.first_seen):
        known = plausible(day, today)
        if known is not None:
            return known
    return today


def idle_since(verified: date, history: History, today: date) -> date:
    """The day from which an entry counts as unreferenced.

    It is the latest of verification, last reference and first sight. What happened before echod watched is unknown,
    so an entry without a known first sight counts from today.
    """
    first_seen = plausible(history.first_seen, today) or today
    return max(verified, first_seen, plausible(history.last_reference, today) or first_seen)


def idle_days(since: date, alive_days: Sequence[date], today: date) -> int:
    """Days on which the project was alive after `since`, up to and including `today`. `alive_days` is sorted."""
    return max(0, bisect_right(alive_days, today) - bisect_right(alive_days, since))


def _within(number: float) -> float:
    return min(1.0, max(0.0, number))
