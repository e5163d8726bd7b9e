"""Fields in other programs' marker files, in every spelling that was seen. Pure; whatever is odd is "not said"."""

from __future__ import annotations

import json
import re
from datetime import datetime
from typing import TYPE_CHECKING

from echod.workflows.model import NOBODY, Owner

if TYPE_CHECKING:
    from collections.abc import Mapping

    from echod.workflows.files import Found
    from echod.workflows.processes import Processes

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
