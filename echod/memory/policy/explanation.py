"""Explain one entry: its score, each rule that could touch it, and the first day on which it would.

Rules of age have a first day. Rules of pressure have none, because the day on which the file is over its limit depends
on the agents' writing. Those that remove by rank have one. For another day, pass another `today`.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from typing import NamedTuple

from echod.memory.consolidation.deduplicate import supersedes_key
from echod.memory.model import DEFAULT_CONFIDENCE, Document, Layer
from echod.memory.policy.draft import PruneDraft
from echod.memory.policy.pressure import Rankings, rank_entries
from echod.memory.policy.prune import EntryAction, PrunePlan, plan_prune
from echod.memory.policy.scoring import (
    NOISE_LAYERS,
    EntryStatus,
    Facts,
    entry_statuses,
    expires_on,
    expiry_threshold,
    is_promotable,
    is_recurring,
    noise_budget,
)
from echod.memory.policy_model import PolicySettings, PruneAction, Rule, ScoreTerms
from echod.memory.text import pluralize

_PRESSURE_TEXTS = {
    Rule.EMPTY: "leaves if it has no content",
    Rule.LAYOUT: "loses separators and needless blank lines, and no word",
    Rule.STATISTICS: "loses sections and tables of figures",
    Rule.ROLLED_UP: "is counted with similar ones, and the most specific text stays",
    Rule.CONDENSED: "keeps one line for each learning, whole",
}


class RuleOutcome(NamedTuple):
    """One rule and its effect on an entry."""

    name: Rule
    applies: bool  # it moves the entry today
    # The first day on which it could; None for a rule of pressure, and where it never will under present conditions.
    applies_on: date | None
    rank: int | None  # for a rule of pressure, the position in its queue, from 1
    queue_length: int | None  # the number of entries in that queue
    text: str  # the rule with the entry's numbers, for the user


class Explanation(NamedTuple):
    """Everything that decides about an entry."""

    id: str
    title: str
    layer: Layer | None
    is_protected: bool  # only the user may touch it; then no rule is listed
    pinned_until: date | None
    score: float | None
    terms: ScoreTerms | None
    action: PruneAction  # the action of prune today
    verified: date  # the day from which its recency counts
    idle_days: int  # days on which the project was alive since it was last verified, referenced or first seen
    references: int
    rules: tuple[RuleOutcome, ...]
    confirmed_by: tuple[str, ...] = ()  # the roles in which the same lesson was learned, possibly its own again
    confidence: float = DEFAULT_CONFIDENCE  # raised by each of those roles
    verdict: str = ""  # what happens to the entry and why, in one or two sentences


def build_explanation(
    role: str, document: Document, entry_id: str, facts: Facts, policy: PolicySettings, today: date
) -> Explanation | None:
    """Explain the entry with this id; None if the file has no such entry. The arguments are those of `plan_prune`."""
    statuses = entry_statuses(role, document, facts, policy, today)
    status = next((s for s in statuses if s.id == entry_id), None)
    if status is None:
        return None
    plan = plan_prune(role, document, facts, policy, today)
    planned = next(action for action in plan.actions if action.id == entry_id)
    rankings = rank_entries(PruneDraft(document, statuses, policy), facts, today)
    rules = () if status.is_protected else _rule_outcomes(status, statuses, plan, planned, rankings, policy, today)
    return Explanation(
        id=status.id,
        title=status.entry.title,
        layer=status.layer,
        is_protected=status.is_protected,
        pinned_until=status.pinned_until,
        score=status.score,
        terms=status.terms,
        action=planned.action,
        verified=status.verified,
        idle_days=status.idle_days,
        references=status.history.references,
        rules=rules,
        confirmed_by=tuple(sorted(facts.confirmations.get(status.id, ()))),
        confidence=status.confidence,
        verdict=_verdict(status, plan, planned, rules, policy, today),
    )


def _verdict(
    status: EntryStatus,
    plan: PrunePlan,
    planned: EntryAction,
    rules: Sequence[RuleOutcome],
    policy: PolicySettings,
    today: date,
) -> str:
    """Return what happens to the entry and why, for the user."""
    if status.is_protected:
        kind = f"it is {status.layer.value}" if status.layer else "its layer is unknown"
        return f"Stays: {kind}, so only you change it."
    if planned.action is not PruneAction.KEEP:
        return _removal_verdict(status, plan, planned, rules, policy)
    if status.pinned_until is not None:
        return f"Stays: it is pinned until {status.pinned_until}."
    over = plan.lines_before - policy.memory_line_limit
    ranked = next((rule for rule in rules if rule.rank is not None), None)
    if over > 0:
        place = f", and it is number {ranked.rank} of {ranked.queue_length} in line" if ranked else ""
        return f"Stays: the next prune reaches the limit without it. The file is {pluralize(over, 'line')} over{place}."
    text = f"Stays: the file is within its limit ({plan.lines_before} of {policy.memory_line_limit} lines)."
    day = next((rule.applies_on for rule in rules if rule.name is Rule.EXPIRED), None)
    threshold = expiry_threshold(status.layer, policy)
    if day is None or threshold is None or day <= today:
        return text
    condition = (
        "unless it is referenced or verified" if threshold.score_below is None else "if the file is over its limit"
    )
    return f"{text} Would be archived on {day}, {condition}."


def _removal_verdict(
    status: EntryStatus, plan: PrunePlan, planned: EntryAction, rules: Sequence[RuleOutcome], policy: PolicySettings
) -> str:
    over = plan.lines_before - policy.memory_line_limit
    pressure = f"the file is {pluralize(over, 'line')} over its limit" if over > 0 else "its kind takes too much room"
    ranked = next((rule for rule in rules if rule.rank is not None and rule.applies), None)
    if planned.action in (PruneAction.CONDENSE, PruneAction.ROLL_UP):
        verb = "counted with a similar entry" if planned.action is PruneAction.ROLL_UP else "shortened"
        return f"Would be {verb} by the next prune because {pressure}. The original text is archived."
    verb = "moved to the knowledge file" if planned.action is PruneAction.COMPRESS else "archived"
    if planned.rule is Rule.EXPIRED:
        reason = f"it was not referenced on {pluralize(status.idle_days, 'day')} of work in the project"
        reason += f", and {pressure}" if over > 0 else ""
    elif planned.rule is Rule.EMPTY:
        reason = "it has no content"
    elif ranked is not None:
        kind = "observations and traced entries" if status.layer in NOISE_LAYERS else "learnings"
        order = "the least specific first" if status.layer in NOISE_LAYERS else "the least valuable first"
        reason = f"{pressure}, and it is number {ranked.rank} of {ranked.queue_length} {kind} to leave, {order}"
    else:
        reason = pressure
    return f"Would be {verb} by the next prune because {reason}."


def _rule_outcomes(
    status: EntryStatus,
    statuses: Sequence[EntryStatus],
    plan: PrunePlan,
    planned: EntryAction,
    rankings: Rankings,
    policy: PolicySettings,
    today: date,
) -> tuple[RuleOutcome, ...]:
    outcomes = [_expiry_outcome(status, planned.rule, policy, today)]
    limit_text = f"only while the file is over its limit; it has {plan.lines_before} lines, its limit is "
    limit_text += str(policy.memory_line_limit)
    outcomes += [
        RuleOutcome(rule, rule in planned.rules, None, None, None, f"{_PRESSURE_TEXTS[rule]}; {limit_text}")
        for rule in _pressure_rules(status.layer)
    ]
    outcomes += _rank_outcome(status, rankings, planned, policy)
    if status.layer is Layer.OBSERVATIONS:
        references = status.history.references
        text = f"{references} of {policy.promote_references} references that make it inscribed"
        if is_recurring(status, policy):
            text += f"; it came up again in {policy.promote_references} workflows or more, which does too"
        outcomes.append(RuleOutcome(Rule.PROMOTE, is_promotable(status, policy), None, None, None, text))
    return (*outcomes, _superseded_outcome(status, statuses))


def _pressure_rules(layer: Layer | None) -> tuple[Rule, ...]:
    """Return the rules of pressure for a layer that have no order of their own."""
    common = (Rule.EMPTY, Rule.LAYOUT)
    return (*common, Rule.ROLLED_UP) if layer in NOISE_LAYERS else (*common, Rule.STATISTICS, Rule.CONDENSED)


def _rank_outcome(
    status: EntryStatus, rankings: Rankings, planned: EntryAction, policy: PolicySettings
) -> list[RuleOutcome]:
    """Return the rule that removes by rank, with the position of the entry among those of its kind."""
    noise = status.layer in NOISE_LAYERS
    rule = Rule.NOISE_BUDGET if noise else Rule.LOWEST_LEARNING
    queue = rankings.noise if noise else rankings.learnings
    rank = queue.index(status.id) + 1 if status.id in queue else None
    text = (
        f"the least specific first, while such entries take more than the room that the others leave "
        f"({noise_budget(policy)} lines at least)"
        if noise
        else f"the least valuable learnings first, at most {policy.daily_learning_share:.0%} of the file's a day"
    )
    if rank is not None:
        text = f"number {rank} of {len(queue)}: {text}"
    if status.evidence_gone:
        text += "; its evidence is gone, so it goes before others of the same value"
    if planned.learnings:
        text += f"; today {pluralize(len(planned.learnings), 'learning')} of this entry"
    return [RuleOutcome(rule, rule in planned.rules, None, rank, len(queue) if rank else None, text)]


def _superseded_outcome(status: EntryStatus, statuses: Sequence[EntryStatus]) -> RuleOutcome:
    title = supersedes_key(status.entry.title)
    others = (s.entry for s in statuses if s.index != status.index)
    superseding_titles = [entry.title for entry in others if supersedes_key(entry.supersedes) == title]
    text = "is archived when a finding replaces this title"
    if status.pinned_until is not None:
        text += ", once it is no longer pinned"
    if superseding_titles:
        text += f"; {superseding_titles[0]!r} claims to, and you decide (echod review)"
    return RuleOutcome(Rule.SUPERSEDED, applies=False, applies_on=None, rank=None, queue_length=None, text=text)


def _expiry_outcome(status: EntryStatus, applied: Rule | None, policy: PolicySettings, today: date) -> RuleOutcome:
    threshold = expiry_threshold(status.layer, policy)
    day = expires_on(status, policy, today)
    if status.pinned_until is not None and day is not None and day <= status.pinned_until:
        day = date.fromordinal(status.pinned_until.toordinal() + 1)
    limit = threshold.days if threshold else 0
    text = f"{status.idle_days} of {limit} days without a reference while the project was alive"
    if threshold is not None and threshold.score_below is not None:
        text += f"; a score below {threshold.score_below:g}; only while the file is over its limit"
    return RuleOutcome(Rule.EXPIRED, applied is Rule.EXPIRED, day, None, None, text)
