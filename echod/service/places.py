"""Where supervisors look for what starts the daemon, and what it is called there."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

LABEL = "local.echod"
"""The agent's name for launchd."""

UNIT = "echod.service"
"""The unit's name for systemd."""

FILE = f"{LABEL}.plist"


def service_file(platform: str, environ: Mapping[str, str]) -> Path | None:
    """What `echod service install` writes; None where there is no supervisor that we know.

    Args:
        platform: as in `sys.platform`.
        environ: `XDG_CONFIG_HOME` says where systemd looks for the user's units.
    """
    if platform == "linux":
        return units(environ) / UNIT
    return agents() / FILE if platform == "darwin" else None


def units(environ: Mapping[str, str]) -> Path:
    """Where systemd looks for the user's units."""
    return _config_home(environ) / "systemd" / "user"


def agents() -> Path:
    """Where launchd looks for the user's agents."""
    return Path.home() / "Library" / "LaunchAgents"


def _config_home(environ: Mapping[str, str]) -> Path:
    configured = environ.get("XDG_CONFIG_HOME", "")
    return Path(configured) if Path(configured).is_absolute() else Path.home() / ".config"
