"""The summary of a project's memory that the daemon keeps ready for the start of a session: where it is, and its text.

A file holds exactly what the hook prints. There is one only where the person asked for it (`session_summary`).
"""

from __future__ import annotations

import os

TYPE_CHECKING = False  # typing itself takes longer to import than a hook may run
if TYPE_CHECKING:
    from collections.abc import Mapping

DIRECTORY = "summaries"
_LARGEST_BYTES = 16 * 1024
_LONGEST_NAME = 230  # the daemon prepares it under a longer one


def name_for(project: str) -> str | None:
    """The name of the file for the project with this resolved path; None if it is too long for a name."""
    name = f"{project.replace('%', '%25').replace(os.sep, '%2F')}.json"
    return name if len(os.fsencode(name)) <= _LONGEST_NAME else None


def told_before(said: bytes) -> bool:
    """Whether a session that begins this way still knows what it was told at its first start."""
    plain = said.replace(b" ", b"")
    return b'"source":"resume"' in plain or b'"source":"fork"' in plain


def ready(directory: str, environ: Mapping[str, str]) -> bytes:
    """What to print at the start of a session in this process's project; nothing where nothing was kept ready."""
    if not os.path.isdir(directory):
        return b""
    here = os.path.realpath(environ.get("CLAUDE_PROJECT_DIR") or os.getcwd())
    while True:
        name = name_for(here)
        text = _content(os.path.join(directory, name)) if name else b""
        above = os.path.dirname(here)
        if text or above == here:
            return text
        here = above


def _content(path: str) -> bytes:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return b""
    try:
        text = os.read(descriptor, _LARGEST_BYTES + 1)
    finally:
        os.close(descriptor)
    return text if len(text) <= _LARGEST_BYTES else b""
