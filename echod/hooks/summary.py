"""The summary of a project's memory that the daemon keeps ready for the start of a session: where it is, and its text.

A file holds exactly what the hook prints. There is one only where the person asked for it (`session_summary`).
"""

from __future__ import annotations

import os

TYPE_CHECKING = False  # typing itself takes longer to import than a hook may run
if TYPE_CHECKING:
    from collections.abc import Mapping

SUMMARY_DIRECTORY = "summaries"
_MAX_BYTES = 16 * 1024
_MAX_NAME_BYTES = 230  # the daemon prepares it under a longer one


def summary_name(project: str) -> str | None:
    """The name of the file for the project with this resolved path; None if it is too long for a name."""
    name = f"{project.replace('%', '%25').replace(os.sep, '%2F')}.json"
    return name if len(os.fsencode(name)) <= _MAX_NAME_BYTES else None


def already_sent(payload: bytes) -> bool:
    """Whether a session that begins this way still knows what it was told at its first start."""
    compact = payload.replace(b" ", b"")
    return b'"source":"resume"' in compact or b'"source":"fork"' in compact


def read_summary(directory: str, environ: Mapping[str, str]) -> bytes:
    """What to print at the start of a session in this process's project; nothing where nothing was kept ready."""
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
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return b""
    try:
        text = os.read(descriptor, _MAX_BYTES + 1)
    finally:
        os.close(descriptor)
    return text if len(text) <= _MAX_BYTES else b""
