"""`echod run`: the service in the foreground, for a terminal, systemd and launchd alike."""

from __future__ import annotations

import faulthandler
import sys

from echod import log_setup
from echod.cli.context import CommandContext
from echod.errors import ConfigurationError, StateError
from echod.log import get_logger
from echod.runtime.locks import AlreadyRunningError
from echod.service.paths import LAUNCHD_LABEL


def run_service(context: CommandContext) -> None:
    """Run until a signal comes. A second service is a friendly message and no error."""
    from echod.daemon.main import run

    # A supervisor that loses its patience ends us with SIGABRT; then the log shows where each thread hung.
    faulthandler.enable()
    try:
        settings = context.settings
    except ConfigurationError as error:
        if not _under_launchd(context):
            raise
        # launchd starts again after every failure and cannot be told that this one is final.
        _configure_logging(context, "error")
        get_logger(__name__).error("configuration_unusable", error=str(error))
        return
    _configure_logging(context, settings.log_level)

    try:
        run(context.paths, context.load_settings, context.environ)
    except AlreadyRunningError as already:
        print(f"{already} Nothing to do.", flush=True)
    except StateError as error:
        get_logger(__name__).error("stopped_by_error", error=str(error), cause=repr(error.__cause__))
        raise


def _configure_logging(context: CommandContext, level: str) -> None:
    # launchd does not rotate what it collects, so there the log is a file of our own.
    file = context.paths.log_file if _under_launchd(context) else None
    log_setup.configure(level, sys.stderr, context.environ, file=file)


def _under_launchd(context: CommandContext) -> bool:
    return context.environ.get("XPC_SERVICE_NAME") == LAUNCHD_LABEL
