"""The duplicate that is found among many is the one that comparing with each of them would find."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from echod.memory.model import Layer
from echod.memory.similarity import DuplicateFinder, Learning, compare_learnings, features_of

WORDS = ("close", "pool", "teardown", "retry", "upload", "3", "5", "never", "worker", "cache", "sockets", "idle")
SENTENCES = st.lists(st.sampled_from(WORDS), min_size=1, max_size=8).map(" ".join)
LEARNINGS = st.builds(
    Learning,
    SENTENCES | st.sampled_from(["", "\U0001f389", "Task: close the pool"]),
    SENTENCES,
    st.sampled_from([None, "`src/db.py:3`", "`src/cache.py`"]),
    st.sampled_from([Layer.INSCRIBED, Layer.OBSERVATIONS, None]),
)
LONG = "close the upload pool of each worker in teardown when its sockets are idle"


def finder_of(learnings: list[Learning]) -> DuplicateFinder:
    finder = DuplicateFinder()
    for place, learning in enumerate(learnings):
        finder.add(place, features_of(learning))
    return finder


@settings(max_examples=100, deadline=None)
@given(st.lists(LEARNINGS, max_size=12), LEARNINGS)
def test_the_finder_finds_what_comparing_with_each_finds(known: list[Learning], new: Learning) -> None:
    alike = [(compare_learnings(features_of(new), features_of(one)), place) for place, one in enumerate(known)]
    exact = [place for place, one in enumerate(known) if features_of(one).exact_key == features_of(new).exact_key]
    best = min(((-a.title, -a.body, place) for a, place in alike if a.duplicate), default=None)

    found = finder_of(known).find(features_of(new))

    assert found == (exact[0] if exact else best and best[2])


@settings(max_examples=100, deadline=None)
@given(st.lists(LEARNINGS, min_size=1, max_size=12), LEARNINGS)
def test_an_excluded_learning_is_found_only_if_it_is_exactly_equal(known: list[Learning], new: Learning) -> None:
    found = finder_of(known).find(features_of(new), excluded=range(len(known)))

    assert found is None or features_of(known[found]).exact_key == features_of(new).exact_key


def test_the_most_similar_is_found_before_an_earlier_one() -> None:
    said = Learning(LONG, f"{LONG} or rows are lost", None, Layer.TRACED)
    further = Learning(f"{LONG} again", f"{LONG} or all the rows are lost", None, Layer.TRACED)
    nearer = Learning(LONG, f"{LONG} or some rows are lost", None, Layer.TRACED)

    assert finder_of([further, nearer]).find(features_of(said)) == 1


def test_among_thousands_that_differ_in_a_number_the_one_with_the_same_number_is_found() -> None:
    known = [Learning(f"unit {n}: {LONG}", f"unit {n} leaks: {LONG}", None, None) for n in range(600)]
    again = Learning(f"unit 500: {LONG}", f"unit 500 leaks memory: {LONG}", None, None)

    assert finder_of(known).find(features_of(again)) == 500
