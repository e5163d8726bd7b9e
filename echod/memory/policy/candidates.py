"""Select the entries that expire, and give each entry and learning its place in the order of removal.

Expiry removes entries without references for their layer's age. Observations expire at any file size. Inscribed and
traced entries expire only while the file is over its limit, and only with a low score.

Pressure removes what a future reader would miss least. `pressure` has its steps.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from datetime import date, timedelta
from fractions import Fraction
from typing import NamedTuple

from echod.memory.model import Layer
from echod.memory.policy.scoring import EntryStatus, ScoreTerms, compute_score, recency
from echod.memory.policy_model import PolicySettings, PruneAction, Rule
from echod.memory.prompt_injection import find_injection


class PruneCandidate(NamedTuple):
    """A candidate for removal: the entry, the rule that selected it, and the action."""

    status: EntryStatus
    rule: Rule
    action: PruneAction = PruneAction.ARCHIVE


class ExpiryThreshold(NamedTuple):
    """When entries of a layer expire: after this number of idle days, with a score below this (None: any)."""

    days: int
    score_below: float | None


def expiry_threshold(layer: Layer | None, policy: PolicySettings) -> ExpiryThreshold | None:
    """Return the threshold of a layer; None where entries do not expire."""
    scores = {Layer.OBSERVATIONS: None, Layer.INSCRIBED: policy.inscribed_score, Layer.TRACED: policy.traced_score}
    days = policy.max_age_days(layer) if layer else None
    return ExpiryThreshold(days, scores[layer]) if layer and days is not None else None


def expires_on(status: EntryStatus, policy: PolicySettings, today: date) -> date | None:
    """Return the first day on which the entry is old and low enough; None if it never will be under present conditions.

    This assumes that the project is alive every day from tomorrow on, that nothing references the entry, and that the
    share of workflows that referenced it stays the same.
    """
    threshold = expiry_threshold(status.layer, policy)
    if threshold is None or status.layer is None or status.terms is None:
        return None
    day = today + timedelta(days=max(0, threshold.days - status.idle_days))
    if threshold.score_below is None:
        return day
    zero_recency_day = status.verified + timedelta(days=policy.max_age_days(status.layer) or 0)
    while not _scores_below(status, policy, day, threshold.score_below):
        if day >= zero_recency_day:
            return None
        day += timedelta(days=1)
    return day


def _scores_below(status: EntryStatus, policy: PolicySettings, day: date, threshold: float) -> bool:
    if status.terms is None or status.layer is None:
        return False
    later_recency = recency(status.layer, status.verified, policy, day)
    return compute_score(ScoreTerms(status.terms.importance, status.terms.relevance, later_recency), policy) < threshold


def expired_at_any_size(statuses: Iterable[EntryStatus], policy: PolicySettings) -> tuple[EntryStatus, ...]:
    """Return the observations that expire regardless of the size of the file, in order of removal."""
    return _expired((s for s in statuses if s.layer is Layer.OBSERVATIONS), policy)


def expired_over_limit(statuses: Iterable[EntryStatus], policy: PolicySettings) -> tuple[EntryStatus, ...]:
    """Return the inscribed and traced entries that expire while the file is over its limit, in order of removal."""
    return _expired((s for s in statuses if s.layer is not Layer.OBSERVATIONS), policy)


def _expired(statuses: Iterable[EntryStatus], policy: PolicySettings) -> tuple[EntryStatus, ...]:
    expired = (s for s in statuses if s.is_removable and _is_expired(s, policy))
    return tuple(sorted(expired, key=lambda s: s.removal_order))


def _is_expired(status: EntryStatus, policy: PolicySettings) -> bool:
    """Return whether the entry is old enough (and low enough) to expire."""
    threshold = expiry_threshold(status.layer, policy)
    if threshold is None or status.score is None or status.idle_days < threshold.days:
        return False
    return threshold.score_below is None or status.score < threshold.score_below


def noise_budget(policy: PolicySettings) -> int:
    """Return the lines that observations and traced entries may always take together."""
    return math.floor(exact_fraction(policy.noise_share) * policy.memory_line_limit)


def exact_fraction(number: float) -> Fraction:
    """Return the number as it is written, so that 0.35 of 20 is 7 and 0.3 of 10 is 3."""
    return Fraction(repr(float(number)))


def allowed_in_knowledge(status: EntryStatus) -> bool:
    """Return whether an entry's points may go to the knowledge file: not if it reads like an instruction to agents.

    There it would be among learnings, with a higher standing than it had.
    """
    return find_injection(status.block.text) is None
