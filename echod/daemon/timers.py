"""The metronome: calls short actions at fixed intervals. It holds no work; what it forgets is nobody's loss.

An action sets an event or puts a mark, nothing slower: there is one thread for all of them. Nothing is stored, and
"daily" is not decided here but from what was last done, so that a machine that slept catches up.

When is a dirty store calm enough to look at? Pure: time comes in, nothing else is known.

A mark waits until its store has been still for the quiet time, but never longer than the cap after the first
mark, so that a writer without pauses cannot keep a store from being looked at. A store that takes long to look at may
be given a rest, which nothing shortens.

Did the wall clock jump, or the machine sleep? Pure: both clocks' times come in.

The monotonic clock neither jumps nor (on Linux) runs while the machine sleeps, so either shows as a difference
between the two. Whatever is scheduled by the wall clock has to be scheduled again then.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC
from typing import Generic, NamedTuple, Self, TypeVar

from apscheduler.executors.pool import ThreadPoolExecutor
from apscheduler.jobstores.memory import MemoryJobStore
from apscheduler.schedulers.background import BackgroundScheduler
from apscheduler.triggers.interval import IntervalTrigger

from echod.log import get_logger

Key = TypeVar("Key")


@dataclass(slots=True)
class _Mark:
    first_at: float
    last_at: float


class Debounce(Generic[Key]):
    """Marks, each due `quiet_seconds` after its last and at most `max_seconds` after its first repetition.

    Times are seconds of any clock that does not jump. A clock that goes back only makes a mark due sooner.
    """

    def __init__(self, quiet_seconds: float, max_seconds: float) -> None:
        self._quiet = quiet_seconds
        self._max = max(max_seconds, quiet_seconds)
        self._marks: dict[Key, _Mark] = {}
        self._held_off_until: dict[Key, float] = {}

    def __len__(self) -> int:
        return len(self._marks)

    def mark(self, key: Key, now: float) -> None:
        """Something happened to `key` at `now`."""
        mark = self._marks.setdefault(key, _Mark(now, now))
        mark.last_at = now

    def hold_off(self, key: Key, until: float) -> None:
        """`key` is not due before `until`, whatever happens to it."""
        self._held_off_until[key] = until

    def ready(self, now: float) -> tuple[Key, ...]:
        """The keys that are due, those marked first before the others; they are no longer marked."""
        self._held_off_until = {key: until for key, until in self._held_off_until.items() if until > now}
        due = [key for key in self._marks if self._due_at(key) <= now]
        for key in due:
            del self._marks[key]
        return tuple(due)

    def next_due(self) -> float | None:
        """When the next key is due, if nothing else happens; None if none is marked."""
        return min(map(self._due_at, self._marks), default=None)

    def _due_at(self, key: Key) -> float:
        mark = self._marks[key]
        quiet_at = min(mark.last_at + self._quiet, mark.first_at + self._max)
        return max(quiet_at, self._held_off_until.get(key, quiet_at))


JUMP_THRESHOLD_SECONDS = 30.0
"""A difference beyond this is a jump; time servers slew smaller ones."""


class ClockJumpDetector:
    """Compares both clocks at each call. Times are seconds."""

    def __init__(self, wall: float, monotonic: float, threshold: float = JUMP_THRESHOLD_SECONDS) -> None:
        self._offset = wall - monotonic
        self._threshold = threshold

    def check(self, wall: float, monotonic: float) -> float | None:
        """By how many seconds the wall clock ran ahead (or, negative, fell back) since the last jump, or None.

        Slow drift adds up, so that it cannot hide; once reported, the new difference is the normal one.
        """
        jump_seconds = wall - monotonic - self._offset
        if abs(jump_seconds) <= self._threshold:
            return None
        self._offset += jump_seconds
        return jump_seconds


log = get_logger(__name__)


class PeriodicTask(NamedTuple):
    """`action` is called every `seconds`, for the first time after as many."""

    name: str
    seconds: float
    action: Callable[[], object]


class IntervalScheduler:
    """Runs ticks while it is entered."""

    def __init__(self, tasks: Iterable[PeriodicTask]) -> None:
        self._tasks = tuple(tasks)
        self._scheduler = BackgroundScheduler(
            jobstores={"default": MemoryJobStore()},
            executors={"default": ThreadPoolExecutor(1)},
            # After a sleep one call stands for all that were missed, and being late is no reason to drop it.
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
        """Count every interval from now on; to be called when the wall clock jumped.

        The scheduler plans by the wall clock: set back by an hour, nothing would tick for that hour.
        """
        for task in self._tasks:
            self._scheduler.reschedule_job(task.name, trigger=_interval_trigger(task))
        log.info("intervals_rescheduled", tasks=len(self._tasks))


def _interval_trigger(task: PeriodicTask) -> IntervalTrigger:
    return IntervalTrigger(seconds=task.seconds, timezone=UTC)
