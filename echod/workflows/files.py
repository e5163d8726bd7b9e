"""Careful looks at other programs' files: bounded, never through a symbolic link, never waiting on a pipe.

Between listing a directory and reading a file of it everything may change. What has vanished is absent; what is
there but cannot be read is *unreadable*, which is something else. This module knows nothing of workflows.

Fields in other programs' marker files, in every spelling that was seen. Pure; whatever is odd is "not said".
"""

from __future__ import annotations

import json
import os
import re
import stat
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple

from echod.workflows.model import NOBODY, Owner

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from pathlib import Path

    from echod.workflows.model import Processes


# O_NONBLOCK: a FIFO with a marker's name must not stop the collector.
_PIECE = 1 << 16
_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


@dataclass(frozen=True, slots=True)
class Found:
    """A plain file that exists.

    Attributes:
        data: its first bytes, None if it cannot be read.
        whole: whether `data` is all of it.
        written: its time, see `time_of`; None if it cannot be told.
    """

    data: bytes | None
    whole: bool
    written: float | None


class Listing(NamedTuple):
    """Names in a directory. `readable` is false if there are, or may be, names that could not be listed."""

    names: tuple[str, ...]
    readable: bool
    written: float | None


_ABSENT = Listing((), readable=True, written=None)


def time_of(status: os.stat_result) -> float:
    """When a file was last written (Unix seconds).

    The modification time can be set to anything; a time in the future would look fresh for ever. The change time is
    the system's own and is never older than an honest modification time.
    """
    return min(status.st_mtime, status.st_ctime)


def look(path: Path) -> os.stat_result | None:
    """The status of what lies at `path` itself, None if nothing does or it cannot be told."""
    try:
        return os.lstat(path)
    except OSError:
        return None


def read(path: Path, limit: int) -> Found | None:
    """At most `limit` bytes of a plain file. None: there is no plain file (absent, a link, a pipe, a directory)."""
    try:
        status = os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError:
        return Found(None, whole=False, written=_time_or_none(path.parent))
    if not stat.S_ISREG(status.st_mode):
        return None
    try:
        descriptor = os.open(path, _FLAGS)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError:
        return Found(None, whole=False, written=time_of(status))
    try:
        return _read_open(descriptor, limit)
    finally:
        os.close(descriptor)


def _read_open(descriptor: int, limit: int) -> Found | None:
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode):
        return None
    try:
        data = _read_up_to(descriptor, limit + 1)
    except OSError:
        return Found(None, whole=False, written=time_of(status))
    return Found(data[:limit], whole=len(data) <= limit, written=time_of(status))


def _read_up_to(descriptor: int, count: int) -> bytes:
    pieces = [os.read(descriptor, min(count, _PIECE))]
    while pieces[-1] and (count := count - len(pieces[-1])) > 0:
        pieces.append(os.read(descriptor, min(count, _PIECE)))
    return b"".join(pieces)


def is_directory(path: Path) -> bool:
    """Whether a directory, not a link to one, lies at `path`."""
    status = look(path)
    return status is not None and stat.S_ISDIR(status.st_mode)


def is_link(path: Path) -> bool:
    """Whether a symbolic link lies at `path`."""
    status = look(path)
    return status is not None and stat.S_ISLNK(status.st_mode)


def names_in(directory: Path, wanted: Callable[[str], bool]) -> Listing:
    """The wanted names in a directory. Costs one system call for hundreds of names, and memory for the wanted only."""
    try:
        status = os.lstat(directory)
    except (FileNotFoundError, NotADirectoryError):
        return _ABSENT
    except OSError:
        return Listing((), readable=False, written=_time_or_none(directory.parent))
    if not stat.S_ISDIR(status.st_mode):
        return _ABSENT
    try:
        with os.scandir(directory) as entries:
            found = tuple(sorted(entry.name for entry in entries if wanted(entry.name)))
    except (FileNotFoundError, NotADirectoryError):
        return _ABSENT
    except OSError:
        return Listing((), readable=False, written=time_of(status))
    return Listing(found, readable=True, written=time_of(status))


_SMALL_DIRECTORY = 16 << 10
"""Bytes that a directory takes itself. One of a few hundred names is listed sooner than asked for many names."""


def present_in(directory: Path, names: Iterable[str]) -> tuple[str, ...]:
    """Those of these names that are in a directory, not a link to one. Costs little, whatever else is in it."""
    try:
        descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return ()
    try:
        if os.fstat(descriptor).st_size <= _SMALL_DIRECTORY:
            held = set(os.listdir(descriptor))  # noqa: PTH208 - a descriptor has no path
            return tuple(name for name in names if name in held)
        return tuple(name for name in names if _is_in(descriptor, name))
    except OSError:
        return ()
    finally:
        os.close(descriptor)


def _is_in(descriptor: int, name: str) -> bool:
    try:
        os.stat(name, dir_fd=descriptor, follow_symlinks=False)
    except OSError:
        return False
    return True


def newest(paths: Iterable[Path], count: int) -> tuple[Path, ...]:
    """The `count` most recently changed of the paths.

    A project may have years of markers of the past; only the latest can still mean something.
    """
    given = tuple(paths)
    if len(given) <= count:
        return given
    aged = [(time_of(status), path) for path in given if (status := look(path)) is not None]
    return tuple(path for _, path in sorted(aged, reverse=True)[:count])


def relative(path: Path, project: Path) -> str:
    """The path as a person of this project would write it."""
    return str(path).removeprefix(f"{project}/")


def latest(*moments: float | None) -> float | None:
    """The latest of the known moments; None if one is not known at all, for unknown counts as fresh."""
    known = [moment for moment in moments if moment is not None]
    return max(known, default=None)


def _time_or_none(path: Path) -> float | None:
    status = look(path)
    return None if status is None else time_of(status)


Fields = dict[str, object]

_PID = re.compile(r"[0-9]{1,7}")
_MAX_PID = 4_194_303
_EPOCH_DIVISOR = {10: 1, 13: 1_000, 16: 1_000_000, 19: 1_000_000_000}
_OLDEST_SANE = datetime.fromisoformat("2020-01-01T00:00:00Z").timestamp()
_LATEST_SANE = datetime.fromisoformat("2100-01-01T00:00:00Z").timestamp()
_SHOWN_LENGTH = 60
_WORDS = re.compile(r"[A-Za-z][a-z]{0,20}(?:[ ,_-]{1,2}[a-z]{1,20})*")

# Words for "it runs". Whatever is in neither set is unknown, and unknown means running, for a bounded time.
RUNNING_WORDS = frozenset({"active", "running", "dispatched", "in_progress", "started"})
ENDED_WORDS = frozenset(
    {
        "completed", "completed_with_gaps", "complete", "done", "finished", "success", "succeeded", "partial",
        "failed", "failure", "error", "crashed", "timeout", "timed_out", "skipped",
        "cancelled", "canceled", "aborted", "stopped", "interrupted", "abandoned", "closed",
    }
)  # fmt: skip


def json_object(found: Found) -> Fields | None:
    """The JSON object in a file, None if it is not (yet) one."""
    if found.data is None or not found.whole:
        return None
    try:
        value = json.loads(found.data)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def text(fields: Mapping[str, object], *names: str) -> str:
    """The first of the named fields that holds a text or number, as text; "" if none does."""
    for name in names:
        value = fields.get(name)
        if isinstance(value, str) and value.strip() not in {"", "null"}:
            return value.strip()
        if isinstance(value, int | float) and not isinstance(value, bool):
            return str(value)
    return ""


def word(value: str) -> str:
    """A status in one spelling: lower case, with underscores."""
    if value in RUNNING_WORDS or value in ENDED_WORDS:
        return value
    return value.strip().lower().replace("-", "_").replace(" ", "_")


def flag(value: object) -> bool:
    """Whether a field that may be a boolean, a text or null says yes."""
    if isinstance(value, str):
        return word(value) not in {"", "null", "~", "false", "no", "none", "0", "off"}
    return bool(value)


def pid(value: object) -> int | None:
    """A process number that can be checked: a number or its text, not 0, 1, "$PPID", "null" or a boolean."""
    if isinstance(value, str):
        digits = value.strip()
        number = int(digits) if _PID.fullmatch(digits) else 0
    else:
        number = value if isinstance(value, int) and not isinstance(value, bool) else 0
    return number if 1 < number <= _MAX_PID else None


def owner(fields: Mapping[str, object], processes: Processes, *names: str) -> Owner:
    """The owner that a marker names, looked up."""
    for name in names or ("owner_pid", "ownerPid"):
        number = pid(fields.get(name))
        if number is not None:
            return Owner(number, processes.look(number))
    return NOBODY


def moment(value: object) -> float | None:
    """A time in any of the forms seen (ISO 8601, `YYYYmmdd-HHMMSS`, epoch seconds to nanoseconds) as Unix seconds.

    A form without a zone is local time. Nonsense, and years that cannot be, are None.
    """
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    written = value.strip() if isinstance(value, str) else str(value)
    try:
        divisor = _EPOCH_DIVISOR.get(len(written)) if written.isascii() and written.isdigit() else None
        seconds = int(written) / divisor if divisor else _parse_date(written)
    except (ValueError, OverflowError, OSError):
        return None
    return seconds if _OLDEST_SANE <= seconds <= _LATEST_SANE else None


def _parse_date(written: str) -> float:
    try:
        return float(written) if "." in written and written.replace(".", "", 1).isdigit() else _iso(written)
    except ValueError:
        return _iso(written)


def _iso(written: str) -> float:
    return datetime.fromisoformat(written).timestamp()


def first_moment(fields: Mapping[str, object], *names: str) -> float | None:
    """The first of the named fields that holds a time."""
    return next((at for name in names if (at := moment(fields.get(name))) is not None), None)


def shown(value: str) -> str:
    """Another program's text, fit for one line on a terminal: printable characters only, no secrets, cut to 60."""
    if _WORDS.fullmatch(value) is None:
        from echod.memory.redact import redact  # noqa: PLC0415  slow to load, and a few words need it not

        value = redact(value).text
    clean = "".join(character if character.isprintable() else "?" for character in value)
    return clean if len(clean) <= _SHOWN_LENGTH else clean[: _SHOWN_LENGTH - 1] + "…"
