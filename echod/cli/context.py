"""What every command starts from: the environment it was called in, and the settings when it needs them.

Colours for a terminal. They repeat what the words and marks say, so that nothing is lost without them.

One line that says how far long work is, for whoever sits before a terminal. It leaves nothing behind.

Saying to the daemon that there is work. Where none runs, nobody hears it, and that is fine.
"""

from __future__ import annotations

import os
import re
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self, TextIO

from echod import paths
from echod.cli.output import WIDTH, sanitize
from echod.errors import UsageError
from echod.log import configure_lazily
from echod.paths import is_utf8, not_utf8_message
from echod.runtime.wake import write_wake_file
from echod.settings.values import Settings, all_defaults
from echod.store import layout

if TYPE_CHECKING:
    from echod.store.layout import Store


_RED, _GREEN, _YELLOW, _RESET = "\x1b[31m", "\x1b[32m", "\x1b[33m", "\x1b[0m"

_COLOURS: Final = (
    (re.compile(r"^([^\S\n]*+)(!)(?= )", re.MULTILINE), _RED),
    (re.compile(r"^([^\S\n]*+)(ok)(?=  )", re.MULTILINE), _GREEN),
    (re.compile(r"^([^\S\n]*+)(>)(?= )", re.MULTILINE), _GREEN),
    (re.compile(r"^(echod )(is healthy)", re.MULTILINE), _GREEN),
    (re.compile(r"^(echod )(needs a look)", re.MULTILINE), _YELLOW),
    (re.compile(r"^(echod )(is not running|does not answer)", re.MULTILINE), _RED),
    (re.compile(r"^( {4}\S+ +\d+/\d+ lines )(OVER)\b", re.MULTILINE), _RED),
)


def colorize(screen: str) -> str:
    """A screen with its marks in colour; widths stay what they are."""
    for pattern, colour in _COLOURS:
        screen = pattern.sub(rf"\g<1>{colour}\g<2>{_RESET}", screen)
    return screen


_INITIAL_DELAY_SECONDS: Final = 0.3
_UPDATE_INTERVAL_SECONDS: Final = 0.1
_CLEAR_LINE: Final = "\r\x1b[K"


class ProgressLine:
    """A line that is written again and again; nothing at all where `terminal` is None or the work is short."""

    def __init__(self, terminal: TextIO | None) -> None:
        self._terminal = terminal
        self._next_update = time.monotonic() + _INITIAL_DELAY_SECONDS
        self._is_shown = False

    def show(self, text: str) -> None:
        """Say how far it is; not too often, since a terminal takes longer than what it tells of."""
        if self._terminal is None or time.monotonic() < self._next_update:
            return
        self._next_update = time.monotonic() + _UPDATE_INTERVAL_SECONDS
        self._is_shown = True
        self._terminal.write(f"{_CLEAR_LINE}{sanitize(text)[: WIDTH - 1]}")
        self._terminal.flush()

    def clear(self) -> None:
        """Take the line away, before something else is printed."""
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


@dataclass(frozen=True)
class CommandContext:
    """The process environment, the working directory and how much is said, read once at the door."""

    environ: Mapping[str, str]
    cwd: Path
    quiet: bool = False

    @classmethod
    def from_process(cls, config: Path | None = None, *, quiet: bool = False, no_color: bool = False) -> Self:
        """This process's environment and directory; `config` is a settings file that was named with the command."""
        cwd = Path.cwd()
        environ = dict(os.environ)
        if config is not None:
            environ["ECHOD_CONFIG"] = str(cwd / config.expanduser())
        if no_color:
            environ["NO_COLOR"] = "1"
        return cls(environ, cwd, quiet=quiet)

    @cached_property
    def paths(self) -> paths.Paths:
        """Where echod's own files live."""
        return paths.paths_from_environment(self.environ)

    @cached_property
    def settings(self) -> Settings:
        """The settings; unknown variables and a file that others can change are said on standard error."""
        self._configure_log_file()
        for warning in self._settings_warnings():
            if not self.quiet:
                sys.stderr.write(f"echod: {warning}\n")
        return self.load_settings()

    def load_settings(self) -> Settings:
        """The settings as they are said to be now; where nobody says anything, there is nothing to check.

        Raises:
            ConfigurationError: they cannot be used; the sentence names every wrong key.
        """
        if all_defaults(self.paths.config_file, self.environ):
            return Settings()
        from echod.settings import loader

        return loader.load_settings(self.paths.config_file, self.environ)

    def _settings_warnings(self) -> tuple[str, ...]:
        if all_defaults(self.paths.config_file, self.environ):
            return ()
        from echod.settings import loader

        file = self.paths.config_file
        return (*loader.unknown_variable_warnings(self.environ), *loader.insecure_file_warnings(file, os.getuid()))

    def _configure_log_file(self) -> None:
        """A command prints sentences; what caused them goes to the log file."""

        def configure() -> None:
            from echod import log_setup

            log_setup.configure("info", sys.stderr, self.environ, file=self.paths.log_file)

        configure_lazily(configure)

    def print_info(self, text: str) -> None:
        """Print what was done, for a person; what was asked for (a list, a plan) is printed in any case."""
        if not self.quiet:
            print(text, flush=True)

    def print_plan(self, text: str, *, always: bool) -> None:
        """Print what would be done; `always` says that a person asked for it, or is about to be asked about it."""
        if always or not self.quiet:
            print(text, flush=True)

    def colored(self, text: str) -> str:
        """The screen with colours, if it goes to a terminal that has them and nobody said NO_COLOR."""
        if not sys.stdout.isatty() or self.environ.get("NO_COLOR") or self.environ.get("TERM", "dumb") == "dumb":
            return text

        return colorize(text)

    def progress_line(self) -> ProgressLine:
        """Where long work says how far it is: on a terminal, unless the person wants it quiet."""
        enabled = sys.stderr.isatty() and not self.quiet and self.environ.get("TERM") != "dumb"
        return ProgressLine(sys.stderr if enabled else None)

    def now(self) -> float:
        """Unix seconds."""
        return time.time()

    def find_project(self, path: Path) -> Path:
        """The project that `path` means: the nearest directory at or above it that has a store.

        Raises:
            UsageError: there is no such path, or no store at or above it.
        """
        start = layout.project_root(self.cwd / path.expanduser())
        if not start.exists():
            raise UsageError(f"{start} does not exist.")
        for candidate in (start, *start.parents):
            if self.list_stores(candidate):
                if not is_utf8(candidate):
                    raise UsageError(not_utf8_message(candidate))
                return candidate
        store_dirs = " or ".join(str(below) for below in layout.STORE_DIRS)
        raise UsageError(
            f"{start} has no memory: neither it nor a directory above it holds {store_dirs}. "
            f"Make one with: echod init {start}"
        )

    def list_stores(self, project: Path) -> tuple[Store, ...]:
        """The stores of a project. The global store's home in Claude Code's own directory is none."""
        claude_root = layout.project_root(paths.claude_home(self.environ))
        return tuple(store for store in layout.find_stores(project) if store.root.parent != claude_root)


def notify_daemon(context: CommandContext) -> None:
    """Wake the daemon, if one runs."""
    write_wake_file(context.paths.wake_file, f"{os.getpid()} {time.time_ns()}")
