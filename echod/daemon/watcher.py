"""Which directories are watched, and what watchdog needs so that none silently stops being watched.

Events are hints where to look, nothing more: `drain` says which paths to look at and whether to look everywhere.
Knows neither stores nor workflows nor what a changed file calls for. One thread (the loop) owns a `Watcher`; only
the `Sink` is shared with watchdog's threads.

What watchdog does not say by itself, and what is done about it:

- a deleted root ends its watch, and scheduling it again returns the dead one: unscheduled first, always;
- a renamed root keeps reporting under its old path: device and inode are compared whenever `arm` is called;
- a root that is a symlink gives no events: resolved before it is scheduled, and reported under the given path;
- a recursive watch at the kernel's limit is silently partial: counted against the disk;
- a dispatcher or reader thread that died: `arm` replaces the first, the canary's owner calls `restart` for both.

What shall be watched, where that is on the disk just now, and which event paths matter for it.

Targets are given by the names that the rest of the program uses; the kernel reports real paths. A target that does
not exist yet is awaited at its nearest existing ancestor. Looks at the disk, watches nothing. Works on strings: an
event storm brings tens of thousands of paths at once.
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

from watchdog.events import (
    DirCreatedEvent,
    DirDeletedEvent,
    DirMovedEvent,
    FileClosedEvent,
    FileCreatedEvent,
    FileDeletedEvent,
    FileModifiedEvent,
    FileMovedEvent,
    FileSystemEvent,
)
from watchdog.observers.api import BaseObserver, EventEmitter, ObservedWatch

from echod.daemon.events import UNREBUILT, Handler, LossTap, Sink, new_observer
from echod.log import get_logger


class Targets(NamedTuple):
    """What shall be watched. Nothing here needs to exist yet.

    Attributes:
        roots: directories watched with everything below them (stores).
        hints: directories of which only the entries matter (workflow markers, the canary, the wake file).
    """

    roots: tuple[Path, ...] = ()
    hints: tuple[Path, ...] = ()


class Dirt(NamedTuple):
    """Where to look. `rescan` says, in words, why everything must be looked at; empty if it need not."""

    paths: frozenset[Path]
    rescan: tuple[str, ...]


class Place(NamedTuple):
    """A real directory to schedule; several targets may share one while they do not exist."""

    path: str
    recursive: bool


class Scope(NamedTuple):
    """Which event paths matter, and under which name they are reported."""

    roots: frozenset[str]
    hints: frozenset[str]
    turning: frozenset[str]
    links: tuple[tuple[str, str], ...]

    @classmethod
    def of(cls, targets: Targets, links: Mapping[str, str]) -> Scope:
        """The scope of targets; `links` maps real paths to the given ones where they differ."""
        ends = {*targets.roots, *targets.hints, *map(Path, links)}
        return cls(
            roots=frozenset(map(str, targets.roots)),
            hints=frozenset(map(str, targets.hints)),
            turning=frozenset(str(path) for end in ends for path in (end, *end.parents)),
            links=tuple(sorted(links.items(), key=lambda link: -len(link[0]))),
        )

    def turns_on(self, paths: Iterable[str]) -> bool:
        """Whether a target, or a directory on the way to one, came, went or was replaced."""
        return any(path in self.turning or self._given(path) in self.turning for path in paths)

    def select(self, paths: Iterable[str]) -> frozenset[Path]:
        """The paths that matter, under the given names."""
        return frozenset(Path(given) for given in map(self._given, paths) if self._matters(given))

    def _given(self, path: str) -> str:
        for real, given in self.links:
            if path == real or path.startswith(real + os.sep):
                return given + path[len(real) :]
        return path

    def _matters(self, path: str) -> bool:
        if path in self.roots or path in self.hints or os.path.dirname(path) in self.hints:
            return True
        while (above := os.path.dirname(path)) != path:
            if os.path.basename(path).startswith("."):
                return False  # stages, swap files, indexes: no job reads a dot-name; a rename names its other end
            if above in self.roots:
                return True
            path = above
        return False


def places_of(targets: Targets) -> tuple[dict[str, str], dict[Place, tuple[Path, ...]]]:
    """What to schedule for which targets, and the real paths that are reported under another name."""
    links: dict[str, str] = {}
    served: dict[Place, list[Path]] = {}
    for recursive, paths in ((True, targets.roots), (False, targets.hints)):
        for target in dict.fromkeys(paths):
            real = real_path(target)
            place = Place(real, recursive) if os.path.isdir(real) else Place(_nearest(target), recursive=False)
            served.setdefault(place, []).append(target)
            if real != str(target):
                links[real] = str(target)
    return links, {place: tuple(for_targets) for place, for_targets in served.items()}


def real_path(target: Path) -> str:
    """Where a target is on the disk, symlinks resolved as far as they exist."""
    return os.path.realpath(target)


def _nearest(target: Path) -> str:
    """The nearest ancestor that is a directory now; the root directory always is."""
    return next(real for above in target.parents if os.path.isdir(real := real_path(above)))


log = get_logger(__name__)

CLOSE_SECONDS = 1.5
"""How long a closing observer may take before it is left to its own (daemon) threads."""

DIED = "the thread that delivers file events had died"
PARTIAL = "part of a store could not be watched"

# Without the created events a file moved in from outside, a new directory and a tree moved in would give nothing;
# with opened and closed-without-writing events every look of ours would call for the next one.
_EVENTS: list[type[FileSystemEvent]] = [
    FileClosedEvent,
    FileMovedEvent,
    FileCreatedEvent,
    FileDeletedEvent,
    DirCreatedEvent,
    DirMovedEvent,
    DirDeletedEvent,
]
if sys.platform != "linux":
    _EVENTS.append(FileModifiedEvent)  # only inotify tells when a file is closed


@dataclass(slots=True)
class _Armed:
    watch: ObservedWatch
    emitter: EventEmitter | None
    identity: tuple[int, int]
    unseen: int = 0


class Watcher:
    """Watches targets through one observer. A context manager.

    Args:
        sink: where events are left; shared with watchdog's threads.
    """

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._handler = Handler(sink)
        self._tap = LossTap(sink)
        self._observer: BaseObserver | None = None
        self._targets = Targets()
        self._armed: dict[Place, _Armed] = {}
        self._failures: dict[Place, str] = {}
        self._served: dict[Place, tuple[Path, ...]] = {}
        self._fresh: set[Path] = set()
        self._scope = Scope.of(self._targets, {})

    def __enter__(self) -> Self:
        # The warning's text is the whole watch table (up to 71 kB), and as an error it would kill the reader thread.
        warnings.filterwarnings("ignore", category=RuntimeWarning, module=r"watchdog\.")
        self._tap.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._tap.__exit__(kind, error, trace)
        self._close()

    def arm(self, targets: Targets) -> None:
        """Make the watches what they should be now. Never raises for a path.

        To be called at every reconcile and before the look at the disk, as what is in a directory when its watch
        begins has no event.
        """
        if self._observer is not None and not self._observer.is_alive():
            self._sink.lost(DIED)
            self._close()
        for place, armed in list(self._armed.items()):
            if armed.unseen or _unseen_below(place, armed):
                self._disarm(place)
        self._targets = targets
        self._settle()
        self._fresh.clear()

    def restart(self, reason: str) -> None:
        """Replace the observer and all its threads; `reason` becomes a reason for a rescan."""
        log.warning("watcher_restarted", reason=reason)
        self._sink.lost(reason)
        self._close()
        self._settle()

    def drain(self) -> Dirt:
        """What happened since the last call. Follows directories that appeared, vanished or were replaced.

        A target that is watched again, or for the first time since `arm`, is dirty itself.
        """
        paths, reasons = self._sink.drain()
        if UNREBUILT in reasons:
            for place in [place for place in self._armed if place.recursive]:
                self._disarm(place)
            self._settle()
        elif self._scope.turns_on(paths):
            self._settle()
        fresh, self._fresh = self._fresh, set()
        return Dirt(self._scope.select(paths) | fresh, reasons)

    def unwatched(self) -> tuple[tuple[Path, str], ...]:
        """The targets whose changes are seen only by the periodic look, each with the reason in words."""
        return tuple(
            sorted(
                (target, reason) for place, reason in self._failures.items() for target in self._served.get(place, ())
            )
        )

    def watches(self, target: Path) -> bool:
        """Whether changes of a target are reported, as far as the kernel and the disk say. It must exist for that."""
        places = (Place(real_path(target), recursive) for recursive in (True, False))
        return any(
            place in self._armed and place not in self._failures and target in self._served.get(place, ())
            for place in places
        )

    def _settle(self) -> None:
        # What appears between the look and the new watch has no event; so look again until nothing changes.
        for _ in range(8):
            links, served = places_of(self._targets)
            self._served = served
            self._scope = Scope.of(self._targets, links)
            if not self._apply():
                return

    def _apply(self) -> bool:
        if not self._ensure_observer():
            return False
        changed = False
        for place, armed in list(self._armed.items()):
            if place not in self._served or not _is_sound(place, armed):
                self._disarm(place)
                changed = True
        for place in self._served:
            if place not in self._armed:
                changed |= self._schedule(place)
        self._failures = {place: why for place, why in self._failures.items() if place in self._served}
        return changed

    def _ensure_observer(self) -> bool:
        if self._observer is not None:
            return True
        try:
            observer = new_observer()
            observer.start()
        except (OSError, RuntimeError) as error:  # RuntimeError: no thread could be started
            self._fail(dict.fromkeys(self._served, _sentence(error)))
            return False
        self._observer = observer
        return True

    def _schedule(self, place: Place) -> bool:
        assert self._observer is not None  # noqa: S101  (for the type checker: _apply made one)
        identity = _identity(place.path)
        if identity is None:
            return False  # gone since the look; the next one sees it
        try:
            if not os.access(place.path, os.R_OK | os.X_OK):
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))  # watchdog would say nothing
            watch = self._observer.schedule(self._handler, place.path, recursive=place.recursive, event_filter=_EVENTS)
        except (OSError, RuntimeError) as error:
            self._fail({place: _sentence(error)})
            return False
        emitter = next((emitter for emitter in self._observer.emitters if emitter.watch is watch), None)
        armed = _Armed(watch, emitter, identity)
        self._armed[place] = armed
        armed.unseen = _unseen_below(place, armed)
        if armed.unseen:
            self._fail({place: f"{armed.unseen} directories below it are not watched: {_LIMIT_OR_PERMISSION}"})
        else:
            self._failures.pop(place, None)
        self._fresh.update(target for target in self._served[place] if real_path(target) == place.path)
        return True

    def _disarm(self, place: Place) -> None:
        armed = self._armed.pop(place)
        if self._observer is not None:
            try:
                self._observer.unschedule(armed.watch)
            except KeyError:
                log.debug("watch_was_gone", path=place.path)

    def _fail(self, failures: Mapping[Place, str]) -> None:
        for place, why in failures.items():
            if self._failures.get(place) != why:
                log.warning("directory_not_watched", path=place.path, reason=why)
                self._sink.lost(PARTIAL)
        self._failures |= failures

    def _close(self) -> None:
        observer, self._observer = self._observer, None
        self._armed.clear()
        if observer is None:
            return
        # Stopping joins watchdog's threads; one that hangs must not take the loop with it.
        closer = threading.Thread(target=_stop, args=(observer,), name="watch-closer", daemon=True)
        closer.start()
        closer.join(CLOSE_SECONDS)
        if closer.is_alive():
            log.warning("observer_did_not_stop", seconds=CLOSE_SECONDS)


def _is_sound(place: Place, armed: _Armed) -> bool:
    return armed.emitter is not None and armed.emitter.is_alive() and _identity(place.path) == armed.identity


def _unseen_below(place: Place, armed: _Armed) -> int:
    """How many directories of a tree the kernel does not watch for us, its root included.

    Beyond the limit, that happens to a tree that was unmounted and is back: its identity is the old one.
    """
    seen = _seen_by(armed.emitter)
    if seen is None or not place.recursive:
        return 0
    unseen = [directory for directory in _directories(place.path) if directory not in seen]
    if not unseen:
        return 0
    again = _seen_by(armed.emitter) or frozenset()  # some came or went while we looked
    return sum(directory not in again and Path(directory).is_dir() for directory in unseen)


def _identity(path: str) -> tuple[int, int] | None:
    try:
        found = Path(path).stat()
    except OSError:
        return None
    return (found.st_dev, found.st_ino) if stat.S_ISDIR(found.st_mode) else None


def _directories(root: str) -> Iterable[str]:
    for directory, _, _ in os.walk(root, onerror=None):
        yield directory


def _seen_by(emitter: EventEmitter | None) -> frozenset[str] | None:
    """The directories for which an inotify emitter holds a watch; None where that cannot be asked (macOS).

    There is no public way to ask; a test pins this one to the real watchdog.
    """
    group = getattr(emitter, "_inotify", None)
    by_path: dict[bytes, int] | None = getattr(group, "_active_callbacks_by_path", None)
    if by_path is None:
        return None
    return frozenset(os.fsdecode(path) for path, descriptor in list(by_path.items()) if descriptor >= 0)


def _stop(observer: BaseObserver) -> None:
    observer.stop()
    observer.join()


_LIMIT_OR_PERMISSION = "the kernel's limit may be reached (raise fs.inotify.max_user_watches) or they are not readable"


def _sentence(error: Exception) -> str:
    match error:
        case OSError(errno=errno.ENOSPC):
            return "the kernel's limit of file watches is reached; raise fs.inotify.max_user_watches"
        case OSError(errno=errno.EMFILE):
            return "the kernel's limit of inotify instances is reached; raise fs.inotify.max_user_instances"
        case OSError(strerror=str(text)):
            return text
        case _:
            return str(error)
