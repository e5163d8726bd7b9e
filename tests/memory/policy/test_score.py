"""The score and the days that it counts from."""

from __future__ import annotations

from datetime import date

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from echod.memory.model import Layer
from echod.memory.policy import Facts, History
from echod.memory.policy.scoring import (
    EARLIEST_DATE,
    compute_score,
    entry_statuses,
    idle_days,
    idle_since,
    last_verified_on,
    score_terms,
)
from echod.memory.policy_model import PolicySettings, ScoreTerms
from tests.memory.policy.samples import ROLE, TODAY, days_ago, entry, entry_ids_by_title, every_day, memory_document

POLICY = PolicySettings()
UNIT = st.floats(0, 1)


@pytest.mark.parametrize(
    ("layer", "age", "workflows", "seen", "score"),
    [
        (Layer.ETCHED, 1000, 0, 10, 0.4 * 1.0 + 0.3 * 0.0 + 0.3 * 1.0),
        (Layer.NOTES, 1000, 0, 10, 0.4 * 0.9 + 0.3 * 0.0 + 0.3 * 1.0),
        (Layer.INSCRIBED, 0, 0, 0, 0.4 * 0.7 + 0.3 * 0.0 + 0.3 * 1.0),
        (Layer.INSCRIBED, 45, 5, 10, 0.4 * 0.7 + 0.3 * 0.5 + 0.3 * 0.5),
        (Layer.OBSERVATIONS, 15, 10, 10, 0.4 * 0.5 + 0.3 * 1.0 + 0.3 * 0.75),
        (Layer.TRACED, 31, 0, 10, 0.4 * 0.3),
    ],
)
def test_score_is_the_weighted_sum_of_its_terms(
    layer: Layer, age: int, workflows: int, seen: int, score: float
) -> None:
    terms = score_terms(layer, days_ago(age), History(workflows=workflows), seen, POLICY, TODAY)

    assert compute_score(terms, POLICY) == pytest.approx(score, abs=1e-9)


def test_a_score_of_exactly_three_tenths_is_not_below_three_tenths() -> None:
    terms = score_terms(Layer.INSCRIBED, days_ago(84), History(), 0, POLICY, TODAY)

    assert compute_score(terms, POLICY) == 0.3


@settings(max_examples=100, deadline=None)
@given(UNIT, UNIT, UNIT, UNIT)
def test_score_is_within_bounds_and_monotone_in_each_term(one: float, two: float, three: float, more: float) -> None:
    score = compute_score(ScoreTerms(one, two, three), POLICY)

    assert 0 <= score <= 1
    assert compute_score(ScoreTerms(max(one, more), two, three), POLICY) >= score
    assert compute_score(ScoreTerms(one, max(two, more), three), POLICY) >= score
    assert compute_score(ScoreTerms(one, two, max(three, more)), POLICY) >= score


@settings(max_examples=100, deadline=None)
@given(
    st.sampled_from(list(Layer)), st.dates(), st.dates(date(1990, 1, 1)), st.integers(0, 10**6), st.integers(0, 10**6)
)
def test_every_term_is_within_bounds_for_any_dates_and_counts(
    layer: Layer, verified: date, today: date, workflows: int, seen: int
) -> None:
    terms = score_terms(layer, verified, History(workflows=workflows), seen, POLICY, today)

    assert all(0 <= term <= 1 for term in (terms.importance, terms.relevance, terms.recency))


def test_relevance_is_zero_without_workflows() -> None:
    assert score_terms(Layer.TRACED, TODAY, History(workflows=3), 0, POLICY, TODAY).relevance == 0


@pytest.mark.parametrize(
    ("verified", "heading", "first_seen", "counts"),
    [
        ("2026-11-01", "2026-10-01", days_ago(5), date(2026, 11, 1)),
        ("2027-11-01", "2026-10-01", days_ago(5), date(2026, 10, 1)),
        ("2026-11-21", "2026-10-01", days_ago(5), date(2026, 11, 21)),
        ("1970-01-01", "2026-10-01", days_ago(5), date(2026, 10, 1)),
        ("0001-01-01", "9999-12-31", days_ago(5), days_ago(5)),
        ("yesterday", "9999-12-31", None, TODAY),
    ],
    ids=["verified", "future", "tomorrow is a time zone", "absurd", "first seen", "unknown is today"],
)
def test_verified_falls_back_to_the_next_plausible_day(
    verified: str, heading: str, first_seen: date | None, counts: date
) -> None:
    text = f"### [{heading}] Pattern: x\n- **layer**: traced\n- **verified**: {verified}\n- y\n"
    [block] = memory_document(text).blocks
    assert block.entry is not None

    assert last_verified_on(block.entry, History(first_seen=first_seen), TODAY) == counts


def test_an_entry_is_idle_since_the_latest_of_verified_referenced_and_first_seen() -> None:
    assert idle_since(days_ago(90), History(days_ago(50), days_ago(20)), TODAY) == days_ago(20)
    assert idle_since(days_ago(90), History(days_ago(50), days_ago(60)), TODAY) == days_ago(50)
    assert idle_since(days_ago(10), History(days_ago(50), days_ago(60)), TODAY) == days_ago(10)


def test_an_entry_seen_for_the_first_time_is_idle_since_today() -> None:
    assert idle_since(days_ago(400), History(), TODAY) == TODAY


@pytest.mark.parametrize("impossible", [date(2036, 1, 1), EARLIEST_DATE.replace(year=1999)], ids=["future", "absurd"])
def test_impossible_days_of_reference_and_first_sight_count_as_unknown(impossible: date) -> None:
    assert idle_since(days_ago(90), History(days_ago(50), impossible), TODAY) == days_ago(50)
    assert idle_since(days_ago(90), History(impossible, None), TODAY) == TODAY


def test_only_days_on_which_the_project_was_alive_count_as_idle() -> None:
    lively = sorted([days_ago(200), days_ago(90), days_ago(30), days_ago(1), TODAY, days_ago(-5)])

    assert idle_days(days_ago(90), lively, TODAY) == 3


def test_a_clock_that_was_set_back_makes_no_negative_days() -> None:
    assert idle_days(days_ago(-3), sorted(every_day()), TODAY) == 0
    assert score_terms(Layer.TRACED, days_ago(-1), History(), 0, POLICY, TODAY).recency == 1


def test_an_entry_of_an_unknown_layer_has_no_score_and_is_protected() -> None:
    document = memory_document(entry("odd", layer="golden"))

    [status] = entry_statuses(ROLE, document, Facts(), POLICY, TODAY)

    assert (status.score, status.is_protected, status.is_removable) == (None, True, False)


def test_a_pin_holds_through_its_last_day() -> None:
    document = memory_document(entry("a"))
    pinned = Facts(pinned={entry_ids_by_title(document)["a"]: TODAY})

    [today] = entry_statuses(ROLE, document, pinned, POLICY, TODAY)
    [tomorrow] = entry_statuses(ROLE, document, pinned, POLICY, days_ago(-1))

    assert today.pinned_until == TODAY
    assert tomorrow.pinned_until is None
