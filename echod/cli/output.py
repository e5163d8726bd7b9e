"""Text for the terminal. Everything a command prints is readable without colour and in 80 columns."""

from __future__ import annotations

import io
import os
import re
import sys
import textwrap
from datetime import date
from pathlib import Path
from typing import TextIO

from echod.clock import local_datetime
from echod.files import open_private_log
from echod.lazy import lazy_imports, lazy_pattern
from echod.memory.text import pluralize
from echod.paths import make_private_directory, paths_from_environment

with lazy_imports(__name__):
    import shutil
    import traceback

WIDTH = 80
"""The columns of a file, a pipe, and a terminal that does not know its size."""

_MIN_WIDTH, _MAX_WIDTH = 40, 120
_UNSAFE = lazy_pattern(
    r"(?P<style>\x1b\[[0-9;]{0,15}m|\r\x1b\[K)"
    r"|\r(?!\n)|[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udc9f]"
)
UNTITLED = "(untitled)"
_MINUTE, _HOUR, _DAY = 60, 3_600, 86_400


def screen_width() -> int:
    """Return the columns to use: those of the terminal, within reason; elsewhere 80."""
    if not sys.stdout.isatty():
        return WIDTH
    try:
        columns = os.get_terminal_size(sys.stdout.fileno()).columns
    except OSError:
        return WIDTH
    return min(max(columns, _MIN_WIDTH), _MAX_WIDTH) if columns else WIDTH


def draw_screen(text: str) -> None:
    """Replace the content of the terminal by the first lines of `text` that fit."""
    lines, height = text.splitlines(), max(shutil.get_terminal_size().lines - 1, 2)
    if len(lines) > height:
        lines = [*lines[: height - 1], f"... {pluralize(len(lines) - height + 1, 'more line')}"]
    sys.stdout.flush()
    sys.stdout.buffer.write(_CLEAR_SCREEN)  # as bytes, since text must not act on a terminal
    sys.stdout.write("\n".join(lines))
    sys.stdout.flush()


BLOCKS = " ▁▂▃▄▅▆▇█"
"""Characters of growing height, from nothing to full."""


def block(value: int, highest: int) -> str:
    """Return a block character as high as `value` is of `highest`. Something is never drawn as nothing."""
    return BLOCKS[max(1, round(value * (len(BLOCKS) - 1) / highest)) if value else 0]


_CLEAR_SCREEN = b"\x1b[H\x1b[2J"


def wrap(text: str, *, indent: str = "", hang: str | None = None) -> str:
    """Wrap `text` to the width. `indent` starts the first line, `hang` (default: as wide as `indent`) the others."""
    return textwrap.fill(
        " ".join(text.split()),
        screen_width(),
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


class SafeTextOutput(io.TextIOWrapper):
    """A standard stream on which no text can act as a command of the terminal.

    Names, titles and messages come from anywhere, and every command prints some. Control characters, characters that
    reorder text, and what no encoding has are written as an escape that JSON has too. On a terminal, the colours and
    the progress line of echod itself pass.
    """

    _wrapped: TextIO

    @classmethod
    def wrap(cls, stream: TextIO) -> TextIO:
        """Return a safe stream to the same file. A stream that is not a text file's is returned as it is."""
        if not isinstance(stream, io.TextIOWrapper) or isinstance(stream, cls):
            return stream
        safe = cls(
            stream.buffer, encoding=stream.encoding, errors=stream.errors, line_buffering=stream.line_buffering,
            write_through=stream.write_through,
        )  # fmt: skip
        safe._wrapped = stream  # which would close the file at its end
        return safe

    def write(self, text: str) -> int:
        """Write `text` with its unsafe characters escaped. Return the number of its characters."""
        super().write(escape_unsafe(text, keep_styles=self.isatty()))
        return len(text)


def escape_unsafe(text: str, *, keep_styles: bool) -> str:
    """Return `text` with an escape for each character that could act on a terminal, except styles if those are kept."""

    def escape(match: re.Match[str]) -> str:
        return match[0] if keep_styles and match["style"] else "".join(f"\\u{ord(unsafe):04x}" for unsafe in match[0])

    return _UNSAFE.sub(escape, text)


def title_text(title: str) -> str:
    """Format the title of an entry, which may be empty."""
    return sanitize(title) or UNTITLED


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


_SOON_SECONDS = 120.0
"""Within this time, "again at 14:25" would name the present minute."""


def format_timestamp(at: float, now: float) -> str:
    """Format a moment in local time: `14:05` today, with seconds if it is about to come, otherwise with the date."""
    local, today = local_datetime(at), local_datetime(now)
    if 0 < at - now < _SOON_SECONDS:
        return local.strftime("%H:%M:%S")
    return local.strftime("%H:%M" if local.date() == today.date() else "%Y-%m-%d %H:%M")


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


def shorten_paths(text: str) -> str:
    """Return a text with `~` for the home directory in paths that are not quoted, where a shell expands it too."""
    try:
        home = str(Path.home())
    except RuntimeError:  # there is none
        return text
    return text if home == os.sep else re.sub(rf"(?<!\S){re.escape(home)}(?=/)", "~", text)


def fit_path(path: str, width: int) -> str:
    """Format `path` in at most `width` columns: `~` for the home directory, and its end rather than its start."""
    short = short_path(path)
    return short if len(short) <= width else "..." + short[3 - width :]


def fit_line(line: str) -> str:
    """Cut a line that is wider than the screen."""
    return line if len(line) <= screen_width() else line[: screen_width() - 3] + "..."


def role_label(role: str) -> str:
    """Return the name of a role for the user. The role of the global memory has an empty name."""
    return role or "the global memory"


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
        make_private_directory(log.parent)
        with os.fdopen(open_private_log(log), "a") as file:
            file.write(text)
    except Exception:  # noqa: BLE001  if even that fails, only the terminal is left
        sys.stderr.write(text)
        return "The report is above."
    return f"The report is at the end of {log}."
