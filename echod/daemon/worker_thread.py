"""Run due jobs in a thread, one after the other. It sleeps until the next job is due, and stops only between jobs.

The thread owns no state except its own progress. `echod.scheduler.worker` decides what a job is and whether it may run.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from dataclasses import KW_ONLY, dataclass
from queue import SimpleQueue

from echod.errors import EchodError, isolated
from echod.log import get_logger
from echod.runtime import WorkerBusyError
from echod.scheduler.worker import FinishedJob, Worker
from echod.state.database import DatabaseUnavailableError
from echod.store.layout import Store

log = get_logger(__name__)

MAX_SLEEP_SECONDS = 5.0
"""Also how often the idle thread records progress."""

DATABASE_RETRY_SECONDS = 1.0
"""The pause after the database could not be used, because another process keeps it locked or the disk is full."""


@dataclass(eq=False)
class WorkerThread:
    """The thread that runs jobs.

    Attributes:
        acquire_lock: takes the worker lock, which another process may hold for the length of a job.
        next_due: returns when the next job may run (Unix seconds, possibly in the past); None if none is queued.
        wall_clock: the clock of `next_due`.
        on_finished: called after each job, in the worker's thread.
        on_must_wait: called with a store whose gate holds the merge of late writes, in the worker's thread.
        on_fatal_error: called once with the error if the database or a lock is lost. The thread ends then.
        last_step_at: returns when the running job last made progress (monotonic seconds).
    """

    worker: Worker
    _: KW_ONLY
    acquire_lock: Callable[[], AbstractContextManager[object]]
    next_due: Callable[[], float | None]
    wall_clock: Callable[[], float]
    on_finished: Callable[[FinishedJob], None]
    on_must_wait: Callable[[Store], None]
    on_fatal_error: Callable[[EchodError], None]
    last_step_at: Callable[[], float]

    def __post_init__(self) -> None:
        self._late_merge_stores: SimpleQueue[Store] = SimpleQueue()
        self._retention_requested = threading.Event()
        self._wake = threading.Event()
        self._stop = threading.Event()
        self._last_iteration_at = time.monotonic()
        self._thread = threading.Thread(target=self._run, name="worker", daemon=True)

    @property
    def last_progress(self) -> float:
        """When the thread, or the job in it, last made progress (monotonic seconds)."""
        return max(self._last_iteration_at, self.last_step_at())

    @property
    def current_job(self) -> str:
        """The running job in words, or "" between jobs."""
        job = self.worker.current_job
        return f"{job.kind.value} {job.role} in {job.store}" if job is not None else ""

    def wake(self) -> None:
        """Check for work now instead of at the end of the sleep."""
        self._wake.set()

    def request_late_merge(self, stores: Iterable[Store]) -> None:
        """Merge late writes in these stores between two jobs."""
        for store in stores:
            self._late_merge_stores.put(store)
        self._wake.set()

    def request_retention(self) -> None:
        """Delete expired records between two jobs."""
        self._retention_requested.set()
        self._wake.set()

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self, seconds: float) -> bool:
        """Stop after the running job, which is never cut short. Return whether the thread ended within `seconds`."""
        self._stop.set()
        self._wake.set()
        if self._thread.is_alive():
            self._thread.join(seconds)
        return not self._thread.is_alive()

    def _run(self) -> None:
        try:
            while not self._stop.is_set():
                self._last_iteration_at = time.monotonic()
                self._run_iteration()
        except EchodError as error:
            self.on_fatal_error(error)

    def _run_iteration(self) -> None:
        try:
            self._run_housekeeping()
            if not self._run_one():
                self._sleep()
        except DatabaseUnavailableError as error:
            log.warning("database_unavailable", error=str(error))
            self._stop.wait(DATABASE_RETRY_SECONDS)
        except EchodError:
            raise
        except Exception:
            log.exception("worker_iteration_failed")  # the job in it, if any, is claimed again
            self._stop.wait(DATABASE_RETRY_SECONDS)

    def _run_housekeeping(self) -> None:
        stores: dict[str, Store] = {}
        while not self._late_merge_stores.empty():
            store = self._late_merge_stores.get()
            stores[store.key] = store
        if not (stores or self._retention_requested.is_set()) or self._stop.is_set():
            return
        try:
            with self.acquire_lock():
                for store in stores.values():
                    with isolated(store.key):
                        if not self.worker.merge_late_writes(store):
                            self.on_must_wait(store)
                if self._retention_requested.is_set():
                    self._retention_requested.clear()
                    with isolated("The retention"):
                        self.worker.apply_retention()
        except WorkerBusyError:
            log.info("late_writes_deferred", stores=len(stores))
            for store in stores.values():
                self.on_must_wait(store)

    def _run_one(self) -> bool:
        if not self.worker.has_unsaved_result and ((due := self.next_due()) is None or due > self.wall_clock()):
            return False
        try:
            with self.acquire_lock():
                finished = self.worker.run_next()
        except WorkerBusyError:
            return False
        if finished is not None:
            self.on_finished(finished)
        return finished is not None

    def _sleep(self) -> None:
        due = self.next_due()
        pause = MAX_SLEEP_SECONDS if due is None else min(max(due - self.wall_clock(), 0.05), MAX_SLEEP_SECONDS)
        self._wake.wait(pause)
        self._wake.clear()
