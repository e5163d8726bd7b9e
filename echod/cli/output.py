"""Words and widths for people: everything a command prints is readable without colour and in 80 columns."""

from __future__ import annotations

import os
import textwrap
from datetime import datetime
from pathlib import Path

WIDTH = 80
_MINUTE, _HOUR, _DAY = 60, 3_600, 86_400


def wrap(text: str, *, indent: str = "", hang: str | None = None) -> str:
    """`text` wrapped to the screen; `indent` starts the first line, `hang` (default: as wide) the others."""
    return textwrap.fill(
        " ".join(text.split()),
        WIDTH,
        initial_indent=indent,
        subsequent_indent=" " * len(indent) if hang is None else hang,
        break_long_words=False,
        break_on_hyphens=False,
    )


def sanitize(text: str) -> str:
    """Text that others wrote, fit for a terminal: no control characters, which could hide or fake what is shown."""
    return "".join(character if character.isprintable() else " " for character in text)


def format_duration(seconds: float) -> str:
    """A length of time as one would say it: `3 s`, `12 min`, `2 h 5 min`, `4 days`."""
    whole = max(0, round(seconds))
    if whole < _MINUTE:
        return f"{whole} s"
    if whole < _HOUR:
        return f"{whole // _MINUTE} min"
    if whole < 2 * _DAY:
        hours, minutes = whole // _HOUR, whole % _HOUR // _MINUTE
        return f"{hours} h {minutes} min" if minutes else f"{hours} h"
    return f"{whole // _DAY} days"


def format_timestamp(at: float, now: float) -> str:
    """A moment in local time: `14:05` today, else with the date."""
    local, today = datetime.fromtimestamp(at).astimezone(), datetime.fromtimestamp(now).astimezone()
    return local.strftime("%H:%M" if local.date() == today.date() else "%Y-%m-%d %H:%M")


def short_path(path: str) -> str:
    """`path` with the home directory as `~`."""
    home = str(Path.home())
    return "~" + path[len(home) :] if path == home or path.startswith(home + os.sep) else path


def fit_path(path: str, width: int) -> str:
    """A path that takes at most `width` columns: `~` for the home directory, and its end rather than its start."""
    short = short_path(path)
    return short if len(short) <= width else "..." + short[3 - width :]


def role_label(role: str) -> str:
    """What a role is called: the global memory has no name of its own."""
    return role or "the global memory"


def pluralize(number: int, noun: str, plural: str | None = None) -> str:
    """`1 job`, `2 jobs`."""
    return f"{number} {noun if number == 1 else plural or noun + 's'}"
