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

from echod.errors import Exit
from echod.paths import PRIVATE_DIR
from echod.runtime.heartbeat import Liveness, State
from echod.service.base import MARK, Answer, Clock, ManagedFile, Recorded, ServiceError, Standing, Tool, wait_for
from echod.service.paths import FILE, LABEL, template

PATH = "/usr/local/bin:/opt/homebrew/bin:/usr/bin:/bin:/usr/sbin:/sbin"
"""launchd gives an agent a bare PATH; git may be in any of these."""

_HEAD = b'"http://www.apple.com/DTDs/PropertyList-1.0.dtd">\n'


def render_plist(template: str, recorded: Recorded, stderr: Path) -> bytes:
    """The agent's file: the template with the recorded command and environment, and where its last words go.

    Raises:
        ServiceError: the template is no property list.
    """
    try:
        agent = plistlib.loads(template.encode())
    except (ValueError, ExpatError, plistlib.InvalidFileException) as error:
        raise ServiceError("The launchd template of this installation is damaged; install echod again.") from error
    agent["ProgramArguments"] = list(recorded.command)
    agent["EnvironmentVariables"] = {"PATH": PATH, **dict(recorded.environment)}
    agent["StandardErrorPath"] = str(stderr)
    head, found, body = plistlib.dumps(agent, sort_keys=False).partition(_HEAD)
    return head + found + b"<!-- " + MARK + b": `echod service install` writes this file again. -->\n" + body


LOGS = "See why with: echod service logs"

BUSY = 5
"""What `launchctl bootstrap` ends with while the old agent drains, or without a graphical session."""

TRIES = 4
RETRY_SECONDS = 1.0


def exit_code(code: int, environ: Mapping[str, str]) -> int:
    """The code with which a daemon should end.

    launchd starts again whatever did not end with 0, and cannot be told that a bad configuration is final; so under
    launchd, which tells an agent its label, that ends with 0.
    """
    final = code == Exit.CONFIGURATION and environ.get("XPC_SERVICE_NAME") == LABEL
    return int(Exit.OK) if final else code


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
        agents: Path,
        launchctl: Tool,
        uid: int,
        log_file: Path,
        probe: Callable[[], Liveness],
        clock: Clock,
    ) -> None:
        self._file = ManagedFile(agents / FILE)
        self._launchctl = launchctl
        self._domain = f"gui/{uid}"
        self._target = f"{self._domain}/{LABEL}"
        self._log_file = log_file
        self._probe = probe
        self._clock = clock

    def standing(self, recorded: Recorded) -> Standing:
        """See `Service.standing`."""
        found = self._file.read()
        try:
            answer = self._launchctl.ask("list", LABEL)
        except ServiceError as error:
            return Standing(self._file.path, found is not None, found == self._render(recorded), None, str(error))
        word = "loaded" if answer.ok else "not loaded"
        return Standing(self._file.path, found is not None, found == self._render(recorded), answer.ok, word)

    def install(self, recorded: Recorded, *, force: bool) -> tuple[str, ...]:
        """See `Service.install`."""
        agent = self._render(recorded)
        if not force:
            self._file.check_ours()
        loaded = self._launchctl.ask("list", LABEL).ok
        if not loaded:
            self._check_no_daemon()
        self._log_file.parent.mkdir(mode=PRIVATE_DIR, parents=True, exist_ok=True)
        changed = self._file.write(agent)
        if loaded and not changed and self._probe().state is State.RUNNING:
            return (f"{self._file.path} is installed and the service runs; nothing to do.",)
        if loaded:
            self._launchctl.ask("bootout", self._target)
        self._bootstrap()
        self._see_it_answer()
        return (f"Installed {self._file.path}; the service runs while you are logged in.",)

    def uninstall(self, *, force: bool) -> tuple[str, ...]:
        """See `Service.uninstall`."""
        if not force:
            self._file.check_ours()
        self._launchctl.ask("bootout", self._target)
        if not self._file.remove():
            return ("It is not installed.",)
        return ("The service is removed; memory, settings and state stay.",)

    def start(self) -> tuple[str, ...]:
        """See `Service.start`."""
        self._check_installed()
        if self._probe().answers:
            return ("The service runs already.",)
        if not self._launchctl.ask("kickstart", self._target).ok:
            self._bootstrap()
        self._see_it_answer()
        return ("The service runs.",)

    def stop(self) -> tuple[str, ...]:
        """See `Service.stop`."""
        self._check_installed()
        # It ends with 0 then, and launchd starts only failures again.
        self._launchctl.ask("kill", "SIGTERM", self._target)
        left = wait_for(lambda found: found.state is State.STOPPED, self._probe, self._clock)
        if left.state is not State.STOPPED:
            raise ServiceError(f"The daemon did not stop: {left.text}")
        return ("The service is stopped. It starts again with the next login, unless it is uninstalled.",)

    def restart(self) -> tuple[str, ...]:
        """See `Service.restart`."""
        self._check_installed()
        if not self._launchctl.ask("kickstart", "-k", self._target).ok:
            self._bootstrap()
        self._see_it_answer()
        return ("The service was restarted and runs.",)

    def logs_command(self, *, lines: int, follow: bool) -> tuple[str, ...]:
        """See `Service.logs_command`."""
        following = ("-F",) if follow else ()
        return ("tail", "-n", str(lines), *following, str(self._log_file))

    def _render(self, recorded: Recorded) -> bytes:
        return render_plist(template("launchd", FILE), recorded, self._log_file.with_name("launchd.err"))

    def _bootstrap(self) -> None:
        answer = Answer(BUSY, "", "")
        for attempt in range(TRIES):
            if attempt:
                self._clock.sleep(RETRY_SECONDS)
            answer = self._launchctl.ask("bootstrap", self._domain, str(self._file.path))
            if answer.code != BUSY:
                break
        if answer.code == BUSY:
            raise ServiceError(
                f"launchd did not take the agent ({answer.said}). It needs a graphical login of yours on this machine; "
                "without one, run `echod run` under another supervisor."
            )
        if not answer.ok:
            raise ServiceError(f"launchd did not take the agent ({answer.said}). {LOGS}")

    def _see_it_answer(self) -> None:
        found = wait_for(lambda seen: seen.answers, self._probe, self._clock)
        if not found.answers:
            raise ServiceError(f"launchd started the service, but it does not answer. {found.text} {LOGS}")

    def _check_installed(self) -> None:
        if self._file.read() is None:
            raise ServiceError("The service is not installed; do that with: echod service install")

    def _check_no_daemon(self) -> None:
        found = self._probe()
        if found.heartbeat is not None:
            pid = found.heartbeat.pid
            raise ServiceError(
                f"A daemon that does not belong to the service runs as process {pid}; end it: kill {pid}"
            )
