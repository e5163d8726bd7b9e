"""Decide whether two learnings are one. No other package decides that.

Read in this order: `compare` (the rule, its thresholds, and the search among many learnings), `contradiction` (what
makes two similar texts different: numbers, negations, opposites, replaced words), `words` (how texts become words and
numbers, the single letters and signs that differ, and the words that deny and take back).
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
from echod.memory.similarity.words import fold, jaccard, stem, tokenize

__all__ = [
    "DEFAULT_THRESHOLDS", "DuplicateFinder", "Learning", "LearningFeatures", "Similarity",
    "SimilarityThresholds", "bare_title", "compare_learnings", "features_of", "files_in", "fold", "jaccard",
    "learning_of", "stem", "tokenize",
]  # fmt: skip
