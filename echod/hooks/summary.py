"""Find what the daemon keeps ready for the start of a session: a summary of the project's memory, and a notice.

The file of a summary contains exactly the hook's output. It exists only if the user enabled it (`session_summary`).
The file of a notice contains a text as it is within a JSON string. It is removed by the first session that gets it.
Small because only `session-start` loads it.
"""

from __future__ import annotations

import os

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
