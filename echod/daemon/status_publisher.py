"""Keep the status snapshot up to date, so that `echod status` only has to read a file.

The loop marks what changed. This module decides when the status is collected and written again: at most once a
second, and a little later while queued work needs the processor. Owned by the loop's thread.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable
from pathlib import Path

from echod import __version__
from echod.contract.status import DaemonInfo, StatusWarning, to_json
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
        """Remove the snapshot at a clean end."""
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
