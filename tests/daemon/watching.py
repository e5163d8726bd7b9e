"""Helpers of the daemon's tests: wait for a condition; a real watcher and what it reported."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from echod.daemon.events import Sink
from echod.daemon.watcher import Dirt, Targets, Watcher
from tests.support import until


def wait_until(condition: Callable[[], object], what: str) -> None:
    """Wait until `condition` gives something true."""
    until(lambda: bool(condition()), what)


class Watching:
    """A real watcher and everything it has reported so far."""

    def __init__(self, watcher: Watcher, sink: Sink) -> None:
        self.watcher = watcher
        self.sink = sink
        self.paths: set[Path] = set()
        self.rescan: list[str] = []

    def arm(self, *roots: Path, hints: tuple[Path, ...] = ()) -> None:
        """Arm, and forget what that made dirty."""
        self.watcher.arm(Targets(roots, hints))
        self.forget()

    def drain(self) -> Dirt:
        dirt = self.watcher.drain()
        self.paths |= dirt.paths
        self.rescan += dirt.rescan
        return dirt

    def forget(self) -> None:
        self.drain()
        self.paths.clear()
        self.rescan.clear()

    def until(self, *paths: Path) -> None:
        """Wait until each path was reported."""
        wait_until(lambda: self.drain() and self.paths.issuperset(paths), f"events for {[str(p) for p in paths]}")

    def until_seen(self, path: Path) -> None:
        """Write `path` until a write is reported: the watch is live again."""

        def seen() -> bool:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(str(time.monotonic_ns()))
            time.sleep(0.01)
            self.drain()
            return path in self.paths

        wait_until(seen, f"a live watch for {path}")

    def settle(self, beacon: Path) -> None:
        """Wait until all earlier events have arrived: those of one observer come in order."""
        beacon.write_text("beacon")
        self.until(beacon)
