"""An observer for hundreds of directories: one thread for all hints, where watchdog starts one for each watch.

A project has four directories with markers; a hundred projects were 400 threads and 12 MB for events that come a
few times an hour. A directory of which only the entries matter needs no thread: no tree to follow, no moves to pair.
Its events go from the one thread that reads the kernel's queue straight to the dispatcher's. Linux only; elsewhere
this is watchdog's own observer. What is used of watchdog's inside is pinned by tests.

Where watchdog's threads leave what they saw: a path, or the news that something was missed.

Everything here runs in threads we do not own, so it only appends: no look at the disk, no decision, no exception
(one exception in a handler ends the dispatch of all events while every other thread looks alive). Knows nothing
about stores, watches or what an event means; the loop drains it.
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
"""So many undrained paths are kept; beyond that a rescan of everything is cheaper than the list."""

OVERFLOW = "the kernel's event queue overflowed and file events were lost"
WATCHES_NOT_REBUILT = "watches could not be rebuilt after an overflow"
BUFFER_FULL = "more file events arrived at once than are kept"
EVENT_NOT_RECORDED = "a file event could not be recorded"

_OVERFLOW_LOGGER = "watchdog.observers.inotify_c"
_REBUILD_LOGGER = "watchdog.observers.inotify"


class EventBuffer:
    """Paths and reasons for a rescan, appended by any thread, drained by one.

    Args:
        wake: set whenever something was left here, so that the loop need not poll.
        kept: how many undrained paths are kept.
    """

    def __init__(self, wake: threading.Event, max_paths: int = MAX_BUFFERED_PATHS) -> None:
        self._wake = wake
        self._max_paths = max_paths
        self._paths: deque[str] = deque()
        self._reasons: deque[str] = deque(maxlen=1024)

    def add(self, path: str | bytes) -> None:
        """Note a path where something happened."""
        if len(self._paths) < self._max_paths:
            self._paths.append(os.fsdecode(path))
        else:
            self.request_rescan(BUFFER_FULL)
        self._wake.set()

    def request_rescan(self, reason: str) -> None:
        """Note that events were missed; `reason` is part of a sentence for `status`."""
        if reason not in self._reasons:
            self._reasons.append(reason)
        self._wake.set()

    def drain(self) -> tuple[set[str], tuple[str, ...]]:
        """Everything left here so far: the paths and the reasons for a rescan."""
        paths = {self._paths.popleft() for _ in range(len(self._paths))}
        reasons = [self._reasons.popleft() for _ in range(len(self._reasons))]
        return paths, tuple(dict.fromkeys(reasons))


class BufferingEventHandler(FileSystemEventHandler):
    """What watchdog calls for every event of every watch."""

    def __init__(self, buffer: EventBuffer) -> None:
        self._buffer = buffer

    def dispatch(self, event: FileSystemEvent) -> None:
        """Note both ends of the event; a rename has two."""
        try:
            self._buffer.add(event.src_path)
            if event.dest_path:
                self._buffer.add(event.dest_path)
        except BaseException:  # noqa: BLE001  (see the module: an exception here would end all watching)
            self._buffer.request_rescan(EVENT_NOT_RECORDED)


class OverflowLogHandler(logging.Handler):
    """Hears what watchdog only logs: that the kernel dropped events, and that watches could not be rebuilt.

    A context manager: attached while it is entered.
    """

    def __init__(self, buffer: EventBuffer) -> None:
        super().__init__(logging.WARNING)
        self._buffer = buffer
        self._levels: dict[str, int] = {}

    def __enter__(self) -> Self:
        for name in (_OVERFLOW_LOGGER, _REBUILD_LOGGER):
            logger = logging.getLogger(name)
            self._levels[name] = logger.level
            # A root logger set to ERROR would otherwise swallow the one sign of an overflow.
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
    from watchdog.events import (
        DirCreatedEvent,
        DirDeletedEvent,
        FileCreatedEvent,
        FileDeletedEvent,
        FileSystemEvent,
    )
    from watchdog.observers.api import EventQueue, ObservedWatch
    from watchdog.observers.inotify import InotifyEmitter, InotifyObserver, InotifyWatchGroup
    from watchdog.observers.inotify_c import CallbackId, InotifyEvent, InotifyFD, WatchDescriptor

    class SharedInotifyEmitter(InotifyEmitter):
        """Reports that something happened to an entry of a directory, without a thread of its own.

        "Alive" means that the kernel still watches for it.
        """

        _descriptor: WatchDescriptor | None = None

        def start(self) -> None:
            """Watch.

            Raises:
                OSError: the kernel's limit is reached, or the directory is gone.
            """
            # The very mask that a recursive watch has: the kernel keeps one for each directory, the last one given.
            mask = InotifyWatchGroup.build_event_mask(self.get_event_mask_from_filter(), follow_symlink=False)
            path = os.fsencode(self.watch.path)
            self._descriptor = self._inotify_fd.add_callback(path, mask, self, CallbackId(id(self)))

        def stop(self) -> None:
            """Watch no more."""
            descriptor, self._descriptor = self._descriptor, None
            if descriptor is not None:
                self._inotify_fd.remove_callbacks([(descriptor, CallbackId(id(self)))])

        def join(self, timeout: float | None = None) -> None:
            """There is no thread to wait for."""

        def is_alive(self) -> bool:
            """Whether the kernel watches for us; it lets go of what is deleted or unmounted."""
            return self._descriptor is not None

        def on_event(self, event: InotifyEvent) -> None:
            """Called by the reader's thread."""
            directory = os.fsencode(self.watch.path)
            path = os.fsdecode(os.path.join(directory, event.name) if event.name else directory)  # noqa: PTH118
            self.queue_event(_as_filesystem_event(event, path))

        def on_watch_deleted(self, wd: WatchDescriptor) -> None:
            """Called by the reader's thread when the kernel let go."""
            if wd == self._descriptor:
                self._descriptor = None

        def on_queue_overflow(self) -> None:
            """Nothing to rebuild; that events were lost is heard elsewhere."""

    class SharedInotifyObserver(InotifyObserver):
        """Recursive watches as watchdog makes them, the others without threads."""

        def __init__(self) -> None:
            super().__init__()
            # It is only ever called, so a function that chooses the class does as well as a class.
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
    """The observer for this platform, not yet started.

    Raises:
        OSError: the kernel gives no inotify instance.
    """
    return SharedInotifyObserver() if sys.platform == "linux" else Observer()
