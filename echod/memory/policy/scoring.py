"""Compute the status of each entry today, whether a rule may touch it, and its place in the order of removal.

The score is 0.4 importance + 0.3 relevance + 0.3 recency, each 0..1. Relevance is the share of the workflows and
sessions since the entry exists that referenced it, 0 without any. Recency falls from 1 on the day of verification to 0
at the layer's age. Etched entries and notes do not age.

Unknown facts are missing or None, and every policy takes unknown as "not yet", never as "never".

Expiry removes entries without references for their layer's age. Observations expire at any file size. Inscribed and
traced entries expire only while the file is over its limit, and only with a low score.

Pressure removes what a future reader would miss least. `pressure` has its steps.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from fractions import Fraction
from types import MappingProxyType
from typing import NamedTuple

from echod.memory import markdown
from echod.memory.document import count_lines
from echod.memory.forms import find_recurrence
from echod.memory.identity import entry_ids
from echod.memory.model import DEFAULT_CONFIDENCE, Block, Document, Entry, Layer
from echod.memory.noise import NoiseItem, NoiseJudge, is_routine_summary
from echod.memory.policy_model import MAX_FUTURE, PolicySettings, PruneAction, Rule, ScoreTerms
from echod.memory.prompt_injection import find_injection

EARLIEST_DATE = date(2000, 1, 1)
"""No agent wrote anything earlier. An older date is a mistake and counts as missing."""

_SCORE_DIGITS = 9

NOISE_LAYERS = frozenset({Layer.OBSERVATIONS, Layer.TRACED})

_OPENING_MARKS = ("```", "~~~", "<")


@dataclass(frozen=True, slots=True)
class History:
    """The known history of one entry."""

    first_seen: date | None = None  # the day on which echod first saw it
    last_reference: date | None = None  # the day on which it was last referenced
    references: int = 0  # the number of references, one for each session or workflow where that is known
    workflows: int = 0  # the number of referencing workflows and sessions, of those that count for its relevance
    # The number of workflows and sessions since it was first seen; None: all of `Facts.workflows_seen`.
    workflows_seen: int | None = None


@dataclass(frozen=True, slots=True)
class Facts:
    """The known facts about a memory file's entries and its project."""

    # Entry id -> its history; a missing id was seen for the first time today.
    histories: Mapping[str, History] = field(default_factory=lambda: MappingProxyType({}))
    workflows_seen: int = 0  # workflows and sessions seen in the last `PolicySettings.relevance_days` days
    alive_days: frozenset[date] = frozenset()  # local days on which a workflow was seen or memory changed
    # Entry id -> the last day on which no rule touches it.
    pinned: Mapping[str, date] = field(default_factory=lambda: MappingProxyType({}))
    learnings_archived_today: int = 0  # learnings of this file that rule `lowest-learning` archived today
    # Entry id -> the roles in which the same lesson was found, its own if another entry of it has the lesson too.
    confirmations: Mapping[str, frozenset[str]] = field(default_factory=lambda: MappingProxyType({}))
    # Entries all of whose evidence is gone, as the last check found it.
    evidence_gone: frozenset[str] = frozenset()


_UNKNOWN_HISTORY = History()


@dataclass(frozen=True, slots=True)
class EntryStatus:
    """An entry with all values that the rules use."""

    index: int  # its index among the blocks of the file
    id: str
    block: Block
    entry: Entry
    terms: ScoreTerms | None  # None for an unknown layer; then the score is None too
    score: float | None
    verified: date
    idle_days: int  # days on which the project was alive since the entry was last verified, referenced or first seen
    history: History
    file_lines: int  # the lines that it takes in the file
    content_lines: int  # its lines without blank ones at its end
    pinned_until: date | None  # the last day on which no rule touches it
    evidence_gone: bool  # all files or lines that it cites were removed
    confirmations: int  # the number of roles in which the same lesson was found
    closes_open_block: bool  # the block above leaves a code block or comment open, and only this heading ends it

    @property
    def layer(self) -> Layer | None:
        """The layer; None for an unknown one."""
        return self.entry.layer

    @property
    def is_protected(self) -> bool:
        """Only the user may change or remove it, at any age."""
        return self.entry.protected

    @property
    def is_removable(self) -> bool:
        """A rule may touch it today."""
        return not self.is_protected and self.pinned_until is None and not self.closes_open_block

    @property
    def confidence(self) -> float:
        """The confidence, 0..1. Each role with the same lesson halves what is missing to 1."""
        written = DEFAULT_CONFIDENCE if self.entry.confidence is None else self.entry.confidence
        return 1 - (1 - written) / 2.0**self.confirmations

    @property
    def removal_order(self) -> tuple[float, bool, float, date, int]:
        """The sort key: lower score first, then gone evidence, lower confidence, older, higher in the file."""
        return self.score or 0.0, not self.evidence_gone, self.confidence, self.verified, self.index


def entry_statuses(
    role: str, document: Document, facts: Facts, policy: PolicySettings, today: date
) -> tuple[EntryStatus, ...]:
    """Return the status of every entry in file order. Opaque blocks have none."""
    alive_days = sorted(facts.alive_days)
    statuses = []
    previous_is_open = False
    for index, (block, entry_id) in enumerate(zip(document.blocks, entry_ids(role, document), strict=True)):
        if block.entry is not None and entry_id is not None:
            entry = block.entry
            history = facts.histories.get(entry_id, _UNKNOWN_HISTORY)
            verified = last_verified_on(entry, history, today)
            layer, seen = entry.layer, facts.workflows_seen
            terms = score_terms(layer, verified, history, seen, policy, today) if layer else None
            pinned_until = facts.pinned.get(entry_id)
            statuses.append(
                EntryStatus(
                    index=index,
                    id=entry_id,
                    block=block,
                    entry=entry,
                    terms=terms,
                    score=compute_score(terms, policy) if terms else None,
                    verified=verified,
                    idle_days=idle_days(idle_since(verified, history, today), alive_days, today),
                    history=history,
                    file_lines=count_lines(block.text),
                    content_lines=count_entry_lines(block.text),
                    pinned_until=pinned_until if pinned_until is not None and pinned_until >= today else None,
                    evidence_gone=entry_id in facts.evidence_gone,
                    confirmations=len(facts.confirmations.get(entry_id, ())),
                    closes_open_block=previous_is_open,
                )
            )
        previous_is_open = leaves_block_open(block.text)
    return tuple(statuses)


def leaves_block_open(text: str) -> bool:
    """Return whether a block ends inside a code block or comment."""
    return any(mark in text for mark in _OPENING_MARKS) and markdown.parse_structure(text).closing is not None


def score_terms(
    layer: Layer, verified: date, history: History, workflows_seen: int, policy: PolicySettings, today: date
) -> ScoreTerms:
    """Return the terms of an entry's score on the day `today`."""
    seen = workflows_seen if history.workflows_seen is None else history.workflows_seen
    relevance = history.workflows / seen if seen > 0 else 0.0
    return ScoreTerms(policy.importance(layer), _clamp(relevance), recency(layer, verified, policy, today))


def recency(layer: Layer, verified: date, policy: PolicySettings, today: date) -> float:
    """Return 1 on the day of verification, 0 from the layer's age on; always 1 for a layer that does not age."""
    age = policy.max_age_days(layer)
    if age is None:
        return 1.0
    days = max(0, (today - verified).days)
    return _clamp(1 - days / age) if age > 0 else float(days == 0)


def compute_score(terms: ScoreTerms, policy: PolicySettings) -> float:
    """Return the weighted sum, 0..1, rounded to nine digits, so that a score of exactly 0.3 is never below 0.3."""
    total = (
        policy.importance_weight * terms.importance
        + policy.relevance_weight * terms.relevance
        + policy.recency_weight * terms.recency
    )
    return round(_clamp(total), _SCORE_DIGITS)


def _clamp(number: float) -> float:
    return min(1.0, max(0.0, number))


def last_verified_on(entry: Entry, history: History, today: date) -> date:
    """Return the day of last verification.

    It is the last day of a recurrence, else the field, else the heading's date, else the first sighting by echod.
    """
    recurrence = next((find_recurrence(f.value) for f in entry.fields if f.name == "source"), None)
    for day in (recurrence and recurrence.last, entry.verified, entry.heading_date, history.first_seen):
        plausible_day = _plausible_date(day, today)
        if plausible_day is not None:
            return plausible_day
    return today


def _plausible_date(value: date | None, today: date) -> date | None:
    """Return the day, unless it is more than a day in the future or before there were agents."""
    return value if value is not None and EARLIEST_DATE <= value <= today + MAX_FUTURE else None


def idle_since(verified: date, history: History, today: date) -> date:
    """Return the day from which an entry counts as unreferenced.

    It is the latest of verification, last reference and first sighting. Events before echod watched are unknown, so an
    entry without a first sighting counts from today.
    """
    first_seen = _plausible_date(history.first_seen, today) or today
    return max(verified, first_seen, _plausible_date(history.last_reference, today) or first_seen)


def idle_days(since: date, alive_days: Sequence[date], today: date) -> int:
    """Return the days on which the project was alive after `since`, up to `today`. `alive_days` is sorted."""
    return max(0, bisect_right(alive_days, today) - bisect_right(alive_days, since))


def count_entry_lines(text: str) -> int:
    """Return the lines of an entry without blank ones at its end."""
    return count_lines(text.rstrip(" \t\r\n"))


def count_document_lines(document: Document) -> int:
    """Return the lines of a whole file."""
    texts = [text for text in (document.preamble, *(block.text for block in document.blocks)) if text]
    # A byte order mark before the first heading is text, but not a line.
    return sum(text.count("\n") for text in texts) + (bool(texts) and not texts[-1].endswith("\n"))


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


def find_recurring(role: str, document: Document, facts: Facts, policy: PolicySettings, today: date) -> tuple[str, ...]:
    """Return the ids of the observations that came up again often enough to become inscribed."""
    statuses = entry_statuses(role, document, facts, policy, today)
    return tuple(
        status.id
        for status in statuses
        if status.layer is Layer.OBSERVATIONS and is_promotable(status, policy) and is_recurring(status, policy)
    )


def is_recurring(status: EntryStatus, policy: PolicySettings) -> bool:
    """Return whether as many workflows reported the same observation, and a reader learns something from it."""
    item = NoiseItem(status.index, status.block, status.entry, status.verified)
    if item.recurrence.workflows < policy.promote_references or is_routine_summary(item):
        return False
    found = NoiseJudge([]).specificity(item)
    return bool(found.names) and not found.is_routine and not found.is_assignment


def is_promotable(status: EntryStatus, policy: PolicySettings) -> bool:
    """Return whether an observation was referenced, or came up again, often enough, and is not pinned."""
    if status.layer is not Layer.OBSERVATIONS or status.pinned_until is not None:
        return False
    return status.history.references >= policy.promote_references or is_recurring(status, policy)
