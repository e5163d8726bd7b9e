"""Draw the picture of a role with block characters, readable in 80 columns and without colour."""

from __future__ import annotations

import textwrap
import unicodedata
from collections.abc import Iterator, Sequence
from datetime import date

from echod.memory.picture.series import (
    LAYER_NAMES,
    Movement,
    RolePicture,
    count_causes,
    recently_left,
)
from echod.memory.text import pluralize

MAX_COLUMNS = 56
"""The number of columns for periods."""

RECENT_DAYS = 30
"""For so many days the list of entries that left goes back."""

_WIDTH = 80
_LABEL = 14
_HEIGHT = 6
_MAX_STRETCH = 4
_MAX_LISTED = 8
_BLOCKS = " ▁▂▃▄▅▆▇█"
_FULL = len(_BLOCKS) - 1
_UNKNOWN, _LIMIT = "·", "╌"


def draw_lines(picture: RolePicture, today: date) -> Iterator[str]:
    """Yield the lines of the drawing, each at most 80 columns wide."""
    yield from _headline(picture)
    stretch = max(1, min(_MAX_STRETCH, MAX_COLUMNS // len(picture.periods)))
    yield from _draw_total(picture, stretch)
    yield from _draw_axis(picture, stretch)
    yield from _draw_layers(picture, stretch)
    yield from _draw_events(picture, stretch)
    yield ""
    yield from _summaries(picture)
    yield from _list_left(picture, today)


def draw_key(pictures: Sequence[RolePicture]) -> Iterator[str]:
    """Yield the meaning of the signs, which is the same for all roles."""
    length = max(picture.days for picture in pictures)
    column = "A column is one day" if length == 1 else "A column is one or more days, as given for each role"
    unknown = f"{_UNKNOWN} is unknown: the file was changed and no content of that time is kept"
    yield from textwrap.wrap(f"{column}. {unknown}. {_LIMIT} is the limit.", _WIDTH)


def _headline(picture: RolePicture) -> Iterator[str]:
    present = picture.periods[-1].lines
    lines = "no memory file now" if present is None else pluralize(present.total, "line")
    limit = "" if picture.limit is None else f", limit {picture.limit}"
    length = "" if picture.days == 1 else f", a column is {picture.days} days"
    yield fit(f"{picture.role or 'the global memory'}: {lines}{limit}{length}", _WIDTH)


def _draw_total(picture: RolePicture, stretch: int) -> Iterator[str]:
    """Draw the lines of the file from the top row to the bottom row, with the limit between or behind them."""
    highest = picture.highest
    limit_row = None if picture.limit is None else min(_HEIGHT - 1, picture.limit * _HEIGHT // highest)
    for row in range(_HEIGHT - 1, -1, -1):
        cells = []
        for period in picture.periods:
            if period.lines is None:
                cells.append(_UNKNOWN)
                continue
            filled = period.lines.total * _HEIGHT * _FULL / highest - row * _FULL
            level = max(0, min(_FULL, _visible_eighths(filled)))
            cells.append(_BLOCKS[level] if level or row != limit_row else _LIMIT)
        label = str(highest) if row == _HEIGHT - 1 else "0" if row == 0 else ""
        if row == limit_row and picture.limit is not None and picture.limit != highest:
            label = f"limit {picture.limit}"
        yield f"{label:>{_LABEL}} {_stretched(cells, stretch)}".rstrip()


def _visible_eighths(filled: float) -> int:
    """Return the eighths to draw; something that is not nothing is never drawn as nothing."""
    return 1 if 0 < filled < 1 else int(filled)


def _draw_axis(picture: RolePicture, stretch: int) -> Iterator[str]:
    width = len(picture.periods) * stretch
    first, last = picture.periods[0].first.isoformat(), picture.periods[-1].last.isoformat()
    gap = width - len(first) - len(last)
    dates = f"{first}{' ' * gap}{last}" if gap > 0 else f"{first} to {last}" if first != last else last
    yield f"{'':>{_LABEL}} {dates}"


def _draw_layers(picture: RolePicture, stretch: int) -> Iterator[str]:
    """Draw a row for each layer that ever had a line, all in one scale."""
    known = [period.lines for period in picture.periods if period.lines is not None]
    highest = max((max(lines) for lines in known), default=0)
    for index, name in enumerate(LAYER_NAMES):
        if any(lines[index] for lines in known):
            values = [None if period.lines is None else period.lines[index] for period in picture.periods]
            yield _row(name, values, highest, stretch)


def _draw_events(picture: RolePicture, stretch: int) -> Iterator[str]:
    came, left = ([period.came for period in picture.periods], [period.left for period in picture.periods])
    highest = max(*left, *(number or 0 for number in came), 1)
    if picture.came:
        yield _row("came", came, highest, stretch, total=True)
    if any(left):
        yield _row("left", left, highest, stretch, total=True)
    if picture.undone:
        yield _row("undone", [period.undone for period in picture.periods], highest, stretch, total=True)


def _row(label: str, values: Sequence[int | None], highest: int, stretch: int, *, total: bool = False) -> str:
    cells = [_UNKNOWN if value is None else _BLOCKS[_level(value, highest)] for value in values]
    number = sum(value or 0 for value in values) if total else values[-1]
    return f"{label:>{_LABEL}} {_stretched(cells, stretch)} {'?' if number is None else number}"


def _level(value: int, highest: int) -> int:
    return max(1, round(value * _FULL / highest)) if value else 0


def _stretched(cells: Sequence[str], stretch: int) -> str:
    return "".join(cell * stretch for cell in cells)


def _summaries(picture: RolePicture) -> Iterator[str]:
    if picture.came_since is not None:
        yield from _summary(f"came since {picture.came_since.isoformat()}", picture.came)
    yield from _summary("left", picture.left)
    for job in picture.undone:
        number = "a repair" if job.job is None else f"job {job.job}"
        yield from _wrapped(f"undone: {number} ({job.kind}: {job.summary}) on {job.day.isoformat()}, by job {job.by}")


def _summary(label: str, movements: Sequence[Movement]) -> Iterator[str]:
    causes = count_causes(movements)
    if not causes:
        yield f"  {label}: nothing"
        return
    number = sum(count for _, count in causes)
    yield from _wrapped(f"{label}: {number} ({', '.join(f'{count} {cause}' for cause, count in causes)})")


def _list_left(picture: RolePicture, today: date) -> Iterator[str]:
    movements = recently_left(picture, today, RECENT_DAYS)
    if not movements:
        return
    yield f"  Left in the last {RECENT_DAYS} days, and why:"
    for movement in movements[:_MAX_LISTED]:
        identity = movement.id or ""
        cause = f"{movement.cause}, shortened" if movement.shortened else movement.cause
        text = f"    {movement.day.isoformat()}  {identity:<12}  {cause:<16}  "
        yield f"{text}{fit(movement.title or '(untitled)', _WIDTH - len(text))}"
    if len(movements) > _MAX_LISTED:
        yield f"    ... and {len(movements) - _MAX_LISTED} more (--html lists all)"
    yield "    To restore one: echod restore ID"


def _wrapped(text: str) -> Iterator[str]:
    yield from textwrap.wrap(" ".join(text.split()), _WIDTH, initial_indent="  ", subsequent_indent="    ")


def fit(text: str, columns: int) -> str:
    """Cut a text to a number of columns of a terminal. Control characters become blanks."""
    plain = "".join(character if character.isprintable() else " " for character in text)
    if sum(map(_columns_of, plain)) <= columns:
        return plain
    kept, used = "", 3
    for character in plain:
        used += _columns_of(character)
        if used > columns:
            break
        kept += character
    return f"{kept.rstrip()}..."


def _columns_of(character: str) -> int:
    return 2 if unicodedata.east_asian_width(character) in "WF" else 0 if unicodedata.combining(character) else 1
