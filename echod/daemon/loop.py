"""Run the daemon's loop: changed paths -> stores to reconcile -> queued jobs, and the heartbeat.

One thread owns everything here. Events are only hints. Every store is reconciled at start, after events were missed,
after a clock jump, and every few minutes, in slices so that the loop stays responsive. One iteration takes the time as
an argument.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Collection, Iterable
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from queue import SimpleQueue

from echod import __version__
from echod.app.services import Services
from echod.contract.status import Severity, StatusWarning
from echod.daemon import upkeep
from echod.daemon.events import EventSource
from echod.daemon.status_publisher import Notifier, StatusPublisher
from echod.daemon.watcher import WatchTargets
from echod.errors import StateError, isolated
from echod.jobs.base import JobDone
from echod.log import get_logger
from echod.projects.discovery import DiscoveredStores
from echod.runtime import (
    HEARTBEAT_SECONDS,
    Heartbeat,
    HeartbeatWriter,
    HeldLock,
    LockOwner,
    WakeFile,
    filesystem_type,
    has_free_space,
    is_remote_filesystem,
    read_mounts,
)
from echod.scheduler.needs import NeedsReport
from echod.scheduler.reconcile import queue_findings, queue_maintenance
from echod.scheduler.worker import DATABASE_RETRY_SECONDS, FinishedJob, WorkerThread
from echod.state.database import DatabaseUnavailableError
from echod.state.jobs import JobState
from echod.state.repair import LOST_WITH_DATABASE
from echod.status.collect import StatusCollector
from echod.store.layout import Store, store_at
from echod.workflows import marker_directories
from echod.workflows.model import GateState

log = get_logger(__name__)

GATE_POLL_SECONDS = 2.0
"""How often the gate is checked while a job waits for it. Events of its markers cause an earlier check."""

LATE_WRITE_CHECK_SECONDS = (5.0, 60.0)
"""How long after a job the displaced files are checked for late writes, besides at every full reconcile: soon, for a
program that had the file open during the exchange, and once more for a slower one."""

UNWATCHED_POLL_SECONDS = 60.0
"""How often a store without reliable events is reconciled."""

PACKS_POLL_SECONDS = 5.0
"""How often the doc packs and their manifests are checked for changes."""

SLOW_LOOK_SECONDS, HOLD_OFF_FACTOR = 0.1, 10.0
"""A store is not looked at again for ten times as long as the last look took, if that was at least this long, because
its jobs need the processor. Findings and memory files are held off apart, so a long memory delays no finding."""

SLICE_SECONDS = 2.0
"""How long one iteration of a full reconcile inspects stores. Then the loop reports progress, processes events and may
stop, and the next iteration continues, because a first look at a thousand projects takes minutes."""

PROBLEM_RETRY_SECONDS = 60.0
"""How long after an error that no reader expected everything is inspected again."""

_MAX_SHOWN_PROBLEMS = 20

MAX_WAIT_SECONDS = HEARTBEAT_SECONDS

_MAX_DEFERRED_JOBS = 10_000

_SPOOL_KEY = ""

_ADOPT_LOCK_SECONDS = 0.5
"""A moved project that is not recognised now, since a job runs, is recognised at the next reconcile."""

"""Represents the hooks' events among the stores in the debounce."""


@dataclass(eq=False)
class DaemonLoop:
    """Everything in the daemon except the worker. `run_once` is called repeatedly until the process stops."""

    services: Services
    _: KW_ONLY
    identity: LockOwner
    event_source: EventSource
    heartbeat_writer: HeartbeatWriter
    notifier: Notifier
    lock: HeldLock
    wake_file: WakeFile
    wake: threading.Event
    reconcile_now: threading.Event
    interval_scheduler: upkeep.IntervalScheduler
    clock_jumps: upkeep.ClockJumpDetector
    search_indexer: upkeep.SearchIndexer
    settings_warning: StatusWarning | None = None

    def __post_init__(self) -> None:
        settings, state = self.services.settings, self.services.paths.state
        self._status_collector = StatusCollector(self.services.read_context)
        self._status = StatusPublisher(self._status_collector, self.services.paths.status_snapshot, self.identity)
        self._secret_scan = upkeep.SecretScanTask(self.services.read_context.inspections)
        self._session_summaries = upkeep.SessionSummaries(state, enabled=settings.hooks.session_summary)
        self._pressure_notices = upkeep.PressureNotices(state)
        self._debounce: upkeep.Debounce[str] = upkeep.Debounce(settings.debounce_seconds, settings.debounce_max_seconds)
        self._discovered = DiscoveredStores()
        self._projects_by_marker_directory: dict[Path, Path] = {}
        self._gated_stores: set[str] = set()
        self._late_write_checks: list[tuple[float, str]] = []
        self._unwatched_stores: frozenset[str] = frozenset()
        self._unwatched_polled_at = 0.0
        self._finished_jobs: SimpleQueue[FinishedJob] = SimpleQueue()
        self._waiting_stores: SimpleQueue[str] = SimpleQueue()
        self._gates_checked_at = self._heartbeat_at = 0.0
        self._packs_inspected_at: float | None = None
        self._awaiting_second_pass: set[str] = set()
        self._inspection_debounce: upkeep.Debounce[str] = upkeep.Debounce(0, 0)
        self._reconciled_at: float | None = None
        self._remaining_stores: deque[Store] | None = None  # None between two full reconciles
        startup_warnings = (_rebuilt_warning(self.services), self.settings_warning)
        self._startup_warnings = tuple(warning for warning in startup_warnings if warning is not None)
        self._database_warning: StatusWarning | None = None
        self._problems: list[str] = []
        self._shown_problems: tuple[str, ...] = ()
        self._retry_at: float | None = None
        self._has_disk_space = True

    @property
    def health(self) -> str:
        """The status in one line."""
        return self._status.summary

    def job_finished(self, finished: FinishedJob) -> None:
        """Record that a job ended, so its store has changed. Called in the worker's thread."""
        self._finished_jobs.put(finished)
        self.wake.set()

    def store_must_wait(self, store: Store) -> None:
        """Record that the gate of a store holds the repair of its files. Called in the worker's thread."""
        self._waiting_stores.put(store.key)
        self.wake.set()

    def run_once(self, wall: float, monotonic: float, worker_thread: WorkerThread) -> float:
        """Do everything that is due now. Return for how many seconds nothing will be due unless the loop is woken.

        Raises:
            StateError: the lock or the database was lost, so the daemon must stop.
        """
        if not self.lock.is_current():
            raise StateError("The daemon's lock file was replaced. Another daemon may be running, so this one stops.")
        if not self.services.checked_database.database.is_current():
            raise StateError("The state database was deleted or replaced. Start echod again.")
        try:
            with isolated("This round", self._problems.append):
                self._process_changes(wall, monotonic, worker_thread)
            self._database_warning = None
        except DatabaseUnavailableError as error:
            self._report_database_unavailable(error, wall)
        self._update_problems(monotonic)
        try:
            with isolated("The status"):
                self._update_status(wall, monotonic)
        except DatabaseUnavailableError as error:
            self._report_database_unavailable(error, wall)
        self._write_heartbeat(wall, monotonic, worker_thread)
        return self._wait_seconds(monotonic)

    def _process_changes(self, wall: float, monotonic: float, worker_thread: WorkerThread) -> None:
        self._collect_finished_jobs(monotonic)
        if (jump_seconds := self.clock_jumps.check(wall, monotonic)) is not None:
            log.info("clock_jumped", seconds=round(jump_seconds, 1))
            self.interval_scheduler.reschedule_all()
            self.reconcile_now.set()
        changes = self.event_source.poll(monotonic)
        if changes.rescan:
            log.info("rescan", reasons=list(changes.rescan))
            self.reconcile_now.set()
        if self.wake_file.was_written():
            self.reconcile_now.set()
        if self.reconcile_now.is_set():
            self.reconcile_now.clear()
            self._begin_full_reconcile(wall)
        else:
            self._mark_changed_paths(changes.paths, monotonic)
            self._poll_unwatched_stores(monotonic)
            if due := {*self._debounce.ready(monotonic), *self._inspection_debounce.ready(monotonic)}:
                self._reconcile_dirty(due, wall, monotonic, worker_thread)
                worker_thread.wake()
        if self._remaining_stores is not None:
            self._continue_full_reconcile(self._remaining_stores, wall, monotonic, worker_thread)
        self._check_late_writes(monotonic, worker_thread)
        self._check_gates(wall, monotonic, worker_thread)
        if self._secret_scan.run_step(wall, monotonic):
            self._status.mark_changed()
        self._inspect_packs(wall, monotonic)

    def _update_status(self, wall: float, monotonic: float) -> None:
        if self._reconciled_at is None and self._remaining_stores is not None:
            # A report without the stores that were not looked at yet would be wrong, so there is none yet.
            total = len(self._discovered.stores)
            self._status.summary = f"starting: {total - len(self._remaining_stores)} of {total} stores inspected"
            return
        self._status.update(self._discovered, wall, monotonic, lambda: self._daemon_warnings(wall, monotonic))
        self._pressure_notices.update(self._status_collector.session_infos)

    def _update_problems(self, monotonic: float) -> None:
        """Show the errors of this round in the status until a whole inspection succeeds, and request one."""
        if self._problems:
            self._shown_problems = tuple(dict.fromkeys((*self._shown_problems, *self._problems)))[:_MAX_SHOWN_PROBLEMS]
            self._problems.clear()
            self._retry_at = monotonic + PROBLEM_RETRY_SECONDS
            self._status.mark_changed()
        elif self._retry_at is not None and monotonic >= self._retry_at:
            self._retry_at = None
            self._shown_problems = ()
            self.reconcile_now.set()

    def _report_database_unavailable(self, error: DatabaseUnavailableError, wall: float) -> None:
        # Jobs are paused until it can be used again. A full reconcile then replaces the events that were drained.
        log.warning("database_unavailable", error=str(error))
        since = self._database_warning.since if self._database_warning is not None else wall
        fix = "echod retries by itself."
        self._database_warning = StatusWarning("database-unavailable", Severity.ERROR, since, str(error), fix)
        self.reconcile_now.set()
        self._remaining_stores = None
        self._status.mark_changed()

    def finish(self) -> None:
        """End cleanly: remove the heartbeat and the status snapshot."""
        self.heartbeat_writer.clear()
        self._status.remove()
        self.services.read_context.save_inspections()

    def _collect_finished_jobs(self, monotonic: float) -> None:
        while not self._waiting_stores.empty():
            self._gated_stores.add(self._waiting_stores.get())
        while not self._finished_jobs.empty():
            finished = self._finished_jobs.get()
            if isinstance(finished.outcome, JobDone) and finished.outcome.changed:
                store = finished.job.store
                self._late_write_checks += [(monotonic + delay, store) for delay in LATE_WRITE_CHECK_SECONDS]
            if finished.deferred_by_gate:
                self._gated_stores.add(finished.job.store)
            self._status.mark_stale([finished.job.store])
            self.search_indexer.request([store_at(Path(finished.job.store))])

    def _begin_full_reconcile(self, now: float) -> None:
        """Find the projects, watch them, and note their stores for inspection, first those of an unfinished one."""
        places = {store.key: place for place, store in enumerate(self._remaining_stores or ())}
        self._remaining_stores = None
        self._discovered = self.services.read_context.discover_stores()
        if self.services.recorded_projects.adopt_moved(self._discovered.projects, lock_seconds=_ADOPT_LOCK_SECONDS):
            self._discovered = self.services.read_context.discover_stores()
        if (sessions := self.services.read_context.session_need_finder_for(self._discovered.projects)) is not None:
            sessions.look_again()  # what was found before the request may be out of date
        self._projects_by_marker_directory = {}
        for project in self._discovered.projects:
            with isolated(str(project), self._problems.append):
                self._projects_by_marker_directory |= dict.fromkeys(marker_directories(project), project)
        roots = (*(store.root for store in self._discovered.stores), *sorted(self._discovered.expected_roots))
        hints = (*self._projects_by_marker_directory, self.services.paths.state, self.services.paths.spool)
        self.event_source.watch(WatchTargets(roots=roots, hints=tuple(dict.fromkeys(hints))))
        self.services.inbox.refresh(now)
        if self._reconciled_at is None:
            self._status.remove()
            # An earlier process may have deferred them.
            deferred = self.services.queue_view.list_jobs({JobState.DEFERRED}, limit=_MAX_DEFERRED_JOBS)
            self._gated_stores |= {job.store for job in deferred}
        self._remaining_stores = deque(
            sorted(self._discovered.stores, key=lambda store: places.get(store.key, len(places)))
        )

    def _continue_full_reconcile(
        self, remaining: deque[Store], now: float, monotonic: float, worker_thread: WorkerThread
    ) -> None:
        """Inspect stores for a while. After the last one, complete the reconcile."""
        slice_end = time.monotonic() + SLICE_SECONDS
        while remaining:
            store = remaining.popleft()
            with isolated(store.key, self._problems.append):
                self._queue_maintenance(store, now, self._queue_findings(store, now))
            self._status_collector.inspect([store], now)  # at once, while its files are in the caches
            if remaining and time.monotonic() >= slice_end:
                worker_thread.wake()
                return
        self._remaining_stores = None
        self._complete_full_reconcile(now, monotonic)
        pack_stores = self.services.read_context.pack_locations.stores
        worker_thread.request_late_merge((*self._discovered.stores, *pack_stores))

    def _complete_full_reconcile(self, now: float, monotonic: float) -> None:
        self._unwatched_stores = self._stores_without_events()
        self._secret_scan.mark_changed(self._discovered.stores, monotonic)
        self.search_indexer.request(self._discovered.stores)
        self.search_indexer.request_shared()
        self._status_collector.invalidate_packs(self._discovered.projects)
        self._packs_inspected_at = None
        with isolated("The summaries for sessions", self._problems.append):
            self._session_summaries.remove_stale(self._discovered.projects)
            self._session_summaries.update(self._discovered.stores)
        self.services.read_context.save_inspections()
        self._reconciled_at = now
        self._status.mark_changed()

    def _stores_without_events(self) -> frozenset[str]:
        """Return the stores from which not every event arrives: other machines write there, or a watch is missing."""
        mounts = read_mounts()
        unwatched = {path for path, _ in self.event_source.unwatched()}
        return frozenset(
            store.key
            for store in self._discovered.stores
            if store.root in unwatched or is_remote_filesystem(filesystem_type(store.root, mounts))
        )

    def _poll_unwatched_stores(self, monotonic: float) -> None:
        if self._unwatched_stores and monotonic - self._unwatched_polled_at >= UNWATCHED_POLL_SECONDS:
            self._unwatched_polled_at = monotonic
            for key in self._unwatched_stores:
                self._debounce.mark(key, monotonic)

    def _inspect_packs(self, wall: float, monotonic: float) -> None:
        if self._packs_inspected_at is None or monotonic - self._packs_inspected_at >= PACKS_POLL_SECONDS:
            self._packs_inspected_at = monotonic
            if self._status_collector.inspect_packs(wall):
                self._status.mark_changed()
                self.search_indexer.request_shared()

    def _mark_changed_paths(self, paths: Collection[Path], monotonic: float) -> None:
        projects = self._projects_by_marker_directory
        for path in paths:
            if path in self.services.read_context.projects.files or path in self._discovered.expected_roots:
                self.reconcile_now.set()
            elif path.parent == self.services.paths.spool:
                self._debounce.mark(_SPOOL_KEY, monotonic)
            elif (store := self._discovered.store_containing(path)) is not None:
                self._debounce.mark(store.key, monotonic)
            elif (project := projects.get(path.parent) or projects.get(path)) is not None:
                self._gates_checked_at = 0.0
                for store in self._discovered.stores_in(project):
                    self._debounce.mark(store.key, monotonic)  # a workflow that ends leaves reports behind
                    self._status.mark_stale([store.key])

    def _reconcile_dirty(self, keys: Iterable[str], now: float, monotonic: float, worker_thread: WorkerThread) -> None:
        due = set(keys)
        if _SPOOL_KEY in due:
            due |= self.services.inbox.refresh(now)
        stores = [store for store in self._discovered.stores if store.key in due]
        for store in stores:
            with isolated(store.key, self._problems.append):
                self._reconcile_store(store, now, monotonic, worker_thread)
        self._session_summaries.update(stores)
        self._secret_scan.mark_changed(stores, monotonic)
        self.search_indexer.request(stores)
        self._status.mark_stale(store.key for store in stores)
        self._status.mark_changed()

    def _reconcile_store(self, store: Store, now: float, monotonic: float, worker_thread: WorkerThread) -> None:
        started = time.monotonic()
        needs = self._queue_findings(store, now)
        self._hold_off(self._debounce, store, monotonic, time.monotonic() - started)
        if store.key not in self._awaiting_second_pass and any(need.due <= now for need in needs.needs):
            # New findings are consolidated first. The memory changes in a moment, and is inspected after that.
            self._awaiting_second_pass.add(store.key)
            self._debounce.mark(store.key, monotonic)
            self._status.delay(monotonic)
            worker_thread.wake()
            return
        if self._inspection_debounce.is_held_off(store.key, monotonic):
            self._awaiting_second_pass.discard(store.key)
            self._inspection_debounce.mark(store.key, monotonic)
            return
        started = time.monotonic()
        self._queue_maintenance(store, now, needs)
        if self.services.engine.roles_changed_by_others(store):
            worker_thread.request_late_merge([store])
        self._hold_off(self._inspection_debounce, store, monotonic, time.monotonic() - started)

    def _hold_off(self, debounce: upkeep.Debounce[str], store: Store, monotonic: float, elapsed: float) -> None:
        if elapsed >= SLOW_LOOK_SECONDS:
            debounce.hold_off(store.key, monotonic + elapsed * HOLD_OFF_FACTOR)

    def _queue_findings(self, store: Store, now: float) -> NeedsReport:
        need_settings = self.services.read_context.need_settings(store.project)
        return queue_findings(store, need_settings, self.services.queue, now, self.services.inbox)

    def _queue_maintenance(self, store: Store, now: float, needs: NeedsReport) -> None:
        self._awaiting_second_pass.discard(store.key)
        need_settings = self.services.read_context.need_settings(store.project)
        finder = self.services.maintenance_finder
        sessions = self.services.read_context.session_need_finder_for([store.project])
        for problem in queue_maintenance(store, need_settings, self.services.queue, now, needs, finder, sessions):
            log.warning("store_unreadable", path=problem.path, reason=problem.text)
            if not store.root.is_dir():  # deleted or unmounted: it stays registered and is expected back
                self.reconcile_now.set()

    def _check_late_writes(self, monotonic: float, worker_thread: WorkerThread) -> None:
        due = {key for at, key in self._late_write_checks if at <= monotonic}
        if due:
            self._late_write_checks = [(at, key) for at, key in self._late_write_checks if at > monotonic]
            worker_thread.request_late_merge(store for store in self._discovered.stores if store.key in due)

    def _check_gates(self, now: float, monotonic: float, worker_thread: WorkerThread) -> None:
        """Wake the jobs of stores whose gate has opened."""
        if monotonic - self._gates_checked_at < GATE_POLL_SECONDS:
            return
        self._gates_checked_at = monotonic
        project_gate = self.services.read_context.project_gate
        for store in (store for store in self._discovered.stores if store.key in self._gated_stores):
            verdict = None
            with isolated(store.key, self._problems.append):
                verdict = project_gate.check(store.project, self._discovered.stores_in(store.project), now)
            if verdict is not None and verdict.state is GateState.IDLE:
                woken_jobs = self.services.queue.wake_deferred(store.key, now)
                self._gated_stores.discard(store.key)
                worker_thread.request_late_merge([store])
                log.info("gate_opened", store=store.key, jobs=woken_jobs)
                self._debounce.mark(store.key, monotonic)
                self._status.mark_stale([store.key])
                worker_thread.wake()

    def _daemon_warnings(self, now: float, monotonic: float) -> tuple[StatusWarning, ...]:
        warnings = [] if self._database_warning is None else [self._database_warning]
        warnings += self._startup_warnings
        warnings += [
            StatusWarning("left-alone", Severity.WARNING, now, problem, "echod tries again by itself.")
            for problem in self._shown_problems
        ]
        for path, reason in self.event_source.unwatched():
            text = f"{path} is not watched, only checked now and then: {reason}."
            warnings.append(StatusWarning("not-watched", Severity.WARNING, now, text, ""))
        for problem in self.event_source.problems(monotonic):
            text, fix = f"{problem[:1].upper()}{problem[1:]}.", "echod repairs this by itself."
            warnings.append(StatusWarning("events-missing", Severity.WARNING, now, text, fix))
        return (*warnings, *self._secret_scan.warnings(self._discovered.stores))

    def _write_heartbeat(self, now: float, monotonic: float, worker_thread: WorkerThread) -> None:
        if monotonic - self._heartbeat_at < self.notifier.report_interval(HEARTBEAT_SECONDS):
            return
        self._heartbeat_at = monotonic
        if (enough_space := has_free_space(self.services.paths.state)) is not self._has_disk_space:
            self._has_disk_space = enough_space
            self._status.mark_changed()
        heartbeat = Heartbeat(
            pid=self.identity.pid,
            started=self.identity.started,
            version=__version__,
            started_at=self.identity.since,
            beat_at=now,
            beat_monotonic=monotonic,
            worker_monotonic=worker_thread.last_progress,
            canary_ok=self.event_source.is_alive(monotonic),
            job=worker_thread.current_job,
            health=self.health,
            reconciled_at=self._reconciled_at,
        )
        if self.heartbeat_writer.beat(heartbeat):
            self.notifier.notify_watchdog()
            self.notifier.status(self.health)
        else:
            log.warning("no_progress", canary_ok=heartbeat.canary_ok, job=heartbeat.job)

    def _wait_seconds(self, monotonic: float) -> float:
        waits = [MAX_WAIT_SECONDS, self.notifier.report_interval(HEARTBEAT_SECONDS) - (monotonic - self._heartbeat_at)]
        looks = (self._debounce.next_due(), self._inspection_debounce.next_due())
        waits += [due - monotonic for due in looks if due is not None]
        waits += [at - monotonic for at, _ in self._late_write_checks]
        if self._remaining_stores is not None:
            waits.append(0.0)
        if self._gated_stores:
            waits.append(GATE_POLL_SECONDS - (monotonic - self._gates_checked_at))
        if self._database_warning is not None:
            waits.append(DATABASE_RETRY_SECONDS)
        pauses = (self._status.seconds_until_due(monotonic), self._secret_scan.seconds_until_next_step(monotonic))
        waits += [pause for pause in pauses if pause is not None]
        return max(0.02, min(waits))


def _rebuilt_warning(services: Services) -> StatusWarning | None:
    rebuilt = services.checked_database.rebuild
    if rebuilt is None:
        return None
    text = f"The state database was damaged ({rebuilt.reason}) and was rebuilt from the disk. No memory was changed. "
    text += LOST_WITH_DATABASE
    fix = f"The damaged database is {rebuilt.moved_to}."
    return StatusWarning("database-rebuilt", Severity.WARNING, rebuilt.rebuilt_at, text, fix)
