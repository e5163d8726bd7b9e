from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from echod.daemon.upkeep import Debounce

QUIET = 2.0
CAP = 20.0


def _debounce() -> Debounce[str]:
    return Debounce(QUIET, CAP)


def test_nothing_marked_is_never_due() -> None:
    debounce = _debounce()

    assert debounce.ready(1e9) == ()
    assert debounce.next_due() is None


def test_a_mark_is_due_after_the_quiet_time_and_then_removed() -> None:
    debounce = _debounce()
    debounce.mark("a", 10)

    assert debounce.next_due() == 12
    assert debounce.ready(11.9) == ()
    assert debounce.ready(12) == ("a",)
    assert debounce.ready(100) == ()


def test_a_further_mark_delays_it() -> None:
    debounce = _debounce()
    debounce.mark("a", 0)
    debounce.mark("a", 1.5)

    assert debounce.ready(2) == ()
    assert debounce.ready(3.5) == ("a",)


def test_a_writer_without_pauses_cannot_delay_it_beyond_the_maximum() -> None:
    debounce = _debounce()
    for tenths in range(201):
        assert debounce.ready(tenths / 10) == (() if tenths < 200 else ("a",))
        debounce.mark("a", tenths / 10)


def test_a_mark_after_it_was_ready_starts_a_new_quiet_time() -> None:
    debounce = _debounce()
    debounce.mark("a", 0)
    debounce.ready(2)
    debounce.mark("a", 30)

    assert debounce.next_due() == 32


def test_holding_off_is_not_shortened_by_marks_and_ends() -> None:
    debounce = _debounce()
    debounce.hold_off("a", 60)
    for second in range(60):
        debounce.mark("a", second)
        debounce.mark("b", second)
        assert "a" not in debounce.ready(second)

    assert debounce.is_held_off("a", 59)
    assert not debounce.is_held_off("a", 60)
    assert debounce.ready(60) == ("a",)
    debounce.mark("a", 61)
    assert "a" in debounce.ready(63)


def test_without_a_quiet_time_a_mark_is_due_at_once() -> None:
    debounce: Debounce[str] = Debounce(0, 0)
    debounce.mark("a", 5)

    assert debounce.ready(5) == ("a",)


@settings(max_examples=60)
@given(st.lists(st.tuples(st.sampled_from("abc"), st.floats(0, 5)), max_size=60))
def test_every_mark_is_due_once_quiet_or_at_the_maximum_and_never_before(steps: list[tuple[str, float]]) -> None:
    debounce = _debounce()
    pending: dict[str, tuple[float, float]] = {}
    now = 0.0
    for key, pause in steps:
        now += pause
        for ready in debounce.ready(now):
            first, last = pending.pop(ready)
            assert now >= min(last + QUIET, first + CAP)
        assert all(now < min(last + QUIET, first + CAP) for first, last in pending.values())
        debounce.mark(key, now)
        pending[key] = (pending.get(key, (now, now))[0], now)

    assert len(debounce) == len(pending)
    assert set(debounce.ready(now + CAP)) == set(pending)
