"""Tells whether two learnings are one: the only place where that is decided.

Read in this order: `compare` (the rule and its numbers), `finder` (which of many it is), `contradiction` (what forbids
to take one for the other), `numbers` and `swaps` (numbers and replaced words), `opposites` (tables of words), `words`
(how texts become words).
"""

from __future__ import annotations

from echod.memory.similarity.compare import (
    DEFAULT_THRESHOLDS,
    Finder,
    Learning,
    Similarity,
    Sketch,
    Thresholds,
    bare_title,
    compare_sketches,
    files_in,
    learning_of,
    sketch,
)

__all__ = [
    "DEFAULT_THRESHOLDS",
    "Finder",
    "Learning",
    "Similarity",
    "Sketch",
    "Thresholds",
    "bare_title",
    "compare_sketches",
    "files_in",
    "learning_of",
    "sketch",
]
