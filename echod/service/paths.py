"""Locate the service files and their templates, and describe how to start or restart the daemon.

The descriptions are sentences for the user. They call no supervisor, so that every command can afford them.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from echod.hooks.spool import state_directory
from echod.lazy import lazy_imports, lazy_pattern
from echod.paths import home_directory
from echod.runtime import DaemonState, Liveness
from echod.service.base import ServiceError

with lazy_imports(__name__):
    from importlib import resources  # loads tempfile and shutil, and only an installation needs it

LAUNCHD_LABEL = "local.echod"
"""The agent's name in launchd."""

SYSTEMD_UNIT = "echod.service"
"""The unit's name in systemd."""

_STATE_VARIABLES = ("ECHOD_STATE_DIR", "XDG_STATE_HOME")
_RECORDED = lazy_pattern(rf'^Environment="({"|".join(_STATE_VARIABLES)})=([^"\\%]+)"$')
"""A value with an escape is not compared: it is rare, and this is only a hint."""

PLIST_NAME = f"{LAUNCHD_LABEL}.plist"


def service_file(platform: str, environ: Mapping[str, str]) -> Path | None:
    """Return the file that `echod service install` writes; None where there is no supported supervisor.

    `platform` is as in `sys.platform`, here and below.
    """
    if platform == "linux":
        return systemd_unit_directory(environ) / SYSTEMD_UNIT
    return launchd_agent_directory(environ) / PLIST_NAME if platform == "darwin" else None


def systemd_unit_directory(environ: Mapping[str, str]) -> Path:
    """Return the directory in which systemd searches for the user's units; `XDG_CONFIG_HOME` may decide that."""
    configured = Path(environ.get("XDG_CONFIG_HOME", ""))
    return (configured if configured.is_absolute() else home_directory(environ) / ".config") / "systemd" / "user"


def launchd_agent_directory(environ: Mapping[str, str]) -> Path:
    """Return the directory in which launchd searches for the user's agents."""
    return home_directory(environ) / "Library" / "LaunchAgents"


def read_template(kind: str, name: str) -> str:
    """Return the text of a template, such as ("systemd", "echod.service"). The kind is "" for the settings file.

    The templates are in the installed package, or beside it in a checkout.

    Raises:
        ServiceError: the installation lacks it.
    """
    package = resources.files("echod")
    candidates = [package / "_share" / kind / name]
    if isinstance(package, Path):
        candidates.append(package.parent / kind / name)  # an editable installation contains no copy
    for candidate in candidates:
        if candidate.is_file():
            return candidate.read_text(encoding="utf-8")
    raise ServiceError(f"This installation of echod lacks its template {kind}/{name}. Install echod again.")


def state_of_service(platform: str, environ: Mapping[str, str]) -> Path | None:
    """Return the state directory of the installed service if it is another one than that of this environment.

    None if it is the same, no service is installed, or its file cannot be read.
    """
    file = service_file(platform, environ)
    try:
        text = "" if file is None else file.read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        return None
    matches = (_RECORDED.search(line) for line in text.splitlines())
    recorded = {match[1]: match[2] for match in matches if match}
    if not text or platform != "linux":
        return None
    own = {name: value for name, value in environ.items() if name not in _STATE_VARIABLES}
    theirs = Path(state_directory({**own, **recorded}, platform))
    return None if theirs == Path(state_directory(environ, platform)) else theirs


def start_hint(platform: str, environ: Mapping[str, str]) -> str:
    """Return the commands that start a stopped daemon."""
    file = service_file(platform, environ)
    if file is None:
        return "echod run"
    return f"echod service {'start' if file.exists() else 'install'}, or echod run"


def recovery_hint(liveness: Liveness, platform: str, environ: Mapping[str, str]) -> str:
    """Return a sentence about how to get an answering daemon; "" if it is running."""
    match liveness.state:
        case DaemonState.STOPPED | DaemonState.HUNG | DaemonState.UPGRADED:
            return restart_hint(liveness, platform, environ)
        case DaemonState.STARTING:
            return "Try again in a moment."
        case DaemonState.SUSPENDED:
            return f"Resume it with: kill -CONT {liveness.pid}"
        case DaemonState.RUNNING:
            return ""


def restart_hint(liveness: Liveness, platform: str, environ: Mapping[str, str]) -> str:
    """Return a sentence about how to restart or start the daemon."""
    if liveness.state is DaemonState.STOPPED:
        return f"Start it with: {start_hint(platform, environ)}"
    file = service_file(platform, environ)
    if file is not None and file.exists():
        return "Restart it with: echod service restart"
    return f"No service is installed. Restart the daemon the way it was started: kill {liveness.pid}, then echod run"
