"""`echod run`: the service in the foreground, for a terminal, systemd and launchd alike."""

from __future__ import annotations

import faulthandler
import sys

from echod import log_setup
from echod.cli.shell import Shell
from echod.errors import ConfigurationError, StateError
from echod.log import get_logger
from echod.runtime.locks import AlreadyRunningError
from echod.service.paths import LABEL


def serve(shell: Shell) -> None:
    """Run until a signal comes. A second service is a friendly message and no error."""
    from echod.daemon.main import run

    # A supervisor that loses its patience ends us with SIGABRT; then the log shows where each thread hung.
    faulthandler.enable()
    try:
        settings = shell.settings
    except ConfigurationError as error:
        if not _under_launchd(shell):
            raise
        # launchd starts again after every failure and cannot be told that this one is final.
        _log_to(shell, "error")
        get_logger(__name__).error("configuration_unusable", error=str(error))
        return
    _log_to(shell, settings.log_level)

    try:
        run(shell.paths, shell.load_settings, shell.environ)
    except AlreadyRunningError as already:
        print(f"{already} Nothing to do.", flush=True)
    except StateError as error:
        get_logger(__name__).error("stopped_by_error", error=str(error), cause=repr(error.__cause__))
        raise


def _log_to(shell: Shell, level: str) -> None:
    # launchd does not rotate what it collects, so there the log is a file of our own.
    file = shell.paths.log_file if _under_launchd(shell) else None
    log_setup.configure(level, sys.stderr, shell.environ, file=file)


def _under_launchd(shell: Shell) -> bool:
    return shell.environ.get("XPC_SERVICE_NAME") == LABEL
