"""Receive watchdog's events in its threads, and prove that they still arrive.

`EventBuffer` collects paths and the reasons for a rescan until the loop drains it. Everything that fills it runs in
threads we do not own, so it only appends. It never reads the disk, decides or raises: one exception in a handler ends
the dispatch of all events while every other thread looks alive.

`create_observer` returns an observer for hundreds of directories. watchdog starts one thread for each watch. A project
has four directories with markers, so a hundred projects meant 400 threads and 12 MB for events that come a few times
an hour. A directory whose entries alone matter needs no thread, since there is no tree to follow and there are no
moves to pair. Its events go from the one thread that reads the kernel's queue directly to the dispatcher's. Linux
only; elsewhere this is watchdog's own observer. Tests pin the internals of watchdog that are used here.

`Canary` writes a file in a watched directory and waits for its event. A dispatcher that died leaves every other
thread alive, so only such a round trip proves that events arrive. `EventSource` combines the watcher and the canary.
The loop uses nothing else for watching. Neither class decides what to do about a changed path.
"""

from __future__ import annotations

import logging
import os
import sys
import threading
from collections import deque
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, Self

from watchdog.events import FileSystemEvent, FileSystemEventHandler
from watchdog.observers import Observer
from watchdog.observers.api import BaseObserver

from echod.paths import PRIVATE_FILE_MODE, make_private_directory
from echod.runtime import EVENTS_NOT_ARRIVING

if TYPE_CHECKING:
    from echod.daemon.watcher import ChangedPaths, Watcher, WatchTargets

MAX_BUFFERED_PATHS = 65_536
"""The most paths kept until the next drain. Beyond that, a full rescan is cheaper than the list."""

OVERFLOW = "the kernel's event queue overflowed and file events were lost"
WATCHES_NOT_REBUILT = "watches could not be rebuilt after an overflow"
BUFFER_FULL = "more file events arrived at once than are kept"
EVENT_NOT_RECORDED = "a file event could not be recorded"

_OVERFLOW_LOGGER = "watchdog.observers.inotify_c"
_REBUILD_LOGGER = "watchdog.observers.inotify"


class EventBuffer:
    """Paths and reasons for a rescan, appended by any thread and drained by one.

    `wake` is set whenever something was appended, so that the loop need not poll.
    """

    def __init__(self, wake: threading.Event, max_paths: int = MAX_BUFFERED_PATHS) -> None:
        self._wake = wake
        self._max_paths = max_paths
        self._paths: deque[str] = deque()
        self._reasons: deque[str] = deque(maxlen=1024)

    def add(self, path: str | bytes) -> None:
        """Record a changed path."""
        if len(self._paths) < self._max_paths:
            self._paths.append(os.fsdecode(path))
        else:
            self.request_rescan(BUFFER_FULL)
        self._wake.set()

    def request_rescan(self, reason: str) -> None:
        """Record that events were missed. `reason` is part of a sentence for `echod status`."""
        if reason not in self._reasons:
            self._reasons.append(reason)
        self._wake.set()

    def drain(self) -> tuple[set[str], tuple[str, ...]]:
        """Remove and return all recorded paths and reasons for a rescan."""
        paths = {self._paths.popleft() for _ in range(len(self._paths))}
        reasons = [self._reasons.popleft() for _ in range(len(self._reasons))]
        return paths, tuple(dict.fromkeys(reasons))


class BufferingEventHandler(FileSystemEventHandler):
    """The handler that watchdog calls for every event of every watch."""

    def __init__(self, buffer: EventBuffer) -> None:
        self._buffer = buffer

    def dispatch(self, event: FileSystemEvent) -> None:
        """Record the paths of the event. A rename has two."""
        try:
            self._buffer.add(event.src_path)
            if event.dest_path:
                self._buffer.add(event.dest_path)
        except BaseException:  # noqa: BLE001  (an exception here would end all watching; see the module's docstring)
            self._buffer.request_rescan(EVENT_NOT_RECORDED)


class OverflowLogHandler(logging.Handler):
    """Detect conditions that watchdog only logs: the kernel dropped events, or watches could not be rebuilt.

    A context manager, attached to watchdog's loggers while entered.
    """

    def __init__(self, buffer: EventBuffer) -> None:
        super().__init__(logging.WARNING)
        self._buffer = buffer
        self._levels: dict[str, int] = {}

    def __enter__(self) -> Self:
        for name in (_OVERFLOW_LOGGER, _REBUILD_LOGGER):
            logger = logging.getLogger(name)
            self._levels[name] = logger.level
            # A root logger set to ERROR would otherwise suppress the only sign of an overflow.
            logger.setLevel(logging.WARNING)
            logger.addHandler(self)
        return self

    def __exit__(self, *_: object) -> None:
        for name, level in self._levels.items():
            logging.getLogger(name).removeHandler(self)
            logging.getLogger(name).setLevel(level)
        self._levels.clear()

    def emit(self, record: logging.LogRecord) -> None:
        """Turn a record into a reason for a rescan."""
        if record.name == _OVERFLOW_LOGGER:
            self._buffer.request_rescan(OVERFLOW)
        elif record.exc_info:
            self._buffer.request_rescan(WATCHES_NOT_REBUILT)


if sys.platform == "linux":
    from watchdog.events import DirCreatedEvent, DirDeletedEvent, FileCreatedEvent, FileDeletedEvent, FileSystemEvent
    from watchdog.observers.api import EventQueue, ObservedWatch
    from watchdog.observers.inotify import InotifyEmitter, InotifyObserver, InotifyWatchGroup
    from watchdog.observers.inotify_c import CallbackId, InotifyEvent, InotifyFD, WatchDescriptor

    class SharedInotifyEmitter(InotifyEmitter):
        """Report changed entries of one directory, without a thread of its own."""

        _descriptor: WatchDescriptor | None = None

        def start(self) -> None:
            """Start watching. Raises OSError if the kernel's limit is reached or the directory no longer exists."""
            # The same mask as a recursive watch: the kernel keeps one for each directory, and the last one counts.
            mask = InotifyWatchGroup.build_event_mask(self.get_event_mask_from_filter(), follow_symlink=False)
            path = os.fsencode(self.watch.path)
            self._descriptor = self._inotify_fd.add_callback(path, mask, self, CallbackId(id(self)))

        def stop(self) -> None:
            """Stop watching."""
            descriptor, self._descriptor = self._descriptor, None
            if descriptor is not None:
                self._inotify_fd.remove_callbacks([(descriptor, CallbackId(id(self)))])

        def join(self, timeout: float | None = None) -> None:
            """Do nothing, because there is no thread to wait for."""

        def is_alive(self) -> bool:
            """Return whether the kernel still watches. It drops the watch of a deleted or unmounted directory."""
            return self._descriptor is not None

        def on_event(self, event: InotifyEvent) -> None:
            """Queue the event. Called by the reader's thread."""
            directory = os.fsencode(self.watch.path)
            path = os.fsdecode(os.path.join(directory, event.name) if event.name else directory)  # noqa: PTH118
            self.queue_event(_as_filesystem_event(event, path))

        def on_watch_deleted(self, wd: WatchDescriptor) -> None:
            """Record that the kernel dropped the watch. Called by the reader's thread."""
            if wd == self._descriptor:
                self._descriptor = None

        def on_queue_overflow(self) -> None:
            """Do nothing. There is nothing to rebuild, and `OverflowLogHandler` reports the lost events."""

    class SharedInotifyObserver(InotifyObserver):
        """An observer with watchdog's own recursive watches, and all other watches without threads."""

        def __init__(self) -> None:
            super().__init__()
            # watchdog only calls it, so a function that chooses the class works as well as a class.
            self._emitter_class = _create_emitter  # type: ignore[assignment]

    def _create_emitter(
        event_queue: EventQueue,
        watch: ObservedWatch,
        *,
        timeout: float,
        event_filter: list[type[FileSystemEvent]] | None,
        inotify_fd: InotifyFD,
    ) -> InotifyEmitter:
        emitter = InotifyEmitter if watch.is_recursive else SharedInotifyEmitter
        return emitter(event_queue, watch, timeout=timeout, event_filter=event_filter, inotify_fd=inotify_fd)

    def _as_filesystem_event(event: InotifyEvent, path: str) -> FileSystemEvent:
        deleted = event.is_delete or event.is_moved_from or event.is_delete_self
        if event.is_directory:
            return DirDeletedEvent(path) if deleted else DirCreatedEvent(path)
        return FileDeletedEvent(path) if deleted else FileCreatedEvent(path)


def create_observer() -> BaseObserver:
    """Create the observer for this platform. Raises OSError if the kernel provides no inotify instance."""
    return SharedInotifyObserver() if sys.platform == "linux" else Observer()


CANARY_INTERVAL_SECONDS = 10.0
CANARY_TIMEOUT_SECONDS = 10.0
"""How long a pulse may be pending. Detection takes at most interval plus timeout. A healthy round trip takes 2 ms."""


class Canary:
    """Sends pulses and waits for their events. Times are seconds of the monotonic clock.

    Each pulse has its own name, so that the late event of an earlier pulse proves nothing.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        """The directory of the pulses, which must be watched as a hint."""
        self.write_error = ""
        """Why the last pulse could not be sent, or "". After such an error the state of the events is unknown."""
        self._pulse_number = 0
        self._sent_at: float | None = None
        self._pending: Path | None = None
        self._timed_out = False

    def check_paths(self, paths: Collection[Path]) -> None:
        """Check whether the pulse is among the paths that the watcher reported."""
        if self._pending is not None and self._pending in paths:
            self._pending = None
            self._timed_out = False

    def is_overdue(self, now: float) -> bool:
        """Return whether a pulse has been pending for too long."""
        return self._pending is not None and self._sent_at is not None and now - self._sent_at > CANARY_TIMEOUT_SECONDS

    def is_ok(self, now: float) -> bool:
        """Return False from the moment a pulse is overdue until one arrives, and otherwise True."""
        return not (self._timed_out or self.is_overdue(now))

    def send_if_due(self, now: float) -> None:
        """Send the next pulse if it is due and none is pending. Never raises; see `write_error`."""
        if self._pending is None and (self._sent_at is None or now - self._sent_at >= CANARY_INTERVAL_SECONDS):
            self._send(now)

    def mark_lost(self) -> None:
        """Give up the pending pulse. `send_if_due` then sends another at once, and `is_ok` waits for that one."""
        self._timed_out = True
        self._pending = self._sent_at = None

    def reset(self) -> None:
        """Start again, because nothing can be proven now: forget the pending pulse and create the directory."""
        self._timed_out = False
        self._pending = self._sent_at = None
        try:
            self._make_directory()
        except OSError as error:
            self._record(error)

    def _send(self, now: float) -> None:
        self._pulse_number += 1
        self._sent_at = now
        pulse = self.directory / f"pulse-{self._pulse_number}"
        try:
            self._make_directory()
            for old_pulse in self.directory.glob("pulse-*"):
                old_pulse.unlink(missing_ok=True)
            with os.fdopen(os.open(pulse, os.O_WRONLY | os.O_CREAT | os.O_EXCL, PRIVATE_FILE_MODE), "w") as file:
                file.write(str(self._pulse_number))
        except OSError as error:
            self._record(error)
        else:
            self.write_error = ""
            self._pending = pulse

    def _make_directory(self) -> None:
        make_private_directory(self.directory)

    def _record(self, error: OSError) -> None:
        self.write_error = f"the canary file could not be written ({error.strerror})"


class EventSource:
    """A watcher with its canary. Owned by one thread. Times are seconds of the monotonic clock."""

    def __init__(self, watcher: Watcher, canary: Canary) -> None:
        self._watcher = watcher
        self._canary = canary

    def watch(self, targets: WatchTargets) -> None:
        """Watch these targets and the canary. Call this at every reconcile (see `Watcher.set_targets`)."""
        self._watcher.set_targets(targets._replace(hints=(*targets.hints, self._canary.directory)))

    def poll(self, now: float) -> ChangedPaths:
        """Return the changes since the last call. Call this at least every few seconds.

        Sends the canary's pulses, and replaces the watcher when a pulse does not arrive.
        """
        changes = self._watcher.drain()
        self._canary.check_paths(changes.paths)
        if not self._watcher.is_watched(self._canary.directory):
            self._canary.reset()
            return changes
        if self._canary.is_overdue(now):
            self._watcher.restart(EVENTS_NOT_ARRIVING)
            self._canary.mark_lost()
        self._canary.send_if_due(now)
        return changes

    def is_alive(self, now: float) -> bool:
        """Return False if events are known not to arrive although they should, so that a restart would help.

        Watching that is impossible here (the kernel's limit) or cannot be proven (no disk space for the canary) counts
        as alive, because a new process would do no better and the periodic reconcile continues. `problems` and
        `unwatched` report it.
        """
        return self._canary.is_ok(now)

    def problems(self, now: float) -> tuple[str, ...]:
        """Return the problems of watching, in words for `echod status`. `unwatched` lists unwatched directories."""
        not_arriving = () if self._canary.is_ok(now) else (EVENTS_NOT_ARRIVING,)
        return not_arriving + ((self._canary.write_error,) if self._canary.write_error else ())

    def unwatched(self) -> tuple[tuple[Path, str], ...]:
        """Return the unwatched targets with their reasons; see `Watcher.unwatched`."""
        return self._watcher.unwatched()
