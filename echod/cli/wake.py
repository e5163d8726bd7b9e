"""Saying to the daemon that there is work. Where none runs, nobody hears it, and that is fine."""

from __future__ import annotations

import os
import time

from echod.cli.shell import Shell
from echod.runtime.wake import wake


def wake_daemon(shell: Shell) -> None:
    """Wake the daemon, if one runs."""
    wake(shell.paths.wake, f"{os.getpid()} {time.time_ns()}")
