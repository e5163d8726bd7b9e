"""Do file events still arrive? A file is written where the watcher watches, and must come back as an event.

A dispatcher that died leaves every other thread alive, so nothing less than a round trip proves the pipe. Knows
nothing of what is watched besides its own directory, which the owner puts among the watcher's hints.

File events with their proof: the watcher and the canary as one thing that heals itself and says how it is.

This is what the loop sees of watching. It never decides what a changed path calls for.
"""

from __future__ import annotations

import os
from collections.abc import Collection
from pathlib import Path

from echod.daemon.watcher import Dirt, Targets, Watcher
from echod.paths import PRIVATE_DIR, PRIVATE_FILE

PULSE_SECONDS = 10.0
"""How often a pulse is sent."""

PATIENCE_SECONDS = 10.0
"""How long one may be under way. Detection takes at most both together; a healthy round trip takes 2 ms."""

_PREFIX = "pulse-"


class Canary:
    """Sends pulses and waits for them. Times are seconds of the monotonic clock.

    A pulse has a name of its own, so that a late echo of an earlier one proves nothing.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._number = 0
        self._sent_at: float | None = None
        self._awaited: Path | None = None
        self._silent = False
        self._unwritten = ""

    @property
    def directory(self) -> Path:
        """To be watched as a hint."""
        return self._directory

    @property
    def unwritten(self) -> str:
        """Why the last pulse could not even be sent, or ""; then nothing is known about the pipe."""
        return self._unwritten

    def heard(self, paths: Collection[Path]) -> None:
        """Look for the pulse among the paths that the watcher reported."""
        if self._awaited is not None and self._awaited in paths:
            self._awaited = None
            self._silent = False

    def overdue(self, now: float) -> bool:
        """Whether a pulse has been under way for too long."""
        return self._awaited is not None and self._sent_at is not None and now - self._sent_at > PATIENCE_SECONDS

    def ok(self, now: float) -> bool:
        """False from the moment a pulse is overdue until one is heard; true as long as nothing speaks against it."""
        return not (self._silent or self.overdue(now))

    def beat(self, now: float) -> None:
        """Send the next pulse if it is time and none is under way. Never raises; see `unwritten`."""
        if self._awaited is None and (self._sent_at is None or now - self._sent_at >= PULSE_SECONDS):
            self._send(now)

    def give_up(self) -> None:
        """The pulse under way is lost; the next `beat` sends another at once, and `ok` waits for that."""
        self._silent = True
        self._awaited = self._sent_at = None

    def rest(self) -> None:
        """Nothing can be proven for now: make sure there is a directory to watch, and start afresh with `beat`."""
        self._silent = False
        self._awaited = self._sent_at = None
        try:
            self._make_directory()
        except OSError as error:
            self._unwritten = _sentence(error)

    def _send(self, now: float) -> None:
        self._number += 1
        self._sent_at = now
        pulse = self._directory / f"{_PREFIX}{self._number}"
        try:
            self._make_directory()
            for old in self._directory.glob(f"{_PREFIX}*"):
                old.unlink(missing_ok=True)
            with os.fdopen(os.open(pulse, os.O_WRONLY | os.O_CREAT | os.O_EXCL, PRIVATE_FILE), "w") as file:
                file.write(str(self._number))
        except OSError as error:
            self._unwritten = _sentence(error)
        else:
            self._unwritten = ""
            self._awaited = pulse

    def _make_directory(self) -> None:
        self._directory.mkdir(mode=PRIVATE_DIR, parents=True, exist_ok=True)


def _sentence(error: OSError) -> str:
    return f"the canary file could not be written ({error.strerror})"


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
