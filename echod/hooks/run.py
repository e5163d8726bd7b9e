"""Run `echod hook EVENT`: spool the event from standard input, print nothing, and exit with 0 even after an error.

Two exceptions to "print nothing": a summary of the project's memory or a notice at the start of a session, if the
daemon keeps one ready (see `summary`), and entries about what the agent does (see `recall`).
"""

from __future__ import annotations

import os
import select
import sys
import time

from echod.hooks import spool

TYPE_CHECKING = False  # typing itself takes longer to import than a hook may run
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import NoReturn

EVENTS = ("task-completed", "session-start", "session-end", "pre-compact", "stop")
RECALL_EVENTS = ("pre-tool-use", "post-tool-use-failure")
"""Events that are answered with entries, or with nothing, and not reported."""

STDIN_TIMEOUT_SECONDS = 2.0
"""How long an agent may take to send the event. It has the event ready, and ends its hooks after a few seconds."""

_STDIN, _STDOUT = 0, 1
_CHUNK_BYTES = 64 * 1024


def main() -> NoReturn:
    """Run the hook that the command line names, and end the process with 0."""
    try:
        run(sys.argv[2:], os.environ, sys.platform)
    finally:
        # Not by returning: neither an error nor the interpreter's output at exit may reach the agent.
        os._exit(0)


def run(arguments: list[str], environ: Mapping[str, str], platform: str) -> None:
    """Do a hook's work. May raise any error.

    Args:
        arguments: the event's name; further arguments are ignored.
        environ: the process environment.
        platform: `sys.platform`.
    """
    event = arguments[0] if arguments else ""
    state = spool.state_directory(environ, platform)
    payload, size = _read_stdin(_STDIN)
    if event in RECALL_EVENTS:
        from echod.hooks import recall

        if size <= spool.MAX_EVENT_BYTES:
            os.write(_STDOUT, recall.answer(event, payload, state, environ, platform))
        return
    _spool_event(os.path.join(state, "spool"), event, payload, size)
    if event == "session-start":
        from echod.hooks import summary

        if not summary.already_sent(payload):
            os.write(_STDOUT, summary.session_output(state, environ))


def _spool_event(directory: str, event: str, payload: bytes, size: int) -> None:
    if event not in EVENTS:
        spool.count_dropped(directory, spool.UNKNOWN)
    elif size > spool.MAX_EVENT_BYTES:
        spool.count_dropped(directory, spool.TOO_LARGE)
    elif not payload.strip():
        spool.count_dropped(directory, spool.EMPTY)
    else:
        spool.write_event(directory, event, payload, time.time_ns(), os.getpid())


def _read_stdin(descriptor: int) -> tuple[bytes, int]:
    """Return the event, cut at the limit, and its full size in bytes.

    An event beyond the limit is read to its end, because an agent that writes into a closed pipe would get an error.
    """
    parts: list[bytes] = []
    size = 0
    deadline = time.monotonic() + STDIN_TIMEOUT_SECONDS
    try:
        if os.isatty(descriptor):
            return b"", 0
        while (remaining := deadline - time.monotonic()) > 0 and select.select([descriptor], [], [], remaining)[0]:
            part = os.read(descriptor, _CHUNK_BYTES)
            if not part:
                break
            size += len(part)
            if size <= spool.MAX_EVENT_BYTES:
                parts.append(part)
    except (OSError, ValueError):
        return b"", 0
    return b"".join(parts), size
