"""Define the policies' numbers with their defaults, and the rules and actions that move entries.

Settings override the numbers and check their ranges. `explain`, dry runs and archives show the rules. This module is
not in `policy`, so that settings can load it without the policies.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum

from echod.memory.model import Layer

MAX_FUTURE = timedelta(days=1)
"""A date further in the future is a mistake. A writer's time zone may be a day ahead."""


@dataclass(frozen=True, slots=True)
class PolicySettings:
    """The numbers of score, prune, promote and compress, with their defaults (docs/lifecycle.md explains each).

    Attributes:
        memory_line_limit: the line limit of a memory file; entries of longer files are pruned.
        knowledge_line_limit: the line limit of a knowledge file; longer files are compressed.
        importance_weight: weight of the layer in the score; with the next two it adds up to 1.
        relevance_weight: weight of the references.
        recency_weight: weight of the age.
        importance_etched: the importance of the layer, 0..1.
        importance_notes: the importance of the layer, 0..1.
        importance_inscribed: the importance of the layer, 0..1.
        importance_observations: the importance of the layer, 0..1.
        importance_traced: the importance of the layer, 0..1.
        relevance_days: days for which workflows and their references are counted, used where they are counted.
        inscribed_days: age at which the recency of an inscribed entry is 0, and days without a reference after which it
        expires.
        observations_days: the age of observations.
        traced_days: the age of traced entries.
        inscribed_score: an inscribed entry with a score below this may expire.
        traced_score: a traced entry with a score below this may expire.
        noise_share: share of the line limit that observations and traced entries may take together.
        traced_keep_share: share of the traced entries that stays under pressure, the best first.
        traced_compress_share: share of them that is compressed (rounded up, at least one); the rest is archived.
        condense_over_lines: inscribed entries with more lines may be condensed.
        daily_inscribed_share: share of the inscribed entries that may be archived per day to make room (at least one).
        promote_references: references at which an observation becomes inscribed.
        pin_days: days for which a restored entry is pinned, used where the pin is set.
    """

    memory_line_limit: int = 150
    knowledge_line_limit: int = 300
    importance_weight: float = 0.4
    relevance_weight: float = 0.3
    recency_weight: float = 0.3
    importance_etched: float = 1.0
    importance_notes: float = 0.9
    importance_inscribed: float = 0.7
    importance_observations: float = 0.5
    importance_traced: float = 0.3
    relevance_days: int = 90
    inscribed_days: int = 90
    observations_days: int = 60
    traced_days: int = 30
    inscribed_score: float = 0.3
    traced_score: float = 0.2
    noise_share: float = 0.2
    traced_keep_share: float = 0.35
    traced_compress_share: float = 0.3
    condense_over_lines: int = 15
    daily_inscribed_share: float = 0.2
    promote_references: int = 3
    pin_days: int = 30

    def importance(self, layer: Layer) -> float:
        """Return the importance of a layer, 0..1."""
        return {
            Layer.ETCHED: self.importance_etched,
            Layer.NOTES: self.importance_notes,
            Layer.INSCRIBED: self.importance_inscribed,
            Layer.OBSERVATIONS: self.importance_observations,
            Layer.TRACED: self.importance_traced,
        }[layer]

    def max_age_days(self, layer: Layer) -> int | None:
        """Return the days until an entry of this layer is old; None for the layers that do not age."""
        return {
            Layer.INSCRIBED: self.inscribed_days,
            Layer.OBSERVATIONS: self.observations_days,
            Layer.TRACED: self.traced_days,
        }.get(layer)


DEFAULT_POLICY = PolicySettings()


class PruneAction(StrEnum):
    """The actions on an entry."""

    KEEP = "keep"
    ARCHIVE = "archive"
    COMPRESS = "compress"
    CONDENSE = "condense"


class Rule(StrEnum):
    """The rules that move entries. docs/lifecycle.md describes each."""

    EXPIRED = "expired"
    SAME_TITLE = "same-title"
    LOWEST_TRACED = "lowest-traced"
    MIDDLE_TRACED = "middle-traced"
    NOISE_BUDGET = "noise-budget"
    LONG = "long"
    REMAINING_NOISE = "remaining-noise"
    LOWEST_INSCRIBED = "lowest-inscribed"
    PROMOTE = "promote"
    TOPIC = "topic"
    OLDEST_KNOWLEDGE = "oldest-knowledge"
    SUPERSEDED = "superseded"
    FORGOTTEN = "forgotten"
    RESTORED = "restored"
    RESET = "reset"
    UNDONE = "undone"
    REMOVED_EXTERNALLY = "removed-externally"
