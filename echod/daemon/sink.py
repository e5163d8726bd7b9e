"""Where watchdog's threads leave what they saw: a path, or the news that something was missed.

Everything here runs in threads we do not own, so it only appends: no look at the disk, no decision, no exception
(one exception in a handler ends the dispatch of all events while every other thread looks alive). Knows nothing
about stores, watches or what an event means; the loop drains it.
"""

from __future__ import annotations

import logging
import os
import threading
from collections import deque
from typing import Self

from watchdog.events import FileSystemEvent, FileSystemEventHandler

KEPT_PATHS = 65_536
"""So many undrained paths are kept; beyond that a rescan of everything is cheaper than the list."""

OVERFLOW = "the kernel's event queue overflowed and file events were lost"
UNREBUILT = "watches could not be rebuilt after an overflow"
TOO_MANY = "more file events arrived at once than are kept"
UNRECORDED = "a file event could not be recorded"

_OVERFLOW_LOGGER = "watchdog.observers.inotify_c"
_REBUILD_LOGGER = "watchdog.observers.inotify"


class Sink:
    """Paths and reasons for a rescan, appended by any thread, drained by one.

    Args:
        wake: set whenever something was left here, so that the loop need not poll.
        kept: how many undrained paths are kept.
    """

    def __init__(self, wake: threading.Event, kept: int = KEPT_PATHS) -> None:
        self._wake = wake
        self._kept = kept
        self._paths: deque[str] = deque()
        self._reasons: deque[str] = deque(maxlen=1024)

    def add(self, path: str | bytes) -> None:
        """Note a path where something happened."""
        if len(self._paths) < self._kept:
            self._paths.append(os.fsdecode(path))
        else:
            self.lost(TOO_MANY)
        self._wake.set()

    def lost(self, reason: str) -> None:
        """Note that events were missed; `reason` is part of a sentence for `status`."""
        if reason not in self._reasons:
            self._reasons.append(reason)
        self._wake.set()

    def drain(self) -> tuple[set[str], tuple[str, ...]]:
        """Everything left here so far: the paths and the reasons for a rescan."""
        paths = {self._paths.popleft() for _ in range(len(self._paths))}
        reasons = [self._reasons.popleft() for _ in range(len(self._reasons))]
        return paths, tuple(dict.fromkeys(reasons))


class Handler(FileSystemEventHandler):
    """What watchdog calls for every event of every watch."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink

    def dispatch(self, event: FileSystemEvent) -> None:
        """Note both ends of the event; a rename has two."""
        try:
            self._sink.add(event.src_path)
            if event.dest_path:
                self._sink.add(event.dest_path)
        except BaseException:  # noqa: BLE001  (see the module: an exception here would end all watching)
            self._sink.lost(UNRECORDED)


class LossTap(logging.Handler):
    """Hears what watchdog only logs: that the kernel dropped events, and that watches could not be rebuilt.

    A context manager: attached while it is entered.
    """

    def __init__(self, sink: Sink) -> None:
        super().__init__(logging.WARNING)
        self._sink = sink
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
            self._sink.lost(OVERFLOW)
        elif record.exc_info:
            self._sink.lost(UNREBUILT)
