"""Publish the daemon's status: the snapshot that `echod status` reads, and messages to the supervisor (sd_notify(3)).

The loop marks what changed. This module decides when the status is collected and written again: at most once a
second, and a little later while queued work needs the processor. Owned by the loop's thread.

Without such a supervisor (in a terminal, under launchd) nothing is sent. Never fails, because a supervisor that does
not listen is not a reason to stop.
"""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from echod import __version__
from echod.contract.codec import to_json
from echod.contract.status import DaemonInfo, StatusWarning
from echod.files import write_runtime_file
from echod.log import get_logger
from echod.projects.discovery import DiscoveredStores
from echod.runtime.locks import LockOwner
from echod.status.collect import StatusCollector

log = get_logger(__name__)

STATUS_WRITE_SECONDS = 1.0
"""The shortest time between two writes of the status."""

STATUS_DELAY_SECONDS = 0.5
"""How long the status is not renewed after work was queued, because both need the processor at the same time."""


class StatusPublisher:
    """Write the status snapshot (`Paths.status_snapshot`) of the daemon `identity` whenever something in it changed."""

    def __init__(self, collector: StatusCollector, file: Path, identity: LockOwner) -> None:
        self._collector = collector
        self._file = file
        self._identity = identity
        self._changed = True
        self._stale_stores: set[str] = set()
        self._written_at = self._queued_at = 0.0
        self._file_is_current = True
        self.summary = "starting"
        """The status in one line, for the supervisor and the heartbeat."""

    def mark_changed(self) -> None:
        """Record that something besides a store changed."""
        self._changed = True

    def mark_stale(self, store_keys: Iterable[str]) -> None:
        """Record that these stores must be inspected before the next write."""
        self._stale_stores.update(store_keys)

    def delay(self, monotonic: float) -> None:
        """Record that work was queued, which goes first for a moment."""
        self._queued_at = monotonic

    def update(
        self, stores: DiscoveredStores, now: float, monotonic: float, warnings: Callable[[], tuple[StatusWarning, ...]]
    ) -> None:
        """Write the status if it changed and is due. Raises DatabaseUnavailableError if it cannot be collected now."""
        self._stale_stores.update(self._collector.stores_with_expired_gate(now))
        if not (self._changed or self._stale_stores) or monotonic < self._next_write_at:
            return
        self._written_at = monotonic
        stale, self._stale_stores = self._stale_stores, set()
        self._changed = False
        self._collector.inspect((store for store in stores.stores if store.key in stale), now)
        daemon = DaemonInfo(self._identity.pid, __version__, now - self._identity.since)
        report = self._collector.report(stores, now, daemon=daemon, warnings=warnings())
        queue = report.queue
        to_do = f"{queue.queued + queue.running} to do, {queue.deferred} waiting for workflows"
        self.summary = f"{report.health.value}: {to_do}"
        self._write(to_json(report))

    def seconds_until_due(self, monotonic: float) -> float | None:
        """Return when the next write is due, as seconds from now; None if nothing changed."""
        return self._next_write_at - monotonic if self._changed or self._stale_stores else None

    def remove(self) -> None:
        """Remove the snapshot: that of an earlier daemon which was killed, or the own one at a clean end."""
        with contextlib.suppress(OSError):  # then it cannot be written either, which is reported
            self._file.unlink(missing_ok=True)

    @property
    def _next_write_at(self) -> float:
        # By the monotonic clock. Work that was just queued goes first, but only for a while.
        earliest = self._written_at + STATUS_WRITE_SECONDS
        return max(earliest, min(self._queued_at + STATUS_DELAY_SECONDS, earliest + STATUS_WRITE_SECONDS))

    def _write(self, text: str) -> None:
        try:
            write_runtime_file(self._file, text)
            self._collector.save_first_seen()
            self._file_is_current = True
        except OSError as error:
            if self._file_is_current:
                log.warning("status_not_written", reason=error.strerror)
            self._file_is_current = False
            self._changed = True
            with contextlib.suppress(OSError):
                self._file.unlink()  # its content is no longer true; without it, commands collect the status themselves


class Notifier(NamedTuple):
    """Sends messages to the supervisor's datagram socket at `address`; None sends nothing.

    The supervisor kills a daemon that sends `notify_watchdog` less often than every `watchdog_seconds`, if not None.
    """

    address: str | None
    watchdog_seconds: float | None

    @classmethod
    def from_environment(cls, environ: Mapping[str, str], pid: int) -> Notifier:
        """Read the supervisor's variables. `WATCHDOG_USEC` is ignored if `WATCHDOG_PID` is another process."""
        address = environ.get("NOTIFY_SOCKET", "")
        usable = address.startswith(("/", "@"))
        return cls(address if usable else None, _watchdog_seconds(environ, pid) if usable else None)

    def report_interval(self, default_seconds: float) -> float:
        """Return how often to report progress: by default, but at least three times in the watchdog's interval."""
        return default_seconds if self.watchdog_seconds is None else min(default_seconds, self.watchdog_seconds / 3)

    def ready(self, status: str) -> None:
        """Report that the start or the reload is complete."""
        self._send(f"READY=1\nSTATUS={_one_line(status)}")

    def status(self, status: str) -> None:
        """Send the line that `systemctl status` shows."""
        self._send(f"STATUS={_one_line(status)}")

    def notify_watchdog(self) -> None:
        """Report progress."""
        self._send("WATCHDOG=1")

    def reloading(self, monotonic_seconds: float) -> None:
        """Report that settings are read again. `ready` must follow."""
        self._send(f"RELOADING=1\nMONOTONIC_USEC={int(monotonic_seconds * 1_000_000)}")

    def stopping(self, status: str) -> None:
        """Report that the daemon begins to stop."""
        self._send(f"STOPPING=1\nSTATUS={_one_line(status)}")

    def _send(self, message: str) -> None:
        if self.address is None:
            return
        # A leading @ represents the zero byte of Linux's abstract names.
        address = "\0" + self.address[1:] if self.address.startswith("@") else self.address
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | getattr(socket, "SOCK_CLOEXEC", 0)) as out:
                out.settimeout(0)
                out.sendto(message.encode(), address)
        except OSError as error:
            log.debug("supervisor_not_notified", error=str(error))


def _watchdog_seconds(environ: Mapping[str, str], pid: int) -> float | None:
    if environ.get("WATCHDOG_PID", str(pid)) != str(pid):
        return None
    try:
        microseconds = int(environ.get("WATCHDOG_USEC", ""))
    except ValueError:
        return None
    return microseconds / 1_000_000 if microseconds > 0 else None


def _one_line(text: str) -> str:
    return " ".join(text.split())
