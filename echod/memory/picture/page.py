"""Draw pictures of roles as one HTML page: inline SVG, no script, nothing loaded, a table beneath each chart.

Every text from outside passes `_escape`. The page reads well in light and dark, printed, and in black and white, where
the layers differ by their lightness and by lines between them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from datetime import date
from html import escape
from itertools import groupby

from echod.memory.picture.series import LAYER_NAMES, Movement, Period, RolePicture, count_causes, recently_left
from echod.memory.text import pluralize

_POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
_WIDTH, _HEIGHT = 720, 220
_LEFT, _RIGHT, _TOP, _BOTTOM = 44, 12, 10, 24
_EVENT_HEIGHT = 110
_RECENT_DAYS = 30
_MAX_LISTED = 400

_STYLE = """
:root { color-scheme: light dark; --ink: #1f2328; --quiet: #59636e; --line: #d1d9e0; --paper: #fff; --limit: #b42318;
  --l0: #16324f; --l1: #1f5f99; --l2: #3d8fd1; --l3: #7fb8e6; --l4: #b9d9f2; --l5: #dfe5ea; --came: #3d8fd1;
  --left: #8a5a00; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6edf3; --quiet: #9da7b1; --line: #3d444d; --paper: #0d1117;
  --limit: #ff7b72; --l0: #f0f6fc; --l1: #a5d0fb; --l2: #58a6ff; --l3: #2f74c0; --l4: #1c4a80; --l5: #30363d;
  --came: #58a6ff; --left: #e3b341; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1.5rem 1rem; max-width: 60rem; background: var(--paper); color: var(--ink);
  font: 15px/1.5 system-ui, sans-serif; overflow-wrap: anywhere; }
h1 { font-size: 1.5rem; } h2 { font-size: 1rem; color: var(--quiet); margin-top: 2.5rem; }
h3 { font-size: 1.2rem; margin-bottom: 0; } h4 { font-size: 1rem; margin-bottom: .3rem; }
p { margin: .3rem 0; } .quiet { color: var(--quiet); }
svg { display: block; width: 100%; height: auto; } svg text { font: 11px system-ui, sans-serif; fill: var(--quiet); }
.key span { display: inline-block; margin-right: 1rem; } .key i { display: inline-block; width: .8em; height: .8em;
  margin-right: .35em; border: 1px solid var(--quiet); }
table { border-collapse: collapse; font-size: 13px; font-variant-numeric: tabular-nums; width: 100%; }
th, td { text-align: right; padding: .1rem .5rem; border-bottom: 1px solid var(--line); vertical-align: top; }
th:first-child, td:first-child, .text { text-align: left; }
details { margin: .5rem 0 1rem; } summary { color: var(--quiet); cursor: pointer; }
.wide { overflow-x: auto; } code { font-size: 12px; }
@media print { :root { --ink: #000; --quiet: #333; --line: #999; --paper: #fff; --limit: #000; --l0: #111; --l1: #444;
  --l2: #777; --l3: #a0a0a0; --l4: #c8c8c8; --l5: #ececec; --came: #777; --left: #333; }
  body { max-width: none; padding: 0; } svg, h3, h4, tr { break-inside: avoid; } h3, h4 { break-after: avoid; }
  .wide { overflow: visible; } * { print-color-adjust: exact; -webkit-print-color-adjust: exact; } }
"""


def render(pictures: Sequence[RolePicture], problems: Sequence[str], today: date, made_at: str) -> str:
    """Return the page. `made_at` is the local time at which it was made."""
    return "\n".join(_page(pictures, problems, today, made_at)) + "\n"


def _page(pictures: Sequence[RolePicture], problems: Sequence[str], today: date, made_at: str) -> Iterator[str]:
    yield "<!DOCTYPE html>"
    yield '<html lang="en"><head><meta charset="utf-8">'
    yield f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">'
    yield '<meta name="referrer" content="no-referrer">'
    yield f"<title>Memory over time</title><style>{_STYLE}</style></head><body>"
    yield f"<h1>Memory over time</h1><p class=quiet>Made by echod on {_escape(made_at)}.</p>"
    yield from (f"<p><strong>Not shown:</strong> {_escape(problem)}</p>" for problem in problems)
    if not pictures:
        yield "<p>Nothing is known of a memory yet.</p>"
    for number, (store, group) in enumerate(groupby(pictures, key=lambda picture: picture.store)):
        yield f"<h2>{_escape(store)}</h2>"
        for index, picture in enumerate(group):
            yield from _role(picture, today, f"r{number}-{index}")
    yield "</body></html>"


def _role(picture: RolePicture, today: date, name: str) -> Iterator[str]:
    present = picture.periods[-1].lines
    lines = "no memory file now" if present is None else pluralize(present.total, "line")
    limit = "" if picture.limit is None else f", limit {picture.limit}"
    yield f"<section><h3>{_escape(picture.role or 'The global memory')}</h3><p>{lines}{limit}</p>"
    yield "<h4>Lines by layer</h4>"
    yield from _lines_chart(picture, name)
    yield _key(picture)
    yield from _lines_table(picture)
    yield "<h4>What came and what left</h4>"
    yield from _events_chart(picture)
    yield from _events_table(picture)
    yield from _causes_table(picture)
    yield from _undone_table(picture)
    yield from _left_table(picture, today)
    yield "</section>"


def _lines_chart(picture: RolePicture, name: str) -> Iterator[str]:
    """Draw the layers as areas on each other, one step for each period, and hatch what is unknown."""
    highest, step = picture.highest * 1.05, _step(picture)
    bottom = _HEIGHT - _BOTTOM

    def y(lines: float) -> float:
        return bottom - lines / highest * (bottom - _TOP)

    yield _svg_start(
        _HEIGHT, f"Lines by layer of {picture.role or 'the global memory'}; the table below has the numbers"
    )
    yield (
        f'<defs><pattern id="{name}" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">'
        '<path d="M0 0V6" stroke="var(--quiet)" stroke-width="1" opacity=".5"/></pattern></defs>'
    )
    position = 0
    for known, run in groupby(picture.periods, key=lambda period: period.lines is not None):
        periods = list(run)
        start, width = _LEFT + position * step, len(periods) * step
        if known:
            yield from _areas(periods, start, step, y)
        else:
            yield (
                f'<rect x="{start:.1f}" y="{_TOP}" width="{width:.1f}" height="{bottom - _TOP}" fill="url(#{name})">'
                "<title>unknown</title></rect>"
            )
        position += len(periods)
    if picture.limit is not None:
        height = y(picture.limit)
        yield (
            f'<path d="M{_LEFT} {height:.1f}H{_WIDTH - _RIGHT}" stroke="var(--limit)" stroke-width="1.5" '
            'stroke-dasharray="5 4"/>'
            f'<text x="{_LEFT - 4}" y="{height + 4:.1f}" text-anchor="end">{picture.limit}</text>'
        )
    if picture.limit is None or picture.highest > picture.limit * 1.15:
        yield f'<text x="{_LEFT - 4}" y="{y(picture.highest) + 4:.1f}" text-anchor="end">{picture.highest}</text>'
    yield f'<text x="{_LEFT - 4}" y="{bottom}" text-anchor="end">0</text>'
    yield _axis(picture, bottom)
    yield "</svg>"


def _areas(periods: Sequence[Period], start: float, step: float, y: Callable[[float], float]) -> Iterator[str]:
    below = [0] * len(periods)
    for index in range(len(LAYER_NAMES)):
        above = [low + (period.lines[index] if period.lines else 0) for low, period in zip(below, periods, strict=True)]
        if above != below:
            top = "".join(f"V{y(value):.1f}h{step:.2f}" for value in above)
            back = "".join(f"V{y(value):.1f}h-{step:.2f}" for value in reversed(below))
            yield (
                f'<path d="M{start:.1f} {y(below[0]):.1f}{top}{back}Z" fill="var(--l{index})" stroke="var(--paper)" '
                f'stroke-width=".5"><title>{LAYER_NAMES[index]}</title></path>'
            )
        below = above


def _key(picture: RolePicture) -> str:
    known = [period.lines for period in picture.periods if period.lines is not None]
    parts = [
        f'<span><i style="background:var(--l{index})"></i>{name}</span>'
        for index, name in enumerate(LAYER_NAMES)
        if any(lines[index] for lines in known)
    ]
    if picture.limit is not None:
        parts.append("<span>dashed line: the limit</span>")
    if len(known) < len(picture.periods):
        parts.append("<span>hatched: unknown, since the file was changed and no content of that time is kept</span>")
    return f'<p class="key quiet">{"".join(parts)}</p>'


def _events_chart(picture: RolePicture) -> Iterator[str]:
    """Draw additions above and removals below a line."""
    step, middle = _step(picture), (_EVENT_HEIGHT - _BOTTOM + _TOP) / 2
    highest = max(1, *(max(period.came or 0, period.left) for period in picture.periods))
    reach = (middle - _TOP) / highest
    yield _svg_start(_EVENT_HEIGHT, "Entries that came, above the line, and left, below it")
    for index, period in enumerate(picture.periods):
        x, width = _LEFT + index * step, max(step * 0.8, 0.5)
        if period.came:
            height = period.came * reach
            yield _bar(x, middle - height, width, height, "came", f"{_span(period)}: {period.came} came")
        if period.left:
            yield _bar(x, middle, width, period.left * reach, "left", f"{_span(period)}: {period.left} left")
        if period.undone:
            yield (
                f'<text x="{x + width / 2:.1f}" y="{_EVENT_HEIGHT - _BOTTOM - 1}" text-anchor="middle">&#8617;'
                f"<title>{_span(period)}: {period.undone} undone</title></text>"
            )
    yield f'<path d="M{_LEFT} {middle:.1f}H{_WIDTH - _RIGHT}" stroke="var(--quiet)"/>'
    yield f'<text x="{_LEFT - 4}" y="{_TOP + 8}" text-anchor="end">+{highest}</text>'
    yield f'<text x="{_LEFT - 4}" y="{_EVENT_HEIGHT - _BOTTOM}" text-anchor="end">&#8722;{highest}</text>'
    yield _axis(picture, _EVENT_HEIGHT - _BOTTOM)
    yield "</svg>"
    since = picture.came_since
    reach_text = (
        "No addition is known, because the journal does not reach back."
        if since is None
        else (f"Additions are known since {since.isoformat()}, removals as far back as the archives reach.")
    )
    yield f'<p class="quiet">Above the line: came. Below: left. &#8617; marks an undo. {reach_text}</p>'


def _bar(x: float, y: float, width: float, height: float, kind: str, title: str) -> str:
    return (
        f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" fill="var(--{kind})">'
        f"<title>{title}</title></rect>"
    )


def _lines_table(picture: RolePicture) -> Iterator[str]:
    """Yield a table with a row for each run of periods with the same lines, the newest first."""
    rows: list[Sequence[object]] = []
    for lines, run in groupby(reversed(picture.periods), key=lambda period: period.lines):
        periods = list(run)
        days = _span(periods[-1]._replace(last=periods[0].last))
        values = ["unknown"] * (len(LAYER_NAMES) + 1) if lines is None else [*lines, lines.total]
        rows.append((days, *values))
    yield from _table("The numbers", ("days", *LAYER_NAMES, "all lines"), rows)


def _events_table(picture: RolePicture) -> Iterator[str]:
    rows = (
        (_span(period), "unknown" if period.came is None else period.came, period.left, period.undone)
        for period in reversed(picture.periods)
        if period.came or period.left or period.undone
    )
    yield from _table("The numbers", ("days", "came", "left", "undone"), rows)


def _causes_table(picture: RolePicture) -> Iterator[str]:
    rows = [("came", cause, number) for cause, number in count_causes(picture.came)]
    rows += [("left", cause, number) for cause, number in count_causes(picture.left)]
    yield from _table("By which rule or job", ("", "by", "entries"), rows)


def _undone_table(picture: RolePicture) -> Iterator[str]:
    if picture.undone:
        rows = ((job.day, job.job or "", job.kind, job.summary, job.by) for job in picture.undone)
        yield from _table("Undone jobs", ("day", "job", "kind", "text", "undone by"), rows, text_columns={2, 3})


def _left_table(picture: RolePicture, today: date) -> Iterator[str]:
    movements = recently_left(picture, today, _RECENT_DAYS)
    if not movements:
        return
    rows = ((m.day, _cause(m), m.title or "(untitled)", _restore_command(m)) for m in movements[:_MAX_LISTED])
    heading = f"Left in the last {_RECENT_DAYS} days, and why"
    yield from _table(heading, ("day", "by", "entry", "to restore it"), rows, text_columns={1, 2, 3})
    if len(movements) > _MAX_LISTED:
        yield f"<p>... and {len(movements) - _MAX_LISTED} more. echod show lists the archives.</p>"


def _cause(movement: Movement) -> str:
    return f"{movement.cause}, shortened" if movement.shortened else movement.cause


def _restore_command(movement: Movement) -> str:
    return "" if movement.id is None else f"echod restore {movement.id}"


def _table(
    title: str, head: Sequence[str], rows: Iterable[Sequence[object]], text_columns: Collection[int] = ()
) -> Iterator[str]:
    def cells(kind: str, values: Sequence[object]) -> str:
        return "".join(
            f"<{kind}{' class=text' if index in text_columns else ''}>{_escape(str(value))}</{kind}>"
            for index, value in enumerate(values)
        )

    yield f"<details open><summary>{_escape(title)}</summary><div class=wide><table>"
    yield f"<thead><tr>{cells('th', head)}</tr></thead><tbody>"
    yield from (f"<tr>{cells('td', row)}</tr>" for row in rows)
    yield "</tbody></table></div></details>"


def _svg_start(height: int, label: str) -> str:
    return f'<svg viewBox="0 0 {_WIDTH} {height}" role="img" aria-label="{_escape(label)}">'


def _axis(picture: RolePicture, bottom: float) -> str:
    first, last = picture.periods[0].first, picture.periods[-1].last
    return (
        f'<path d="M{_LEFT} {bottom}H{_WIDTH - _RIGHT}" stroke="var(--line)"/>'
        f'<text x="{_LEFT}" y="{bottom + 16}">{first}</text>'
        f'<text x="{_WIDTH - _RIGHT}" y="{bottom + 16}" text-anchor="end">{last}</text>'
    )


def _step(picture: RolePicture) -> float:
    return (_WIDTH - _LEFT - _RIGHT) / len(picture.periods)


def _span(period: Period) -> str:
    return str(period.first) if period.first == period.last else f"{period.first} to {period.last}"


def _escape(text: str) -> str:
    """Return a text as HTML, for content and quoted attributes. Control characters become blanks."""
    return escape("".join(character if character.isprintable() else " " for character in text))
