"""What every command starts from: the environment it was called in, and the settings when it needs them."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Self

from echod import paths
from echod.cli.progress import Progress
from echod.errors import UsageError
from echod.log import configure_before_first_line
from echod.paths import is_text, not_text
from echod.settings.values import Settings, nothing_is_set
from echod.store import layout

if TYPE_CHECKING:
    from echod.store.layout import Store


@dataclass(frozen=True)
class Shell:
    """The process environment, the working directory and how much is said, read once at the door."""

    environ: Mapping[str, str]
    cwd: Path
    quiet: bool = False

    @classmethod
    def here(cls, config: Path | None = None, *, quiet: bool = False, no_color: bool = False) -> Self:
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
        return paths.from_environment(self.environ)

    @cached_property
    def settings(self) -> Settings:
        """The settings; unknown variables and a file that others can change are said on standard error."""
        self._log_to_file()
        for warning in self._doubts():
            if not self.quiet:
                sys.stderr.write(f"echod: {warning}\n")
        return self.load_settings()

    def load_settings(self) -> Settings:
        """The settings as they are said to be now; where nobody says anything, there is nothing to check.

        Raises:
            ConfigurationError: they cannot be used; the sentence names every wrong key.
        """
        if nothing_is_set(self.paths.config_file, self.environ):
            return Settings()
        from echod.settings import loader

        return loader.load(self.paths.config_file, self.environ)

    def _doubts(self) -> tuple[str, ...]:
        if nothing_is_set(self.paths.config_file, self.environ):
            return ()
        from echod.settings import loader

        file = self.paths.config_file
        return (*loader.unknown_variables(self.environ), *loader.untrusted_file(file, os.getuid()))

    def _log_to_file(self) -> None:
        """A command prints sentences; what caused them goes to the log file."""

        def configure() -> None:
            from echod import log_setup

            log_setup.configure("info", sys.stderr, self.environ, file=self.paths.log_file)

        configure_before_first_line(configure)

    def say(self, text: str) -> None:
        """Print what was done, for a person; what was asked for (a list, a plan) is printed in any case."""
        if not self.quiet:
            print(text, flush=True)

    def lay_out(self, text: str, *, needed: bool) -> None:
        """Print what would be done; `needed` says that a person asked for it, or is about to be asked about it."""
        if needed or not self.quiet:
            print(text, flush=True)

    def painted(self, screen: str) -> str:
        """The screen with colours, if it goes to a terminal that has them and nobody said NO_COLOR."""
        if not sys.stdout.isatty() or self.environ.get("NO_COLOR") or self.environ.get("TERM", "dumb") == "dumb":
            return screen
        from echod.cli.paint import painted

        return painted(screen)

    def progress(self) -> Progress:
        """Where long work says how far it is: on a terminal, unless the person wants it quiet."""
        told = sys.stderr.isatty() and not self.quiet and self.environ.get("TERM") != "dumb"
        return Progress(sys.stderr if told else None)

    def now(self) -> float:
        """Unix seconds."""
        return time.time()

    def project(self, path: Path) -> Path:
        """The project that `path` means: the nearest directory at or above it that has a store.

        Raises:
            UsageError: there is no such path, or no store at or above it.
        """
        start = layout.project_root(self.cwd / path.expanduser())
        if not start.exists():
            raise UsageError(f"{start} does not exist.")
        for candidate in (start, *start.parents):
            if self.stores(candidate):
                if not is_text(candidate):
                    raise UsageError(not_text(candidate))
                return candidate
        wanted = " or ".join(str(below) for below in layout.STORE_DIRS)
        raise UsageError(
            f"{start} has no memory: neither it nor a directory above it holds {wanted}. "
            f"Make one with: echod init {start}"
        )

    def stores(self, project: Path) -> tuple[Store, ...]:
        """The stores of a project. The global store's home in Claude Code's own directory is none."""
        own = layout.project_root(paths.claude_home(self.environ))
        return tuple(store for store in layout.stores_of(project) if store.root.parent != own)
