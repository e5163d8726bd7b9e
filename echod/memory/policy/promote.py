"""Promotion: an observation that was referenced often enough becomes inscribed.

The layer changes where it is written, nothing else. An entry that reads like an instruction to agents is left for a
person, and a pinned one alone.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from typing import NamedTuple

from echod.memory.edit import with_layer
from echod.memory.merge import reads_as_written
from echod.memory.model import Document, Layer
from echod.memory.policy.scoring import Facts, Standing, standings
from echod.memory.policy_model import Policy
from echod.memory.prompt_injection import speaks_to_agents


class Promoted(NamedTuple):
    """An observation that becomes inscribed."""

    id: str
    title: str
    references: int


class Held(NamedTuple):
    """An observation with enough references that is not promoted, and why, in a few words for the person."""

    id: str
    title: str
    reason: str


class Promotion(NamedTuple):
    """What promotion would do today: the new bytes of the memory file (None if nothing changes), and to whom."""

    role: str
    memory: bytes | None
    promoted: tuple[Promoted, ...]
    held: tuple[Held, ...]

    @property
    def summary(self) -> str:
        """The plan in one line."""
        held = f", {len(self.held)} left for a person" if self.held else ""
        return f"{len(self.promoted)} promoted{held}"


def plan_promotion(role: str, document: Document, facts: Facts, policy: Policy, today: date) -> Promotion:
    """Decide which observations become inscribed today. Arguments as in `plan_prune`."""
    due = [s for s in standings(role, document, facts, policy, today) if is_due(s, policy)]
    reasons = {s.index: speaks_to_agents(s.block.text) for s in due}
    chosen = {s.index: s for s in due if reasons[s.index] is None}
    after = replace(
        document,
        blocks=tuple(
            with_layer(block, Layer.INSCRIBED) if index in chosen else block
            for index, block in enumerate(document.blocks)
        ),
    )
    if not reads_as_written(after):
        reasons |= dict.fromkeys(chosen, "the file would no longer read the same")
        chosen = {}
    return Promotion(
        role,
        after.render() if chosen else None,
        tuple(Promoted(s.id, s.entry.title, s.history.references) for s in chosen.values()),
        tuple(Held(s.id, s.entry.title, reason) for s in due if (reason := reasons[s.index]) is not None),
    )


def is_due(standing: Standing, policy: Policy) -> bool:
    """Whether an entry is an observation with enough references, and not pinned."""
    return (
        standing.layer is Layer.OBSERVATIONS
        and standing.pinned_until is None
        and standing.history.references >= policy.promote_references
    )
