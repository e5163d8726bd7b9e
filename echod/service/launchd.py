"""Run the daemon as a launchd agent, rendered from the template in `launchd/`. Not yet tested on macOS.

It follows launchd.plist(5) and launchctl(1). `bootstrap` fails with code 5 while the agent it replaces is still
ending, and also without a graphical login. It is retried for some seconds, and then the error explains both.
"""

from __future__ import annotations

import os
import plistlib
from collections.abc import Callable
from pathlib import Path
from xml.parsers.expat import ExpatError

from echod.files import insecure_file_warnings
from echod.paths import make_private_directory
from echod.runtime import DaemonState, Liveness
from echod.service.base import (
    LOGS_HINT,
    MANAGED_MARK,
    Clock,
    CommandResult,
    CommandRunner,
    ManagedFile,
    ServiceConfig,
    ServiceError,
    ServiceState,
    other_daemon_error,
    wait_for_liveness,
)
from echod.service.paths import LAUNCHD_LABEL, PLIST_NAME, read_template

AGENT_PATH = "/usr/local/bin:/opt/homebrew/bin:/usr/bin:/bin:/usr/sbin:/sbin"
"""launchd gives an agent a minimal PATH, but git may be in any of these."""

BOOTSTRAP_BUSY = 5
"""The exit code of `launchctl bootstrap` while the old agent is ending, or without a graphical session."""

BOOTSTRAP_ATTEMPTS = 4
RETRY_SECONDS = 1.0

_DOCTYPE_END = b'"http://www.apple.com/DTDs/PropertyList-1.0.dtd">\n'


def render_plist(template: str, service_config: ServiceConfig, stderr: Path) -> bytes:
    """Return the agent's file: the template with the recorded command, environment and standard error file. Pure.

    Raises:
        ServiceError: the template is not a property list.
    """
    try:
        agent = plistlib.loads(template.encode())
    except (ValueError, ExpatError, plistlib.InvalidFileException) as error:
        raise ServiceError("The launchd template of this installation is damaged. Install echod again.") from error
    agent["ProgramArguments"] = list(service_config.command)
    agent["EnvironmentVariables"] = {"PATH": AGENT_PATH, **dict(service_config.environment)}
    agent["StandardErrorPath"] = str(stderr)
    head, separator, body = plistlib.dumps(agent, sort_keys=False).partition(_DOCTYPE_END)
    comment = b"<!-- " + MANAGED_MARK + b": `echod service install` writes this file again. -->\n"
    return head + separator + comment + body


class LaunchdService:
    """Implements `Service` with `launchctl`. The agent runs in the graphical session of the user `uid`.

    `agent_directory` is the directory of the user's own agents. `probe` returns the state of the daemon.
    """

    def __init__(
        self,
        *,
        agent_directory: Path,
        launchctl: CommandRunner,
        uid: int,
        log_file: Path,
        probe: Callable[[], Liveness],
        clock: Clock,
    ) -> None:
        self._file = ManagedFile(agent_directory / PLIST_NAME)
        self._launchctl = launchctl
        self._domain = f"gui/{uid}"
        self._target = f"{self._domain}/{LAUNCHD_LABEL}"
        self._log_file = log_file
        self._probe = probe
        self._clock = clock

    def read_state(self, service_config: ServiceConfig) -> ServiceState:
        """Return the state of the agent; see `Service.read_state`."""
        content = self._file.read()
        active: bool | None
        try:
            active = self._launchctl.run("list", LAUNCHD_LABEL).succeeded
            detail = "loaded" if active else "not loaded"
        except ServiceError as error:
            active, detail = None, str(error)
        up_to_date = content == self._render(service_config)
        return ServiceState(self._file.path, content is not None, up_to_date, active, detail)

    def install(self, service_config: ServiceConfig, *, force: bool) -> tuple[str, ...]:
        """Install and start the agent; see `Service.install`."""
        agent = self._render(service_config)
        if not force:
            self._file.check_managed()
        loaded = self._launchctl.run("list", LAUNCHD_LABEL).succeeded
        heartbeat = None if loaded else self._probe().heartbeat
        if heartbeat is not None:
            raise other_daemon_error(heartbeat.pid)
        make_private_directory(self._log_file.parent)
        changed = self._file.write(agent)
        if loaded and not changed and self._probe().state is DaemonState.RUNNING:
            return (f"{self._file.path} is installed and the service is running; nothing to do.",)
        if loaded:
            self._launchctl.run("bootout", self._target)
        self._bootstrap()
        self._wait_until_answering()
        message = f"Installed {self._file.path}. The service runs while you are logged in."
        return (message, *insecure_file_warnings(self._file.path, os.getuid()))

    def uninstall(self, *, force: bool) -> tuple[str, ...]:
        """Stop and remove the agent; see `Service.uninstall`."""
        if not force:
            self._file.check_managed()
        self._launchctl.run("bootout", self._target)
        if not self._file.remove():
            return ("It is not installed.",)
        return ("The service is removed. Memory, settings and state are kept.",)

    def start(self) -> tuple[str, ...]:
        """Start the agent and wait until it answers."""
        self._file.check_installed()
        if self._probe().is_answering:
            return ("The service is already running.",)
        if not self._launchctl.run("kickstart", self._target).succeeded:
            self._bootstrap()
        self._wait_until_answering()
        return ("The service is running.",)

    def stop(self) -> tuple[str, ...]:
        """Stop the agent until the next login."""
        self._file.check_installed()
        # It then ends with 0, and launchd restarts only failures.
        self._launchctl.run("kill", "SIGTERM", self._target)
        liveness = wait_for_liveness(lambda current: current.state is DaemonState.STOPPED, self._probe, self._clock)
        if liveness.state is not DaemonState.STOPPED:
            raise ServiceError(f"The daemon did not stop: {liveness.text}")
        return ("The service is stopped. It starts again at the next login, unless it is uninstalled.",)

    def restart(self) -> tuple[str, ...]:
        """Restart the agent and wait until it answers."""
        self._file.check_installed()
        if not self._launchctl.run("kickstart", "-k", self._target).succeeded:
            self._bootstrap()
        self._wait_until_answering()
        return ("The service was restarted and is running.",)

    def logs_command(self, *, lines: int, follow: bool) -> tuple[str, ...]:
        """Return the command that shows the daemon's log file."""
        following = ("-F",) if follow else ()
        return ("tail", "-n", str(lines), *following, str(self._log_file))

    def _render(self, service_config: ServiceConfig) -> bytes:
        stderr = self._log_file.with_name("launchd.err")
        return render_plist(read_template("launchd", PLIST_NAME), service_config, stderr)

    def _bootstrap(self) -> None:
        result = CommandResult(BOOTSTRAP_BUSY, "", "")
        for attempt in range(BOOTSTRAP_ATTEMPTS):
            if attempt:
                self._clock.sleep(RETRY_SECONDS)
            result = self._launchctl.run("bootstrap", self._domain, str(self._file.path))
            if result.code != BOOTSTRAP_BUSY:
                break
        if result.code == BOOTSTRAP_BUSY:
            raise ServiceError(
                f"launchd did not accept the agent ({result.error_line}). It needs your graphical login on this "
                "machine. Without one, run `echod run` under another supervisor."
            )
        if not result.succeeded:
            raise ServiceError(f"launchd did not accept the agent ({result.error_line}). {LOGS_HINT}")

    def _wait_until_answering(self) -> None:
        liveness = wait_for_liveness(lambda current: current.is_answering, self._probe, self._clock)
        if not liveness.is_answering:
            raise ServiceError(f"launchd started the service, but it does not answer. {liveness.text} {LOGS_HINT}")
