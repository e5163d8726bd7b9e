"""An observer for hundreds of directories: one thread for all hints, where watchdog starts one for each watch.

A project has four directories with markers; a hundred projects were 400 threads and 12 MB for events that come a
few times an hour. A directory of which only the entries matter needs no thread: no tree to follow, no moves to pair.
Its events go from the one thread that reads the kernel's queue straight to the dispatcher's. Linux only; elsewhere
this is watchdog's own observer. What is used of watchdog's inside is pinned by tests.
"""

from __future__ import annotations

import os
import sys

from watchdog.observers import Observer
from watchdog.observers.api import BaseObserver

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

    class HintEmitter(InotifyEmitter):
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

    class LeanObserver(InotifyObserver):
        """Recursive watches as watchdog makes them, the others without threads."""

        def __init__(self) -> None:
            super().__init__()
            # It is only ever called, so a function that chooses the class does as well as a class.
            self._emitter_class = _emitter_for  # type: ignore[assignment]

    def _emitter_for(
        event_queue: EventQueue,
        watch: ObservedWatch,
        *,
        timeout: float,
        event_filter: list[type[FileSystemEvent]] | None,
        inotify_fd: InotifyFD,
    ) -> InotifyEmitter:
        emitter = InotifyEmitter if watch.is_recursive else HintEmitter
        return emitter(event_queue, watch, timeout=timeout, event_filter=event_filter, inotify_fd=inotify_fd)

    def _as_filesystem_event(event: InotifyEvent, path: str) -> FileSystemEvent:
        gone = event.is_delete or event.is_moved_from or event.is_delete_self
        if event.is_directory:
            return DirDeletedEvent(path) if gone else DirCreatedEvent(path)
        return FileDeletedEvent(path) if gone else FileCreatedEvent(path)


def new_observer() -> BaseObserver:
    """The observer for this platform, not yet started.

    Raises:
        OSError: the kernel gives no inotify instance.
    """
    return LeanObserver() if sys.platform == "linux" else Observer()
