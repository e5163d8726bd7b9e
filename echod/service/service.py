"""What every supervisor can do for the daemon. The command line knows nothing else of them.

Each verb returns sentences for the person, and raises a `ServiceError` that says what to do.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from echod.service.recorded import Recorded


@dataclass(frozen=True, slots=True)
class Standing:
    """How the service stands with its supervisor.

    Attributes:
        file: where the service file is or would be.
        installed: it is there.
        current: it is there, and what this installation would write.
        active: the supervisor says that it runs; None if no supervisor answers.
        detail: the supervisor's own word for it.
    """

    file: Path
    installed: bool
    current: bool
    active: bool | None
    detail: str


class Service(Protocol):
    """A systemd user unit or a launchd agent."""

    def standing(self, recorded: Recorded) -> Standing:
        """Look, change nothing."""

    def install(self, recorded: Recorded, *, force: bool) -> tuple[str, ...]:
        """Install, enable and start it, and see that it answers. Doing it again changes nothing.

        Args:
            recorded: how the daemon is run.
            force: replace a service file that somebody else wrote.
        """

    def uninstall(self, *, force: bool) -> tuple[str, ...]:
        """Stop it and remove all that `install` made. Memory, state and settings stay."""

    def start(self) -> tuple[str, ...]:
        """Start it and see that it answers."""

    def stop(self) -> tuple[str, ...]:
        """Stop it; it comes back with the next login."""

    def restart(self) -> tuple[str, ...]:
        """Stop and start it, and see that it answers."""

    def logs_command(self, *, lines: int, follow: bool) -> tuple[str, ...]:
        """The command that shows what it logged."""
