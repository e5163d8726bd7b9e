"""Which supervisor this machine has."""

from __future__ import annotations

import getpass
import os
import time
from collections.abc import Mapping
from pathlib import Path

from echod.daemon.alive import observe
from echod.daemon.heartbeat import Liveness, State
from echod.paths import Paths
from echod.service.errors import ServiceError
from echod.service.launchd import FILE, LaunchdService
from echod.service.patience import Clock
from echod.service.service import Service
from echod.service.systemd import UNIT, SystemdService
from echod.service.tool import Tool


def service_for(platform: str, paths: Paths, version: str, environ: Mapping[str, str]) -> Service:
    """The service of this user on this machine.

    Args:
        platform: as in `sys.platform`.
        paths: where the daemon's lock and heartbeat are.
        version: our version.
        environ: the environment; `XDG_CONFIG_HOME` says where systemd looks for the user's units.

    Raises:
        ServiceError: there is no supervisor that we know.
    """

    def probe() -> Liveness:
        return observe(paths, version, time.monotonic())

    clock = Clock(time.monotonic, time.sleep)
    if platform == "linux":
        return SystemdService(
            units=_units(environ),
            systemctl=Tool("systemctl", "--user", "--no-pager"),
            loginctl=Tool("loginctl"),
            probe=probe,
            clock=clock,
            user=getpass.getuser(),
        )
    if platform == "darwin":
        return LaunchdService(
            agents=_agents(),
            launchctl=Tool("launchctl"),
            uid=os.getuid(),
            log_file=paths.log_file,
            probe=probe,
            clock=clock,
        )
    raise ServiceError("There is no service manager here that echod knows; let your own supervisor run: echod run")


def how_to_start(platform: str, environ: Mapping[str, str]) -> str:
    """The commands that start a daemon that does not run, without asking a supervisor; arguments as above."""
    file = _service_file(platform, environ)
    if file is None:
        return "echod run"
    return f"echod service {'start' if file.exists() else 'install'}, or echod run"


def how_to_help(live: Liveness, platform: str, environ: Mapping[str, str]) -> str:
    """What to do about a daemon that is not as it should be, as a sentence; arguments as above."""
    match live.state:
        case State.STOPPED | State.HUNG | State.UPGRADED:
            return how_to_restart(live, platform, environ)
        case State.STARTING:
            return "Ask again in a moment."
        case State.SUSPENDED:
            return f"Wake it with: kill -CONT {live.pid}"
        case State.RUNNING:
            return ""


def how_to_restart(live: Liveness, platform: str, environ: Mapping[str, str]) -> str:
    """How a daemon begins anew, as a sentence, whether it runs or not; arguments as above."""
    if live.state is State.STOPPED:
        return f"Start it with: {how_to_start(platform, environ)}"
    file = _service_file(platform, environ)
    if file is not None and file.exists():
        return "Restart it with: echod service restart"
    return f"No service is installed, so restart it as it was started: kill {live.pid}, then echod run"


def _service_file(platform: str, environ: Mapping[str, str]) -> Path | None:
    if platform == "linux":
        return _units(environ) / UNIT
    return _agents() / FILE if platform == "darwin" else None


def _units(environ: Mapping[str, str]) -> Path:
    return _config_home(environ) / "systemd" / "user"


def _agents() -> Path:
    return Path.home() / "Library" / "LaunchAgents"


def _config_home(environ: Mapping[str, str]) -> Path:
    configured = environ.get("XDG_CONFIG_HOME", "")
    return Path(configured) if Path(configured).is_absolute() else Path.home() / ".config"
