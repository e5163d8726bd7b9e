"""The context of a command: its environment, the settings, its output, and access to memory.

Every command imports this module, `echod status` too. So it imports heavy modules only where they are used.
"""

from __future__ import annotations

import os
import re
import shlex
import sys
import time
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self, TextIO

from echod import __version__, paths
from echod.cli.output import WIDTH, escape_unsafe, sanitize
from echod.errors import StateError, UsageError, os_reason
from echod.lazy import lazy_imports, lazy_pattern
from echod.log import configure_lazily
from echod.paths import is_utf8, not_utf8_message
from echod.projects.discovery import ProjectLocator
from echod.runtime.heartbeat import DaemonState, Liveness, read_liveness, write_wake_file
from echod.runtime.locks import paths_of_running_daemon
from echod.settings.schema import Settings, check_in_child, check_in_process, effective_settings, settings_warnings
from echod.store import layout
from echod.store.layout import Store, find_linked_stores

with lazy_imports(__name__):
    from echod import log_setup
    from echod.app import context as app_context
    from echod.app import services as app_services

if TYPE_CHECKING:
    from echod.app.context import ReadContext
    from echod.app.services import Services

_INITIAL_DELAY_SECONDS: Final = 0.3
_STARTUP_GRACE_SECONDS: Final = 3.0
_UPDATE_INTERVAL_SECONDS: Final = 0.1
_CLEAR_LINE: Final = "\r\x1b[K"

_RED, _GREEN, _YELLOW, _RESET = "\x1b[31m", "\x1b[32m", "\x1b[33m", "\x1b[0m"

_COLOURS: Final = (
    (lazy_pattern(r"^([^\S\n]*+)(!)(?= )", re.MULTILINE), _RED),
    (lazy_pattern(r"^([^\S\n]*+)(ok)(?=  )", re.MULTILINE), _GREEN),
    (lazy_pattern(r"^([^\S\n]*+)(>)(?= )", re.MULTILINE), _GREEN),
    (lazy_pattern(r"^(echod )(is healthy)", re.MULTILINE), _GREEN),
    (lazy_pattern(r"^(echod )(needs attention)", re.MULTILINE), _YELLOW),
    (lazy_pattern(r"^(echod )(is not running|does not answer)", re.MULTILINE), _RED),
    (lazy_pattern(r"\b(\d{1,9}/\d{1,9} lines )(OVER)\b"), _YELLOW),
)


@dataclass(frozen=True)
class CommandContext:
    """The process environment, the working directory and the verbosity, read once at the start of a command."""

    environ: Mapping[str, str]
    cwd: Path | None
    """The working directory; None if it was deleted or may not be entered."""
    quiet: bool = False
    long_lived: bool = False
    """Whether this process runs for long and must not load the libraries that check settings."""

    @classmethod
    def from_process(cls, config: Path | None = None, *, quiet: bool = False, no_color: bool = False) -> Self:
        """Build the context from this process and the options of echod itself; `config` is a settings file."""
        environ = dict(os.environ)
        if no_color:
            environ["NO_COLOR"] = "1"
        context = cls(environ, _current_directory(), quiet=quiet)
        if config is None:
            return context
        return replace(context, environ={**environ, "ECHOD_CONFIG": str(context.absolute_path(config))})

    @cached_property
    def paths(self) -> paths.Paths:
        """The locations of echod's own files. The runtime directory is that of the running service."""
        return paths_of_running_daemon(paths.paths_from_environment(self.environ))

    @cached_property
    def locator(self) -> ProjectLocator:
        """The rule by which a path belongs to a project."""
        return ProjectLocator.from_environment(self.environ)

    def absolute_path(self, path: Path) -> Path:
        """Return a path that the user typed, from the root on, without symbolic links.

        Raises:
            UsageError: it is relative, and there is no working directory.
        """
        expanded = paths.expand_home(path)
        if self.cwd is None and not expanded.is_absolute():
            raise UsageError(
                "The current directory does not exist any more, or you may not enter it. "
                "Change to another directory (cd), or type a full path."
            )
        return layout.project_root((self.cwd or Path(expanded.anchor)) / expanded)

    @cached_property
    def settings(self) -> Settings:
        """The settings. Warnings about unknown variables and an insecure file are printed on standard error."""
        self.configure_log_file()
        uid = os.getuid()
        directories = paths.insecure_directory_warnings(self.paths, uid)
        for warning in (*settings_warnings(self.paths.config_file, self.environ, uid), *directories):
            if not self.quiet:
                sys.stderr.write(f"echod: {warning}\n")
        return self.load_settings()

    def load_settings(self) -> Settings:
        """Load the settings as they are now.

        Raises:
            ConfigurationError: they are invalid; the text names every wrong key.
        """
        check = check_in_child if self.long_lived else check_in_process
        return effective_settings(self.paths.config_file, self.environ, self.paths.settings_cache, check=check)

    def configure_log_file(self) -> None:
        """Send log lines to the log file. The command itself prints sentences."""

        def configure() -> None:
            log_setup.configure("info", sys.stderr, self.environ, file=self.paths.log_file)

        configure_lazily(configure)

    def open_read_context(self) -> AbstractContextManager[ReadContext]:
        """Open projects, stores, queue and journal for reading. Creates nothing.

        Raises:
            StateError: the database cannot be read.
        """
        return app_context.open_read_context(self.paths, self.settings, self.environ, self.now)

    def open_services(self) -> AbstractContextManager[Services]:
        """Open everything that changes memory and the queue.

        Raises:
            StateError: the state directory or the database cannot be used.
        """
        return app_services.open_services(self.paths, self.settings, self.environ, self.now)

    def notify_daemon(self) -> None:
        """Wake the daemon, if one runs."""
        write_wake_file(self.paths.wake_file, f"{os.getpid()} {time.time_ns()}")

    def now(self) -> float:
        """Return the time in Unix seconds."""
        return time.time()

    def find_project(self, path: Path) -> Path:
        """Return the project of `path`, by the rule of `ProjectLocator`.

        Raises:
            UsageError: the path does not exist, or is in no project.
        """
        start = self.existing_path(path)
        try:
            project = self.locator.find_project(start)
        except OSError as error:
            raise UsageError(f"{error.filename or start} cannot be read: {os_reason(error)}.") from error
        if project is None:
            raise UsageError(self._no_project_message(start))
        if not is_utf8(project):
            raise UsageError(not_utf8_message(project))
        return project

    def existing_path(self, path: Path) -> Path:
        """Return what `absolute_path` returns. Raises UsageError, too, if nothing is there."""
        start = self.absolute_path(path)
        if not os.path.lexists(start):
            raise UsageError(f"{start} does not exist.")
        return start

    def current_project(self) -> Path | None:
        """Return the project of the current directory; None if that is in no project, or does not exist."""
        try:
            return self.find_project(Path())
        except UsageError:
            return None

    def _no_project_message(self, start: Path) -> str:
        if start.is_file():
            return (
                f"{start} is a file, and no directory above it has a memory. Name the directory of a project, "
                "or create a memory in one: echod init PATH"
            )
        for above in (start, *start.parents):
            links = find_linked_stores(above)
            if links and self.locator.exclusion_reason(above) is None:
                return links[0].describe()
        if reason := self.locator.exclusion_reason(start):
            return f"{start} has no memory of a project: {reason}. Name the directory of a project: echod init PATH"
        store_dirs = " or ".join(str(below) for below in layout.STORE_DIRS)
        root = self.locator.find_init_root(start)
        up_to = "" if root == start else f" and the directories above it up to {root}"
        return (
            f"{start} has no memory: there is no {store_dirs} in it{up_to}. "
            f"Create one with: echod init {shlex.quote(str(start))}"
        )

    def list_stores(self, project: Path) -> tuple[Store, ...]:
        """List the stores of a project. The global store in Claude Code's own directory is not a project's store."""
        return self.locator.find_stores(layout.project_root(project))

    @property
    def is_interactive(self) -> bool:
        """True if the command can ask the user, because input and output are a terminal."""
        return sys.stdin.isatty() and sys.stdout.isatty()

    def print_info(self, text: str) -> None:
        """Print what was done, unless the command is quiet. Requested output, such as a list, is printed directly."""
        if not self.quiet:
            print(text, flush=True)

    def colored(self, text: str) -> str:
        """Color the marks in `text`, if the output is a terminal with colours and NO_COLOR is not set."""
        if not sys.stdout.isatty() or self.environ.get("NO_COLOR") or self.environ.get("TERM", "dumb") == "dumb":
            return text
        return colorize(escape_unsafe(text, keep_styles=False))

    def progress_line(self, *, json: bool = False) -> ProgressLine:
        """Return a progress line. It prints nothing without a terminal, for scripts, or when the command is quiet."""
        enabled = sys.stderr.isatty() and not (self.quiet or json) and self.environ.get("TERM") != "dumb"
        return ProgressLine(sys.stderr if enabled else None)


def _current_directory() -> Path | None:
    try:
        return Path.cwd()
    except OSError:
        return None


def check_liveness(context: CommandContext) -> Liveness:
    """Check from outside whether the daemon runs and answers. A starting daemon gets a moment to do so."""
    deadline = time.monotonic() + _STARTUP_GRACE_SECONDS
    while True:
        try:
            liveness = read_liveness(context.paths, __version__, time.monotonic())
        except OSError as error:
            raise StateError(
                f"{error.filename} cannot be read: {error.strerror}. It belongs to another user or is damaged."
            ) from error
        if liveness.state is not DaemonState.STARTING or time.monotonic() > deadline:
            return liveness
        time.sleep(0.1)


class ProgressLine:
    """One line on a terminal that long work overwrites. Prints nothing if `terminal` is None or the work is short."""

    def __init__(self, terminal: TextIO | None) -> None:
        self._terminal = terminal
        self._next_update = time.monotonic() + _INITIAL_DELAY_SECONDS
        self._is_shown = False

    def show(self, text: str) -> None:
        """Show the progress, at most ten times a second, since a terminal can be slower than the work."""
        if self._terminal is None or time.monotonic() < self._next_update:
            return
        self._next_update = time.monotonic() + _UPDATE_INTERVAL_SECONDS
        self._is_shown = True
        self._terminal.write(f"{_CLEAR_LINE}{sanitize(text)[: WIDTH - 1]}")
        self._terminal.flush()

    def clear(self) -> None:
        """Remove the line before something else is printed."""
        if self._terminal is not None and self._is_shown:
            self._is_shown = False
            self._next_update = time.monotonic()
            self._terminal.write(_CLEAR_LINE)
            self._terminal.flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.clear()


def colorize(screen: str) -> str:
    """Color the marks of a screen. Colours repeat what words and marks show, and widths do not change."""
    for pattern, colour in _COLOURS:
        screen = pattern.sub(rf"\g<1>{colour}\g<2>{_RESET}", screen)
    return screen
