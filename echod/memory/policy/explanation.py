"""Explaining one entry: its score, each rule that could touch it, and when that would happen first.

Rules of age have a first day; rules of pressure have a rank, because when the file is over its limit depends on what
agents write. Asking for another day is asking with another `today`.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from typing import NamedTuple

from echod.memory.consolidation.deduplicate import as_target
from echod.memory.model import Document, Layer
from echod.memory.policy.candidates import Leaving, age_of, expires_on, inscribed_queue, long_queue, noise_queue
from echod.memory.policy.promote import is_due
from echod.memory.policy.prune import PrunePlan, plan_prune
from echod.memory.policy.scoring import Facts, Standing, Terms, standings
from echod.memory.policy_model import Action, Policy, Rule


class RuleView(NamedTuple):
    """One rule as it concerns an entry.

    Attributes:
        name: the rule.
        applies: whether it moves the entry today.
        applies_on: the first day on which it could; None for a rule of pressure, and where it never will as things are.
        rank: for a rule of pressure, whose turn it is: 1 goes first.
        of: how many entries stand in that queue.
        text: the rule with the entry's numbers, for the person.
    """

    name: Rule
    applies: bool
    applies_on: date | None
    rank: int | None
    of: int | None
    text: str


class Explanation(NamedTuple):
    """Everything that decides what becomes of an entry.

    Attributes:
        protected: only a person may touch it; then no rule is listed.
        action: what prune would do with it today.
        verified: the day that its recency counts from.
        idle_days: days on which the project was alive since it was last verified, referenced or first seen.
        references: how often it was referenced.
    """

    id: str
    title: str
    layer: Layer | None
    protected: bool
    pinned_until: date | None
    score: float | None
    terms: Terms | None
    action: Action
    verified: date
    idle_days: int
    references: int
    rules: tuple[RuleView, ...]


def explain(
    role: str, document: Document, identity: str, facts: Facts, policy: Policy, today: date
) -> Explanation | None:
    """Explain the entry with this id; None if the file has no such entry. Arguments as in `plan_prune`."""
    found = standings(role, document, facts, policy, today)
    standing = next((s for s in found if s.id == identity), None)
    if standing is None:
        return None
    plan = plan_prune(role, document, facts, policy, today)
    mine = next(action for action in plan.actions if action.id == identity)
    return Explanation(
        id=standing.id,
        title=standing.entry.title,
        layer=standing.layer,
        protected=standing.protected,
        pinned_until=standing.pinned_until,
        score=standing.score,
        terms=standing.terms,
        action=mine.action,
        verified=standing.verified,
        idle_days=standing.idle_days,
        references=standing.history.references,
        rules=()
        if standing.protected
        else (*_rules(standing, found, plan, mine.rule, policy, today), _superseding(standing, found)),
    )


def _rules(
    standing: Standing, found: Sequence[Standing], plan: PrunePlan, applied: Rule | None, policy: Policy, today: date
) -> tuple[RuleView, ...]:
    views = [_expiry(standing, applied, policy, today)]
    noise = noise_queue(found, policy)
    remaining = [Leaving(leaving.standing, Rule.REMAINING_NOISE) for leaving in noise]
    over = f"the file has {plan.lines_before} lines, its limit is {policy.memory_line_limit}"
    for queue in (noise, long_queue(found, policy), remaining, inscribed_queue(found)):
        for rank, leaving in enumerate(queue, start=1):
            if leaving.standing.index == standing.index:
                text = f"number {rank} of {len(queue)} to go while the file is over its limit; {over}"
                views.append(RuleView(leaving.rule, leaving.rule is applied, None, rank, len(queue), text))
    if standing.layer is Layer.OBSERVATIONS:
        references = standing.history.references
        text = f"{references} of {policy.promote_references} references that make it inscribed"
        views.append(RuleView(Rule.PROMOTE, is_due(standing, policy), None, None, None, text))
    return tuple(views)


def _superseding(standing: Standing, found: Sequence[Standing]) -> RuleView:
    title = as_target(standing.entry.title)
    others = [s.entry.title for s in found if s.index != standing.index and as_target(s.entry.supersedes) == title]
    text = "goes when a finding says that it replaces this title"
    if standing.pinned_until is not None:
        text += ", once it is no longer pinned"
    if others:
        text += f"; {others[0]!r} says so, and you decide (echod review)"
    return RuleView(Rule.SUPERSEDED, applies=False, applies_on=None, rank=None, of=None, text=text)


def _expiry(standing: Standing, applied: Rule | None, policy: Policy, today: date) -> RuleView:
    age = age_of(standing.layer, policy)
    day = expires_on(standing, policy, today)
    if standing.pinned_until is not None and day is not None and day <= standing.pinned_until:
        day = date.fromordinal(standing.pinned_until.toordinal() + 1)
    text = f"{standing.idle_days} of {age.days if age else 0} days without a reference while the project was alive"
    if age is not None and age.below is not None:
        text += f"; a score below {age.below:g}; only while the file is over its limit"
    return RuleView(Rule.EXPIRED, applied is Rule.EXPIRED, day, None, None, text)
