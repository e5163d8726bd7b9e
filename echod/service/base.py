"""Define the service that a supervisor runs, and the tools that the implementations share.

Commands use only the protocol `Service`. Its verbs return sentences for the user, and raise a `ServiceError` that
contains the next step. A start counts only when the daemon itself answers; the supervisor's "started" is not enough.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple, Protocol

from echod.errors import EchodError
from echod.files import read_regular, write_private_durable
from echod.installation import program_command, temporary_runner
from echod.runtime import Liveness

START_TIMEOUT_SECONDS = 20.0

COMMAND_TIMEOUT_SECONDS = 120.0
"""Longer than the supervisor itself allows for a start or a stop."""

LOGS_HINT = "Show the log with: echod service logs"

MANAGED_MARK = b"Managed by echod"
"""Identifies the service files that echod wrote."""

_POLL_SECONDS = 0.05
_MAX_FILE_BYTES = 1024 * 1024

_RECORDED_VARIABLES = ("CLAUDE_CONFIG_DIR", "XDG_CONFIG_HOME", "XDG_STATE_HOME")
"""These decide where memory, settings and state are. A service without them would use other directories."""


class ServiceError(EchodError):
    """The supervisor did not do what was requested. The message contains the next step."""


class ForeignFileError(ServiceError):
    """The service file exists and was not written by echod."""


def other_daemon_error(pid: int) -> ServiceError:
    """Return the error of a verb that a daemon outside of the service prevents."""
    return ServiceError(f"A daemon outside of the service is running as process {pid}. End it first: kill {pid}")


class ServiceConfig(NamedTuple):
    """The command that runs the daemon in the foreground, with absolute paths, and its environment.

    A service file has to contain both, because a supervisor starts programs without the shell's environment.
    """

    command: tuple[str, ...]
    environment: tuple[tuple[str, str], ...]


def build_service_config(python: Path, environ: Mapping[str, str]) -> ServiceConfig:
    """Record how this installation is run, from the environment of the installing shell.

    `python` is `sys.executable`.

    Raises:
        ServiceError: a service file cannot contain one of the values, or this environment is only temporary.
    """
    if (runner := temporary_runner(python, environ)) is not None:
        raise ServiceError(
            f"This echod runs in a temporary environment of {runner}, so a service would soon lose it. Install it "
            "first, with: uv tool install echod-memory"
        )
    command = (*program_command(python, environ), "run")
    names = [name for name in sorted(environ) if name in _RECORDED_VARIABLES or name.startswith("ECHOD_")]
    recorded = tuple((name, environ[name]) for name in names if environ[name])
    for name, value in [*recorded, *(("The path of echod", part) for part in command)]:
        if any(ord(character) < ord(" ") for character in value):
            raise ServiceError(f"{name} contains a line break or control character, which a service file cannot.")
    return ServiceConfig(command, recorded)


class ServiceState(NamedTuple):
    """The state of the service in its supervisor.

    It is `installed` if `file` exists, and `up_to_date` if that is the file that this installation would write.
    `active` is None if no supervisor answers. `detail` is the supervisor's own word for the state.
    """

    file: Path
    installed: bool
    up_to_date: bool
    active: bool | None
    detail: str


class Service(Protocol):
    """A systemd user unit or a launchd agent."""

    def read_state(self, service_config: ServiceConfig) -> ServiceState:
        """Return the state of the service. Read-only."""

    def install(self, service_config: ServiceConfig, *, force: bool) -> tuple[str, ...]:
        """Install, enable and start the service, and wait until it answers. Repeating this changes nothing.

        `force` replaces a service file that echod did not write.
        """

    def uninstall(self, *, force: bool) -> tuple[str, ...]:
        """Stop the service and remove everything that `install` created. Keep memory, state and settings."""

    def start(self) -> tuple[str, ...]:
        """Start the service and wait until it answers."""

    def stop(self) -> tuple[str, ...]:
        """Stop the service until the next login."""

    def restart(self) -> tuple[str, ...]:
        """Stop and start the service, and wait until it answers."""

    def logs_command(self, *, lines: int, follow: bool) -> tuple[str, ...]:
        """Return the command that shows the service's log."""


class Clock(NamedTuple):
    """The time, for functions that wait."""

    monotonic: Callable[[], float]
    sleep: Callable[[float], object]


def wait_for_liveness(is_done: Callable[[Liveness], bool], probe: Callable[[], Liveness], clock: Clock) -> Liveness:
    """Probe the daemon until `is_done`, at most for `START_TIMEOUT_SECONDS`. Return the last state either way."""
    deadline = clock.monotonic() + START_TIMEOUT_SECONDS
    while not is_done(liveness := probe()) and clock.monotonic() < deadline:
        clock.sleep(_POLL_SECONDS)
    return liveness


class CommandResult(NamedTuple):
    """The exit code and the output of a command."""

    code: int
    out: str
    err: str

    @property
    def succeeded(self) -> bool:
        """True if the exit code is 0."""
        return self.code == 0

    @property
    def error_line(self) -> str:
        """The last line that a failed command printed."""
        return next(reversed((self.err.strip() or self.out.strip()).splitlines()), f"it ended with code {self.code}")


class CommandRunner:
    """A program with the arguments that are common to all its calls."""

    def __init__(self, *command: str, timeout_seconds: float = COMMAND_TIMEOUT_SECONDS) -> None:
        self._command = command
        self._timeout_seconds = timeout_seconds

    def run(self, *arguments: str) -> CommandResult:
        """Run the program with these arguments and wait for its end.

        Raises:
            ServiceError: it is not installed, or does not end in time.
        """
        command, timeout = (*self._command, *arguments), self._timeout_seconds
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, errors="replace", check=False, timeout=timeout
            )
        except FileNotFoundError as error:
            raise ServiceError(f"{self._command[0]} is not installed here.") from error
        except subprocess.TimeoutExpired as error:
            raise ServiceError(f"{' '.join(command)} did not end within {timeout:.0f} s.") from error
        return CommandResult(done.returncode, done.stdout, done.stderr)


class ManagedFile:
    """One file of ours in another program's directory. It is recognised by its mark and written atomically.

    Raises a `ServiceError` if the file cannot be read, written or removed.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def read(self) -> bytes | None:
        """Return the content, or None if the file does not exist."""
        try:
            return read_regular(self.path, _MAX_FILE_BYTES)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise ServiceError(f"{self.path} cannot be read ({error.strerror}).") from error

    def check_installed(self) -> None:
        """Check that the file exists.

        Raises:
            ServiceError: it does not.
        """
        if self.read() is None:
            raise ServiceError("The service is not installed. Install it with: echod service install")

    def check_managed(self) -> None:
        """Check that the file does not exist or has our mark.

        Raises:
            ForeignFileError: another program or the user wrote it.
        """
        content = self.read()
        if content is not None and MANAGED_MARK not in content:
            raise ForeignFileError(f"{self.path} was not written by echod. Move it away, or replace it with --force.")

    def write(self, data: bytes) -> bool:
        """Make `data` the content of the file. Return False if it is already."""
        if self.read() == data:
            return False
        try:
            write_private_durable(self.path, data)
        except OSError as error:
            raise ServiceError(f"{self.path} cannot be written ({error.strerror}).") from error
        return True

    def remove(self) -> bool:
        """Remove the file. Return False if it does not exist."""
        try:
            self.path.unlink()
        except FileNotFoundError:
            return False
        except OSError as error:
            raise ServiceError(f"{self.path} cannot be removed ({error.strerror}).") from error
        return True
