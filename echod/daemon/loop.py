"""The daemon's loop: what happened -> which stores to look at -> what is queued; and the signs of life.

One thread owns everything here. Events are only hints where to look; a full look at every store comes at start,
after anything was missed, after a clock jump, and every few minutes. One turn takes the time as an argument.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Collection, Iterable
from pathlib import Path
from queue import SimpleQueue
from typing import NamedTuple

from echod import __version__
from echod.app.services import House
from echod.contract.status import DaemonInfo, Severity, StatusReport, Warn, to_json
from echod.daemon.event_health import EventPipe
from echod.daemon.notify import Notifier
from echod.daemon.secret_scan import Exposure
from echod.daemon.session_summaries import Summaries
from echod.daemon.timers import ClockJumps, Debounce, Metronome
from echod.daemon.watcher import Targets
from echod.daemon.worker_thread import UNAVAILABLE_SECONDS, Crew
from echod.errors import StateError
from echod.files import leave
from echod.inspection.counts import hand_on
from echod.jobs.base import Done
from echod.log import get_logger
from echod.projects.discovery import Roster
from echod.runtime.disk import has_room, kind_of, misses_remote_changes, read_mounts
from echod.runtime.heartbeat import BEAT_SECONDS, Heart, Heartbeat
from echod.runtime.locks import HeldLock
from echod.runtime.wake import WakeFile
from echod.scheduler.needs import Look, NeedRules
from echod.scheduler.reconcile import complete, take_in
from echod.scheduler.worker import Finished
from echod.state.errors import DatabaseUnavailableError
from echod.status.collect import Board
from echod.store.layout import Store
from echod.workflows import marker_directories
from echod.workflows.model import GateState

log = get_logger(__name__)

GATE_SECONDS = 2.0
"""How often the gate is asked while a job waits for it; its markers' events make it sooner."""

BOARD_SECONDS = 1.0
"""How often a status that changed is written for `echod status`."""

WORK_FIRST_SECONDS = 0.5
"""How long the status is not renewed after work was queued: both would want the processor at the same time."""

SETTLE_SECONDS = (5.0, 60.0)
"""How long after a job late bytes are looked for, besides every look at everything: soon, for whoever had the file
open while it was replaced; and once more, for a slower one."""

_SPOOL = ""
"""Stands for the hooks' events among the stores that are waited for."""

UNHEARD_SECONDS = 60.0
"""How often a store is looked at of which not every event reaches us."""

PACKS_SECONDS = 5.0
"""How often it is asked whether an installed doc pack or its manifest changed."""

LONG_LOOK_SECONDS, REST_FACTOR = 0.1, 10.0
"""A store that takes so long to look at is left alone for so many times as long: its jobs need the processor."""

LONGEST_TURN_SECONDS = BEAT_SECONDS


class Identity(NamedTuple):
    """This daemon, as its heartbeat names it."""

    pid: int
    started: str
    started_at: float


class Loop:
    """Everything but the worker. `turn` is called again and again until the process stops."""

    def __init__(
        self,
        house: House,
        *,
        me: Identity,
        pipe: EventPipe,
        heart: Heart,
        notifier: Notifier,
        lock: HeldLock,
        wake_file: WakeFile,
        wake: threading.Event,
        reconcile_now: threading.Event,
        metronome: Metronome,
        jumps: ClockJumps,
        settings_trouble: Warn | None = None,
    ) -> None:
        self._house = house
        self._me = me
        self._pipe = pipe
        self._heart = heart
        self._notifier = notifier
        self._lock = lock
        self._wake_file = wake_file
        self._wake = wake
        self._reconcile_now = reconcile_now
        self._metronome = metronome
        self._jumps = jumps
        self._board = Board(house.lookout)
        self._exposure = Exposure()
        settings = house.settings
        self._summaries = Summaries(house.paths.state, wanted=settings.hooks.session_summary)
        self._debounce: Debounce[str] = Debounce(settings.debounce_seconds, settings.debounce_max_seconds)
        self._roster = Roster()
        self._markers: dict[Path, Path] = {}
        self._held: set[str] = set()
        self._settle_at: list[tuple[float, str]] = []
        self._unheard: frozenset[str] = frozenset()
        self._unheard_at = 0.0
        self._ended: SimpleQueue[Finished] = SimpleQueue()
        self._gate_at = self._beat_at = self._shown_at = self._queued_at = 0.0
        self._packs_at: float | None = None
        self._stale: set[str] = set()
        self._half_seen: set[str] = set()
        self._changed = True
        self._reconciled_at: float | None = None
        self._notices: tuple[Warn, ...] = (*_rebuilt(house), *(() if settings_trouble is None else (settings_trouble,)))
        self._unavailable: Warn | None = None
        self._left = True
        self._roomy = True
        self._health = "starting"

    @property
    def health(self) -> str:
        """One line about how it is."""
        return self._health

    def job_ended(self, finished: Finished) -> None:
        """From the worker's thread: a job ended, so its store looks different now."""
        self._ended.put(finished)
        self._wake.set()

    def turn(self, wall: float, monotonic: float, crew: Crew) -> float:
        """Do what is due at this moment; returns for how many seconds there is nothing to do unless woken.

        Raises:
            StateError: the lock or the database was lost; the daemon must stop.
        """
        self._check()
        try:
            self._work(wall, monotonic, crew)
            self._unavailable = None
        except DatabaseUnavailableError as error:
            self._wait_for_database(error, wall)
        try:
            self._show(wall, monotonic)
        except DatabaseUnavailableError as error:
            self._wait_for_database(error, wall)
        self._beat(wall, monotonic, crew)
        return self._pause(monotonic)

    def _work(self, wall: float, monotonic: float, crew: Crew) -> None:
        self._hear_of_jobs(monotonic)
        if (ahead := self._jumps.jumped(wall, monotonic)) is not None:
            log.info("clock_jumped", seconds=round(ahead, 1))
            self._metronome.reschedule_all()
            self._reconcile_now.set()
        dirt = self._pipe.look(monotonic)
        if dirt.rescan:
            log.info("rescan", reasons=list(dirt.rescan))
            self._reconcile_now.set()
        if self._wake_file.woken():
            self._reconcile_now.set()
        if self._reconcile_now.is_set():
            self._reconcile_now.clear()
            self._look_everywhere(wall, monotonic)
            crew.settle((*self._roster.stores, *self._house.lookout.packs.stores))
        else:
            self._note(dirt.paths, monotonic)
            self._look_without_events(monotonic)
            if due := self._debounce.ready(monotonic):
                self._look_at(due, wall, monotonic, crew)
                crew.wake()
        self._settle(monotonic, crew)
        self._ask_gates(wall, monotonic, crew)
        self._changed |= self._exposure.step(wall, monotonic)
        self._look_at_packs(wall, monotonic)

    def _wait_for_database(self, error: DatabaseUnavailableError, wall: float) -> None:
        """Work stands still until it can be used again; what was drained of events meanwhile is looked for then."""
        log.warning("database_unavailable", error=str(error))
        since = self._unavailable.since if self._unavailable is not None else wall
        self._unavailable = Warn("database-unavailable", Severity.ERROR, since, str(error), "It is tried again.")
        self._reconcile_now.set()
        self._changed = True

    def finish(self) -> None:
        """A clean end: no sign of life stays behind."""
        self._heart.clear()
        self._house.paths.snapshot.unlink(missing_ok=True)
        self._hand_on_counts()

    def _hand_on_counts(self) -> None:
        hand_on(self._house.lookout.counted, self._house.paths.counts)

    def _check(self) -> None:
        if not self._lock.still_held():
            raise StateError("The daemon's lock file was replaced; another daemon may run now, so this one stops.")
        if not self._house.opened.database.still_ours():
            raise StateError("The state database was deleted or replaced; start echod again.")

    def _hear_of_jobs(self, monotonic: float) -> None:
        while not self._ended.empty():
            finished = self._ended.get()
            if isinstance(finished.outcome, Done) and finished.outcome.changed:
                self._settle_at += [(monotonic + later, finished.job.store) for later in SETTLE_SECONDS]
            if finished.held_by_gate:
                self._held.add(finished.job.store)
            self._stale.add(finished.job.store)

    def _look_everywhere(self, now: float, monotonic: float) -> None:
        self._roster = self._house.lookout.roster()
        self._markers = {
            directory: project for project in self._roster.projects for directory in marker_directories(project)
        }
        roots = (*(store.root for store in self._roster.stores), *sorted(self._roster.awaited))
        hints = (*self._markers, self._house.paths.state, self._house.paths.spool)
        self._pipe.arm(Targets(roots=roots, hints=tuple(dict.fromkeys(hints))))
        self._house.inbox.sort(now)
        for store in self._roster.stores:
            self._reconcile(store, now)
            self._board.refresh([store], now)  # at once, while what was read of its files is remembered
        self._unheard = self._without_events()
        self._exposure.mark(self._roster.stores, monotonic)
        self._board.mark_packs(self._roster.projects)
        self._packs_at = None
        self._summaries.tidy(self._roster.projects)
        self._summaries.renew(self._roster.stores)
        self._hand_on_counts()
        self._reconciled_at = now
        self._changed = True

    def _without_events(self) -> frozenset[str]:
        """The stores of which not every event reaches us: other machines write there, or a watch is missing."""
        mounts = read_mounts()
        unwatched = {path for path, _ in self._pipe.unwatched()}
        return frozenset(
            store.key
            for store in self._roster.stores
            if store.root in unwatched or misses_remote_changes(kind_of(store.root, mounts))
        )

    def _look_without_events(self, monotonic: float) -> None:
        if self._unheard and monotonic - self._unheard_at >= UNHEARD_SECONDS:
            self._unheard_at = monotonic
            for key in self._unheard:
                self._debounce.mark(key, monotonic)

    def _look_at_packs(self, wall: float, monotonic: float) -> None:
        if self._packs_at is None or monotonic - self._packs_at >= PACKS_SECONDS:
            self._packs_at = monotonic
            self._changed |= self._board.look_at_packs(wall)

    def _note(self, paths: Collection[Path], monotonic: float) -> None:
        for path in paths:
            if path in self._house.lookout.projects.files or path in self._roster.awaited:
                self._reconcile_now.set()
            elif path.parent == self._house.paths.spool:
                self._debounce.mark(_SPOOL, monotonic)
            elif (store := self._roster.store_of(path)) is not None:
                self._debounce.mark(store.key, monotonic)
            elif (project := self._markers.get(path.parent) or self._markers.get(path)) is not None:
                self._gate_at = 0.0
                self._stale.update(store.key for store in self._roster.stores_in(project))

    def _look_at(self, keys: Iterable[str], now: float, monotonic: float, crew: Crew) -> None:
        due = set(keys)
        if _SPOOL in due:
            due |= self._house.inbox.sort(now)
        stores = [store for store in self._roster.stores if store.key in due]
        for store in stores:
            began = time.monotonic()
            rules = self._house.lookout.rules(store.project)
            found = self._take_in(store, rules, now)
            if store.key not in self._half_seen and any(need.due <= now for need in found.needs):
                # What agents left is folded in first: its memory is another one in a moment, and is looked at then.
                self._half_seen.add(store.key)
                self._debounce.mark(store.key, monotonic)
                self._queued_at = monotonic
                crew.wake()
                continue
            self._half_seen.discard(store.key)
            self._complete(store, rules, now, found)
            took = time.monotonic() - began
            if took >= LONG_LOOK_SECONDS:
                self._debounce.rest(store.key, monotonic + took * REST_FACTOR)
        self._summaries.renew(stores)
        self._exposure.mark(stores, monotonic)
        self._stale.update(store.key for store in stores)
        self._changed = True

    def _reconcile(self, store: Store, now: float) -> None:
        self._half_seen.discard(store.key)
        rules = self._house.lookout.rules(store.project)
        self._complete(store, rules, now, self._take_in(store, rules, now))

    def _take_in(self, store: Store, rules: NeedRules, now: float) -> Look:
        return take_in(store, rules, self._house.queue, now, self._house.inbox)

    def _complete(self, store: Store, rules: NeedRules, now: float, found: Look) -> None:
        house = self._house
        for trouble in complete(store, rules, house.queue, now, found, house.upkeep):
            log.warning("store_not_readable", place=trouble.place, reason=trouble.text)
            if not store.root.is_dir():  # deleted or unmounted: it stays registered and is awaited
                self._reconcile_now.set()

    def _settle(self, monotonic: float, crew: Crew) -> None:
        due = {key for at, key in self._settle_at if at <= monotonic}
        if due:
            self._settle_at = [(at, key) for at, key in self._settle_at if at > monotonic]
            crew.settle(store for store in self._roster.stores if store.key in due)

    def _ask_gates(self, now: float, monotonic: float, crew: Crew) -> None:
        """Wake the jobs of stores whose gate has opened."""
        if monotonic - self._gate_at < GATE_SECONDS:
            return
        self._gate_at = monotonic
        for store in (store for store in self._roster.stores if store.key in self._held):
            verdict = self._house.lookout.gatekeeper.ask(store.project, self._roster.stores_in(store.project), now)
            if verdict.state is GateState.IDLE:
                woken = self._house.queue.wake_deferred(store.key, now)
                self._held.discard(store.key)
                log.info("gate_opened", store=store.key, jobs=woken)
                self._stale.add(store.key)
                crew.wake()

    def _show(self, now: float, monotonic: float) -> None:
        """Keep the status ready, so that asking costs the asker nearly nothing."""
        self._stale.update(self._board.expired(now))
        if not (self._changed or self._stale) or monotonic < self._show_at:
            return
        self._shown_at = monotonic
        stale, self._stale = self._stale, set()
        self._changed = False
        self._board.refresh((store for store in self._roster.stores if store.key in stale), now)
        daemon = DaemonInfo(self._me.pid, __version__, now - self._me.started_at)
        report = self._board.report(self._roster, now, daemon=daemon, warnings=self._own_warnings(now, monotonic))
        self._health = one_line(report)
        self._leave(to_json(report))

    @property
    def _show_at(self) -> float:
        """When the status may be renewed, by the monotonic clock; work that was just queued comes first for a while."""
        soonest = self._shown_at + BOARD_SECONDS
        return max(soonest, min(self._queued_at + WORK_FIRST_SECONDS, soonest + BOARD_SECONDS))

    def _leave(self, status: str) -> None:
        snapshot = self._house.paths.snapshot
        try:
            leave(snapshot, status)
            self._left = True
        except OSError as error:
            if self._left:
                log.warning("status_not_left", reason=error.strerror)
            self._left = False
            self._changed = True
            with contextlib.suppress(OSError):
                snapshot.unlink()  # what it says is not true any more; commands look for themselves then

    def _own_warnings(self, now: float, monotonic: float) -> tuple[Warn, ...]:
        unwatched = tuple(
            Warn(
                "not-watched",
                Severity.WARNING,
                now,
                f"{path} is only looked at now and then: {reason}.",
                "",
            )
            for path, reason in self._pipe.unwatched()
        )
        silent = tuple(
            Warn(
                "events-missing", Severity.WARNING, now, f"{text[:1].upper()}{text[1:]}.", "echod heals this by itself."
            )
            for text in self._pipe.troubles(monotonic)
        )
        unavailable = () if self._unavailable is None else (self._unavailable,)
        exposed = self._exposure.warnings(self._roster.stores)
        return (*unavailable, *self._notices, *unwatched, *silent, *exposed)

    def _beat(self, now: float, monotonic: float, crew: Crew) -> None:
        if monotonic - self._beat_at < self._notifier.pace(BEAT_SECONDS):
            return
        self._beat_at = monotonic
        if (roomy := has_room(self._house.paths.state)) is not self._roomy:
            self._roomy = roomy
            self._changed = True
        beat = Heartbeat(
            pid=self._me.pid,
            started=self._me.started,
            version=__version__,
            started_at=self._me.started_at,
            beat_at=now,
            beat_monotonic=monotonic,
            worker_monotonic=crew.moved,
            canary_ok=self._pipe.alive(monotonic),
            job=crew.doing,
            health=self._health,
            reconciled_at=self._reconciled_at,
        )
        if self._heart.beat(beat):
            self._notifier.watchdog()
            self._notifier.status(self._health)
        else:
            log.warning("no_progress", canary_ok=beat.canary_ok, job=beat.job)

    def _pause(self, monotonic: float) -> float:
        pauses = [LONGEST_TURN_SECONDS, self._notifier.pace(BEAT_SECONDS) - (monotonic - self._beat_at)]
        if (due := self._debounce.next_due()) is not None:
            pauses.append(due - monotonic)
        pauses += [at - monotonic for at, _ in self._settle_at]
        if self._held:
            pauses.append(GATE_SECONDS - (monotonic - self._gate_at))
        if self._changed or self._stale:
            pauses.append(self._show_at - monotonic)
        if self._unavailable is not None:
            pauses.append(UNAVAILABLE_SECONDS)
        if (pause := self._exposure.pause(monotonic)) is not None:
            pauses.append(pause)
        return max(0.02, min(pauses))


def one_line(report: StatusReport) -> str:
    """The status as the supervisor shows it."""
    queue = report.queue
    return f"{report.health.value}: {queue.queued + queue.running} to do, {queue.deferred} waiting for workflows"


def _rebuilt(house: House) -> tuple[Warn, ...]:
    rebuilt = house.opened.rebuilt
    if rebuilt is None:
        return ()
    text = f"The state database was damaged ({rebuilt.reason}) and was rebuilt from the disk. No memory was touched."
    return (Warn("database-rebuilt", Severity.WARNING, rebuilt.at, text, f"The damaged one is {rebuilt.moved_to}."),)
