"""A made memory of 2,000 lines keeps what was judged worth keeping, within lines and words."""

from __future__ import annotations

import pytest

from tests.bench.figures import Figures
from tests.bench.quality.file import reviewer_file
from tests.bench.quality.judged import LEARNINGS, OBSERVATIONS
from tests.bench.quality.score import split_units, weighted_recall
from tests.bench.topics import quality
from tests.bench.workspace import Workspace


@pytest.fixture(scope="module")
def figures() -> Figures:
    return quality.measure(Workspace.__new__(Workspace))


def test_everything_judged_is_whole_in_the_made_file() -> None:
    text = reviewer_file()

    assert text.count("\n") >= 2_000
    assert weighted_recall(split_units(text), [*LEARNINGS, *OBSERVATIONS]) == 1.0


def test_every_bar_of_quality_is_met(figures: Figures) -> None:
    assert [(row.what, row.value) for row in figures.rows if row.is_met is False] == []
