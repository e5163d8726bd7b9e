"""Run one daemon (`echod run`) from its lock to its last log line: build the loop and the worker, handle signals."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from types import FrameType
from typing import Self

from echod import __version__
from echod.app.context import process_is_alive
from echod.app.search import ALL_KINDS, SearchLocations
from echod.app.services import Services, open_services
from echod.contract.status import Severity, StatusWarning
from echod.daemon.events import Canary, EventBuffer, EventSource
from echod.daemon.loop import DaemonLoop
from echod.daemon.status_publisher import Notifier
from echod.daemon.upkeep import ClockJumpDetector, IntervalScheduler, PeriodicTask, SearchIndexer
from echod.daemon.watcher import Watcher
from echod.errors import ConfigurationError, EchodError, StateError
from echod.log import get_logger
from echod.paths import Paths
from echod.runtime import (
    HeartbeatWriter,
    HeldLock,
    WakeFile,
    daemon_lock,
    has_free_space,
    this_process,
    worker_lock,
)
from echod.scheduler.worker import WorkerThread
from echod.search.finder import DocumentFinder
from echod.settings.schema import Settings
from echod.store.errors import is_disk_full

log = get_logger(__name__)

STOP_SECONDS = 10.0
"""How long a running job may take to end after the daemon was asked to stop. A commit is never cut short."""

DISK_FULL_RETRY_SECONDS = 5.0
"""How often a start is tried again while the disk is full."""

_WORKER_LOCK_SECONDS = 2.0
_DAY_SECONDS = 86_400.0


@dataclass(slots=True)
class _Signals:
    """The requests that arrived as signals. Handlers only set flags and wake the loop."""

    wake: threading.Event
    stop: bool = False
    reload: bool = False
    previous_handlers: dict[int, object] = field(default_factory=dict)

    def __enter__(self) -> Self:
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            self.previous_handlers[number] = signal.signal(number, self._handle)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self.previous_handlers.items():
            signal.signal(number, handler)  # type: ignore[arg-type]

    def _handle(self, number: int, frame: FrameType | None) -> None:
        del frame
        if number == signal.SIGHUP:
            self.reload = True
        else:
            self.stop = True
        self.wake.set()


def run(paths: Paths, load: Callable[[], Settings], environ: Mapping[str, str]) -> None:
    """Run the daemon until a signal ends it. `load` reads the settings, and is called again at SIGHUP.

    Raises:
        AlreadyRunningError: another daemon of this user is running.
        ConfigurationError: the settings cannot be used.
        StateError: the state directory, the lock or the database cannot be used or was lost.
    """
    settings = load()
    notifier = Notifier.from_environment(environ, os.getpid())
    with _Signals(threading.Event()) as signals:
        while not signals.stop:
            try:
                _run_locked(paths, settings, load, environ, notifier, signals)
                break
            except StateError as error:
                # SQLite reports a full disk as an I/O error too.
                if not is_disk_full(error) and (error.__cause__ is None or has_free_space(paths.state)):
                    raise
                _wait_for_space(error, notifier, signals)


def _run_locked(
    paths: Paths,
    settings: Settings,
    load: Callable[[], Settings],
    environ: Mapping[str, str],
    notifier: Notifier,
    signals: _Signals,
) -> None:
    """Take the daemon's lock, and run with these settings and each later version of them until a signal or an error."""
    settings_warning = None
    paths.create_directories()
    owner = this_process()._replace(runtime=str(paths.runtime))
    with daemon_lock(paths.daemon_lock, owner) as lock:
        log.info("started", version=__version__, pid=os.getpid(), state=str(paths.state))
        while _run_with_settings(paths, settings, settings_warning, environ, lock, notifier, signals):
            notifier.reloading(time.monotonic())
            settings, settings_warning = _reload_settings(load, settings, settings_warning)
        log.info("stopped")


def _wait_for_space(error: EchodError, notifier: Notifier, signals: _Signals) -> None:
    """Wait a moment. A supervisor would give up after a few failed starts, and not try again once there is room."""
    log.warning("disk_full", error=str(error))
    # Readiness too, because a start that takes long would be a failed one.
    notifier.ready(f"The disk is full, so nothing is done. echod continues when there is room. {error}")
    notifier.notify_watchdog()
    signals.wake.wait(DISK_FULL_RETRY_SECONDS)
    signals.wake.clear()


def _reload_settings(
    load: Callable[[], Settings], current: Settings, settings_warning: StatusWarning | None
) -> tuple[Settings, StatusWarning | None]:
    """Read the settings again. If they are invalid now, keep the old ones, with an error in the log and the status.

    The settings in force have differed from the file since the warning of an earlier failed attempt.
    """
    try:
        settings = load()
    except ConfigurationError as error:
        log.error("settings_not_reloaded", error=str(error))  # noqa: TRY400  (the sentence is complete without a traceback)
        since = time.time() if settings_warning is None else settings_warning.since
        text = f"The settings could not be read again, so the earlier ones stay in force: {error}"
        fix = f"Correct them, then reload them with: kill -HUP {os.getpid()}"
        return current, StatusWarning("settings-not-reloaded", Severity.WARNING, since, text, fix)
    log.info("settings_reloaded")
    return settings, None


def _run_with_settings(
    paths: Paths,
    settings: Settings,
    warning: StatusWarning | None,
    environ: Mapping[str, str],
    lock: HeldLock,
    notifier: Notifier,
    signals: _Signals,
) -> bool:
    """Run with one set of settings until a signal or an error. Return whether to run again with new ones (SIGHUP)."""
    wake, reconcile_now = signals.wake, threading.Event()
    fatal_errors: list[EchodError] = []

    def request_reconcile() -> None:
        reconcile_now.set()
        wake.set()

    def stop_with_error(error: EchodError) -> None:
        fatal_errors.append(error)
        wake.set()

    with ExitStack() as stack:
        services = stack.enter_context(open_services(paths, settings, environ, time.time))
        _recover(services)
        buffer = EventBuffer(wake)
        watcher = stack.enter_context(Watcher(buffer))
        retention_due = threading.Event()
        retention_due.set()
        tasks = [
            PeriodicTask("reconcile", settings.reconcile_minutes * 60, request_reconcile),
            PeriodicTask("tidy", _DAY_SECONDS, retention_due.set),
        ]
        copies_due = threading.Event()
        copying: threading.Thread | None = None

        def request_copies() -> None:
            copies_due.set()
            wake.set()

        if settings.auto_memory.copies:
            copies_due.set()
            tasks.append(PeriodicTask("copies", settings.reconcile_minutes * 60, request_copies))
        interval_scheduler = stack.enter_context(IntervalScheduler(tasks))
        locations = SearchLocations.from_environment(paths, environ, settings.projects)
        search_indexer = stack.enter_context(
            SearchIndexer(
                DocumentFinder(paths.search_index),
                sources_of=lambda store: locations.project_sources([store], ALL_KINDS),
                shared_sources=lambda: locations.global_sources(ALL_KINDS),
            )
        )
        loop = DaemonLoop(
            services,
            identity=this_process(),
            event_source=EventSource(watcher, Canary(paths.canary)),
            heartbeat_writer=HeartbeatWriter(paths.heartbeat),
            notifier=notifier,
            lock=lock,
            wake_file=WakeFile(paths.wake_file),
            wake=wake,
            reconcile_now=reconcile_now,
            interval_scheduler=interval_scheduler,
            clock_jumps=ClockJumpDetector(time.time(), time.monotonic()),
            search_indexer=search_indexer,
            settings_warning=warning,
        )
        worker_thread = WorkerThread(
            services.worker,
            acquire_lock=lambda: worker_lock(paths.worker_lock, this_process(), _WORKER_LOCK_SECONDS),
            next_due=services.queue_view.next_due,
            wall_clock=time.time,
            on_finished=loop.job_finished,
            on_must_wait=loop.store_must_wait,
            on_fatal_error=stop_with_error,
            last_step_at=lambda: services.progress.last_step_at,
        )
        stack.enter_context(_running_worker(worker_thread))
        request_reconcile()
        loop.run_once(time.time(), time.monotonic(), worker_thread)
        notifier.ready(loop.health)
        while not (signals.stop or signals.reload or fatal_errors):
            if retention_due.is_set():
                retention_due.clear()
                worker_thread.request_retention()
            if copies_due.is_set() and not (copying and copying.is_alive()):
                copies_due.clear()
                # A thread of its own, since a slow disk must not hold up the loop. It writes nothing but the copies.
                copying = threading.Thread(target=services.copy_auto_memory, name="auto-memory", daemon=True)
                copying.start()
            wake.wait(loop.run_once(time.time(), time.monotonic(), worker_thread))
            wake.clear()
        if fatal_errors:
            raise fatal_errors[0]
        if signals.stop:
            notifier.stopping("finishing the running job")
            loop.finish()
        reload, signals.reload = signals.reload and not signals.stop, False
        return reload


@contextmanager
def _running_worker(worker_thread: WorkerThread) -> Iterator[None]:
    worker_thread.start()
    try:
        yield
    finally:
        if not worker_thread.stop(STOP_SECONDS):
            log.error("worker_did_not_stop", seconds=STOP_SECONDS, job=worker_thread.current_job)


def _recover(services: Services) -> None:
    """Complete the work that an earlier daemon left unfinished in the journal and in the queue."""
    with worker_lock(services.paths.worker_lock, this_process(), STOP_SECONDS):
        recovery = services.recover(services.read_context.discover_stores().stores)
        if recovery.redone or recovery.swept_files or recovery.deferred:
            log.info("recovered", redone=recovery.redone, swept=recovery.swept_files, parked=len(recovery.deferred))
        requeued = services.queue.recover(process_is_alive, time.time())
        if requeued:
            log.info("jobs_requeued", jobs=[job.id for job in requeued])
