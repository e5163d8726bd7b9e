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

from echod.daemon.watcher import ChangedPaths, Watcher, WatchTargets
from echod.paths import PRIVATE_DIR_MODE, PRIVATE_FILE_MODE

CANARY_INTERVAL_SECONDS = 10.0
"""How often a pulse is sent."""

CANARY_TIMEOUT_SECONDS = 10.0
"""How long one may be under way. Detection takes at most both together; a healthy round trip takes 2 ms."""

_PULSE_PREFIX = "pulse-"


class Canary:
    """Sends pulses and waits for them. Times are seconds of the monotonic clock.

    A pulse has a name of its own, so that a late echo of an earlier one proves nothing.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._pulse_number = 0
        self._sent_at: float | None = None
        self._pending: Path | None = None
        self._timed_out = False
        self._write_error = ""

    @property
    def directory(self) -> Path:
        """To be watched as a hint."""
        return self._directory

    @property
    def write_error(self) -> str:
        """Why the last pulse could not even be sent, or ""; then nothing is known about the pipe."""
        return self._write_error

    def check_paths(self, paths: Collection[Path]) -> None:
        """Look for the pulse among the paths that the watcher reported."""
        if self._pending is not None and self._pending in paths:
            self._pending = None
            self._timed_out = False

    def is_overdue(self, now: float) -> bool:
        """Whether a pulse has been under way for too long."""
        return self._pending is not None and self._sent_at is not None and now - self._sent_at > CANARY_TIMEOUT_SECONDS

    def is_ok(self, now: float) -> bool:
        """False from the moment a pulse is overdue until one is heard; true as long as nothing speaks against it."""
        return not (self._timed_out or self.is_overdue(now))

    def send_if_due(self, now: float) -> None:
        """Send the next pulse if it is time and none is under way. Never raises; see `unwritten`."""
        if self._pending is None and (self._sent_at is None or now - self._sent_at >= CANARY_INTERVAL_SECONDS):
            self._send(now)

    def mark_lost(self) -> None:
        """The pulse under way is lost; the next `beat` sends another at once, and `ok` waits for that."""
        self._timed_out = True
        self._pending = self._sent_at = None

    def reset(self) -> None:
        """Nothing can be proven for now: make sure there is a directory to watch, and start afresh with `beat`."""
        self._timed_out = False
        self._pending = self._sent_at = None
        try:
            self._make_directory()
        except OSError as error:
            self._write_error = _write_error_text(error)

    def _send(self, now: float) -> None:
        self._pulse_number += 1
        self._sent_at = now
        pulse = self._directory / f"{_PULSE_PREFIX}{self._pulse_number}"
        try:
            self._make_directory()
            for old_pulse in self._directory.glob(f"{_PULSE_PREFIX}*"):
                old_pulse.unlink(missing_ok=True)
            with os.fdopen(os.open(pulse, os.O_WRONLY | os.O_CREAT | os.O_EXCL, PRIVATE_FILE_MODE), "w") as file:
                file.write(str(self._pulse_number))
        except OSError as error:
            self._write_error = _write_error_text(error)
        else:
            self._write_error = ""
            self._pending = pulse

    def _make_directory(self) -> None:
        self._directory.mkdir(mode=PRIVATE_DIR_MODE, parents=True, exist_ok=True)


def _write_error_text(error: OSError) -> str:
    return f"the canary file could not be written ({error.strerror})"


EVENTS_NOT_ARRIVING = "file events do not arrive any more"


class EventSource:
    """Owned by one thread. Times are seconds of the monotonic clock."""

    def __init__(self, watcher: Watcher, canary: Canary) -> None:
        self._watcher = watcher
        self._canary = canary

    def watch(self, targets: WatchTargets) -> None:
        """Watch these and the canary; to be called at every reconcile (see `Watcher.arm`)."""
        self._watcher.set_targets(WatchTargets(targets.roots, (*targets.hints, self._canary.directory)))

    def poll(self, now: float) -> ChangedPaths:
        """What happened since the last call. To be called at least every few seconds.

        Sends the canary's pulses, and replaces the watcher when one does not come back.
        """
        changes = self._watcher.drain()
        self._canary.check_paths(changes.paths)
        if not self._watcher.is_watched(self._canary.directory):
            self._canary.reset()
            return changes
        if self._canary.is_overdue(now):
            self._watcher.restart(EVENTS_NOT_ARRIVING)
            self._canary.mark_lost()
        self._canary.send_if_due(now)
        return changes

    def is_alive(self, now: float) -> bool:
        """False if events are known not to arrive although they should: the supervisor had better restart us.

        A pipe that cannot exist here (the kernel's limit) or cannot be proven (no room for the canary) is alive: a
        new process would do no better, and the periodic look goes on. `troubles` tells.
        """
        return self._canary.is_ok(now)

    def problems(self, now: float) -> tuple[str, ...]:
        """What is wrong with watching, in words for `status`; the unwatched directories are told by `unwatched`."""
        not_arriving = () if self._canary.is_ok(now) else (EVENTS_NOT_ARRIVING,)
        return not_arriving + ((self._canary.write_error,) if self._canary.write_error else ())

    def unwatched(self) -> tuple[tuple[Path, str], ...]:
        """See `Watcher.unwatched`."""
        return self._watcher.unwatched()
