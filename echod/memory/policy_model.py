"""Every number that the policies use, with its default, range and description.

Settings override the numbers and check their ranges. `explain`, dry runs and archives show the rules. This module is
not in `policy`, so that settings can load it without the policies.
"""

from __future__ import annotations

from datetime import timedelta
from enum import StrEnum
from typing import Annotated, Final, NamedTuple

from echod.memory.model import Layer

MAX_FUTURE = timedelta(days=1)
"""A date further in the future is a mistake. A writer's time zone may be a day ahead."""


class Range(NamedTuple):
    """The values that a number may have. `above` excludes the minimum itself."""

    minimum: float
    maximum: float
    above: bool = False

    def contains(self, number: float) -> bool:
        """Return whether a number is in the range."""
        return self.minimum <= number <= self.maximum and not (self.above and number == self.minimum)


Fraction = Annotated[float, Range(0, 1)]
Days = Annotated[int, Range(1, 3_650)]

_DEFAULT_LINES: Final = 150
_SUM_TOLERANCE: Final = 1e-9


class ScoreTerms(NamedTuple):
    """The terms of a score, each 0..1."""

    importance: float
    relevance: float
    recency: float


class PruneExtent(NamedTuple):
    """How much a prune removes from a memory file. Removed entries are archived, whole."""

    lines_before: int
    lines_after: int
    entries_before: int
    entries_removed: int
    inscribed_removed: int

    @property
    def hold_reason(self) -> str | None:
        """Why the first prune of a file waits for the user, as a clause after "it"; None if it does not wait."""
        if 2 * self.lines_after < self.lines_before:
            return "would remove more than half of its lines"
        if 2 * self.entries_removed > self.entries_before:
            return "would remove more than half of its entries"
        if self.inscribed_removed:
            noun = "entry" if self.inscribed_removed == 1 else "entries"
            return f"would remove {self.inscribed_removed} inscribed {noun}"
        return None


class PolicySettings(NamedTuple):
    """The numbers of score, prune, promote and compress, and the command that proposes (docs/lifecycle.md).

    Each is declared once, with its default, its range and its description. `echod.settings` reads these declarations,
    except for the two line limits, which a project may raise and which are settings of their own.
    """

    memory_line_limit: int = _DEFAULT_LINES
    knowledge_line_limit: int = 300
    importance_weight: Annotated[
        Fraction, "Weight of the layer in the score of an entry. It and the next two add up to 1."
    ] = 0.4
    relevance_weight: Annotated[
        Fraction, "Weight of the references, that is of the share of recent workflows that referenced the entry."
    ] = 0.3
    recency_weight: Annotated[Fraction, "Weight of the recency, that is of how recently the entry was verified."] = 0.3
    importance_etched: Annotated[Fraction, "Importance of an etched entry, from 0 to 1."] = 1.0
    importance_notes: Annotated[Fraction, "Importance of a note."] = 0.9
    importance_inscribed: Annotated[Fraction, "Importance of an inscribed entry."] = 0.7
    importance_observations: Annotated[Fraction, "Importance of an observation."] = 0.5
    importance_traced: Annotated[Fraction, "Importance of a traced entry."] = 0.3
    relevance_days: Annotated[Days, "Days for which workflows and their references are counted."] = 90
    inscribed_days: Annotated[
        Days, "Days without a reference after which an inscribed entry is old, and age at which its recency is 0."
    ] = 90
    observations_days: Annotated[
        Days, "Days without a reference after which an observation is archived, and age at which its recency is 0."
    ] = 60
    traced_days: Annotated[
        Days, "Days without a reference after which a traced entry is old, and age at which its recency is 0."
    ] = 30
    inscribed_score: Annotated[
        Fraction, "Score below which an old inscribed entry expires, if its file is over the limit."
    ] = 0.3
    traced_score: Annotated[
        Fraction, "Score below which an old traced entry expires, if its file is over the limit."
    ] = 0.2
    memory_words: Annotated[
        int,
        Range(100, 100_000),
        "Words of a memory file up to which observations and traced entries may fill free lines. More in proportion "
        "where the limit of lines is raised.",
    ] = 2_000
    noise_share: Annotated[
        Fraction,
        "Share of the line limit that noise may take in any case, and that the best learnings keep.",
    ] = 0.2
    daily_learning_share: Annotated[
        Fraction, "Share of the learnings of a file, at least one, that may leave for space in one day."
    ] = 0.2
    promote_references: Annotated[
        int, Range(2, 1_000), "References at which an observation becomes an inscribed entry."
    ] = 3
    pin_days: Annotated[Days, "Days for which no rule removes an entry that the user restored."] = 30
    propose_command: Annotated[
        tuple[str, ...],
        "A command that proposes merged learnings and titles for review: a prompt on its input, one JSON object back. "
        "Empty: none.",
    ] = ()
    propose_seconds: Annotated[float, Range(0, 3_600, above=True), "Seconds that the command may take."] = 60

    def inconsistency(self) -> str | None:
        """Return why the numbers contradict each other; None if they do not."""
        if abs(self.importance_weight + self.relevance_weight + self.recency_weight - 1) > _SUM_TOLERANCE:
            return "importance_weight, relevance_weight and recency_weight must add up to 1"
        return None

    @property
    def word_limit(self) -> int:
        """The words up to which noise may fill free lines, for this limit of lines."""
        return self.memory_words * max(_DEFAULT_LINES, self.memory_line_limit) // _DEFAULT_LINES

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
    ROLL_UP = "roll-up"


class Rule(StrEnum):
    """The rules that move entries. docs/lifecycle.md describes each."""

    EXPIRED = "expired"
    EMPTY = "empty"
    LAYOUT = "layout"
    STATISTICS = "statistics"
    ROLLED_UP = "rolled-up"
    NOISE_BUDGET = "noise-budget"
    CONDENSED = "condensed"
    LOWEST_LEARNING = "lowest-learning"
    PROMOTE = "promote"
    TOPIC = "topic"
    OLDEST_KNOWLEDGE = "oldest-knowledge"
    SUPERSEDED = "superseded"
    FORGOTTEN = "forgotten"
    RESTORED = "restored"
    RESET = "reset"
    UNDONE = "undone"
    REMOVED_EXTERNALLY = "removed-externally"


SHORTENING_RULES = frozenset({Rule.LAYOUT, Rule.STATISTICS, Rule.ROLLED_UP, Rule.CONDENSED, Rule.LOWEST_LEARNING})
"""The rules that can shorten an entry and leave it in its file."""
