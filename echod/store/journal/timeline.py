"""Bound the time of a commit by the journal's order, because a clock may have been wrong.

The journal orders commits and known contents by times that never go back. So after a job whose clock was a year ahead,
everything would be young for a year. Therefore each of them also has the plain reading of the clock. A reading in the
future is not believed, and neither is one before an earlier reading: the truth is between the readings around it.

Decisions that protect a change while it is young use the earliest possible time. Deleting uses the latest one.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from typing import NamedTuple

_MAX_SKEW_SECONDS = 60.0
"""A clock is corrected by this much while it is right. Times so little ahead are believed."""

SHORTEST_INTERVAL = 1e-4
"""The seconds between two orders in a journal, at least."""


class Reading(NamedTuple):
    """The position of something in the journal's order, and the clock at that moment (Unix seconds)."""

    order: float
    clock: float


class Timeline:
    """The readings of one journal, as seen at `now` (Unix seconds)."""

    def __init__(self, readings: Iterable[Reading], now: float) -> None:
        believed = sorted(reading for reading in readings if reading.clock <= now + _MAX_SKEW_SECONDS)
        self._orders = [reading.order for reading in believed]
        self._clocks: list[float] = []
        for reading in believed:
            self._clocks.append(max(reading.clock, self._clocks[-1]) if self._clocks else reading.clock)

    def earliest(self, order: float) -> float:
        """Return the earliest time at which something with that order can have happened; -inf if unknown."""
        position = bisect_right(self._orders, order)
        return self._clocks[position - 1] if position else float("-inf")

    def latest(self, order: float) -> float:
        """Return the latest time at which something with that order can have happened; inf if unknown."""
        position = bisect_left(self._orders, order)
        return self._clocks[position] if position < len(self._clocks) else float("inf")

    def estimate(self, order: float, now: float) -> float:
        """Return the most probable time of something with that order, never in the future."""
        latest = self.latest(order)
        return min(latest if latest != float("inf") else max(self.earliest(order), 0.0) or now, now)
