"""How a daemon is started or helped, as sentences; asks no supervisor, so that every command can afford to say it."""

from __future__ import annotations

from collections.abc import Mapping

from echod.runtime.heartbeat import Liveness, State
from echod.service.places import service_file


def how_to_start(platform: str, environ: Mapping[str, str]) -> str:
    """The commands that start a daemon that does not run.

    Args:
        platform: as in `sys.platform`.
        environ: `XDG_CONFIG_HOME` says where systemd looks for the user's units.
    """
    file = service_file(platform, environ)
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
    file = service_file(platform, environ)
    if file is not None and file.exists():
        return "Restart it with: echod service restart"
    return f"No service is installed, so restart it as it was started: kill {live.pid}, then echod run"
