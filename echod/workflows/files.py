"""Read other programs' marker files: bounded, never through a symbolic link, never waiting on a pipe.

Between listing a directory and reading one of its files everything may change. A file that has vanished is absent. One
that exists but cannot be read is *unreadable*, which is something else.

The second half reads the fields of such files, in every spelling that was seen. A value that makes no sense counts as
missing. Nothing here decides what a marker means.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from echod.files import open_regular
from echod.lazy import lazy_imports, lazy_pattern
from echod.workflows.model import NO_OWNER, MarkerOwner, ProcessTable

with lazy_imports(__name__):
    from echod.memory import redact

UPSTREAM_DIRECTORIES = (".rune", ".claude")
"""The directories in which the plugin keeps its files: the present one and the former one."""

_SMALL_DIRECTORY = 16 << 10
"""Bytes of a directory itself. Up to a few hundred names, listing all is faster than checking many names one by one."""

JsonObject = dict[str, object]

_PID = lazy_pattern(r"[0-9]{1,7}")
_MAX_PID = 4_194_303
_FRACTION = lazy_pattern(r"\d*\.\d*")
_EPOCH_DIVISOR = {10: 1, 13: 1_000, 16: 1_000_000, 19: 1_000_000_000}
_MIN_TIME = datetime.fromisoformat("2020-01-01T00:00:00Z").timestamp()
_MAX_TIME = datetime.fromisoformat("2100-01-01T00:00:00Z").timestamp()
_MAX_PRINTABLE_LENGTH = 60
_PLAIN_WORDS = lazy_pattern(r"[A-Za-z][a-z]{0,20}(?:[ ,_-]{1,2}[a-z]{1,20})*")

# Words for "it runs". A word in neither set is unknown, and unknown means running, for a bounded time.
RUNNING_STATUSES = frozenset({"active", "running", "dispatched", "in_progress", "started"})
ENDED_STATUSES = frozenset(
    {
        "completed", "completed_with_gaps", "complete", "done", "finished", "success", "succeeded", "partial",
        "failed", "failure", "error", "crashed", "timeout", "timed_out", "skipped",
        "cancelled", "canceled", "aborted", "stopped", "interrupted", "abandoned", "closed",
    }
)  # fmt: skip


class MarkerFile(NamedTuple):
    """A regular file that exists. `data` are its first bytes, None if it cannot be read; `complete`: this is all of it.

    `modified_at` is its `modified_time`; None if it is unknown.
    """

    data: bytes | None
    complete: bool
    modified_at: float | None


class DirectoryListing(NamedTuple):
    """Names in a directory. `readable` is false if there are, or may be, names that could not be listed."""

    names: tuple[str, ...]
    readable: bool
    modified_at: float | None


_EMPTY_LISTING = DirectoryListing((), readable=True, modified_at=None)


def modified_time(status: os.stat_result) -> float:
    """Return when a file was last written (Unix seconds).

    The modification time can be set to anything; a time in the future would look fresh for ever. The change time is the
    system's own and is never older than an honest modification time.
    """
    return min(status.st_mtime, status.st_ctime)


def lstat_or_none(path: Path) -> os.stat_result | None:
    """Return the status of `path` itself, None if it does not exist or its status cannot be read."""
    try:
        return os.lstat(path)
    except OSError:
        return None


def modified_time_or_none(path: Path) -> float | None:
    """Return when `path` itself was last written, None if it does not exist or its status cannot be read."""
    status = lstat_or_none(path)
    return None if status is None else modified_time(status)


def read_file(path: Path, limit: int) -> MarkerFile | None:
    """Return at most `limit` bytes of a regular file; None if there is none (absent, a link, a pipe, a directory)."""
    try:
        status = os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError:
        return MarkerFile(None, complete=False, modified_at=modified_time_or_none(path.parent))
    if not stat.S_ISREG(status.st_mode):
        return None
    try:
        with open_regular(path, follow_symlinks=False) as file:
            status = os.fstat(file.fileno())
            data = file.read(limit + 1)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError:
        return MarkerFile(None, complete=False, modified_at=modified_time(status))
    return MarkerFile(data[:limit], complete=len(data) <= limit, modified_at=modified_time(status))


def is_directory(path: Path) -> bool:
    """Return whether `path` is a directory, not a link to one."""
    status = lstat_or_none(path)
    return status is not None and stat.S_ISDIR(status.st_mode)


def is_link(path: Path) -> bool:
    """Return whether `path` is a symbolic link."""
    status = lstat_or_none(path)
    return status is not None and stat.S_ISLNK(status.st_mode)


def list_names(directory: Path, accept: Callable[[str], bool]) -> DirectoryListing:
    """Return the accepted names in a directory, at the cost of one system call for hundreds of names."""
    try:
        status = os.lstat(directory)
    except (FileNotFoundError, NotADirectoryError):
        return _EMPTY_LISTING
    except OSError:
        return DirectoryListing((), readable=False, modified_at=modified_time_or_none(directory.parent))
    if not stat.S_ISDIR(status.st_mode):
        return _EMPTY_LISTING
    try:
        with os.scandir(directory) as entries:
            names = tuple(sorted(entry.name for entry in entries if accept(entry.name)))
    except (FileNotFoundError, NotADirectoryError):
        return _EMPTY_LISTING
    except OSError:
        return DirectoryListing((), readable=False, modified_at=modified_time(status))
    return DirectoryListing(names, readable=True, modified_at=modified_time(status))


def existing_names(directory: Path, names: Iterable[str]) -> tuple[str, ...]:
    """Return those of the names that exist in a directory, not a link to one. Cheap, whatever else it contains."""
    try:
        descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return ()
    try:
        if os.fstat(descriptor).st_size <= _SMALL_DIRECTORY:
            present = set(os.listdir(descriptor))  # noqa: PTH208 - a descriptor has no path
            return tuple(name for name in names if name in present)
        return tuple(name for name in names if _exists_in(descriptor, name))
    except OSError:
        return ()
    finally:
        os.close(descriptor)


def _exists_in(descriptor: int, name: str) -> bool:
    try:
        os.stat(name, dir_fd=descriptor, follow_symlinks=False)
    except OSError:
        return False
    return True


def newest(paths: Iterable[Path], count: int) -> tuple[Path, ...]:
    """Return the `count` most recently changed of the paths, since only the latest of years of markers matter."""
    candidates = tuple(paths)
    if len(candidates) <= count:
        return candidates
    aged = [(modified_time(status), path) for path in candidates if (status := lstat_or_none(path)) is not None]
    return tuple(path for _, path in sorted(aged, reverse=True)[:count])


def relative_path(path: Path, project: Path) -> str:
    """Return the path as the user of this project would write it."""
    return str(path).removeprefix(f"{project}/")


def latest_time(*moments: float | None) -> float | None:
    """Return the latest of the known moments; None if none is known, because unknown counts as fresh."""
    known = [moment for moment in moments if moment is not None]
    return max(known, default=None)


def parse_json_object(file: MarkerFile) -> JsonObject | None:
    """Return the JSON object in a file, None if it is not (yet) one."""
    if file.data is None or not file.complete:
        return None
    try:
        value = json.loads(file.data)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def text_field(fields: Mapping[str, object], *names: str) -> str:
    """Return the first of the named fields that holds a text or number, as text; "" if none does."""
    for name in names:
        value = fields.get(name)
        if isinstance(value, str) and value.strip() not in {"", "null"}:
            return value.strip()
        if isinstance(value, int | float) and not isinstance(value, bool):
            return str(value)
    return ""


def normalize_status(value: str) -> str:
    """Return a status in one spelling: lower case, with underscores."""
    if value in RUNNING_STATUSES or value in ENDED_STATUSES:
        return value
    return value.strip().lower().replace("-", "_").replace(" ", "_")


def parse_flag(value: object) -> bool:
    """Return whether a field that may be a boolean, a text or null means yes."""
    if isinstance(value, str):
        return normalize_status(value) not in {"", "null", "~", "false", "no", "none", "0", "off"}
    return bool(value)


def parse_pid(value: object) -> int | None:
    """Return a process number that can be checked: a number or its text, not 0, 1, "$PPID", "null" or a boolean."""
    if isinstance(value, str) and _PID.fullmatch(value.strip()):
        value = int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and 1 < value <= _MAX_PID else None


def find_owner(fields: Mapping[str, object], processes: ProcessTable, *names: str) -> MarkerOwner:
    """Return the owner that a marker names, with its status from the process table."""
    for name in names or ("owner_pid", "ownerPid"):
        number = parse_pid(fields.get(name))
        if number is not None:
            return MarkerOwner(number, processes.lookup(number))
    return NO_OWNER


def parse_time(value: object) -> float | None:
    """Return a time as Unix seconds, in any of the forms seen.

    Those are ISO 8601, `YYYYmmdd-HHMMSS`, and epoch seconds to nanoseconds. A form without a zone is local time.
    Nonsense, and impossible years, are None.
    """
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    literal = value.strip() if isinstance(value, str) else str(value)
    try:
        divisor = _EPOCH_DIVISOR.get(len(literal)) if literal.isascii() and literal.isdigit() else None
        if divisor is not None:
            seconds = int(literal) / divisor
        elif _FRACTION.fullmatch(literal):
            seconds = float(literal)
        else:
            seconds = datetime.fromisoformat(literal).timestamp()
    except (ValueError, OverflowError, OSError):
        return None
    return seconds if _MIN_TIME <= seconds <= _MAX_TIME else None


def first_time(fields: Mapping[str, object], *names: str) -> float | None:
    """Return the first of the named fields that holds a time."""
    return next((at for name in names if (at := parse_time(fields.get(name))) is not None), None)


def printable(value: str) -> str:
    """Return another program's text for one line on a terminal: printable characters only, no secrets, cut to 60."""
    if _PLAIN_WORDS.fullmatch(value) is None:
        value = redact.redact(value).text
    clean = "".join(character if character.isprintable() else "?" for character in value)
    return clean if len(clean) <= _MAX_PRINTABLE_LENGTH else clean[: _MAX_PRINTABLE_LENGTH - 1] + "…"
