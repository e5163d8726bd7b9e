"""Stale writer or person? Every verdict, and the evidence it rests on."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from echod.memory.lineage import (
    Crossed,
    Descent,
    Doubtful,
    Found,
    Known,
    Reverted,
    Shape,
    Stale,
    Successor,
    Why,
    judge,
)

NOW = 1000.0
YOUNG = 5.0


def state(text: str) -> Shape:
    """`a b=2` is a state with block a as it was written first and block b in its second text."""
    return {("entry", part.partition("=")[0]): part for part in text.split()}


def known(*states: tuple[str, float]) -> list[Known]:
    return [Known(f"image {text}", NOW - age, state(text)) for text, age in states]


def verdict(found: str, *states: tuple[str, float], mtime_age: float | None = 0.0) -> Descent:
    mtime = None if mtime_age is None else NOW - mtime_age
    return judge(Found(f"image {found}", mtime, state(found)), known(*states), now=NOW, young_seconds=YOUNG)


HISTORY = (("a b", 100.0), ("a b f", 50.0))
FRESH = (("a b", 100.0), ("a b f", 1.0))
TWO = (("a b", 100.0), ("a b f g", 50.0))


@pytest.mark.parametrize(
    ("found", "states"),
    [
        pytest.param("a b f", HISTORY, id="the newest itself"),
        pytest.param("a b f x", HISTORY, id="an addition"),
        pytest.param("a=new b f", HISTORY, id="an edit"),
        pytest.param("b f", HISTORY, id="an old entry deleted"),
        pytest.param("b f x", FRESH, id="an old entry deleted just after a commit"),
    ],
)
def test_an_ordinary_edit_is_a_successor(found: str, states: tuple[tuple[str, float], ...]) -> None:
    assert verdict(found, *states) == Successor()


def test_an_older_state_exactly_is_a_revert() -> None:
    assert verdict("a b", *HISTORY) == Reverted((("entry", "f"),))


def test_one_young_change_turned_back_is_a_stale_writer() -> None:
    assert verdict("a b x", *FRESH) == Stale(0, Why.YOUNG, (("entry", "f"),))


def test_one_old_change_turned_back_is_for_a_person_to_judge() -> None:
    assert verdict("a b x", *HISTORY) == Doubtful((("entry", "f"),))


def test_two_changes_turned_back_are_a_stale_writer_whatever_their_age() -> None:
    assert verdict("a b x", *TWO) == Stale(0, Why.SEVERAL_REVERTED, (("entry", "f"), ("entry", "g")))


def test_a_file_older_than_our_write_is_a_stale_writer() -> None:
    assert verdict("a b x", *HISTORY, mtime_age=51.0) == Stale(0, Why.OLDER_THAN_OUR_WRITE, (("entry", "f"),))


def test_a_file_much_older_than_our_write_was_put_back_by_a_person() -> None:
    assert verdict("a b x", *HISTORY, mtime_age=500.0) == Doubtful((("entry", "f"),))


def test_a_turned_back_edit_counts_as_a_change() -> None:
    states = (("a b", 100.0), ("a=2 b=2", 50.0))

    assert verdict("a b x", *states) == Stale(0, Why.SEVERAL_REVERTED, ())


def test_an_entry_that_we_removed_and_is_there_again_speaks_for_an_older_state() -> None:
    states = (("a b p q", 100.0), ("a b", 50.0))

    assert verdict("a b p q x", *states) == Stale(0, Why.SEVERAL_REVERTED, ())


def test_when_lineages_cross_what_was_young_is_gone_by_accident() -> None:
    states = (("a b c", 100.0), ("b c f", 50.0), ("b c f g", 1.0))

    assert verdict("c f x", ("a b c", 100.0), ("b c f", 50.0), ("b c f g", 1.0)) == Stale(
        1, Why.YOUNG, (("entry", "g"),)
    )
    assert verdict("b c g x", *states) == Successor()
    assert verdict("a c f x", ("a b c", 100.0), ("b c f g", 1.0)) in (
        Crossed((("entry", "f"), ("entry", "g"))),
        Crossed((("entry", "g"),)),
        Stale(0, Why.YOUNG, (("entry", "g"),)),
        Stale(0, Why.SEVERAL_REVERTED, (("entry", "g"),)),
    )


def test_the_newest_of_equally_good_ancestors_is_chosen() -> None:
    states = (("a b", 300.0), ("a b", 200.0), ("a b f g", 50.0))

    descent = verdict("a b x", *states)

    assert isinstance(descent, Stale)
    assert descent.base == 1


BLOCKS = st.lists(st.sampled_from("abcdefgh"), unique=True, max_size=6).map(" ".join)


@given(BLOCKS, BLOCKS)
@settings(max_examples=200, deadline=None)
def test_additions_to_the_newest_state_are_never_taken_for_stale(old: str, newest: str) -> None:
    descent = judge(
        Found("found", NOW, state(newest + " x y")),
        known((old, 100.0), (newest, 1.0)),
        now=NOW,
        young_seconds=YOUNG,
    )

    assert descent == Successor()


@given(st.lists(BLOCKS, min_size=1, max_size=5), st.integers(0, 4))
@settings(max_examples=200, deadline=None)
def test_a_known_state_exactly_is_never_healed(states: list[str], which: int) -> None:
    chosen = states[which % len(states)]
    history = [(text, 100.0 - number) for number, text in enumerate(states)]

    assert isinstance(verdict(chosen, *history), Successor | Reverted | Crossed)
