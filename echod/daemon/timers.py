"""Decide when things are due: debounce changed stores, detect clock jumps, call periodic tasks.

`Debounce` and `ClockJumpDetector` are pure; time is an argument. `IntervalScheduler` runs a thread.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import UTC
from typing import Generic, NamedTuple, Self, TypeVar

from apscheduler.executors.pool import ThreadPoolExecutor
from apscheduler.jobstores.memory import MemoryJobStore
from apscheduler.schedulers.background import BackgroundScheduler
from apscheduler.triggers.interval import IntervalTrigger

from echod.log import get_logger

log = get_logger(__name__)

JUMP_THRESHOLD_SECONDS = 30.0
"""A larger difference between the clocks is a jump. Time servers slew smaller ones."""

Key = TypeVar("Key")


class Debounce(Generic[Key]):
    """Marked keys, each due `quiet_seconds` after its last mark and at most `max_seconds` after its first mark.

    The maximum guarantees that a writer without pauses cannot prevent the inspection of a store. A store whose
    inspection takes long may be held off, which nothing shortens.

    Times are seconds of any clock that does not jump. A clock that is set back only makes a key due sooner.
    """

    def __init__(self, quiet_seconds: float, max_seconds: float) -> None:
        self._quiet = quiet_seconds
        self._max = max(max_seconds, quiet_seconds)
        self._marks: dict[Key, tuple[float, float]] = {}  # the first and the last mark
        self._held_off_until: dict[Key, float] = {}

    def __len__(self) -> int:
        return len(self._marks)

    def mark(self, key: Key, now: float) -> None:
        """Record that `key` changed at `now`."""
        first_at, _ = self._marks.get(key, (now, now))
        self._marks[key] = (first_at, now)

    def hold_off(self, key: Key, until: float) -> None:
        """Keep `key` from being due before `until`, even if it changes."""
        self._held_off_until[key] = until

    def is_held_off(self, key: Key, now: float) -> bool:
        """Return whether `key` is held off at `now`."""
        return self._held_off_until.get(key, now) > now

    def ready(self, now: float) -> tuple[Key, ...]:
        """Return the due keys in the order of their first marks, and unmark them."""
        self._held_off_until = {key: until for key, until in self._held_off_until.items() if until > now}
        due = [key for key in self._marks if self._due_at(key) <= now]
        for key in due:
            del self._marks[key]
        return tuple(due)

    def next_due(self) -> float | None:
        """Return when the next key is due if nothing else changes; None if no key is marked."""
        return min(map(self._due_at, self._marks), default=None)

    def _due_at(self, key: Key) -> float:
        first_at, last_at = self._marks[key]
        quiet_at = min(last_at + self._quiet, first_at + self._max)
        return max(quiet_at, self._held_off_until.get(key, quiet_at))


class ClockJumpDetector:
    """Detect that the wall clock was set or that the machine slept. Times are seconds.

    The monotonic clock neither jumps nor (on Linux) runs while the machine sleeps, so both show as a change of the
    difference between the two clocks. Everything scheduled by the wall clock must then be scheduled again.
    """

    def __init__(self, wall: float, monotonic: float, threshold: float = JUMP_THRESHOLD_SECONDS) -> None:
        self._offset = wall - monotonic
        self._threshold = threshold

    def check(self, wall: float, monotonic: float) -> float | None:
        """Return by how many seconds the wall clock is ahead (negative: behind) since the last jump, or None.

        Slow drift adds up, so it is reported in the end. After a report the new difference is the normal one.
        """
        jump_seconds = wall - monotonic - self._offset
        if abs(jump_seconds) <= self._threshold:
            return None
        self._offset += jump_seconds
        return jump_seconds


class PeriodicTask(NamedTuple):
    """An action that is called every `seconds`, for the first time after one interval.

    All actions share one thread, so an action only sets an event or a mark.
    """

    name: str
    seconds: float
    action: Callable[[], object]


class IntervalScheduler:
    """Run periodic tasks while entered.

    It stores nothing. "Daily" work is not decided here but from the time it was last done, so that a machine that
    slept catches up.
    """

    def __init__(self, tasks: Iterable[PeriodicTask]) -> None:
        self._tasks = tuple(tasks)
        self._scheduler = BackgroundScheduler(
            jobstores={"default": MemoryJobStore()},
            executors={"default": ThreadPoolExecutor(1)},
            # After a sleep one call replaces all that were missed, and is not dropped for being late.
            job_defaults={"coalesce": True, "misfire_grace_time": None, "max_instances": 1},
            timezone=UTC,
        )

    def __enter__(self) -> Self:
        for task in self._tasks:
            self._scheduler.add_job(task.action, _interval_trigger(task), id=task.name, name=task.name)
        self._scheduler.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._scheduler.shutdown()

    def reschedule_all(self) -> None:
        """Start every interval again from now. Call this after a jump of the wall clock.

        The scheduler plans by the wall clock. After that was set back by an hour, no task would run for that hour.
        """
        for task in self._tasks:
            self._scheduler.reschedule_job(task.name, trigger=_interval_trigger(task))
        log.info("intervals_rescheduled", tasks=len(self._tasks))


def _interval_trigger(task: PeriodicTask) -> IntervalTrigger:
    return IntervalTrigger(seconds=task.seconds, timezone=UTC)
