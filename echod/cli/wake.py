"""Saying to the daemon that there is work. Where none runs, nobody hears it, and that is fine."""

from __future__ import annotations

import os
import time

from echod.cli.context import CommandContext
from echod.runtime.wake import write_wake_file


def notify_daemon(context: CommandContext) -> None:
    """Wake the daemon, if one runs."""
    write_wake_file(context.paths.wake_file, f"{os.getpid()} {time.time_ns()}")
