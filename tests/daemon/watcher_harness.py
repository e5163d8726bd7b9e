"""Provide a real watcher and the changes it reported."""

from __future__ import annotations

import time
from pathlib import Path

from echod.daemon.events import EventBuffer
from echod.daemon.watcher import ChangedPaths, Watcher, WatchTargets
from tests.support import until


class WatcherHarness:
    """A real watcher and everything it has reported so far."""

    def __init__(self, watcher: Watcher, buffer: EventBuffer) -> None:
        self.watcher = watcher
        self.buffer = buffer
        self.paths: set[Path] = set()
        self.rescan: list[str] = []

    def set_targets(self, *roots: Path, hints: tuple[Path, ...] = ()) -> None:
        """Set the targets, and discard the changes that this reports."""
        self.watcher.set_targets(WatchTargets(roots, hints))
        self.clear()

    def drain(self) -> ChangedPaths:
        changes = self.watcher.drain()
        self.paths |= changes.paths
        self.rescan += changes.rescan
        return changes

    def clear(self) -> None:
        self.drain()
        self.paths.clear()
        self.rescan.clear()

    def until(self, *paths: Path) -> None:
        """Wait until each path was reported."""
        until(lambda: self.drain() and self.paths.issuperset(paths), f"events for {[str(p) for p in paths]}")

    def until_seen(self, path: Path) -> None:
        """Write `path` until a write is reported, so the watch is live again."""

        def seen() -> bool:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(str(time.monotonic_ns()))
            time.sleep(0.01)
            self.drain()
            return path in self.paths

        until(seen, f"a live watch for {path}")

    def wait_for_pending_events(self, beacon: Path) -> None:
        """Wait until all earlier events have arrived. The events of one observer arrive in order."""
        beacon.write_text("beacon")
        self.until(beacon)
