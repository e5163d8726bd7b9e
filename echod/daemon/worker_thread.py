"""The worker's thread: runs due jobs one after the other, sleeps until the next is due, stops between jobs.

Owns no state but its own progress. What a job is, and whether it may run, is decided by `echod.scheduler.worker`.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from queue import SimpleQueue

from echod.errors import EchodError
from echod.log import get_logger
from echod.runtime.locks import WorkerBusyError
from echod.scheduler.worker import Finished, Worker
from echod.state.errors import DatabaseUnavailableError
from echod.store.layout import Store

log = get_logger(__name__)

LONGEST_SLEEP_SECONDS = 5.0
"""Also how often the thread shows that it is alive."""

UNAVAILABLE_SECONDS = 1.0
"""How long it rests when the database cannot be used: another process keeps it locked, or the disk is full."""


class Crew:
    """One thread that works. A context manager: leaving it waits for the running job to end.

    Args:
        worker: runs the next due job.
        exclusive: the worker lock; another process may hold it for the length of a job.
        next_due: when the next job may run (Unix seconds), which may be past; None if none waits.
        wall: the clock of `next_due`.
        ended: called after each job, in the worker's thread.
        progress: when the running job last went on (monotonic seconds).
        lost: called once with the error if the database or a lock is lost; the thread has ended then.
    """

    def __init__(
        self,
        worker: Worker,
        *,
        exclusive: Callable[[], AbstractContextManager[object]],
        next_due: Callable[[], float | None],
        wall: Callable[[], float],
        ended: Callable[[Finished], None],
        lost: Callable[[EchodError], None],
        progress: Callable[[], float],
    ) -> None:
        self._worker = worker
        self._exclusive = exclusive
        self._next_due = next_due
        self._wall = wall
        self._ended = ended
        self._lost = lost
        self._progress = progress
        self._owed: SimpleQueue[Store] = SimpleQueue()
        self._tidy = threading.Event()
        self._wake = threading.Event()
        self._stop = threading.Event()
        self._moved = time.monotonic()
        self._thread = threading.Thread(target=self._work, name="worker", daemon=True)

    @property
    def moved(self) -> float:
        """When the thread, or the job in it, last showed progress (monotonic seconds)."""
        return max(self._moved, self._progress())

    @property
    def doing(self) -> str:
        """The running job in words, or "" between jobs."""
        job = self._worker.doing
        return f"{job.kind.value} {job.role} in {job.store}" if job is not None else ""

    @property
    def stopping(self) -> bool:
        """Whether the thread was told to stop."""
        return self._stop.is_set()

    def wake(self) -> None:
        """There may be something to do."""
        self._wake.set()

    def settle(self, stores: Iterable[Store]) -> None:
        """Between jobs, look after files of these stores that were replaced while others had them open."""
        for store in stores:
            self._owed.put(store)
        self._wake.set()

    def tidy(self) -> None:
        """Between jobs, forget what is beyond its time."""
        self._tidy.set()
        self._wake.set()

    def start(self) -> None:
        """Begin to work."""
        self._thread.start()

    def stop(self, seconds: float) -> bool:
        """Stop after the running job, which is never cut short; whether the thread ended within `seconds`."""
        self._stop.set()
        self._wake.set()
        if self._thread.is_alive():
            self._thread.join(seconds)
        return not self._thread.is_alive()

    def _work(self) -> None:
        try:
            while not self._stop.is_set():
                self._moved = time.monotonic()
                self._step()
        except EchodError as error:
            self._lost(error)

    def _step(self) -> None:
        try:
            self._pay()
            if not self._one():
                self._sleep()
        except DatabaseUnavailableError as error:
            log.warning("database_unavailable", error=str(error))
            self._stop.wait(UNAVAILABLE_SECONDS)

    def _pay(self) -> None:
        owed: dict[str, Store] = {}
        while not self._owed.empty():
            store = self._owed.get()
            owed[store.key] = store
        if not (owed or self._tidy.is_set()) or self._stop.is_set():
            return
        try:
            with self._exclusive():
                for store in owed.values():
                    self._worker.settle(store)
                if self._tidy.is_set():
                    self._tidy.clear()
                    self._worker.tidy()
        except WorkerBusyError:
            log.info("late_bytes_wait", stores=len(owed))  # the next look at everything asks again

    def _one(self) -> bool:
        if not (self._worker.owes_a_row or self._is_due()):
            return False
        try:
            with self._exclusive():
                finished = self._worker.turn()
        except WorkerBusyError:
            return False
        if finished is None:
            return False
        self._ended(finished)
        return True

    def _is_due(self) -> bool:
        due = self._next_due()
        return due is not None and due <= self._wall()

    def _sleep(self) -> None:
        due = self._next_due()
        pause = LONGEST_SLEEP_SECONDS if due is None else min(max(due - self._wall(), 0.05), LONGEST_SLEEP_SECONDS)
        self._wake.wait(pause)
        self._wake.clear()
