"""`echod run`: one daemon from its lock to its last log line. Builds the loop and the worker, hears signals."""

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
from echod.app.context import still_runs
from echod.app.services import House, furnish
from echod.contract.status import Severity, Warn
from echod.daemon.event_health import Canary, EventPipe
from echod.daemon.events import Sink
from echod.daemon.loop import Identity, Loop
from echod.daemon.notify import Notifier
from echod.daemon.timers import ClockJumps, Metronome, Tick
from echod.daemon.watcher import Watcher
from echod.daemon.worker_thread import Crew
from echod.errors import ConfigurationError, EchodError, StateError
from echod.log import get_logger
from echod.packs.manifests import agree
from echod.paths import Paths
from echod.runtime.heartbeat import Heart
from echod.runtime.locks import HeldLock, Holder, daemon_lock, worker_lock
from echod.runtime.process import look_up
from echod.runtime.wake import WakeFile
from echod.settings.values import Settings
from echod.store.errors import Refused, StoreFault

log = get_logger(__name__)

STOP_SECONDS = 10.0
"""How long a running job may take to end once the daemon was told to stop; a commit is never cut short."""

_WORKER_LOCK_SECONDS = 2.0
_DAY_SECONDS = 86_400.0


@dataclass(slots=True)
class _Signals:
    """What signals asked for; handlers only set flags and wake the loop."""

    wake: threading.Event
    stop: bool = False
    reload: bool = False
    previous: dict[int, object] = field(default_factory=dict)

    def __enter__(self) -> Self:
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            self.previous[number] = signal.signal(number, self._heard)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self.previous.items():
            signal.signal(number, handler)  # type: ignore[arg-type]

    def _heard(self, number: int, frame: FrameType | None) -> None:
        del frame
        if number == signal.SIGHUP:
            self.reload = True
        else:
            self.stop = True
        self.wake.set()


def run(paths: Paths, load: Callable[[], Settings], environ: Mapping[str, str]) -> None:
    """Be the daemon until a signal ends it.

    Args:
        paths: where state and runtime files are.
        load: reads the settings; called again at SIGHUP.
        environ: the process environment, for the supervisor's socket and Claude Code's directory.

    Raises:
        AlreadyRunningError: another daemon of this user runs.
        ConfigurationError: the settings cannot be used.
        StateError: the state directory, the lock or the database cannot be used or was lost.
    """
    settings, trouble = load(), None
    paths.create()
    wake = threading.Event()
    notifier = Notifier.from_environment(environ, os.getpid())
    with _Signals(wake) as signals, daemon_lock(paths.daemon_lock, me()) as lock:
        log.info("started", version=__version__, pid=os.getpid(), state=str(paths.state))
        while True:
            again = _live(paths, settings, trouble, environ, lock, notifier, signals)
            if not again:
                break
            notifier.reloading(time.monotonic())
            settings, trouble = _reloaded(load, settings, trouble)
        log.info("stopped")


def _reloaded(load: Callable[[], Settings], old: Settings, trouble: Warn | None) -> tuple[Settings, Warn | None]:
    """The settings read again; where they are wrong now, the old ones stay, and the log and the status say so.

    `trouble` is what an earlier attempt said: since then the settings in force are not those of the file.
    """
    try:
        settings = load()
    except ConfigurationError as error:
        log.error("settings_not_reloaded", error=str(error))  # noqa: TRY400  (the sentence says it all)
        since = time.time() if trouble is None else trouble.since
        text = f"The settings could not be read again, so the earlier ones stay in force: {error}"
        fix = f"Correct that, then have them read again with: kill -HUP {os.getpid()}"
        return old, Warn("settings-not-reloaded", Severity.WARNING, since, text, fix)
    log.info("settings_reloaded")
    return settings, None


def _live(
    paths: Paths,
    settings: Settings,
    trouble: Warn | None,
    environ: Mapping[str, str],
    lock: HeldLock,
    notifier: Notifier,
    signals: _Signals,
) -> bool:
    """One life with one set of settings; whether another should follow (SIGHUP)."""
    wake, reconcile_now = signals.wake, threading.Event()
    lost: list[EchodError] = []

    def remind() -> None:
        reconcile_now.set()
        wake.set()

    def give_up(error: EchodError) -> None:
        lost.append(error)
        wake.set()

    with ExitStack() as stack:
        house = stack.enter_context(furnish(paths, settings, environ, time.time))
        _take_stock(house)
        sink = Sink(wake)
        watcher = stack.enter_context(Watcher(sink))
        tidy_now = threading.Event()
        tidy_now.set()
        ticks = [
            Tick("reconcile", settings.reconcile_minutes * 60, remind),
            Tick("tidy", _DAY_SECONDS, tidy_now.set),
        ]
        metronome = stack.enter_context(Metronome(ticks))
        loop = Loop(
            house,
            me=_identity(),
            pipe=EventPipe(watcher, Canary(paths.canary)),
            heart=Heart(paths.heartbeat),
            notifier=notifier,
            lock=lock,
            wake_file=WakeFile(paths.wake),
            wake=wake,
            reconcile_now=reconcile_now,
            metronome=metronome,
            jumps=ClockJumps(time.time(), time.monotonic()),
            settings_trouble=trouble,
        )
        crew = Crew(
            house.worker,
            exclusive=lambda: worker_lock(paths.worker_lock, me(), _WORKER_LOCK_SECONDS),
            next_due=house.view.next_due,
            wall=time.time,
            ended=loop.job_ended,
            lost=give_up,
            progress=lambda: house.progress.at,
        )
        stack.enter_context(_working(crew))
        remind()
        loop.turn(time.time(), time.monotonic(), crew)
        notifier.ready(loop.health)
        while not (signals.stop or signals.reload or lost):
            if tidy_now.is_set():
                tidy_now.clear()
                crew.tidy()
            wake.wait(loop.turn(time.time(), time.monotonic(), crew))
            wake.clear()
        if lost:
            raise lost[0]
        if signals.stop:
            notifier.stopping("finishing the running job")
            loop.finish()
        again, signals.reload = signals.reload and not signals.stop, False
        return again


@contextmanager
def _working(crew: Crew) -> Iterator[None]:
    crew.start()
    try:
        yield
    finally:
        if not crew.stop(STOP_SECONDS):
            log.error("worker_did_not_stop", seconds=STOP_SECONDS, job=crew.doing)


def _take_stock(house: House) -> None:
    """Finish what an earlier life left half done, in the journal and in the queue."""
    with worker_lock(house.paths.worker_lock, me(), STOP_SECONDS):
        recovery = house.engine.recover((*house.lookout.roster().stores, *house.lookout.packs.stores))
        _put_manifests_right(house)
        if recovery.redone or recovery.swept or recovery.parked:
            log.info("recovered", redone=recovery.redone, swept=recovery.swept, parked=len(recovery.parked))
        taken_back = house.queue.recover(still_runs, time.time())
        if taken_back:
            log.info("jobs_taken_back", jobs=[job.id for job in taken_back])


def _put_manifests_right(house: House) -> None:
    """What an earlier life left half done between a pack and its manifest; if it cannot be, the packs wait for it."""
    try:
        agree(house.engine, house.lookout.packs.home)
    except (StoreFault, Refused) as error:
        log.warning("manifests_not_put_right", reason=str(error))


def _identity() -> Identity:
    process = look_up(os.getpid())
    if process is None:
        raise StateError("The system does not tell when this process started; /proc may not be mounted.")
    return Identity(process.pid, process.started, time.time())


def me() -> Holder:
    """This process, as it signs the locks it holds."""
    this = _identity()
    return Holder(this.pid, this.started, __version__, time.time(), time.monotonic())
