"""Notify the supervisor with systemd's protocol, one datagram for each message (sd_notify(3)).

Without such a supervisor (in a terminal, under launchd) nothing is sent. Never fails, because a supervisor that does
not listen is not a reason to stop.
"""

from __future__ import annotations

import socket
from collections.abc import Mapping
from typing import NamedTuple

from echod.log import get_logger

log = get_logger(__name__)


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
