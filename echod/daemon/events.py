"""Receive watchdog's events in its threads, and create an observer that needs no thread for each watched directory.

`EventBuffer` collects paths and the reasons for a rescan until the loop drains it. Everything that fills it runs in
threads we do not own, so it only appends. It never reads the disk, decides or raises: one exception in a handler ends
the dispatch of all events while every other thread looks alive.

`create_observer` returns an observer for hundreds of directories. watchdog starts one thread for each watch. A project
has four directories with markers, so a hundred projects meant 400 threads and 12 MB for events that come a few times
an hour. A directory whose entries alone matter needs no thread, since there is no tree to follow and there are no
moves to pair. Its events go from the one thread that reads the kernel's queue directly to the dispatcher's. Linux
only; elsewhere this is watchdog's own observer. Tests pin the internals of watchdog that are used here.
"""

from __future__ import annotations

import logging
import os
import sys
import threading
from collections import deque
from typing import Self

from watchdog.events import FileSystemEvent, FileSystemEventHandler
from watchdog.observers import Observer
from watchdog.observers.api import BaseObserver

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
