"""Stale writers and user edits: every verdict with its evidence."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from echod.memory.identity import BlockTexts
from echod.memory.lineage import (
    CurrentVersion,
    Descent,
    InterleavedWrite,
    KnownVersion,
    Reversion,
    StaleReason,
    StaleWrite,
    Successor,
    SuspectedStaleWrite,
    classify_descent,
)

NOW = 1000.0
YOUNG = 5.0


def texts_of(text: str) -> BlockTexts:
    """`a b=2` is a version with block a in its first text and block b in its second."""
    return {("entry", part.partition("=")[0]): part for part in text.split()}


def known_versions(*states: tuple[str, float]) -> list[KnownVersion]:
    return [KnownVersion(f"image {text}", NOW - age, texts_of(text)) for text, age in states]


def classify(found: str, *states: tuple[str, float], mtime_age: float | None = 0.0) -> Descent:
    mtime = None if mtime_age is None else NOW - mtime_age
    return classify_descent(
        CurrentVersion(f"image {found}", mtime, texts_of(found)), known_versions(*states), now=NOW, young_seconds=YOUNG
    )


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
    assert classify(found, *states) == Successor()


def test_exactly_an_older_version_is_a_reversion() -> None:
    assert classify("a b", *HISTORY) == Reversion((("entry", "f"),))


def test_one_reverted_young_change_is_a_stale_writer() -> None:
    assert classify("a b x", *FRESH) == StaleWrite(0, StaleReason.RECENTLY_REVERTED, (("entry", "f"),))


def test_one_reverted_old_change_is_reported_to_the_user() -> None:
    assert classify("a b x", *HISTORY) == SuspectedStaleWrite((("entry", "f"),))


def test_two_reverted_changes_are_a_stale_writer_at_any_age() -> None:
    assert classify("a b x", *TWO) == StaleWrite(0, StaleReason.SEVERAL_REVERTED, (("entry", "f"), ("entry", "g")))


def test_a_file_older_than_our_write_is_a_stale_writer() -> None:
    assert classify("a b x", *HISTORY, mtime_age=51.0) == StaleWrite(
        0, StaleReason.OLDER_THAN_OUR_WRITE, (("entry", "f"),)
    )


def test_a_file_much_older_than_our_write_was_restored_by_the_user() -> None:
    assert classify("a b x", *HISTORY, mtime_age=500.0) == SuspectedStaleWrite((("entry", "f"),))


def test_a_reverted_edit_counts_as_a_change() -> None:
    states = (("a b", 100.0), ("a=2 b=2", 50.0))

    assert classify("a b x", *states) == StaleWrite(0, StaleReason.SEVERAL_REVERTED, ())


def test_a_removed_entry_that_is_there_again_is_evidence_of_an_older_version() -> None:
    states = (("a b p q", 100.0), ("a b", 50.0))

    assert classify("a b p q x", *states) == StaleWrite(0, StaleReason.SEVERAL_REVERTED, ())


def test_missing_young_blocks_of_interleaved_writes_were_overwritten() -> None:
    states = (("a b c", 100.0), ("b c f", 50.0), ("b c f g", 1.0))

    assert classify("c f x", ("a b c", 100.0), ("b c f", 50.0), ("b c f g", 1.0)) == StaleWrite(
        1, StaleReason.RECENTLY_REVERTED, (("entry", "g"),)
    )
    assert classify("b c g x", *states) == Successor()
    assert classify("a c f x", ("a b c", 100.0), ("b c f g", 1.0)) in (
        InterleavedWrite((("entry", "f"), ("entry", "g"))),
        InterleavedWrite((("entry", "g"),)),
        StaleWrite(0, StaleReason.RECENTLY_REVERTED, (("entry", "g"),)),
        StaleWrite(0, StaleReason.SEVERAL_REVERTED, (("entry", "g"),)),
    )


def test_the_newest_of_equally_good_ancestors_is_chosen() -> None:
    states = (("a b", 300.0), ("a b", 200.0), ("a b f g", 50.0))

    descent = classify("a b x", *states)

    assert isinstance(descent, StaleWrite)
    assert descent.base == 1


BLOCKS = st.lists(st.sampled_from("abcdefgh"), unique=True, max_size=6).map(" ".join)


@given(BLOCKS, BLOCKS)
@settings(max_examples=200, deadline=None)
def test_additions_to_the_newest_version_are_never_stale(old: str, newest: str) -> None:
    descent = classify_descent(
        CurrentVersion("found", NOW, texts_of(newest + " x y")),
        known_versions((old, 100.0), (newest, 1.0)),
        now=NOW,
        young_seconds=YOUNG,
    )

    assert descent == Successor()


@given(st.lists(BLOCKS, min_size=1, max_size=5), st.integers(0, 4))
@settings(max_examples=200, deadline=None)
def test_an_exactly_known_version_is_never_healed(states: list[str], which: int) -> None:
    chosen = states[which % len(states)]
    history = [(text, 100.0 - number) for number, text in enumerate(states)]

    assert isinstance(classify(chosen, *history), Successor | Reversion | InterleavedWrite)
