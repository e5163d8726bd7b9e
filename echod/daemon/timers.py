"""The metronome: calls short actions at fixed intervals. It holds no work; what it forgets is nobody's loss.

An action sets an event or puts a mark, nothing slower: there is one thread for all of them. Nothing is stored, and
"daily" is not decided here but from what was last done, so that a machine that slept catches up.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC
from typing import Self

from apscheduler.executors.pool import ThreadPoolExecutor
from apscheduler.jobstores.memory import MemoryJobStore
from apscheduler.schedulers.background import BackgroundScheduler
from apscheduler.triggers.interval import IntervalTrigger

from echod.logger import get_logger

log = get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Tick:
    """`action` is called every `seconds`, for the first time after as many."""

    name: str
    seconds: float
    action: Callable[[], object]


class Metronome:
    """Runs ticks while it is entered."""

    def __init__(self, ticks: Iterable[Tick]) -> None:
        self._ticks = tuple(ticks)
        self._scheduler = BackgroundScheduler(
            jobstores={"default": MemoryJobStore()},
            executors={"default": ThreadPoolExecutor(1)},
            # After a sleep one call stands for all that were missed, and being late is no reason to drop it.
            job_defaults={"coalesce": True, "misfire_grace_time": None, "max_instances": 1},
            timezone=UTC,
        )

    def __enter__(self) -> Self:
        for tick in self._ticks:
            self._scheduler.add_job(tick.action, _every(tick), id=tick.name, name=tick.name)
        self._scheduler.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._scheduler.shutdown()

    def reschedule_all(self) -> None:
        """Count every interval from now on; to be called when the wall clock jumped.

        The scheduler plans by the wall clock: set back by an hour, nothing would tick for that hour.
        """
        for tick in self._ticks:
            self._scheduler.reschedule_job(tick.name, trigger=_every(tick))
        log.info("metronome_rescheduled", ticks=len(self._ticks))


def _every(tick: Tick) -> IntervalTrigger:
    return IntervalTrigger(seconds=tick.seconds, timezone=UTC)
