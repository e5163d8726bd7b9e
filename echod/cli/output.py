"""Text for the terminal. Everything a command prints is readable without colour and in 80 columns."""

from __future__ import annotations

import os
import sys
import textwrap
import traceback
from datetime import date, datetime
from pathlib import Path

from echod.paths import PRIVATE_DIR_MODE, PRIVATE_FILE_MODE, paths_from_environment

WIDTH = 80
UNTITLED = "(untitled)"
_MINUTE, _HOUR, _DAY = 60, 3_600, 86_400
_NEAR_SECONDS = 10 * _MINUTE


def wrap(text: str, *, indent: str = "", hang: str | None = None) -> str:
    """Wrap `text` to the width. `indent` starts the first line, `hang` (default: as wide as `indent`) the others."""
    return textwrap.fill(
        " ".join(text.split()),
        WIDTH,
        initial_indent=indent,
        subsequent_indent=" " * len(indent) if hang is None else hang,
        break_long_words=False,
        break_on_hyphens=False,
    )


def problem_line(problem: str, *, indent: str = "") -> str:
    """Format a problem, marked with `!`."""
    return wrap(sanitize(problem), indent=f"{indent}! ")


def sanitize(text: str) -> str:
    """Replace control characters in untrusted text. On a terminal they could hide or fake output."""
    return "".join(character if character.isprintable() else " " for character in text)


def title_text(title: str) -> str:
    """Format the title of an entry, which may be empty."""
    return sanitize(title) or UNTITLED


def capitalize(sentence: str) -> str:
    """Capitalize the first letter and leave the others as they are."""
    return sentence[:1].upper() + sentence[1:]


def format_duration(seconds: float) -> str:
    """Format a length of time: `3 s`, `12 min`, `2 h 5 min`, `4 days`."""
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
    """Format a moment in local time: `14:05` today, otherwise with the date."""
    local, today = datetime.fromtimestamp(at).astimezone(), datetime.fromtimestamp(now).astimezone()
    return local.strftime("%H:%M" if local.date() == today.date() else "%Y-%m-%d %H:%M")


def format_next_time(at: float, now: float) -> str:
    """Format a moment to come in local time: with seconds if it is near, since the minute alone may be over then."""
    near = 0 <= at - now < _NEAR_SECONDS
    return f"{datetime.fromtimestamp(at).astimezone():%H:%M:%S}" if near else format_timestamp(at, now)


def iso_date(day: date | None) -> str | None:
    """Format a day for JSON. None stays None."""
    return None if day is None else day.isoformat()


def short_path(path: str) -> str:
    """Format `path` with `~` for the home directory."""
    try:
        home = str(Path.home())
    except RuntimeError:  # there is none
        return path
    if home == os.sep:
        return path
    return "~" + path[len(home) :] if path == home or path.startswith(home + os.sep) else path


def fit_path(path: str, width: int) -> str:
    """Format `path` in at most `width` columns: `~` for the home directory, and its end rather than its start."""
    short = short_path(path)
    return short if len(short) <= width else "..." + short[3 - width :]


def role_label(role: str) -> str:
    """Return the name of a role for the user. The role of the global memory has an empty name."""
    return role or "the global memory"


def pluralize(number: int, noun: str, plural: str | None = None) -> str:
    """Format a number with its noun: `1 job`, `2 jobs`."""
    return f"{number} {noun if number == 1 else plural or noun + 's'}"


def print_error(message: str) -> None:
    """Print an error: one line for scripts, wrapped on a terminal."""
    text = f"echod: {message}"
    if sys.stderr.isatty():
        text = "\n".join(wrap(line) for line in text.splitlines())
    sys.stderr.write(f"{text}\n")


def write_crash_report(error: Exception) -> str:
    """Append the traceback, without the values of variables, to the log file. Return a sentence with its location."""
    text = "".join(traceback.format_exception(error))
    try:
        log = paths_from_environment(os.environ).log_file
        log.parent.mkdir(mode=PRIVATE_DIR_MODE, parents=True, exist_ok=True)
        with os.fdopen(os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, PRIVATE_FILE_MODE), "a") as file:
            file.write(text)
    except Exception:  # noqa: BLE001  if even that fails, only the terminal is left
        sys.stderr.write(text)
        return "The report is above."
    return f"The report is at the end of {log}."
