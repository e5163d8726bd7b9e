"""The settings as values, with their defaults. What each means and what it may be is told in `echod.settings.loader`.

Plain values, because most people set nothing: then there is nothing to check, and nobody has to wait until the library
that checks is loaded.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Literal, NamedTuple

from echod.memory.policy_model import DEFAULT_POLICY, PolicySettings

Mode = Literal["maintain", "report"]
LogLevel = Literal["debug", "info", "warning", "error"]

ENV_PREFIX = "ECHOD_"
PATH_VARIABLES = frozenset({"ECHOD_STATE_DIR", "ECHOD_RUNTIME_DIR", "ECHOD_CONFIG"})
"""They decide where the settings file is, and belong to `echod.paths`."""

DEFAULT_TEAMS = ("rune-*", "arc-*", "session-*")
"""Teams of the workflow plugins, and those that Claude Code names after their session."""


class GateSettings(NamedTuple):
    """What the gate looks at beyond the workflow plugins' own markers."""

    sessions: bool = True


class ObserveSettings(NamedTuple):
    """Which completed tasks become observations."""

    teams: tuple[str, ...] = DEFAULT_TEAMS


class HookSettings(NamedTuple):
    """What the hooks of agents may do beyond reporting."""

    register_projects: bool = False
    session_summary: bool = False


class PackSettings(NamedTuple):
    """Where doc packs come from besides those that ship, and when they are old."""

    registries: tuple[str, ...] = ()
    staleness_days: int = 90


class Settings(NamedTuple):
    """Every setting. The line limits in `policy` are those beside it; `policy_settings` gives a project its own."""

    projects: tuple[str, ...] = ()
    mode: Mode = "maintain"
    quiet_seconds: float = 30
    debounce_seconds: float = 2
    debounce_max_seconds: float = 20
    reconcile_minutes: float = 10
    memory_line_limit: int = DEFAULT_POLICY.memory_line_limit
    knowledge_line_limit: int = DEFAULT_POLICY.knowledge_line_limit
    max_attempts: int = 5
    log_level: LogLevel = "info"
    gate: GateSettings = GateSettings()
    observe: ObserveSettings = ObserveSettings()
    hooks: HookSettings = HookSettings()
    packs: PackSettings = PackSettings()
    policy: PolicySettings = DEFAULT_POLICY

    def policy_settings(self, memory_line_limit: int) -> PolicySettings:
        """Every number that the policies go by, for a project whose memory files may have so many lines."""
        return replace(self.policy, memory_line_limit=memory_line_limit, knowledge_line_limit=self.knowledge_line_limit)


def all_defaults(file: Path, environ: Mapping[str, str]) -> bool:
    """Whether neither a settings file nor a variable says anything, so that `Settings()` is in force."""
    if environ.get("ECHOD_CONFIG") or any(name.startswith(ENV_PREFIX) for name in environ.keys() - PATH_VARIABLES):
        return False
    try:
        file.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return True
    except OSError:
        return False  # whoever reads it says what is wrong
    return False
