"""Two runs side by side: what became faster or slower, larger or smaller, between two revisions."""

from __future__ import annotations

from collections.abc import Iterator

from tests.bench.figures import format_number
from tests.bench.wire import BenchRun

_WHAT = 78
_SAME = 0.1
"""Changes below this share are noise on most machines, and are not marked."""


def compare(old: BenchRun, new: BenchRun) -> str:
    """Every figure that both have, with its change; times of the CPU are compared as multiples of the loop."""
    return "\n".join(_lines(old, new))


def _lines(old: BenchRun, new: BenchRun) -> Iterator[str]:
    yield f"old  {old.machine.get('revision')}  {old.machine.get('date')}  {old.machine.get('processors')}"
    yield f"new  {new.machine.get('revision')}  {new.machine.get('date')}  {new.machine.get('processors')}"
    yield f"\n{'':{_WHAT}}{'old':>10}{'new':>10}{'change':>9}"
    before, after = dict(_values(old)), dict(_values(new))
    for what, value in after.items():
        if what not in before:
            continue
        was = before[what]
        change = f"{100 * (value - was) / was:+.0f} %" if was else ""
        mark = "  *" if was and abs(value - was) > _SAME * abs(was) else ""
        yield f"{what[: _WHAT - 2]:{_WHAT}}{format_number(was):>10}{format_number(value):>10}{change:>9}{mark}"


def _values(run: BenchRun) -> Iterator[tuple[str, float]]:
    for topic in run.topics:
        if topic.figures is None:
            continue
        for row in topic.figures.rows:
            if row.loops is not None:
                yield f"{row.what} (loops)", row.loops
            else:
                yield f"{row.what} ({row.unit})" if row.unit else row.what, row.value
        for curve in topic.figures.curves:
            yield f"{curve.what}, exponent against {curve.of}", curve.exponent
