"""File events with their proof: the watcher and the canary as one thing that heals itself and says how it is.

This is what the loop sees of watching. It never decides what a changed path calls for.
"""

from __future__ import annotations

from pathlib import Path

from echod.daemon.event_health import Canary
from echod.daemon.targets import Dirt, Targets
from echod.daemon.watcher import Watcher

SILENT = "file events do not arrive any more"


class EventPipe:
    """Owned by one thread. Times are seconds of the monotonic clock."""

    def __init__(self, watcher: Watcher, canary: Canary) -> None:
        self._watcher = watcher
        self._canary = canary

    def arm(self, targets: Targets) -> None:
        """Watch these and the canary; to be called at every reconcile (see `Watcher.arm`)."""
        self._watcher.arm(Targets(targets.roots, (*targets.hints, self._canary.directory)))

    def look(self, now: float) -> Dirt:
        """What happened since the last call. To be called at least every few seconds.

        Sends the canary's pulses, and replaces the watcher when one does not come back.
        """
        dirt = self._watcher.drain()
        self._canary.heard(dirt.paths)
        if not self._watcher.watches(self._canary.directory):
            self._canary.rest()
            return dirt
        if self._canary.overdue(now):
            self._watcher.restart(SILENT)
            self._canary.give_up()
        self._canary.beat(now)
        return dirt

    def alive(self, now: float) -> bool:
        """False if events are known not to arrive although they should: the supervisor had better restart us.

        A pipe that cannot exist here (the kernel's limit) or cannot be proven (no room for the canary) is alive: a
        new process would do no better, and the periodic look goes on. `troubles` tells.
        """
        return self._canary.ok(now)

    def troubles(self, now: float) -> tuple[str, ...]:
        """What is wrong with watching, in words for `status`; the unwatched directories are told by `unwatched`."""
        silent = () if self._canary.ok(now) else (SILENT,)
        return silent + ((self._canary.unwritten,) if self._canary.unwritten else ())

    def unwatched(self) -> tuple[tuple[Path, str], ...]:
        """See `Watcher.unwatched`."""
        return self._watcher.unwatched()
