"""The daemon as a launchd agent. Written after launchd.plist(5) and launchctl(1); nobody has run it on macOS yet.

`bootstrap` fails with code 5 while the agent it replaces is still going away, and where there is no graphical
login; so it is tried again for some seconds and then explained.

Rendering the launchd agent from its template. Pure.
"""

from __future__ import annotations

import plistlib
from collections.abc import Callable, Mapping
from pathlib import Path
from xml.parsers.expat import ExpatError

from echod.errors import ExitCode
from echod.paths import PRIVATE_DIR_MODE
from echod.runtime.heartbeat import DaemonState, Liveness
from echod.service.base import (
    MANAGED_MARK,
    Clock,
    CommandResult,
    CommandRunner,
    ManagedFile,
    ServiceConfig,
    ServiceError,
    ServiceState,
    wait_for_liveness,
)
from echod.service.paths import LAUNCHD_LABEL, PLIST_NAME, read_template

AGENT_PATH = "/usr/local/bin:/opt/homebrew/bin:/usr/bin:/bin:/usr/sbin:/sbin"
"""launchd gives an agent a bare PATH; git may be in any of these."""

_DOCTYPE_END = b'"http://www.apple.com/DTDs/PropertyList-1.0.dtd">\n'


def render_plist(template: str, service_config: ServiceConfig, stderr: Path) -> bytes:
    """The agent's file: the template with the recorded command and environment, and where its last words go.

    Raises:
        ServiceError: the template is no property list.
    """
    try:
        agent = plistlib.loads(template.encode())
    except (ValueError, ExpatError, plistlib.InvalidFileException) as error:
        raise ServiceError("The launchd template of this installation is damaged; install echod again.") from error
    agent["ProgramArguments"] = list(service_config.command)
    agent["EnvironmentVariables"] = {"PATH": AGENT_PATH, **dict(service_config.environment)}
    agent["StandardErrorPath"] = str(stderr)
    head, separator, body = plistlib.dumps(agent, sort_keys=False).partition(_DOCTYPE_END)
    return (
        head + separator + b"<!-- " + MANAGED_MARK + b": `echod service install` writes this file again. -->\n" + body
    )


LOGS_HINT = "See why with: echod service logs"

BOOTSTRAP_BUSY = 5
"""What `launchctl bootstrap` ends with while the old agent drains, or without a graphical session."""

BOOTSTRAP_ATTEMPTS = 4
RETRY_SECONDS = 1.0


def supervisor_exit_code(code: int, environ: Mapping[str, str]) -> int:
    """The code with which a daemon should end.

    launchd starts again whatever did not end with 0, and cannot be told that a bad configuration is final; so under
    launchd, which tells an agent its label, that ends with 0.
    """
    is_final = code == ExitCode.CONFIGURATION and environ.get("XPC_SERVICE_NAME") == LAUNCHD_LABEL
    return int(ExitCode.OK) if is_final else code


class LaunchdService:
    """Implements `service.Service`.

    Args:
        agents: the directory of the user's own agents.
        launchctl: asks launchd.
        uid: whose graphical session the agent belongs to.
        log_file: where the daemon logs.
        probe: looks how the daemon is.
        clock: for waiting.
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
        """See `InstalledService.standing`."""
        content = self._file.read()
        try:
            result = self._launchctl.run("list", LAUNCHD_LABEL)
        except ServiceError as error:
            return ServiceState(
                self._file.path, content is not None, content == self._render(service_config), None, str(error)
            )
        detail = "loaded" if result.succeeded else "not loaded"
        return ServiceState(
            self._file.path, content is not None, content == self._render(service_config), result.succeeded, detail
        )

    def install(self, service_config: ServiceConfig, *, force: bool) -> tuple[str, ...]:
        """See `InstalledService.install`."""
        agent = self._render(service_config)
        if not force:
            self._file.check_managed()
        loaded = self._launchctl.run("list", LAUNCHD_LABEL).succeeded
        if not loaded:
            self._check_no_daemon()
        self._log_file.parent.mkdir(mode=PRIVATE_DIR_MODE, parents=True, exist_ok=True)
        changed = self._file.write(agent)
        if loaded and not changed and self._probe().state is DaemonState.RUNNING:
            return (f"{self._file.path} is installed and the service runs; nothing to do.",)
        if loaded:
            self._launchctl.run("bootout", self._target)
        self._bootstrap()
        self._wait_until_answering()
        return (f"Installed {self._file.path}; the service runs while you are logged in.",)

    def uninstall(self, *, force: bool) -> tuple[str, ...]:
        """See `InstalledService.uninstall`."""
        if not force:
            self._file.check_managed()
        self._launchctl.run("bootout", self._target)
        if not self._file.remove():
            return ("It is not installed.",)
        return ("The service is removed; memory, settings and state stay.",)

    def start(self) -> tuple[str, ...]:
        """See `InstalledService.start`."""
        self._check_installed()
        if self._probe().is_answering:
            return ("The service runs already.",)
        if not self._launchctl.run("kickstart", self._target).succeeded:
            self._bootstrap()
        self._wait_until_answering()
        return ("The service runs.",)

    def stop(self) -> tuple[str, ...]:
        """See `InstalledService.stop`."""
        self._check_installed()
        # It ends with 0 then, and launchd starts only failures again.
        self._launchctl.run("kill", "SIGTERM", self._target)
        liveness = wait_for_liveness(lambda found: found.state is DaemonState.STOPPED, self._probe, self._clock)
        if liveness.state is not DaemonState.STOPPED:
            raise ServiceError(f"The daemon did not stop: {liveness.text}")
        return ("The service is stopped. It starts again with the next login, unless it is uninstalled.",)

    def restart(self) -> tuple[str, ...]:
        """See `InstalledService.restart`."""
        self._check_installed()
        if not self._launchctl.run("kickstart", "-k", self._target).succeeded:
            self._bootstrap()
        self._wait_until_answering()
        return ("The service was restarted and runs.",)

    def logs_command(self, *, lines: int, follow: bool) -> tuple[str, ...]:
        """See `InstalledService.logs_command`."""
        following = ("-F",) if follow else ()
        return ("tail", "-n", str(lines), *following, str(self._log_file))

    def _render(self, service_config: ServiceConfig) -> bytes:
        return render_plist(
            read_template("launchd", PLIST_NAME), service_config, self._log_file.with_name("launchd.err")
        )

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
                f"launchd did not take the agent ({result.error_line}). It needs a graphical "
                f"login of yours on this machine; "
                "without one, run `echod run` under another supervisor."
            )
        if not result.succeeded:
            raise ServiceError(f"launchd did not take the agent ({result.error_line}). {LOGS_HINT}")

    def _wait_until_answering(self) -> None:
        liveness = wait_for_liveness(lambda liveness: liveness.is_answering, self._probe, self._clock)
        if not liveness.is_answering:
            raise ServiceError(f"launchd started the service, but it does not answer. {liveness.text} {LOGS_HINT}")

    def _check_installed(self) -> None:
        if self._file.read() is None:
            raise ServiceError("The service is not installed; do that with: echod service install")

    def _check_no_daemon(self) -> None:
        liveness = self._probe()
        if liveness.heartbeat is not None:
            pid = liveness.heartbeat.pid
            raise ServiceError(
                f"A daemon that does not belong to the service runs as process {pid}; end it: kill {pid}"
            )
