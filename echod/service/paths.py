"""How a daemon is started or helped, as sentences; asks no supervisor, so that every command can afford to say it.

Where supervisors look for what starts the daemon, and what it is called there.

Where the templates of the service files are: inside the installed package, or beside it in a checkout.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path

from echod.runtime.heartbeat import DaemonState, Liveness
from echod.service.base import ServiceError

LAUNCHD_LABEL = "local.echod"
"""The agent's name for launchd."""

SYSTEMD_UNIT = "echod.service"
"""The unit's name for systemd."""

PLIST_NAME = f"{LAUNCHD_LABEL}.plist"


def service_file(platform: str, environ: Mapping[str, str]) -> Path | None:
    """What `echod service install` writes; None where there is no supervisor that we know.

    Args:
        platform: as in `sys.platform`.
        environ: `XDG_CONFIG_HOME` says where systemd looks for the user's units.
    """
    if platform == "linux":
        return systemd_unit_directory(environ) / SYSTEMD_UNIT
    return launchd_agent_directory() / PLIST_NAME if platform == "darwin" else None


def systemd_unit_directory(environ: Mapping[str, str]) -> Path:
    """Where systemd looks for the user's units."""
    return _config_home(environ) / "systemd" / "user"


def launchd_agent_directory() -> Path:
    """Where launchd looks for the user's agents."""
    return Path.home() / "Library" / "LaunchAgents"


def _config_home(environ: Mapping[str, str]) -> Path:
    configured = environ.get("XDG_CONFIG_HOME", "")
    return Path(configured) if Path(configured).is_absolute() else Path.home() / ".config"


def read_template(kind: str, name: str) -> str:
    """The text of a template, as ("systemd", "echod.service").

    Raises:
        ServiceError: the installation lacks it.
    """
    package = files("echod")
    candidates = [package / "_share" / kind / name]
    if isinstance(package, Path):
        candidates.append(package.parent / kind / name)  # an editable installation has no copy of its own
    for candidate in candidates:
        if candidate.is_file():
            return candidate.read_text(encoding="utf-8")
    raise ServiceError(f"This installation of echod lacks its template {kind}/{name}; install it again.")


def start_hint(platform: str, environ: Mapping[str, str]) -> str:
    """The commands that start a daemon that does not run.

    Args:
        platform: as in `sys.platform`.
        environ: `XDG_CONFIG_HOME` says where systemd looks for the user's units.
    """
    file = service_file(platform, environ)
    if file is None:
        return "echod run"
    return f"echod service {'start' if file.exists() else 'install'}, or echod run"


def recovery_hint(liveness: Liveness, platform: str, environ: Mapping[str, str]) -> str:
    """What to do about a daemon that is not as it should be, as a sentence; arguments as above."""
    match liveness.state:
        case DaemonState.STOPPED | DaemonState.HUNG | DaemonState.UPGRADED:
            return restart_hint(liveness, platform, environ)
        case DaemonState.STARTING:
            return "Ask again in a moment."
        case DaemonState.SUSPENDED:
            return f"Wake it with: kill -CONT {liveness.pid}"
        case DaemonState.RUNNING:
            return ""


def restart_hint(liveness: Liveness, platform: str, environ: Mapping[str, str]) -> str:
    """How a daemon begins anew, as a sentence, whether it runs or not; arguments as above."""
    if liveness.state is DaemonState.STOPPED:
        return f"Start it with: {start_hint(platform, environ)}"
    file = service_file(platform, environ)
    if file is not None and file.exists():
        return "Restart it with: echod service restart"
    return f"No service is installed, so restart it as it was started: kill {liveness.pid}, then echod run"
