from __future__ import annotations

import pytest

from echod.daemon.upkeep import ClockJumpDetector


@pytest.mark.parametrize(
    ("wall", "monotonic", "jump"),
    [
        pytest.param(1060, 60, None, id="both clocks agree"),
        pytest.param(1080, 60, None, id="slewed"),
        pytest.param(4660, 60, 3600, id="set forward, or the machine slept"),
        pytest.param(-2540, 60, -3600, id="set back"),
    ],
)
def test_a_jump_is_a_difference_between_the_clocks(wall: float, monotonic: float, jump: float | None) -> None:
    assert ClockJumpDetector(1000, 0).check(wall, monotonic) == jump


def test_a_jump_is_reported_once() -> None:
    jumps = ClockJumpDetector(1000, 0)

    assert jumps.check(5000, 1) is not None
    assert jumps.check(5001, 2) is None


def test_drift_that_adds_up_is_reported_in_the_end() -> None:
    jumps = ClockJumpDetector(1000, 0)

    found_jumps = [jumps.check(1000 + turn * 11, turn * 10) for turn in range(40)]

    assert sum(jump is not None for jump in found_jumps) == 1
