"""Find and read the summary of a project's memory that the daemon keeps ready for the start of a session.

A file contains exactly the hook's output. It exists only if the user enabled it (`session_summary`). Small because
only `session-start` loads it.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False  # typing itself takes longer to import than a hook may run
if TYPE_CHECKING:
    from collections.abc import Mapping

SUMMARY_DIRECTORY = "summaries"
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


def read_summary(directory: str, environ: Mapping[str, str]) -> bytes:
    """Return the output for the start of a session in this process's project; empty if no summary is ready."""
    if not os.path.isdir(directory):
        return b""
    directory_path = os.path.realpath(environ.get("CLAUDE_PROJECT_DIR") or os.getcwd())
    while True:
        name = summary_name(directory_path)
        text = _read_file(os.path.join(directory, name)) if name else b""
        parent = os.path.dirname(directory_path)
        if text or parent == directory_path:
            return text
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
