"""Prove that file events still arrive, and replace the watcher when they do not.

`Canary` writes a file in a watched directory and waits for its event. A dispatcher that died leaves every other
thread alive, so only such a round trip proves that events arrive. `EventSource` combines the watcher and the canary.
The loop uses nothing else for watching. Neither class decides what to do about a changed path.
"""

from __future__ import annotations

import os
from collections.abc import Collection
from pathlib import Path

from echod.daemon.watcher import ChangedPaths, Watcher, WatchTargets
from echod.paths import PRIVATE_FILE_MODE, make_private_directory
from echod.runtime import EVENTS_NOT_ARRIVING

CANARY_INTERVAL_SECONDS = 10.0
CANARY_TIMEOUT_SECONDS = 10.0
"""How long a pulse may be pending. Detection takes at most interval plus timeout. A healthy round trip takes 2 ms."""


class Canary:
    """Sends pulses and waits for their events. Times are seconds of the monotonic clock.

    Each pulse has its own name, so that the late event of an earlier pulse proves nothing.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        """The directory of the pulses, which must be watched as a hint."""
        self.write_error = ""
        """Why the last pulse could not be sent, or "". After such an error the state of the events is unknown."""
        self._pulse_number = 0
        self._sent_at: float | None = None
        self._pending: Path | None = None
        self._timed_out = False

    def check_paths(self, paths: Collection[Path]) -> None:
        """Check whether the pulse is among the paths that the watcher reported."""
        if self._pending is not None and self._pending in paths:
            self._pending = None
            self._timed_out = False

    def is_overdue(self, now: float) -> bool:
        """Return whether a pulse has been pending for too long."""
        return self._pending is not None and self._sent_at is not None and now - self._sent_at > CANARY_TIMEOUT_SECONDS

    def is_ok(self, now: float) -> bool:
        """Return False from the moment a pulse is overdue until one arrives, and otherwise True."""
        return not (self._timed_out or self.is_overdue(now))

    def send_if_due(self, now: float) -> None:
        """Send the next pulse if it is due and none is pending. Never raises; see `write_error`."""
        if self._pending is None and (self._sent_at is None or now - self._sent_at >= CANARY_INTERVAL_SECONDS):
            self._send(now)

    def mark_lost(self) -> None:
        """Give up the pending pulse. `send_if_due` then sends another at once, and `is_ok` waits for that one."""
        self._timed_out = True
        self._pending = self._sent_at = None

    def reset(self) -> None:
        """Start again, because nothing can be proven now: forget the pending pulse and create the directory."""
        self._timed_out = False
        self._pending = self._sent_at = None
        try:
            self._make_directory()
        except OSError as error:
            self._record(error)

    def _send(self, now: float) -> None:
        self._pulse_number += 1
        self._sent_at = now
        pulse = self.directory / f"pulse-{self._pulse_number}"
        try:
            self._make_directory()
            for old_pulse in self.directory.glob("pulse-*"):
                old_pulse.unlink(missing_ok=True)
            with os.fdopen(os.open(pulse, os.O_WRONLY | os.O_CREAT | os.O_EXCL, PRIVATE_FILE_MODE), "w") as file:
                file.write(str(self._pulse_number))
        except OSError as error:
            self._record(error)
        else:
            self.write_error = ""
            self._pending = pulse

    def _make_directory(self) -> None:
        make_private_directory(self.directory)

    def _record(self, error: OSError) -> None:
        self.write_error = f"the canary file could not be written ({error.strerror})"


class EventSource:
    """A watcher with its canary. Owned by one thread. Times are seconds of the monotonic clock."""

    def __init__(self, watcher: Watcher, canary: Canary) -> None:
        self._watcher = watcher
        self._canary = canary

    def watch(self, targets: WatchTargets) -> None:
        """Watch these targets and the canary. Call this at every reconcile (see `Watcher.set_targets`)."""
        self._watcher.set_targets(WatchTargets(targets.roots, (*targets.hints, self._canary.directory)))

    def poll(self, now: float) -> ChangedPaths:
        """Return the changes since the last call. Call this at least every few seconds.

        Sends the canary's pulses, and replaces the watcher when a pulse does not arrive.
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
        """Return False if events are known not to arrive although they should, so that a restart would help.

        Watching that is impossible here (the kernel's limit) or cannot be proven (no disk space for the canary) counts
        as alive, because a new process would do no better and the periodic reconcile continues. `problems` and
        `unwatched` report it.
        """
        return self._canary.is_ok(now)

    def problems(self, now: float) -> tuple[str, ...]:
        """Return the problems of watching, in words for `echod status`. `unwatched` lists unwatched directories."""
        not_arriving = () if self._canary.is_ok(now) else (EVENTS_NOT_ARRIVING,)
        return not_arriving + ((self._canary.write_error,) if self._canary.write_error else ())

    def unwatched(self) -> tuple[tuple[Path, str], ...]:
        """Return the unwatched targets with their reasons; see `Watcher.unwatched`."""
        return self._watcher.unwatched()
