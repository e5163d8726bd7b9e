"""End the server with its client, in whatever way the client ends.

- The end of its input ends the server. That is the usual way, and the protocol's.
- A signal ends it at once, for a thread that waits for input would delay an orderly end. Nothing is lost by that: the
  index and the state database survive a kill.
- A client that was killed may have left its end of the pipe to another process, so that the input never ends. The
  server therefore watches its parent. Where that is only a wrapper (a shell, a package runner), it watches the parent
  of the wrapper too.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from typing import Final

import psutil

POLL_SECONDS: Final = 1.0
EXIT_CODE: Final = 0
_WRAPPER_ARGUMENT: Final = "mcp"


def end_with_signals() -> None:
    """Let the signals that end a process end this one at once."""
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


def end_with_parent(end: Callable[[], None], poll_seconds: float = POLL_SECONDS) -> threading.Thread:
    """Call `end` in a thread when the parent has ended, or a wrapper has lost its own parent."""
    arguments = (_watched_parents(), end, poll_seconds)
    thread = threading.Thread(target=_watch, args=arguments, name="parent-watch", daemon=True)
    thread.start()
    return thread


def end_process() -> None:
    """End the process at once, whatever its threads wait for."""
    os._exit(EXIT_CODE)


def _watch(parents: tuple[int, int | None], end: Callable[[], None], poll_seconds: float) -> None:
    pause = threading.Event()
    while parents == _watched_parents():
        pause.wait(poll_seconds)
    end()


def _watched_parents() -> tuple[int, int | None]:
    """Return the parent, and the parent of that one if it is a wrapper of this server."""
    parent = os.getppid()

    try:
        process = psutil.Process(parent)
        arguments = process.cmdline()
        is_wrapper = any("echod" in argument for argument in arguments) and any(
            _WRAPPER_ARGUMENT in argument for argument in arguments
        )
        return parent, process.ppid() if is_wrapper else None
    except psutil.Error:
        return parent, None
