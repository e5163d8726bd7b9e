"""Files that echod writes in directories of other programs: known by a mark, written whole or not at all.

What can go wrong between echod and the platform's supervisor.

What a service file has to record, because a supervisor starts us without the shell's environment.

What every supervisor can do for the daemon. The command line knows nothing else of them.

Each verb returns sentences for the person, and raises a `ServiceError` that says what to do.

Waiting until a daemon that was just started really answers. A supervisor's "started" is not enough.

Running the supervisor's own command-line tool.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, Protocol

from echod.errors import EchodError
from echod.runtime.heartbeat import Liveness


class ServiceError(EchodError):
    """The supervisor did not do what was asked; the sentence says what to do."""


class ForeignFileError(ServiceError):
    """A file in our place was not written by echod."""


_RECORDED_VARIABLES = ("CLAUDE_CONFIG_DIR", "XDG_CONFIG_HOME", "XDG_STATE_HOME")
"""They decide where memory, settings and state are: a service without them would look elsewhere."""

_RECORDED_PREFIX = "ECHOD_"


@dataclass(frozen=True, slots=True)
class ServiceConfig:
    """The command that runs the daemon in the foreground, with absolute paths, and its environment."""

    command: tuple[str, ...]
    environment: tuple[tuple[str, str], ...]


def build_service_config(python: Path, environ: Mapping[str, str]) -> ServiceConfig:
    """Record how this installation is run.

    Args:
        python: the interpreter that runs us (`sys.executable`); its symlinks make up a virtual environment, so they
            are kept.
        environ: the environment of whoever installs.

    Raises:
        ServiceError: a value cannot be written into a service file.
    """
    script = python.parent / "echod"
    command = (str(script), "run") if os.access(script, os.X_OK) else (str(python), "-m", "echod", "run")
    recorded_variables = {
        name: value
        for name, value in sorted(environ.items())
        if value and (name in _RECORDED_VARIABLES or name.startswith(_RECORDED_PREFIX))
    }
    for name, value in [*recorded_variables.items(), *(("The path of echod", part) for part in command)]:
        if any(ord(character) < ord(" ") for character in value):
            raise ServiceError(f"{name} holds a line break or control character; a service file cannot hold it.")
    return ServiceConfig(command, tuple(recorded_variables.items()))


class ServiceState(NamedTuple):
    """How the service stands with its supervisor.

    Attributes:
        file: where the service file is or would be.
        installed: it is there.
        up_to_date: it is there, and what this installation would write.
        active: the supervisor says that it runs; None if no supervisor answers.
        detail: the supervisor's own word for it.
    """

    file: Path
    installed: bool
    up_to_date: bool
    active: bool | None
    detail: str


class Service(Protocol):
    """A systemd user unit or a launchd agent."""

    def read_state(self, service_config: ServiceConfig) -> ServiceState:
        """Look, change nothing."""

    def install(self, service_config: ServiceConfig, *, force: bool) -> tuple[str, ...]:
        """Install, enable and start it, and see that it answers. Doing it again changes nothing.

        Args:
            service_config: how the daemon is run.
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


START_TIMEOUT_SECONDS = 20.0
_POLL_SECONDS = 0.05


class Clock(NamedTuple):
    """Time for whoever waits."""

    monotonic: Callable[[], float]
    sleep: Callable[[float], object]


def wait_for_liveness(
    is_done: Callable[[Liveness], bool],
    probe: Callable[[], Liveness],
    clock: Clock,
    seconds: float = START_TIMEOUT_SECONDS,
) -> Liveness:
    """Look until it is as wanted, or the time is over; the last look is returned either way."""
    deadline = clock.monotonic() + seconds
    while not is_done(found := probe()) and clock.monotonic() < deadline:
        clock.sleep(_POLL_SECONDS)
    return found


COMMAND_TIMEOUT_SECONDS = 120.0
"""More than the supervisor itself allows for a start or a stop."""


class CommandResult(NamedTuple):
    """How a tool ended and what it said."""

    code: int
    out: str
    err: str

    @property
    def succeeded(self) -> bool:
        """It did what it was asked."""
        return self.code == 0

    @property
    def error_line(self) -> str:
        """The last line it printed about a failure."""
        return next(reversed((self.err.strip() or self.out.strip()).splitlines()), f"it ended with code {self.code}")


class CommandRunner:
    """A program with the arguments that every call of it has in common."""

    def __init__(self, *command: str, timeout_seconds: float = COMMAND_TIMEOUT_SECONDS) -> None:
        self._command = command
        self._timeout_seconds = timeout_seconds

    def run(self, *arguments: str) -> CommandResult:
        """Run it and wait.

        Raises:
            ServiceError: it is not installed, or does not come back.
        """
        command: Sequence[str] = (*self._command, *arguments)
        try:
            completed = subprocess.run(
                command, capture_output=True, text=True, errors="replace", check=False, timeout=self._timeout_seconds
            )
        except FileNotFoundError as error:
            raise ServiceError(f"{self._command[0]} is not installed here.") from error
        except subprocess.TimeoutExpired as error:
            raise ServiceError(
                f"{' '.join(command)} did not come back within {self._timeout_seconds:.0f} s."
            ) from error
        return CommandResult(completed.returncode, completed.stdout, completed.stderr)


MANAGED_MARK = b"Managed by echod"


class ManagedFile:
    """One file of ours in a directory that others use too."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def read(self) -> bytes | None:
        """Its bytes, or None if it is not there.

        Raises:
            ServiceError: it cannot be read.
        """
        try:
            return self.path.read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise ServiceError(f"{self.path} cannot be read ({error.strerror}).") from error

    def check_managed(self) -> None:
        """Raise unless it is missing or has our mark.

        Raises:
            ForeignFileError: somebody else wrote it.
        """
        content = self.read()
        if content is not None and MANAGED_MARK not in content:
            raise ForeignFileError(
                f"{self.path} was not written by echod; move it away, or say --force to have it replaced."
            )

    def write(self, data: bytes) -> bool:
        """Make its content `data`; False if it was that already.

        Raises:
            ServiceError: it cannot be written.
        """
        if self.read() == data:
            return False
        temporary = self.path.with_name(f".{self.path.name}.{secrets.token_hex(4)}")
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with temporary.open("xb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(self.path)
        except OSError as error:
            raise ServiceError(f"{self.path} cannot be written ({error.strerror}).") from error
        finally:
            with contextlib.suppress(OSError):
                temporary.unlink(missing_ok=True)
        return True

    def remove(self) -> bool:
        """Remove it; False if it was not there.

        Raises:
            ServiceError: it cannot be removed.
        """
        try:
            self.path.unlink()
        except FileNotFoundError:
            return False
        except OSError as error:
            raise ServiceError(f"{self.path} cannot be removed ({error.strerror}).") from error
        return True
