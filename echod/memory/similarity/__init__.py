"""Tells whether two learnings are one: the only place where that is decided.

Read in this order: `compare` (the rule and its numbers), `finder` (which of many it is), `contradiction` (what forbids
to take one for the other), `numbers` and `swaps` (numbers and replaced words), `opposites` (tables of words), `words`
(how texts become words).
"""

from __future__ import annotations

from echod.memory.similarity.compare import (
    DEFAULT_THRESHOLDS,
    DuplicateFinder,
    Learning,
    LearningFeatures,
    Similarity,
    SimilarityThresholds,
    bare_title,
    compare_learnings,
    features_of,
    files_in,
    learning_of,
)

__all__ = [
    "DEFAULT_THRESHOLDS",
    "DuplicateFinder",
    "Learning",
    "LearningFeatures",
    "Similarity",
    "SimilarityThresholds",
    "bare_title",
    "compare_learnings",
    "features_of",
    "files_in",
    "learning_of",
]
