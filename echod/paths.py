"""Where echod's own files live. Nothing here reads or writes one.

Two directories, both private to the user: the *state* directory survives a reboot (database, journal, locks,
list of projects, spool of hook events), the *runtime* directory need not (heartbeat, canary, wake file, status
snapshot, inspections), so that an idle daemon writes nothing to the disk.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import platformdirs

from echod.errors import ConfigurationError, StateError, os_reason

APP_NAME = "echod"
PRIVATE_DIR_MODE = 0o700
PRIVATE_FILE_MODE = 0o600
RUN_USER = Path("/run/user")


@dataclass(frozen=True, slots=True)
class Paths:
    """Every place echod may write to outside a store."""

    state: Path
    runtime: Path
    config_file: Path

    @property
    def database(self) -> Path:
        """The SQLite database; rebuilt from the disk when damaged."""
        return self.state / "echod.db"

    @property
    def journal(self) -> Path:
        """Records and images of commits; independent of the database."""
        return self.state / "journal"

    @property
    def spool(self) -> Path:
        """Events written by hooks, one file each."""
        return self.state / "spool"

    @property
    def projects(self) -> Path:
        """The registered projects, one absolute path a line."""
        return self.state / "projects"

    @property
    def daemon_lock(self) -> Path:
        """Held for the daemon's life."""
        return self.state / "daemon.lock"

    @property
    def worker_lock(self) -> Path:
        """Held for the length of one job, by whoever runs it."""
        return self.state / "worker.lock"

    @property
    def log_file(self) -> Path:
        """Used where nobody collects standard error (launchd)."""
        return self.state / "log" / "echod.log"

    @property
    def heartbeat(self) -> Path:
        """Rewritten by the daemon while it makes progress."""
        return self.runtime / "heartbeat.json"

    @property
    def canary(self) -> Path:
        """A directory that the daemon watches and touches to prove that events still arrive."""
        return self.runtime / "canary"

    @property
    def wake_file(self) -> Path:
        """Written by commands that have queued work.

        It lies in the one directory there that the daemon watches; the heartbeat beside it would wake the daemon
        by its own writing.
        """
        return self.canary / "wake"

    @property
    def status_snapshot(self) -> Path:
        """The status that the daemon keeps ready for `echod status`."""
        return self.runtime / "status.json"

    @property
    def inspections(self) -> Path:
        """The stored inspections, with which the next process need not read unchanged files."""
        return self.runtime / "inspections.json"

    def create_directories(self) -> None:
        """Make the directories that commands and the daemon write into (mode 0700).

        Raises:
            StateError: one of them cannot be made.
        """
        for directory in (self.state, self.journal, self.spool, self.runtime, self.canary):
            try:
                directory.mkdir(mode=PRIVATE_DIR_MODE, parents=True, exist_ok=True)
            except OSError as error:
                raise StateError(
                    f"The directory {directory} cannot be made: {os_reason(error)}; check the path and its "
                    "permissions, or set ECHOD_STATE_DIR (and ECHOD_RUNTIME_DIR) to a directory of yours."
                ) from error


def paths_from_environment(environ: Mapping[str, str]) -> Paths:
    """The platform's directories, unless `ECHOD_STATE_DIR`, `ECHOD_RUNTIME_DIR` or `ECHOD_CONFIG` say otherwise.

    Raises:
        ConfigurationError: one of those variables is not an absolute path.
    """
    state = _absolute(environ, "ECHOD_STATE_DIR") or platformdirs.user_state_path(APP_NAME)
    runtime = _absolute(environ, "ECHOD_RUNTIME_DIR") or _default_runtime(environ, state)
    config = _absolute(environ, "ECHOD_CONFIG") or platformdirs.user_config_path(APP_NAME) / "config.toml"
    return Paths(state=state, runtime=runtime, config_file=config)


def claude_home(environ: Mapping[str, str]) -> Path:
    """Claude Code's own directory: `CLAUDE_CONFIG_DIR`, else `~/.claude`."""
    return _absolute(environ, "CLAUDE_CONFIG_DIR") or Path.home() / ".claude"


def _default_runtime(environ: Mapping[str, str], state: Path) -> Path:
    # A shell without a login session (cron, ssh to another user) lacks the variable, but must find what the daemon
    # that has one left there. platformdirs would answer with a path in the shared /tmp.
    xdg_runtime = environ.get("XDG_RUNTIME_DIR", "")
    if Path(xdg_runtime).is_absolute():
        return Path(xdg_runtime) / APP_NAME
    user_runtime = RUN_USER / str(os.getuid())
    return user_runtime / APP_NAME if user_runtime.is_dir() else state / "run"


def _absolute(environ: Mapping[str, str], name: str) -> Path | None:
    value = environ.get(name, "")
    if not value:
        return None
    path = Path(value).expanduser()
    if not path.is_absolute():
        raise ConfigurationError(f"{name} must be an absolute path, not {value!r}; change it or unset it.")
    return path


def is_utf8(path: Path) -> bool:
    """Whether a path is UTF-8. Any other can be written neither into the database nor into a status."""
    try:
        str(path).encode()
    except UnicodeEncodeError:
        return False
    return True


def not_utf8_message(path: Path) -> str:
    """What a person is told who names a path that is not UTF-8."""
    return f"The path {str(path)!a} is not UTF-8, so echod cannot write it down. Rename it first."
