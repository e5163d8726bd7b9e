"""Plan the promotion of observations to inscribed entries: those often referenced, and specific ones that recur.

Only the layer changes, wherever it is written. An entry that reads like an instruction to agents is left to the user,
and a pinned entry is unchanged.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from typing import NamedTuple

from echod.memory.edit import with_layer
from echod.memory.merge import round_trips
from echod.memory.model import Document, Layer
from echod.memory.noise import NoiseItem, NoiseJudge, is_routine_summary
from echod.memory.policy.scoring import EntryStatus, Facts, entry_statuses
from echod.memory.policy_model import PolicySettings
from echod.memory.prompt_injection import find_injection


class PromotedEntry(NamedTuple):
    """An observation that becomes inscribed."""

    id: str
    title: str
    references: int


class BlockedPromotion(NamedTuple):
    """An observation with enough references that is not promoted; `reason` is a few words for the user."""

    id: str
    title: str
    reason: str


class PromotionPlan(NamedTuple):
    """The promotions of today, with the new bytes of the memory file (None if unchanged)."""

    role: str
    memory: bytes | None
    promoted: tuple[PromotedEntry, ...]
    blocked: tuple[BlockedPromotion, ...]

    @property
    def summary(self) -> str:
        """The plan in one line."""
        blocked = f", {len(self.blocked)} left for you" if self.blocked else ""
        return f"{len(self.promoted)} promoted{blocked}"


def plan_promotion(role: str, document: Document, facts: Facts, policy: PolicySettings, today: date) -> PromotionPlan:
    """Plan which observations become inscribed today. The arguments are those of `plan_prune`."""
    promotable = [s for s in entry_statuses(role, document, facts, policy, today) if is_promotable(s, policy)]
    reasons = {s.index: find_injection(s.block.text) for s in promotable}
    chosen = {s.index: s for s in promotable if reasons[s.index] is None}
    blocks = enumerate(document.blocks)
    new_blocks = tuple(with_layer(block, Layer.INSCRIBED) if index in chosen else block for index, block in blocks)
    after = replace(document, blocks=new_blocks)
    if not round_trips(after):
        reasons |= dict.fromkeys(chosen, "the file would no longer read the same")
        chosen = {}
    promoted = tuple(PromotedEntry(s.id, s.entry.title, s.history.references) for s in chosen.values())
    blocked = tuple(BlockedPromotion(s.id, s.entry.title, why) for s in promotable if (why := reasons[s.index]))
    return PromotionPlan(role, after.render() if chosen else None, promoted, blocked)


def is_promotable(status: EntryStatus, policy: PolicySettings) -> bool:
    """Return whether an observation was referenced, or came up again, often enough, and is not pinned."""
    if status.layer is not Layer.OBSERVATIONS or status.pinned_until is not None:
        return False
    return status.history.references >= policy.promote_references or is_recurring(status, policy)


def is_recurring(status: EntryStatus, policy: PolicySettings) -> bool:
    """Return whether as many workflows reported the same observation, and a reader learns something from it."""
    item = NoiseItem(status.index, status.block, status.entry, status.verified)
    if item.recurrence.workflows < policy.promote_references or is_routine_summary(item):
        return False
    found = NoiseJudge([]).specificity(item)
    return bool(found.names) and not found.is_routine and not found.is_assignment


def find_recurring(role: str, document: Document, facts: Facts, policy: PolicySettings, today: date) -> tuple[str, ...]:
    """Return the ids of the observations that came up again often enough to become inscribed."""
    statuses = entry_statuses(role, document, facts, policy, today)
    return tuple(
        status.id
        for status in statuses
        if status.layer is Layer.OBSERVATIONS and is_promotable(status, policy) and is_recurring(status, policy)
    )
