"""What a time is compared with: a loop that always does the same, run in turn with the work.

A busy or slower machine slows both, so their ratio is more reliable than the time.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from statistics import median

_LOOP_ITERATIONS = 20_000
_MIN_ROUNDS = 3


def loop() -> int:
    """A fixed amount of ordinary Python: dictionary, string and integer work. About ten milliseconds."""
    seen: dict[str, int] = {}
    for number in range(_LOOP_ITERATIONS):
        key = f"k{number % 997}"
        seen[key] = seen.get(key, 0) + len(key)
    return sum(seen.values())


def timed(work: Callable[[], object]) -> float:
    """Seconds that one call takes."""
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


def rounds(maximum: int, seconds: float) -> Iterator[int]:
    """Count up to `maximum`, but stop when `seconds` are over: on a slow or busy machine fewer rounds must do."""
    began = time.monotonic()
    for number in range(maximum):
        if number >= _MIN_ROUNDS and time.monotonic() - began > seconds:
            return
        yield number


@dataclass(frozen=True, slots=True)
class Timings:
    """Seconds of each run, and the same as multiples of the loop beside it."""

    seconds: tuple[float, ...]
    loops: tuple[float, ...]

    @property
    def milliseconds(self) -> Sequence[float]:
        """The same in milliseconds."""
        return [seconds * 1000 for seconds in self.seconds]

    @property
    def median(self) -> float:
        """Seconds, the median."""
        return median(self.seconds)


def measure_alternating(work: Callable[[], object], runs: int, *, max_seconds: float = 10.0) -> Timings:
    """Run the work and the loop by turns, so often or `max_seconds` so many seconds."""
    seconds, loops = [], []
    for _ in rounds(runs, max_seconds):
        reference = timed(loop)
        took = timed(work)
        seconds.append(took)
        loops.append(took / reference)
    return Timings(tuple(seconds), tuple(loops))
