"""What a measurement is: a median with its spread, held against a bar; a curve with its exponent; a table.

Knows nothing of what is measured, of processes or of clocks.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from statistics import median, quantiles

MAX_EXPONENT = 1.2
"""The exponent up to which a curve counts as n or n log n: between 1,000 and 20,000, n log n has one of 1.12."""


class Comparison(StrEnum):
    """How a value must stand to its bar."""

    BELOW = "<"
    AT_MOST = "<="
    AT_LEAST = ">="


@dataclass(frozen=True, slots=True)
class Threshold:
    """What a value is held against. A proof decides how the program ends; a time never does."""

    sign: Comparison
    value: float
    proof: bool = False

    def is_met(self, value: float) -> bool:
        """Whether `value` is on the right side."""
        match self.sign:
            case Comparison.BELOW:
                return value < self.value
            case Comparison.AT_MOST:
                return value <= self.value
            case Comparison.AT_LEAST:
                return value >= self.value

    def __str__(self) -> str:
        return f"{self.sign.value} {format_number(self.value)}"


def below(value: float) -> Threshold:
    """A time, a size or a share that must stay below `value`."""
    return Threshold(Comparison.BELOW, value)


def none() -> Threshold:
    """Something that must not happen, not once."""
    return Threshold(Comparison.AT_MOST, 0, proof=True)


def at_least(value: float) -> Threshold:
    """A quality that must be reached."""
    return Threshold(Comparison.AT_LEAST, value, proof=True)


@dataclass(frozen=True, slots=True)
class Row:
    """One figure.

    Attributes:
        what: what was measured, in words that stay the same from run to run.
        value: the median of the runs, or the one value.
        unit: of the value; `x` for a ratio to the reference that `what` or `note` names.
        low: the lower quartile of the runs, None where there was one.
        high: the upper quartile.
        runs: how many runs there were.
        bar: what it is held against, None for a figure that only informs.
        loops: the value as a multiple of the calibration loop's time in the same run, where it is a time of the CPU's.
        note: whatever else a reader needs.
    """

    what: str
    value: float
    unit: str
    low: float | None = None
    high: float | None = None
    runs: int = 1
    bar: Threshold | None = None
    loops: float | None = None
    note: str = ""

    @property
    def is_met(self) -> bool | None:
        """Whether the bar holds; None where there is none."""
        return None if self.bar is None else self.bar.is_met(self.value)


@dataclass(frozen=True, slots=True)
class Curve:
    """What something costs against how much there is: (size, seconds) pairs in order of size."""

    what: str
    of: str
    points: tuple[tuple[float, float], ...]
    note: str = ""

    @property
    def exponent(self) -> float:
        """The slope of the least-squares line through the points on logarithmic scales: 1 is linear, 0 is constant."""
        return slope([(math.log(size), math.log(max(seconds, 1e-9))) for size, seconds in self.points])

    @property
    def is_met(self) -> bool:
        """Whether it grows no faster than n log n."""
        return self.exponent <= MAX_EXPONENT


Cells = tuple[str | int | float, ...]


@dataclass(frozen=True, slots=True)
class Table:
    """Figures that belong together, as the documents print them."""

    title: str
    header: tuple[str, ...]
    rows: tuple[Cells, ...]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Figures:
    """Everything that one topic found out."""

    rows: tuple[Row, ...] = ()
    curves: tuple[Curve, ...] = ()
    tables: tuple[Table, ...] = field(default=())

    @property
    def has_failed_proof(self) -> bool:
        """Whether a proof failed."""
        return any(row.bar is not None and row.bar.proof and not row.is_met for row in self.rows)


def row(
    what: str,
    values: Sequence[float],
    unit: str,
    *,
    bar: Threshold | None = None,
    loops: Sequence[float] = (),
    note: str = "",
) -> Row:
    """A figure of several runs: the median, and the quartiles as its spread."""
    low, middle, high = quartiles(values)
    against = median(loops) if loops else None
    return Row(what, middle, unit, low, high, len(values), bar, against, note)


def quartiles(values: Sequence[float]) -> tuple[float, float, float]:
    """Lower quartile, median and upper quartile."""
    if len(values) == 1:
        return values[0], values[0], values[0]
    low, middle, high = quantiles(values, n=4, method="inclusive")
    return low, middle, high


def slope(points: Sequence[tuple[float, float]]) -> float:
    """The slope of the least-squares line through `points`, two different ones at least."""
    x_mean = sum(x for x, _ in points) / len(points)
    y_mean = sum(y for _, y in points) / len(points)
    spread = sum((x - x_mean) ** 2 for x, _ in points)
    return sum((x - x_mean) * (y - y_mean) for x, y in points) / spread


def format_number(value: float) -> str:
    """A number for people: three significant digits, thousands separated."""
    if value == 0:
        return "0"
    size = abs(value)
    if size >= 100 or value == int(value):
        return f"{value:,.0f}"
    digits = max(0, 2 - math.floor(math.log10(size)))
    return f"{value:.{digits}f}"
