"""Running the supervisor's own command-line tool."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from dataclasses import dataclass

from echod.service.errors import ServiceError

TIMEOUT_SECONDS = 120.0
"""More than the supervisor itself allows for a start or a stop."""


@dataclass(frozen=True, slots=True)
class Answer:
    """How a tool ended and what it said."""

    code: int
    out: str
    err: str

    @property
    def ok(self) -> bool:
        """It did what it was asked."""
        return self.code == 0

    @property
    def said(self) -> str:
        """The last line it printed about a failure."""
        return next(reversed((self.err.strip() or self.out.strip()).splitlines()), f"it ended with code {self.code}")


class Tool:
    """A program with the arguments that every call of it has in common."""

    def __init__(self, *command: str, seconds: float = TIMEOUT_SECONDS) -> None:
        self._command = command
        self._seconds = seconds

    def ask(self, *arguments: str) -> Answer:
        """Run it and wait.

        Raises:
            ServiceError: it is not installed, or does not come back.
        """
        command: Sequence[str] = (*self._command, *arguments)
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, errors="replace", check=False, timeout=self._seconds
            )
        except FileNotFoundError as error:
            raise ServiceError(f"{self._command[0]} is not installed here.") from error
        except subprocess.TimeoutExpired as error:
            raise ServiceError(f"{' '.join(command)} did not come back within {self._seconds:.0f} s.") from error
        return Answer(done.returncode, done.stdout, done.stderr)
