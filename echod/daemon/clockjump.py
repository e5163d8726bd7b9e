"""Did the wall clock jump, or the machine sleep? Pure: both clocks' times come in.

The monotonic clock neither jumps nor (on Linux) runs while the machine sleeps, so either shows as a difference
between the two. Whatever is scheduled by the wall clock has to be scheduled again then.
"""

from __future__ import annotations

JUMP_SECONDS = 30.0
"""A difference beyond this is a jump; time servers slew smaller ones."""


class ClockJumps:
    """Compares both clocks at each call. Times are seconds."""

    def __init__(self, wall: float, monotonic: float, threshold: float = JUMP_SECONDS) -> None:
        self._offset = wall - monotonic
        self._threshold = threshold

    def jumped(self, wall: float, monotonic: float) -> float | None:
        """By how many seconds the wall clock ran ahead (or, negative, fell back) since the last jump, or None.

        Slow drift adds up, so that it cannot hide; once reported, the new difference is the normal one.
        """
        ahead = wall - monotonic - self._offset
        if abs(ahead) <= self._threshold:
            return None
        self._offset += ahead
        return ahead
