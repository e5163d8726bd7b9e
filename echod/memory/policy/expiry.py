"""Expiry: what nobody referenced for its layer's age.

Observations expire at any file size. Inscribed and traced entries expire only while the file is over its limit, and
only with a low score.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date, timedelta

from echod.memory.layers import Layer
from echod.memory.policy.model import Policy
from echod.memory.policy.score import Terms, recency, score_of
from echod.memory.policy.scoring import Standing


@dataclass(frozen=True, slots=True)
class Age:
    """When entries of a layer expire: after so many unreferenced days, and with a score below this (None: any)."""

    days: int
    below: float | None


def age_of(layer: Layer | None, policy: Policy) -> Age | None:
    """The layer's age; None where entries do not expire."""
    if layer is Layer.OBSERVATIONS:
        return Age(policy.observations_days, None)
    if layer is Layer.INSCRIBED:
        return Age(policy.inscribed_days, policy.inscribed_score)
    if layer is Layer.TRACED:
        return Age(policy.traced_days, policy.traced_score)
    return None


def expired(standing: Standing, policy: Policy) -> bool:
    """Whether the entry is old enough (and low enough) to go."""
    age = age_of(standing.layer, policy)
    if age is None or standing.score is None or standing.idle_days < age.days:
        return False
    return age.below is None or standing.score < age.below


def expired_at_any_size(standings: Iterable[Standing], policy: Policy) -> tuple[Standing, ...]:
    """The observations that go whatever the size of the file, the first to go first."""
    old = (s for s in standings if s.free and s.layer is Layer.OBSERVATIONS and expired(s, policy))
    return tuple(sorted(old, key=lambda s: s.order))


def expired_over_limit(standings: Iterable[Standing], policy: Policy) -> tuple[Standing, ...]:
    """The inscribed and traced entries that go while the file is over its limit, the first to go first."""
    old = (s for s in standings if s.free and s.layer is not Layer.OBSERVATIONS and expired(s, policy))
    return tuple(sorted(old, key=lambda s: s.order))


def expires_on(standing: Standing, policy: Policy, today: date) -> date | None:
    """The first day on which the entry is old and low enough; None if it never will be as things are.

    It reckons that the project is alive every day from tomorrow on, that nobody references the entry, and that the
    share of workflows that referenced it stays the same.
    """
    age = age_of(standing.layer, policy)
    if age is None or standing.layer is None or standing.terms is None:
        return None
    day = today + timedelta(days=max(0, age.days - standing.idle_days))
    if age.below is None:
        return day
    lowest = standing.verified + timedelta(days=policy.max_age(standing.layer) or 0)
    while not _low(standing, policy, day, age.below):
        if day >= lowest:
            return None
        day += timedelta(days=1)
    return day


def _low(standing: Standing, policy: Policy, day: date, below: float) -> bool:
    if standing.terms is None or standing.layer is None:
        return False
    then = recency(standing.layer, standing.verified, policy, day)
    return score_of(Terms(standing.terms.importance, standing.terms.relevance, then), policy) < below
