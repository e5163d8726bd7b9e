"""Watch directories with watchdog so that none silently stops being watched, and filter the reported paths.

Events are only hints. `drain` returns the changed paths and whether everything must be inspected. This module contains
nothing about stores, workflows or the meaning of a changed file. One thread (the loop) owns a `Watcher`; only the
`EventBuffer` is shared with watchdog's threads.

Targets have the names that the rest of the program uses, but the kernel reports real paths. A target that does not
exist yet is awaited at its nearest existing ancestor. `PathFilter` works on strings, because an event storm brings
tens of thousands of paths at once.

watchdog does not report the following, so `Watcher` handles it:

- A deleted root ends its watch, and scheduling it again returns the dead watch. It is always unscheduled first.
- A renamed root keeps reporting under its old path. `set_targets` compares device and inode.
- A root that is a symlink gives no events. It is resolved before scheduling and reported under the given path.
- A recursive watch at the kernel's limit is silently partial. Its directories are counted against the disk.
- The dispatcher or reader thread may die. `set_targets` replaces the first, the canary's owner restarts both.
"""

from __future__ import annotations

# ruff: noqa: PTH112, PTH119, PTH120  (Path.is_dir raises where a directory may not be entered)
import errno
import os
import stat
import sys
import threading
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

from watchdog import events as watchdog_events
from watchdog.observers.api import BaseObserver, EventEmitter, ObservedWatch

from echod.daemon.events import (
    WATCHES_NOT_REBUILT,
    BufferingEventHandler,
    EventBuffer,
    OverflowLogHandler,
    create_observer,
)
from echod.log import get_logger

log = get_logger(__name__)

OBSERVER_STOP_SECONDS = 1.5
"""How long a closing observer may take before its (daemon) threads are abandoned."""

DISPATCHER_DIED = "the thread that delivers file events had died"
PARTIALLY_WATCHED = "part of a store could not be watched"

# Without the created events a file moved in from outside, a new directory and a tree moved in would give nothing.
# With opened and closed-without-writing events every read of ours would cause another one.
_EVENTS: list[type[watchdog_events.FileSystemEvent]] = [
    watchdog_events.FileClosedEvent,
    watchdog_events.FileMovedEvent,
    watchdog_events.FileCreatedEvent,
    watchdog_events.FileDeletedEvent,
    watchdog_events.DirCreatedEvent,
    watchdog_events.DirMovedEvent,
    watchdog_events.DirDeletedEvent,
]
if sys.platform != "linux":
    _EVENTS.append(watchdog_events.FileModifiedEvent)  # only inotify reports that a file was closed

_MAX_SCHEDULE_PASSES = 8


class WatchTargets(NamedTuple):
    """The directories to watch. None of them needs to exist yet.

    `roots` (stores) are watched with everything below them. Of `hints` (workflow markers, the canary, the wake file)
    the entries alone matter.
    """

    roots: tuple[Path, ...] = ()
    hints: tuple[Path, ...] = ()


class ChangedPaths(NamedTuple):
    """The paths to inspect. `rescan` contains the reasons, in words, why everything must be inspected, if any."""

    paths: frozenset[Path]
    rescan: tuple[str, ...]


class WatchPoint(NamedTuple):
    """A real directory to schedule. Several targets that do not exist yet may share one."""

    path: str
    recursive: bool


class PathFilter(NamedTuple):
    """Selects the relevant event paths and translates them to the given names.

    `decisive_paths` are the targets and all directories above them. `links` are pairs of a real path and the given one.
    """

    roots: frozenset[str]
    hints: frozenset[str]
    decisive_paths: frozenset[str]
    links: tuple[tuple[str, str], ...]

    @classmethod
    def for_targets(cls, targets: WatchTargets, links: Mapping[str, str]) -> PathFilter:
        """Return the filter for these targets. `links` maps real paths to the given ones where they differ."""
        endpoints = {*targets.roots, *targets.hints, *map(Path, links)}
        return cls(
            roots=frozenset(map(str, targets.roots)),
            hints=frozenset(map(str, targets.hints)),
            decisive_paths=frozenset(str(path) for end in endpoints for path in (end, *end.parents)),
            links=tuple(sorted(links.items(), key=lambda link: -len(link[0]))),
        )

    def affects_targets(self, paths: Iterable[str]) -> bool:
        """Return whether a target, or a directory above one, appeared, vanished or was replaced."""
        return any(path in self.decisive_paths or self._to_given_path(path) in self.decisive_paths for path in paths)

    def select(self, paths: Iterable[str]) -> frozenset[Path]:
        """Return the relevant paths, under the given names."""
        return frozenset(Path(given) for given in map(self._to_given_path, paths) if self._is_relevant(given))

    def _to_given_path(self, path: str) -> str:
        for real, given in self.links:
            if path == real or path.startswith(real + os.sep):
                return given + path[len(real) :]
        return path

    def _is_relevant(self, path: str) -> bool:
        if path in self.roots or path in self.hints or os.path.dirname(path) in self.hints:
            return True
        while (above := os.path.dirname(path)) != path:
            if os.path.basename(path).startswith("."):
                return False  # stages, swap files, indexes: no job reads a dot-file, and a rename has another end
            if above in self.roots:
                return True
            path = above
        return False


def plan_watches(targets: WatchTargets) -> tuple[dict[str, str], dict[WatchPoint, tuple[Path, ...]]]:
    """Return the real paths that have another given name, and the targets of each watch point to schedule."""
    path_aliases: dict[str, str] = {}
    targets_by_point: dict[WatchPoint, tuple[Path, ...]] = {}
    for recursive, paths in ((True, targets.roots), (False, targets.hints)):
        for target in dict.fromkeys(paths):
            real = os.path.realpath(target)
            if os.path.isdir(real):
                point = WatchPoint(real, recursive)
            else:  # the nearest ancestor that is a directory now; the root directory always is
                nearest = next(path for path in map(os.path.realpath, target.parents) if os.path.isdir(path))
                point = WatchPoint(nearest, recursive=False)
            targets_by_point[point] = (*targets_by_point.get(point, ()), target)
            if real != str(target):
                path_aliases[real] = str(target)
    return path_aliases, targets_by_point


@dataclass(slots=True)
class _ActiveWatch:
    watch: ObservedWatch
    emitter: EventEmitter | None
    identity: tuple[int, int]
    unwatched_directories: int = 0


class Watcher:
    """Watches targets through one observer, whose threads fill the buffer. A context manager."""

    def __init__(self, buffer: EventBuffer) -> None:
        self._buffer = buffer
        self._handler = BufferingEventHandler(buffer)
        self._overflow_handler = OverflowLogHandler(buffer)
        self._observer: BaseObserver | None = None
        self._targets = WatchTargets()
        self._active: dict[WatchPoint, _ActiveWatch] = {}
        self._failures: dict[WatchPoint, str] = {}
        self._targets_by_point: dict[WatchPoint, tuple[Path, ...]] = {}
        self._newly_watched: set[Path] = set()
        self._filter = PathFilter.for_targets(self._targets, {})

    def __enter__(self) -> Self:
        # The warning's text is the whole watch table (up to 71 kB), and as an error it would kill the reader thread.
        warnings.filterwarnings("ignore", category=RuntimeWarning, module=r"watchdog\.")
        self._overflow_handler.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._overflow_handler.__exit__(kind, error, trace)
        self._close()

    def set_targets(self, targets: WatchTargets) -> None:
        """Adjust the watches to these targets and to the present disk. Never raises for a path.

        Call this at every reconcile and before reading the disk, because there is no event for the files that are in
        a directory when its watch begins.
        """
        if self._observer is not None and not self._observer.is_alive():
            self._buffer.request_rescan(DISPATCHER_DIED)
            self._close()
        for watch_point, active_watch in list(self._active.items()):
            if active_watch.unwatched_directories or _count_unwatched(watch_point, active_watch):
                self._unschedule(watch_point)
        self._targets = targets
        self._reschedule_until_stable()
        self._newly_watched.clear()

    def restart(self, reason: str) -> None:
        """Replace the observer and all its threads. `reason` becomes a reason for a rescan."""
        log.warning("watcher_restarted", reason=reason)
        self._buffer.request_rescan(reason)
        self._close()
        self._reschedule_until_stable()

    def drain(self) -> ChangedPaths:
        """Return the changes since the last call. Follows directories that appeared, vanished or were replaced.

        A target that is watched again, or for the first time since `set_targets`, counts as changed itself.
        """
        paths, reasons = self._buffer.drain()
        if WATCHES_NOT_REBUILT in reasons:
            for point in [point for point in self._active if point.recursive]:
                self._unschedule(point)
            self._reschedule_until_stable()
        elif self._filter.affects_targets(paths):
            self._reschedule_until_stable()
        newly_watched, self._newly_watched = self._newly_watched, set()
        return ChangedPaths(self._filter.select(paths) | newly_watched, reasons)

    def unwatched(self) -> tuple[tuple[Path, str], ...]:
        """Return the targets whose changes only the periodic reconcile finds, each with the reason in words."""
        targets = self._targets_by_point
        unwatched = ((target, why) for point, why in self._failures.items() for target in targets.get(point, ()))
        return tuple(sorted(unwatched))

    def is_watched(self, target: Path) -> bool:
        """Return whether changes of a target are reported, as far as the kernel shows. The target must exist."""
        real = os.path.realpath(target)
        points = {WatchPoint(real, recursive=True), WatchPoint(real, recursive=False)}
        working = (points & self._active.keys()) - self._failures.keys()
        return any(target in self._targets_by_point.get(point, ()) for point in working)

    def _reschedule_until_stable(self) -> None:
        # There is no event for a directory that appears between planning and the new watch, so plan again until
        # nothing changes.
        for _ in range(_MAX_SCHEDULE_PASSES):
            path_aliases, self._targets_by_point = plan_watches(self._targets)
            self._filter = PathFilter.for_targets(self._targets, path_aliases)
            if not self._reschedule():
                return

    def _reschedule(self) -> bool:
        if not self._ensure_observer():
            return False
        changed = False
        for point, active_watch in list(self._active.items()):
            if point not in self._targets_by_point or not _is_healthy(point, active_watch):
                self._unschedule(point)
                changed = True
        for point in self._targets_by_point:
            if point not in self._active:
                changed |= self._schedule(point)
        self._failures = {point: why for point, why in self._failures.items() if point in self._targets_by_point}
        return changed

    def _ensure_observer(self) -> bool:
        if self._observer is not None:
            return True
        try:
            observer = create_observer()
            observer.start()
        except (OSError, RuntimeError) as error:  # RuntimeError: no thread could be started
            self._record_failures(dict.fromkeys(self._targets_by_point, _error_text(error)))
            return False
        self._observer = observer
        return True

    def _schedule(self, watch_point: WatchPoint) -> bool:
        assert self._observer is not None  # noqa: S101  (for the type checker: _ensure_observer created one)
        identity = _directory_identity(watch_point.path)
        if identity is None:
            return False  # it vanished since planning; the next pass sees that
        try:
            if not os.access(watch_point.path, os.R_OK | os.X_OK):
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))  # watchdog would not report it
            path, recursive = watch_point
            watch = self._observer.schedule(self._handler, path, recursive=recursive, event_filter=_EVENTS)
        except (OSError, RuntimeError) as error:
            self._record_failures({watch_point: _error_text(error)})
            return False
        emitter = next((emitter for emitter in self._observer.emitters if emitter.watch is watch), None)
        active_watch = self._active[watch_point] = _ActiveWatch(watch, emitter, identity)
        active_watch.unwatched_directories = count = _count_unwatched(watch_point, active_watch)
        if count:
            why = "the kernel's limit may be reached (raise fs.inotify.max_user_watches) or they are not readable"
            self._record_failures({watch_point: f"{count} directories below it are not watched: {why}"})
        else:
            self._failures.pop(watch_point, None)
        targets = self._targets_by_point[watch_point]
        self._newly_watched.update(target for target in targets if os.path.realpath(target) == path)
        return True

    def _unschedule(self, watch_point: WatchPoint) -> None:
        active_watch = self._active.pop(watch_point)
        if self._observer is not None:
            try:
                self._observer.unschedule(active_watch.watch)
            except KeyError:
                log.debug("watch_already_removed", path=watch_point.path)

    def _record_failures(self, failures: Mapping[WatchPoint, str]) -> None:
        for watch_point, reason in failures.items():
            if self._failures.get(watch_point) != reason:
                log.warning("directory_not_watched", path=watch_point.path, reason=reason)
                self._buffer.request_rescan(PARTIALLY_WATCHED)
        self._failures |= failures

    def _close(self) -> None:
        observer, self._observer = self._observer, None
        self._active.clear()
        if observer is None:
            return

        def stop(observer: BaseObserver = observer) -> None:
            observer.stop()
            observer.join()

        # Stopping joins watchdog's threads. One that hangs must not block the loop.
        closer = threading.Thread(target=stop, name="watch-closer", daemon=True)
        closer.start()
        closer.join(OBSERVER_STOP_SECONDS)
        if closer.is_alive():
            log.warning("observer_did_not_stop", seconds=OBSERVER_STOP_SECONDS)


def _is_healthy(watch_point: WatchPoint, active_watch: _ActiveWatch) -> bool:
    return (
        active_watch.emitter is not None
        and active_watch.emitter.is_alive()
        and _directory_identity(watch_point.path) == active_watch.identity
    )


def _count_unwatched(watch_point: WatchPoint, active_watch: _ActiveWatch) -> int:
    """Return how many directories of a tree the kernel does not watch for us, including its root.

    Besides at the limit, that happens to a tree that was unmounted and mounted again, because its identity is the same.
    """
    watched = _watched_by(active_watch.emitter)
    if watched is None or not watch_point.recursive:
        return 0
    unwatched = [directory for directory, _, _ in os.walk(watch_point.path) if directory not in watched]
    watched_now = _watched_by(active_watch.emitter) or frozenset()  # some appeared or vanished meanwhile
    return sum(directory not in watched_now and Path(directory).is_dir() for directory in unwatched)


def _directory_identity(path: str) -> tuple[int, int] | None:
    try:
        status = Path(path).stat()
    except OSError:
        return None
    return (status.st_dev, status.st_ino) if stat.S_ISDIR(status.st_mode) else None


def _watched_by(emitter: EventEmitter | None) -> frozenset[str] | None:
    """Return the directories for which an inotify emitter holds a watch; None where that is unknown (macOS).

    There is no public way to find out. A test pins this one to the real watchdog.
    """
    by_path = getattr(getattr(emitter, "_inotify", None), "_active_callbacks_by_path", None)
    if by_path is None:
        return None
    return frozenset(os.fsdecode(path) for path, descriptor in list(by_path.items()) if descriptor >= 0)


def _error_text(error: Exception) -> str:
    match error:
        case OSError(errno=errno.ENOSPC):
            return "the kernel's limit of file watches is reached, raise fs.inotify.max_user_watches"
        case OSError(errno=errno.EMFILE):
            return "the kernel's limit of inotify instances is reached, raise fs.inotify.max_user_instances"
        case OSError(strerror=str(text)):
            return text
        case _:
            return str(error)
