"""How much a prune may remove before the first one waits for the user."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from echod.memory.policy_model import PruneExtent


@pytest.mark.parametrize(
    ("extent", "reason"),
    [
        (PruneExtent(200, 100, 20, 10, 0), None),
        (PruneExtent(200, 99, 20, 10, 0), "would remove more than half of its lines"),
        (PruneExtent(200, 150, 20, 11, 0), "would remove more than half of its entries"),
        (PruneExtent(200, 190, 20, 1, 1), "would remove 1 inscribed entry"),
        (PruneExtent(200, 190, 20, 2, 2), "would remove 2 inscribed entries"),
        (PruneExtent(0, 0, 0, 0, 0), None),
        (PruneExtent(10, 0, 1, 1, 1), "would remove more than half of its lines"),
    ],
)
def test_the_reason_names_what_would_be_removed(extent: PruneExtent, reason: str | None) -> None:
    assert extent.hold_reason == reason


@given(st.builds(PruneExtent, *(st.integers(0, 50) for _ in range(5))))
def test_nothing_is_held_that_leaves_half_of_the_file_and_all_inscribed_entries(extent: PruneExtent) -> None:
    keeps_half = 2 * extent.lines_after >= extent.lines_before
    keeps_entries = 2 * extent.entries_removed <= extent.entries_before

    assert (extent.hold_reason is None) is (keeps_half and keeps_entries and not extent.inscribed_removed)
