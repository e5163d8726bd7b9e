"""Waiting until a daemon that was just started really answers. A supervisor's "started" is not enough."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from echod.runtime.heartbeat import Liveness

WAIT_SECONDS = 20.0
_POLL_SECONDS = 0.05


@dataclass(frozen=True, slots=True)
class Clock:
    """Time for whoever waits."""

    monotonic: Callable[[], float]
    sleep: Callable[[float], object]


def wait_for(
    wanted: Callable[[Liveness], bool], probe: Callable[[], Liveness], clock: Clock, seconds: float = WAIT_SECONDS
) -> Liveness:
    """Look until it is as wanted, or the time is over; the last look is returned either way."""
    deadline = clock.monotonic() + seconds
    while not wanted(found := probe()) and clock.monotonic() < deadline:
        clock.sleep(_POLL_SECONDS)
    return found
