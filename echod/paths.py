"""Name the files and directories of echod itself. Reads and writes none of them.

There are two directories, both private to the user. The *state* directory survives a reboot: database, journal, locks,
list of projects, spool of hook events. The *runtime* directory need not: heartbeat, canary, wake file, status snapshot,
inspections. An idle daemon writes only there, so that it writes nothing to the disk.
"""

from __future__ import annotations

import contextlib
import os
import pwd
import stat
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple

from echod.errors import ConfigurationError, StateError, os_reason
from echod.lazy import lazy_imports

with lazy_imports(__name__):
    import hashlib

    import platformdirs

APP_NAME = "echod"
ENV_PREFIX = "ECHOD_"
"""The variables that begin like this are settings, but for those of this module."""
PATH_VARIABLES = frozenset({"ECHOD_STATE_DIR", "ECHOD_RUNTIME_DIR", "ECHOD_CONFIG"})
PRIVATE_DIR_MODE = 0o700
PRIVATE_FILE_MODE = 0o600
MAX_PATH_LENGTH = 4096
"""No system opens a longer path (PATH_MAX of Linux). Resolving one takes time that grows with its square."""

RUN_USER = Path("/run/user")


class Paths(NamedTuple):
    """Every path outside of a store that echod may write to."""

    state: Path
    runtime: Path
    config_file: Path
    data: Path | None = None

    @property
    def sessions(self) -> Path:
        """The default directory of conversation archives. They are the user's data, not state of echod."""
        return (self.data or self.state / "data") / "sessions"

    @property
    def session_projects(self) -> Path:
        """The projects whose conversations are archived because the user asked for it, one absolute path a line."""
        return self.state / "session-projects"

    @property
    def database(self) -> Path:
        """The SQLite database. It is rebuilt from the disk if it is damaged."""
        return self.state / "echod.db"

    @property
    def search_index(self) -> Path:
        """The index that searches read. It is derived from the disk, so it may be deleted at any time."""
        return self.state / "search.db"

    @property
    def journal(self) -> Path:
        """The records and images of commits, independent of the database."""
        return self.state / "journal"

    @property
    def auto_memory(self) -> Path:
        """The changes that the user made to auto memory through echod, and copies of it if the user wants them."""
        return self.state / "auto-memory"

    def memory_repository(self, project: Path) -> Path:
        """The git repository through which a project's memory is exchanged with other machines."""
        return self.state / "sync" / _digest(os.fsencode(project))[:16]

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
        """The lock that a daemon holds for its whole life."""
        return self.state / "daemon.lock"

    @property
    def worker_lock(self) -> Path:
        """The lock that a process holds while it runs a job."""
        return self.state / "worker.lock"

    @property
    def log_file(self) -> Path:
        """The log of commands, and of a daemon whose standard error is not collected (launchd)."""
        return self.state / "log" / "echod.log"

    @property
    def heartbeat(self) -> Path:
        """The file that the daemon rewrites while it makes progress."""
        return self.runtime / "heartbeat.json"

    @property
    def canary(self) -> Path:
        """A directory that the daemon watches and touches to test that events arrive."""
        return self.runtime / "canary"

    @property
    def wake_file(self) -> Path:
        """The file that commands write after they queued work, in the only directory there that the daemon watches.

        The heartbeat beside it would wake the daemon by the daemon's own writing.
        """
        return self.canary / "wake"

    @property
    def status_snapshot(self) -> Path:
        """The status that the daemon keeps ready for `echod status`."""
        return self.runtime / "status.json"

    @property
    def warnings(self) -> Path:
        """Since when each warning of the status exists."""
        return self.runtime / "warnings.json"

    @property
    def inspections(self) -> Path:
        """The stored inspections, so that the next process need not read unchanged files."""
        return self.runtime / "inspections.json"

    @property
    def settings_cache(self) -> Path:
        """The last checked settings, so that the next process need not check unchanged ones again."""
        return self.runtime / "settings.json"

    def create_directories(self) -> None:
        """Make the directories that commands and the daemon write into (mode 0700).

        Raises:
            StateError: one of them cannot be made, or others control it.
        """
        self._refuse_foreign_directories()
        for directory in (self.state, self.journal, self.spool, self.runtime, self.canary):
            try:
                make_private_directory(directory)
            except OSError as error:
                raise StateError(
                    f"The directory {directory} cannot be made: {os_reason(error)}; check the path and its "
                    "permissions, or set ECHOD_STATE_DIR (and ECHOD_RUNTIME_DIR) to a directory of yours."
                ) from error

    def _refuse_foreign_directories(self) -> None:
        uid, reason = os.getuid(), None
        with contextlib.suppress(OSError):  # making it reports why
            if self.state.stat().st_uid != uid:
                reason = f"{self.state} belongs to another user"
        if self.runtime.parent != self.state:
            reason = reason or foreign_reason(self.runtime, uid)
        if reason is not None:
            raise StateError(
                f"{reason}, so echod does not use it. Set ECHOD_STATE_DIR and ECHOD_RUNTIME_DIR to directories of "
                "yours, or unset them."
            )


def make_private_directory(path: Path) -> None:
    """Make a directory and the missing ones above it, all private (0700) whatever the umask.

    Raises:
        OSError: one of them cannot be made.
    """
    if not path.parent.exists():
        make_private_directory(path.parent)
    path.mkdir(mode=PRIVATE_DIR_MODE, exist_ok=True)


def paths_from_environment(environ: Mapping[str, str]) -> Paths:
    """Return the platform's directories, or those of `ECHOD_STATE_DIR`, `ECHOD_RUNTIME_DIR` and `ECHOD_CONFIG`.

    Raises:
        ConfigurationError: one of those variables is not an absolute path, or there is no home directory.
    """
    state = _absolute(environ, "ECHOD_STATE_DIR") or _user_directory(environ, _STATE_HOME)
    runtime = _absolute(environ, "ECHOD_RUNTIME_DIR") or _default_runtime(environ, state)
    config = _absolute(environ, "ECHOD_CONFIG") or _user_directory(environ, _CONFIG_HOME) / "config.toml"
    # A state directory of one's own holds everything: a second installation must not share the user's data.
    data = None if environ.get("ECHOD_STATE_DIR") else _user_directory(environ, _DATA_HOME)
    return Paths(state=state, runtime=runtime, config_file=config, data=data)


def all_defaults(file: Path, environ: Mapping[str, str]) -> bool:
    """Return whether neither a settings file nor a variable exists, so that `Settings()` is in force."""
    if environ.get("ECHOD_CONFIG") or any(name.startswith(ENV_PREFIX) for name in environ.keys() - PATH_VARIABLES):
        return False
    try:
        file.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return True
    except OSError:
        return False  # reading it reports why
    return False


def home_directory(environ: Mapping[str, str]) -> Path:
    """Return the user's home directory: `HOME`, else that of the user's account.

    Raises:
        ConfigurationError: there is neither, as for a user id that a container made up.
    """
    home = Path(environ.get("HOME", ""))
    if home.is_absolute():
        return home
    try:
        return Path(pwd.getpwuid(os.getuid()).pw_dir)
    except KeyError as error:
        raise ConfigurationError(
            f"HOME is not set, and the user id {os.getuid()} has no account with a home directory. "
            "Set HOME to a directory of yours."
        ) from error


def claude_home(environ: Mapping[str, str]) -> Path:
    """Return Claude Code's own directory: `CLAUDE_CONFIG_DIR`, else `~/.claude`."""
    return _absolute(environ, "CLAUDE_CONFIG_DIR") or home_directory(environ) / ".claude"


class _UserDirectory(NamedTuple):
    """A directory of the user for all programs: its variable, its place below the home directory, and its name."""

    variable: str
    default: str
    kind: str
    """The name that platformdirs gives it."""


_STATE_HOME: Final = _UserDirectory("XDG_STATE_HOME", ".local/state", "state")
_DATA_HOME: Final = _UserDirectory("XDG_DATA_HOME", ".local/share", "data")
_CONFIG_HOME: Final = _UserDirectory("XDG_CONFIG_HOME", ".config", "config")


def _user_directory(environ: Mapping[str, str], directory: _UserDirectory) -> Path:
    if sys.platform != "linux":
        return _platform_directory(environ, directory)
    configured = Path(environ.get(directory.variable, ""))
    base = configured if configured.is_absolute() else home_directory(environ) / directory.default
    return base / APP_NAME


def _platform_directory(environ: Mapping[str, str], directory: _UserDirectory) -> Path:
    """Return the directory by the rules of the platform. On Linux, loading them would take longer than a search."""
    try:
        found: Path = getattr(platformdirs, f"user_{directory.kind}_path")(APP_NAME)
    except RuntimeError:  # there is no home directory in the environment
        is_macos = sys.platform == "darwin"
        return home_directory(environ) / (_MACOS_DEFAULT if is_macos else directory.default) / APP_NAME
    return found


_MACOS_DEFAULT: Final = "Library/Application Support"


def conversations_name(project: Path) -> str:
    """Return the name of a project's directory of conversations: readable, and different for every path."""
    digest = _digest(str(project).encode("utf-8", "surrogateescape"))[:8]
    name = "".join(c if c.isascii() and (c.isalnum() or c in "._-") else "-" for c in project.name).strip("-.")
    return f"{name[:60] or 'project'}-{digest}"


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def codex_home(environ: Mapping[str, str]) -> Path:
    """Return Codex's own directory: `CODEX_HOME`, else `~/.codex`."""
    return _absolute(environ, "CODEX_HOME") or home_directory(environ) / ".codex"


def _default_runtime(environ: Mapping[str, str], state: Path) -> Path:
    # A shell without a login session (cron, ssh to another user) lacks the variable, but must find the files of a
    # daemon that has one. After su or sudo the variable is another user's. platformdirs would return a path in the
    # shared /tmp.
    for base in (Path(environ.get("XDG_RUNTIME_DIR", "")), RUN_USER / str(os.getuid())):
        # Root's own directory can be seen after su, and not used.
        usable = base.is_absolute() and base.is_dir() and os.access(base, os.W_OK | os.X_OK)
        if usable and foreign_reason(base / APP_NAME, os.getuid()) is None:
            return base / APP_NAME
    return state / "run"


def foreign_reason(directory: Path, uid: int) -> str | None:
    """Return why other users may control the content of a runtime directory, as half a sentence; None if they cannot.

    `su` and `sudo -E` keep variables that name another user's directory. In a directory of others, and in one that all
    may write (unless only owners can rename there, as in `/tmp`), anything can be put in the place of echod's own.
    """
    try:
        above = directory.parent.stat()
    except OSError:
        return None  # creating it reports why
    if above.st_uid not in {uid, 0}:
        return f"{directory.parent} belongs to another user"
    if above.st_mode & stat.S_IWOTH and not above.st_mode & stat.S_ISVTX:
        return f"every user may write to {directory.parent}"
    try:
        own = directory.lstat()
    except OSError:
        return None
    if stat.S_ISLNK(own.st_mode):
        return f"{directory} is a symbolic link"
    if own.st_uid != uid:
        return f"{directory} belongs to another user"
    return f"every user may write to {directory}" if own.st_mode & stat.S_IWOTH else None


def _absolute(environ: Mapping[str, str], name: str) -> Path | None:
    value = environ.get(name, "")
    if not value:
        return None
    path = expand_home(value)
    if not path.is_absolute():
        raise ConfigurationError(f"{name} must be an absolute path, not {value!r}; change it or unset it.")
    return path


def expand_home(path: str | Path) -> Path:
    """Replace `~` and `~user` at the beginning of a path. Where there is no such home directory, the path stays."""
    return Path(os.path.expanduser(path))  # noqa: PTH111  Path raises an error for an unknown user


def not_absolute_reason(pattern: str) -> str | None:
    """Return why a path or glob is not absolute, as half a sentence; None if it is."""
    if os.path.expanduser(pattern).startswith(os.sep):  # noqa: PTH111  a pattern is no path
        return None
    return f"{pattern!r} is not absolute; write it from / or ~ on, like '~/src/*'"


def insecure_directory_warnings(paths: Paths, uid: int) -> tuple[str, ...]:
    """Return a sentence for each directory of echod that users other than `uid` can change."""
    messages = []
    for directory in dict.fromkeys((paths.state, paths.runtime)):
        try:
            status = directory.stat()
        except OSError:
            continue  # reported where it is used
        if status.st_uid != uid:
            messages.append(f"{directory} belongs to another user, who can change what echod does. Change its owner.")
        elif status.st_mode & stat.S_IWOTH:
            messages.append(
                f"{directory} is open to all users of this machine, who can write there. Run: chmod 700 {directory}"
            )
    return tuple(messages)


def is_openable_path(text: str) -> bool:
    """Return whether a text from outside is an absolute path that a system could open; a longer one costs time."""
    return text.startswith(os.sep) and "\0" not in text and len(text) <= MAX_PATH_LENGTH


def is_utf8(path: Path) -> bool:
    """Return whether a path is UTF-8. No other path can be written into the database or into a status."""
    try:
        str(path).encode()
    except UnicodeEncodeError:
        return False
    return True


def not_utf8_message(path: Path) -> str:
    """Return the message for a path that is not UTF-8."""
    return f"The path {str(path)!a} is not UTF-8, so echod cannot record it. Rename it first."
