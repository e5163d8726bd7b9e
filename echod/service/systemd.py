"""Run the daemon as a systemd user unit, rendered from the template in `systemd/`.

After a successful `systemctl` the daemon itself is probed, because a unit that "started" does not necessarily work.
All commands and paths are constructor arguments.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from echod.errors import ConfigurationError, ExitCode
from echod.files import insecure_file_warnings
from echod.runtime import DaemonState, Liveness
from echod.service.base import (
    LOGS_HINT,
    Clock,
    CommandRunner,
    ManagedFile,
    ServiceConfig,
    ServiceError,
    ServiceState,
    other_daemon_error,
    wait_for_liveness,
)
from echod.service.paths import SYSTEMD_UNIT, read_template

_EXEC_START = "ExecStart="


def render_unit(template: str, service_config: ServiceConfig) -> bytes:
    """Return the unit file: the template with the recorded command and environment instead of its ExecStart line. Pure.

    Raises:
        ServiceError: the template does not have exactly one such line.
    """
    lines = template.splitlines()
    start_lines = [number for number, line in enumerate(lines) if line.startswith(_EXEC_START)]
    if len(start_lines) != 1:
        raise ServiceError("The systemd template of this installation is damaged. Install echod again.")
    environment = [f"Environment={_quote(f'{name}={value}')}" for name, value in service_config.environment]
    # In a command a dollar sign would begin a variable. In Environment= it is an ordinary character.
    command = " ".join(_quote(part).replace("$", "$$") for part in service_config.command)
    lines[start_lines[0] : start_lines[0] + 1] = [*environment, f"{_EXEC_START}{command}"]
    return ("\n".join(lines) + "\n").encode("utf-8", "surrogateescape")


def _quote(text: str) -> str:
    # As systemd.syntax(7) describes; a percent sign would begin a specifier.
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%")
    return f'"{escaped}"'


class SystemdService:
    """Implements `Service` with `systemctl --user`, and `loginctl` to look at the lingering of `user`.

    `unit_directory` is the directory of the user's own units. `probe` returns the state of the daemon.
    """

    def __init__(
        self,
        *,
        unit_directory: Path,
        systemctl: CommandRunner,
        loginctl: CommandRunner,
        probe: Callable[[], Liveness],
        clock: Clock,
        user: str,
    ) -> None:
        self._file = ManagedFile(unit_directory / SYSTEMD_UNIT)
        self._systemctl = systemctl
        self._loginctl = loginctl
        self._probe = probe
        self._clock = clock
        self._user = user

    def read_state(self, service_config: ServiceConfig) -> ServiceState:
        """Return the state of the unit; see `Service.read_state`."""
        content = self._file.read()
        up_to_date = content == render_unit(read_template("systemd", SYSTEMD_UNIT), service_config)
        try:
            detail = self._read_property("ActiveState")
        except ServiceError as error:
            return ServiceState(self._file.path, content is not None, up_to_date, active=None, detail=str(error))
        active = detail in {"active", "reloading", "activating"}
        return ServiceState(self._file.path, content is not None, up_to_date, active=active, detail=detail)

    def install(self, service_config: ServiceConfig, *, force: bool) -> tuple[str, ...]:
        """Install, enable and start the unit; see `Service.install`."""
        unit = render_unit(read_template("systemd", SYSTEMD_UNIT), service_config)
        self._check_manager()
        if not force:
            self._file.check_managed()
        self._check_no_other_daemon()
        changed = self._file.write(unit)
        if changed:
            self._run_checked("daemon-reload")
        self._check_loaded()
        self._run_checked("enable", SYSTEMD_UNIT)
        liveness = self._probe()
        if changed or liveness.state is not DaemonState.RUNNING:
            self._run_and_wait("restart")
            message = f"Installed {self._file.path}. The service is running ({self._probe().text})."
        else:
            message = f"{self._file.path} is installed and the service is running; nothing to do."
        return (message, *self._linger_hint(), *insecure_file_warnings(self._file.path, os.getuid()))

    def uninstall(self, *, force: bool) -> tuple[str, ...]:
        """Stop and remove the unit; see `Service.uninstall`."""
        if not force:
            self._file.check_managed()
        installed = self._file.read() is not None
        messages = [
            "The service is removed. Memory, settings and state are kept." if installed else "It is not installed."
        ]
        if installed:
            result = self._systemctl.run("disable", "--now", SYSTEMD_UNIT)
            if not result.succeeded:
                messages.append(
                    f"systemd could not stop the service ({result.error_line}). Its files are removed anyway."
                )
        link = self._file.path.parent / "default.target.wants" / SYSTEMD_UNIT
        if link.is_symlink():
            link.unlink()
        self._file.remove()
        if installed:
            self._systemctl.run("daemon-reload")
            self._systemctl.run("reset-failed", SYSTEMD_UNIT)
        drop_ins = self._file.path.with_name(f"{SYSTEMD_UNIT}.d")
        if drop_ins.is_dir():
            messages.append(f"Your own changes in {drop_ins} are kept too.")
        return tuple(messages)

    def start(self) -> tuple[str, ...]:
        """Start the unit and wait until it answers."""
        self._check_installed()
        if self._probe().is_answering:
            self._check_no_other_daemon()
            return ("The service is already running.",)
        self._run_and_wait("start")
        return ("The service is running.",)

    def stop(self) -> tuple[str, ...]:
        """Stop the unit until the next login."""
        self._check_installed()
        self._run_checked("stop", SYSTEMD_UNIT)
        liveness = wait_for_liveness(lambda current: current.state is DaemonState.STOPPED, self._probe, self._clock)
        if liveness.state is not DaemonState.STOPPED:
            return (f"The service is stopped, but a daemon outside of it is still running: {liveness.text}",)
        return ("The service is stopped. It starts again at the next login, unless it is uninstalled.",)

    def restart(self) -> tuple[str, ...]:
        """Restart the unit and wait until it answers."""
        self._check_installed()
        self._check_no_other_daemon()
        self._run_and_wait("restart")
        return ("The service was restarted and is running.",)

    def logs_command(self, *, lines: int, follow: bool) -> tuple[str, ...]:
        """Return the command that shows the unit's journal."""
        following = "--follow" if follow else "--no-pager"
        return ("journalctl", f"--user-unit={SYSTEMD_UNIT}", f"--lines={lines}", following)

    def _run_and_wait(self, verb: str) -> None:
        self._systemctl.run("reset-failed", SYSTEMD_UNIT)  # the user's request clears earlier failures
        result = self._systemctl.run(verb, SYSTEMD_UNIT)
        if not result.succeeded:
            if self._read_property("ExecMainStatus") == str(int(ExitCode.CONFIGURATION)):
                text = "The service cannot use its configuration. Check it with: echod config check."
                raise ConfigurationError(f"{text} {LOGS_HINT}")
            raise ServiceError(f"The service did not start ({result.error_line}). {LOGS_HINT}")
        liveness = wait_for_liveness(lambda current: current.is_answering, self._probe, self._clock)
        if not liveness.is_answering:
            raise ServiceError(f"systemd started the service, but it does not answer. {liveness.text} {LOGS_HINT}")

    def _check_manager(self) -> None:
        result = self._systemctl.run("show", "--property=Version")
        if not result.succeeded:
            raise ServiceError(
                f"No systemd user manager answers here ({result.error_line}). Log in to a session of your own (not "
                "through su or sudo) and try again, or configure another supervisor to run: echod run"
            )

    def _check_loaded(self) -> None:
        if (state := self._read_property("LoadState")) != "loaded":
            raise ServiceError(
                f"systemd does not find the unit {self._file.path} (its state is {state}). systemd's XDG_CONFIG_HOME "
                "may differ from yours. Unset that for the installation."
            )

    def _check_installed(self) -> None:
        self._file.check_installed()
        self._check_manager()

    def _check_no_other_daemon(self) -> None:
        liveness = self._probe()
        if liveness.heartbeat is not None and str(liveness.heartbeat.pid) != self._read_property("MainPID"):
            raise other_daemon_error(liveness.heartbeat.pid)

    def _linger_hint(self) -> tuple[str, ...]:
        result = self._loginctl.run("show-user", self._user, "--property=Linger", "--value")
        if result.succeeded and result.out.strip() == "yes":
            return ()
        return (f"It runs while you are logged in. To run it without a login too: loginctl enable-linger {self._user}",)

    def _read_property(self, name: str) -> str:
        result = self._systemctl.run("show", SYSTEMD_UNIT, f"--property={name}", "--value")
        if not result.succeeded:
            raise ServiceError(f"No systemd user manager answers here ({result.error_line}).")
        return result.out.strip()

    def _run_checked(self, *arguments: str) -> None:
        result = self._systemctl.run(*arguments)
        if not result.succeeded:
            raise ServiceError(f"systemctl --user {' '.join(arguments)} failed: {result.error_line}")
