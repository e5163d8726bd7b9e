"""A run as one table for a terminal: every figure with its spread, its bar, and whether it holds."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator

from tests.bench.figures import MAX_EXPONENT, Curve, Figures, Row, Table, format_number
from tests.bench.wire import BenchRun, TopicResult

_WHAT, _WIDTH = 62, 120
_NOTE = "      "


def report(run: BenchRun) -> str:
    """The whole report."""
    return "\n".join(_lines(run))


def short_line(measured: TopicResult) -> str:
    """A line about a topic that is over."""
    if measured.figures is None:
        return f"{measured.title}: NOT MEASURED"
    judged = [row.is_met for row in measured.figures.rows if row.is_met is not None]
    judged += [curve.is_met for curve in measured.figures.curves]
    said = f", {sum(judged)} of {len(judged)} bars hold" if judged else ""
    return f"{measured.title}: {measured.seconds:.0f} s{said}"


def _lines(run: BenchRun) -> Iterator[str]:
    yield from (f"{name:20}{value}" for name, value in run.machine.items())
    yield ""
    yield f"{'':{_WHAT}}{'median':>10} {'unit':<6}{'quartiles':>15}{'runs':>6}{'loops':>7}  {'bar':<9}holds"
    for topic in run.topics:
        yield f"\n{topic.title}"
        if topic.figures is None:
            yield textwrap.indent(f"not measured: {topic.trouble}", "  ")
            continue
        yield from _figures(topic.figures)
    missed = list(_missed_thresholds(run))
    yield "\nEvery bar holds." if not missed else "\nDoes not hold:"
    yield from missed


def _figures(figures: Figures) -> Iterator[str]:
    for row in figures.rows:
        yield from _row(row)
    for curve in figures.curves:
        yield from _curve(curve)
    for table in figures.tables:
        yield from _table(table)


def _row(row: Row) -> Iterator[str]:
    spread = "" if row.low is None or row.high is None else f"{format_number(row.low)} .. {format_number(row.high)}"
    runs = str(row.runs) if row.runs > 1 else ""
    loops = "" if row.loops is None else format_number(row.loops)
    bar = "" if row.bar is None else str(row.bar)
    figure = f"{format_number(row.value):>10} {row.unit:<6}{spread:>15}{runs:>6}{loops:>7}  {bar:<9}{_verdict_word(row.is_met)}"
    yield from _aligned(row.what, figure)
    if row.note:
        yield f"{_NOTE}{row.note}"


def _curve(curve: Curve) -> Iterator[str]:
    figure = f"{curve.exponent:>10.2f} {'power':<6}{'':28}  {f'<= {MAX_EXPONENT:g}':<9}{_verdict_word(curve.is_met)}"
    yield from _aligned(f"{curve.what}, against {curve.of}", figure)
    points = ", ".join(f"{format_number(size)}: {format_number(seconds * 1000)}" for size, seconds in curve.points)
    yield f"{_NOTE}{points} (ms)"
    if curve.note:
        yield f"{_NOTE}{curve.note}"


def _aligned(what: str, figure: str) -> Iterator[str]:
    """What was measured, and its figure on the same line where there is room."""
    *above, last = textwrap.wrap(what, _WHAT - 3)
    yield from (f"  {line}" for line in above)
    yield f"  {last:{_WHAT - 2}}{figure}".rstrip()


def _table(table: Table) -> Iterator[str]:
    yield f"\n  {table.title}"
    cells = [table.header, *(tuple(map(_cell, line)) for line in table.rows)]
    widths = [max(len(line[column]) for line in cells) for column in range(len(table.header))]
    for line in cells:
        first, *others = line
        numbers = "  ".join(f"{cell:>{width}}" for cell, width in zip(others, widths[1:], strict=True))
        yield f"    {first:<{widths[0]}}  {numbers}"
    for note in table.notes:
        yield from textwrap.wrap(note, _WIDTH, initial_indent=_NOTE, subsequent_indent=_NOTE)


def _cell(value: str | float) -> str:
    if isinstance(value, str):
        return value
    return f"{value:,}"


def _verdict_word(holds: bool | None) -> str:
    return "" if holds is None else "yes" if holds else "NO"


def _missed_thresholds(run: BenchRun) -> Iterator[str]:
    for topic in run.topics:
        if topic.figures is None:
            yield f"  {topic.title}: not measured"
            continue
        failed: Iterable[Row | Curve] = (*topic.figures.rows, *topic.figures.curves)
        yield from (f"  {topic.title}: {one.what}" for one in failed if one.is_met is False)
