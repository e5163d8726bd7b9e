"""Run `echod hook EVENT`: spool the event from standard input, print nothing, and exit with 0 even after an error.

Two exceptions to "print nothing": a summary of the project's memory or a notice at the start of a session, if the
daemon keeps one ready (see `session_output`), and entries about what the agent does (see `recall`).

The file of a summary contains exactly the hook's output. It exists only if the user enabled it (`session_summary`).
The file of a notice contains a text as it is within a JSON string. It is removed by the first session that gets it.
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

SUMMARY_DIRECTORY, NOTICE_DIRECTORY = "summaries", "notices"
_OUTPUT_START = b'{"hookSpecificOutput": {"hookEventName": "SessionStart", "additionalContext": "'
_OUTPUT_END = b'"}}'
_MAX_BYTES = 16 * 1024
_MAX_NAME_BYTES = 230  # the daemon writes it under a longer temporary name first


def summary_name(project: str) -> str | None:
    """Return the name of the file for the project with this resolved path; None if it would be too long."""
    name = f"{project.replace('%', '%25').replace(os.sep, '%2F')}.json"
    return name if len(os.fsencode(name)) <= _MAX_NAME_BYTES else None


def already_sent(payload: bytes) -> bool:
    """Return whether this session received the summary at its first start: it was resumed or forked."""
    compact = payload.replace(b" ", b"")
    return b'"source":"resume"' in compact or b'"source":"fork"' in compact


def session_output(state: str, environ: Mapping[str, str]) -> bytes:
    """Return the output for the start of a session in this process's project; empty if nothing is ready."""
    summary, _ = _find(os.path.join(state, SUMMARY_DIRECTORY), environ)
    if summary and not (summary.startswith(_OUTPUT_START) and summary.endswith(_OUTPUT_END)):
        return summary
    notice, path = _find(os.path.join(state, NOTICE_DIRECTORY), environ)
    if not notice or not _remove(path):
        return summary
    start = summary[: -len(_OUTPUT_END)] + b"\\n\\n" if summary else _OUTPUT_START
    return start + notice + _OUTPUT_END


def _remove(path: str) -> bool:
    """Remove a file, and return whether this process did it and no other."""
    try:
        os.unlink(path)
    except OSError:
        return False
    return True


def _find(directory: str, environ: Mapping[str, str]) -> tuple[bytes, str]:
    """Return the content and the path of the file for this process's project; empty without one."""
    if not os.path.isdir(directory):
        return b"", ""
    directory_path = os.path.realpath(environ.get("CLAUDE_PROJECT_DIR") or os.getcwd())
    while True:
        name = summary_name(directory_path)
        path = os.path.join(directory, name) if name else ""
        text = _read_file(path) if path else b""
        parent = os.path.dirname(directory_path)
        if text or parent == directory_path:
            return text, path
        directory_path = parent


def _read_file(path: str) -> bytes:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return b""
    try:
        text = os.read(descriptor, _MAX_BYTES + 1)
    except OSError:
        return b""  # a directory, or a device
    finally:
        os.close(descriptor)
    return text if len(text) <= _MAX_BYTES else b""


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
    if event == "session-start" and not already_sent(payload):
        os.write(_STDOUT, session_output(state, environ))


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
