"""`echod picture`: draw a memory over time, in the terminal or as one HTML file."""

from __future__ import annotations

import textwrap
import unicodedata
from collections.abc import Iterator, Sequence
from datetime import date
from pathlib import Path
from typing import NamedTuple

import click

from echod.app.context import ReadContext
from echod.cli.context import CommandContext
from echod.cli.output import BLOCKS, WIDTH, block, problem_line, sanitize, short_path, wrap
from echod.cli.targets import list_roles_of, select_stores
from echod.clock import local_date, local_datetime
from echod.contract.codec import to_json
from echod.contract.entries import DrawnMovement, DrawnPeriod, DrawnRole, DrawnUndo, PictureReport
from echod.errors import EchodError, UsageError, os_reason
from echod.files import read_regular, write_private_durable
from echod.jobs.base import list_archived_entries, read_backups
from echod.memory import MAX_FILE_BYTES, MEMORY_FILE
from echod.memory.document import parse
from echod.memory.model import Document
from echod.memory.picture import page
from echod.memory.picture.series import (
    LAYER_NAMES,
    CommittedChange,
    Movement,
    Period,
    RoleHistory,
    RolePicture,
    UndoneJob,
    count_causes,
    draw_role,
    recently_left,
    see_document,
)
from echod.memory.text import pluralize
from echod.store.errors import as_store_error
from echod.store.layout import Role, Store, global_root
from echod.store.reader import CommitInfo

MAX_COLUMNS = 56
"""The number of columns for periods."""

RECENT_DAYS = 30
"""For so many days the list of entries that left goes back."""

_LABEL = 14
_HEIGHT = 6
_MAX_STRETCH = 4
_MAX_LISTED = 8
_FULL = len(BLOCKS) - 1
_UNKNOWN, _LIMIT = "·", "╌"
_MAX_JSON_PERIODS = 800
_MAX_PAGE_PERIODS = 120


class _Pictures(NamedTuple):
    """The pictures that could be made, and why others could not."""

    drawn: tuple[RolePicture, ...]
    problems: tuple[str, ...]


def picture(context: CommandContext, *, path: Path | None, html: Path | None, json: bool) -> None:
    """Run `echod picture`."""
    if html is not None and json:
        raise UsageError("Use --html or --json, not both.")
    today = local_date(context.now())
    periods = _MAX_JSON_PERIODS if json else MAX_COLUMNS if html is None else _MAX_PAGE_PERIODS
    with context.open_read_context() as read_context:
        stores = select_stores(context, path)
        selected = read_context.discover_stores().stores if stores is None else stores
        pictures = _draw(read_context, selected, today, periods)
    if json:
        click.echo(to_json(PictureReport(tuple(map(_to_drawn_role, pictures.drawn)), pictures.problems)))
    elif html is not None:
        _write_page(context, html, pictures, today)
    else:
        click.echo("\n".join(_screen(pictures, today)))


def _draw(read_context: ReadContext, stores: Sequence[Store], today: date, max_periods: int) -> _Pictures:
    drawn: list[RolePicture] = []
    problems: list[str] = []
    for store in stores:
        limit = None if global_root(store) is not None else read_context.line_limit(store.project)
        try:
            history = read_context.reader.history([store])
            roles = {*list_roles_of([store]), *read_context.reader.journaled_roles(store)}
        except EchodError as error:
            problems.append(str(error))
            continue
        for role in sorted(roles, key=lambda role: role.name):
            own = [info for info in reversed(history) if info.role == role]
            try:
                one = draw_role(_read_history(read_context, role, limit, own, today), today, max_periods)
            except EchodError as error:
                problems.append(str(error))
                continue
            if one is not None:
                drawn.append(one)
    return _Pictures(tuple(drawn), tuple(problems))


def _read_history(
    read_context: ReadContext, role: Role, limit: int | None, history: Sequence[CommitInfo], today: date
) -> RoleHistory:
    """Return everything that is known of a role. `history` are its commits, oldest first."""

    def day_of(moment: float) -> date:
        return min(local_date(moment), today)

    with as_store_error("read", role.memory):
        present = _read_present(role)
    documents = [(min(backup.day, today), parse(backup.data)) for backup in read_backups(role)]
    archived = [copy.entry for copy in list_archived_entries(role) if copy.entry.file == MEMORY_FILE]
    days = {info.seq: day_of(info.at) for info in history}
    undone_on = {info.job: days[info.seq] for info in history}
    return RoleHistory(
        role=role.name,
        store=role.store.key,
        limit=limit,
        backups=tuple(see_document(day, document) for day, document in documents if isinstance(document, Document)),
        commits=tuple(_read_commits(read_context, role, history, today)),
        archived=tuple(archived),
        undone=tuple(
            UndoneJob(undone_on.get(info.undone_by, days[info.seq]), info.job, info.kind, info.undone_by, info.summary)
            for info in history
            if info.undone_by is not None
        ),
        undone_jobs=read_context.reader.undone_jobs(role),
        present=present,
    )


def _read_present(role: Role) -> Document | None:
    """Return the memory file as it is now; None if it does not exist or is not understood."""
    try:
        document = parse(read_regular(role.memory, MAX_FILE_BYTES, follow_symlinks=False))
    except FileNotFoundError:
        return None
    return document if isinstance(document, Document) else None


def _read_commits(
    read_context: ReadContext, role: Role, history: Sequence[CommitInfo], today: date
) -> Iterator[CommittedChange]:
    """Yield the commits that wrote the memory file. Others between two of them may have, if no content is kept."""
    position = {info.seq: number for number, info in enumerate(history)}
    last: int | None = None
    for commit in read_context.reader.memory_commits(role):
        number = position.get(commit.info.seq, -1)
        follows_last = last is not None and number == last + 1
        day = min(local_date(commit.info.at), today)
        yield CommittedChange(day, commit.info.kind, commit.info.job, commit.before, commit.after, follows_last)
        last = number


def _screen(pictures: _Pictures, today: date) -> Iterator[str]:
    store = None
    for one in pictures.drawn:
        if one.store != store:
            yield wrap(short_path(one.store))
            store = one.store
        yield ""
        yield from draw_lines(one, today)
    if pictures.drawn:
        yield ""
        yield from draw_key(pictures.drawn)
    else:
        yield "Nothing is known of a memory here yet. Name a project, or add one with: echod add PATH"
    yield from (problem_line(problem) for problem in pictures.problems)


def _write_page(context: CommandContext, file: Path, pictures: _Pictures, today: date) -> None:
    """Write the page, which may contain the user's memory, as a private file.

    Raises:
        UsageError: the file cannot be written.
    """
    target = context.absolute_path(file)
    if target.is_dir():
        raise UsageError(f"{target} is a directory. Name a file, such as {target / 'memory.html'}")
    made_at = local_datetime(context.now()).strftime("%Y-%m-%d %H:%M")
    try:
        write_private_durable(target, page.render(pictures.drawn, pictures.problems, today, made_at).encode())
    except OSError as error:
        raise UsageError(f"{target} cannot be written: {os_reason(error)}.") from error
    context.print_info(wrap(f"Written: {short_path(str(target))}. Open it in a browser.", hang="  "))


def _to_drawn_role(one: RolePicture) -> DrawnRole:
    return DrawnRole(
        store=one.store,
        role=one.role,
        limit=one.limit,
        came_since=None if one.came_since is None else one.came_since.isoformat(),
        period_days=one.days,
        periods=tuple(map(_to_drawn_period, one.periods)),
        came=tuple(map(_to_drawn_movement, one.came)),
        left=tuple(map(_to_drawn_movement, one.left)),
        undone=tuple(DrawnUndo(j.day.isoformat(), j.job, j.kind, j.by, sanitize(j.summary)) for j in one.undone),
    )


def _to_drawn_period(period: Period) -> DrawnPeriod:
    lines = None if period.lines is None else dict(zip(LAYER_NAMES, period.lines, strict=True))
    return DrawnPeriod(
        period.first.isoformat(), period.last.isoformat(), lines, period.came, period.left, period.undone
    )


def _to_drawn_movement(movement: Movement) -> DrawnMovement:
    return DrawnMovement(
        date=movement.day.isoformat(),
        cause=movement.cause,
        id=movement.id,
        title=movement.title,
        layer=movement.layer,
        lines=movement.lines,
        job=movement.job,
        shortened=movement.shortened,
        reversed=movement.reversed,
    )


# The drawing in the terminal: block characters in 80 columns, without colour


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
    yield from textwrap.wrap(f"{column}. {unknown}. {_LIMIT} is the limit.", WIDTH)


def _headline(picture: RolePicture) -> Iterator[str]:
    present = picture.periods[-1].lines
    lines = "no memory file now" if present is None else pluralize(present.total, "line")
    limit = "" if picture.limit is None else f", limit {picture.limit}"
    length = "" if picture.days == 1 else f", a column is {picture.days} days"
    yield fit(f"{picture.role or 'the global memory'}: {lines}{limit}{length}", WIDTH)


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
            cells.append(BLOCKS[level] if level or row != limit_row else _LIMIT)
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
    cells = [_UNKNOWN if value is None else block(value, highest) for value in values]
    number = sum(value or 0 for value in values) if total else values[-1]
    return f"{label:>{_LABEL}} {_stretched(cells, stretch)} {'?' if number is None else number}"


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
        yield f"{text}{fit(movement.title or '(untitled)', WIDTH - len(text))}"
    if len(movements) > _MAX_LISTED:
        yield f"    ... and {len(movements) - _MAX_LISTED} more (--html lists all)"
    yield "    To restore one: echod restore ID"


def _wrapped(text: str) -> Iterator[str]:
    yield from textwrap.wrap(" ".join(text.split()), WIDTH, initial_indent="  ", subsequent_indent="    ")


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
