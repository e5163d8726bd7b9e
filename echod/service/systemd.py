"""The daemon as a systemd user unit.

`systemctl` decides; after each of its answers the daemon itself is asked, because a unit that "started" is not yet
one that works. Everything it runs and writes is a constructor argument.

Rendering the systemd unit from its template. Pure.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from echod.errors import ConfigurationError, Exit
from echod.runtime.heartbeat import Liveness, State
from echod.service.base import Clock, ManagedFile, Recorded, ServiceError, Standing, Tool, wait_for
from echod.service.paths import UNIT, template

_START = "ExecStart="


def render_unit(template: str, recorded: Recorded) -> bytes:
    """The unit file: the template with the recorded command and environment in place of its ExecStart line.

    Raises:
        ServiceError: the template has not exactly one such line.
    """
    lines = template.splitlines()
    starts = [number for number, line in enumerate(lines) if line.startswith(_START)]
    if len(starts) != 1:
        raise ServiceError("The systemd template of this installation is damaged; install echod again.")
    environment = [f"Environment={_quoted(f'{name}={value}')}" for name, value in recorded.environment]
    # In a command a dollar sign would begin a variable; in Environment= it is just a character.
    command = " ".join(_quoted(part).replace("$", "$$") for part in recorded.command)
    lines[starts[0] : starts[0] + 1] = [*environment, f"{_START}{command}"]
    return ("\n".join(lines) + "\n").encode("utf-8", "surrogateescape")


def _quoted(text: str) -> str:
    """As systemd.syntax(7) reads it back; a percent sign would begin a specifier."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%")
    return f'"{escaped}"'


LOGS = "See why with: echod service logs"


class SystemdService:
    """Implements `service.Service`.

    Args:
        units: the directory of the user's own units.
        systemctl: asks the user's manager.
        loginctl: asks about lingering.
        probe: looks how the daemon is.
        clock: for waiting.
        user: the name for which lingering would be enabled.
    """

    def __init__(
        self,
        *,
        units: Path,
        systemctl: Tool,
        loginctl: Tool,
        probe: Callable[[], Liveness],
        clock: Clock,
        user: str,
    ) -> None:
        self._file = ManagedFile(units / UNIT)
        self._systemctl = systemctl
        self._loginctl = loginctl
        self._probe = probe
        self._clock = clock
        self._user = user

    def standing(self, recorded: Recorded) -> Standing:
        """See `Service.standing`."""
        found = self._file.read()
        current = found == render_unit(template("systemd", UNIT), recorded)
        try:
            word = self._show("ActiveState")
        except ServiceError as error:
            return Standing(self._file.path, found is not None, current, active=None, detail=str(error))
        active = word in {"active", "reloading", "activating"}
        return Standing(self._file.path, found is not None, current, active=active, detail=word)

    def install(self, recorded: Recorded, *, force: bool) -> tuple[str, ...]:
        """See `Service.install`."""
        unit = render_unit(template("systemd", UNIT), recorded)
        self._check_manager()
        if not force:
            self._file.check_ours()
        self._check_no_other_daemon()
        changed = self._file.write(unit)
        if changed:
            self._do("daemon-reload")
        self._check_loaded()
        self._do("enable", UNIT)
        before = self._probe()
        if changed or before.state is not State.RUNNING:
            self._start("restart")
            first = f"Installed {self._file.path}; the service runs ({self._probe().text})."
        else:
            first = f"{self._file.path} is installed and the service runs; nothing to do."
        return (first, *self._about_lingering())

    def uninstall(self, *, force: bool) -> tuple[str, ...]:
        """See `Service.uninstall`."""
        if not force:
            self._file.check_ours()
        told: list[str] = []
        there = self._file.read() is not None
        if there:
            answer = self._systemctl.ask("disable", "--now", UNIT)
            if not answer.ok:
                told.append(f"systemd could not be asked to stop it ({answer.said}); the files are removed anyway.")
        link = self._file.path.parent / "default.target.wants" / UNIT
        if link.is_symlink():
            link.unlink()
        self._file.remove()
        if there:
            self._systemctl.ask("daemon-reload")
            self._systemctl.ask("reset-failed", UNIT)
        told.insert(0, "The service is removed; memory, settings and state stay." if there else "It is not installed.")
        own = self._file.path.with_name(f"{UNIT}.d")
        if own.is_dir():
            told.append(f"Your own changes in {own} stay as well.")
        return tuple(told)

    def start(self) -> tuple[str, ...]:
        """See `Service.start`."""
        self._check_installed()
        if self._probe().answers:
            self._check_no_other_daemon()
            return ("The service runs already.",)
        self._start("start")
        return ("The service runs.",)

    def stop(self) -> tuple[str, ...]:
        """See `Service.stop`."""
        self._check_installed()
        self._do("stop", UNIT)
        left = wait_for(lambda found: found.state is State.STOPPED, self._probe, self._clock)
        if left.state is not State.STOPPED:
            return (f"The service is stopped, but a daemon that does not belong to it goes on: {left.text}",)
        return ("The service is stopped. It starts again with the next login, unless it is uninstalled.",)

    def restart(self) -> tuple[str, ...]:
        """See `Service.restart`."""
        self._check_installed()
        self._check_no_other_daemon()
        self._start("restart")
        return ("The service was restarted and runs.",)

    def logs_command(self, *, lines: int, follow: bool) -> tuple[str, ...]:
        """See `Service.logs_command`."""
        following = ("--follow",) if follow else ("--no-pager",)
        return ("journalctl", f"--user-unit={UNIT}", f"--lines={lines}", *following)

    def _start(self, verb: str) -> None:
        self._systemctl.ask("reset-failed", UNIT)  # a person asks: earlier failures do not count
        answer = self._systemctl.ask(verb, UNIT)
        if not answer.ok:
            if self._show("ExecMainStatus") == str(int(Exit.CONFIGURATION)):
                raise ConfigurationError(f"The service refuses its configuration; check it with: echod config. {LOGS}")
            raise ServiceError(f"The service did not start ({answer.said}). {LOGS}")
        found = wait_for(lambda seen: seen.answers, self._probe, self._clock)
        if not found.answers:
            raise ServiceError(f"systemd started the service, but it does not answer. {found.text} {LOGS}")

    def _check_manager(self) -> None:
        answer = self._systemctl.ask("show", "--property=Version")
        if not answer.ok:
            raise ServiceError(
                f"No systemd user manager answers here ({answer.said}). Log in to a session of your own (not through "
                "su or sudo) and try again, or let another supervisor run: echod run"
            )

    def _check_loaded(self) -> None:
        if (state := self._show("LoadState")) != "loaded":
            raise ServiceError(
                f"systemd does not find the unit that was written to {self._file.path} (it says: {state}). Its "
                "XDG_CONFIG_HOME may differ from yours; unset that for the installation."
            )

    def _check_installed(self) -> None:
        if self._file.read() is None:
            raise ServiceError("The service is not installed; do that with: echod service install")
        self._check_manager()

    def _check_no_other_daemon(self) -> None:
        found = self._probe()
        if found.heartbeat is None or str(found.heartbeat.pid) == self._show("MainPID"):
            return
        raise ServiceError(
            f"A daemon that does not belong to the service runs as process {found.heartbeat.pid}; end it first: "
            f"kill {found.heartbeat.pid}"
        )

    def _about_lingering(self) -> tuple[str, ...]:
        answer = self._loginctl.ask("show-user", self._user, "--property=Linger", "--value")
        if answer.ok and answer.out.strip() == "yes":
            return ()
        how = f"loginctl enable-linger {self._user}"
        return (f"It runs while you are logged in. If it should also run without a login: {how}",)

    def _show(self, name: str) -> str:
        answer = self._systemctl.ask("show", UNIT, f"--property={name}", "--value")
        if not answer.ok:
            raise ServiceError(f"No systemd user manager answers here ({answer.said}).")
        return answer.out.strip()

    def _do(self, *arguments: str) -> None:
        answer = self._systemctl.ask(*arguments)
        if not answer.ok:
            raise ServiceError(f"systemctl --user {' '.join(arguments)} failed: {answer.said}")
