"""Figures as JSON: between the processes that measure and the one that prints, and for comparison between revisions."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.bench.figures import Comparison, Curve, Figures, Row, Table, Threshold

SCHEMA = 1


@dataclass(frozen=True, slots=True)
class TopicResult:
    """What became of one topic: its figures, or why there are none."""

    name: str
    title: str
    seconds: float
    figures: Figures | None
    trouble: str = ""


@dataclass(frozen=True, slots=True)
class BenchRun:
    """One run of the program: where, when, on what, and everything that was measured."""

    machine: Mapping[str, str]
    topics: tuple[TopicResult, ...]

    @property
    def failed(self) -> bool:
        """Whether a proof failed, or something could not be measured. A time that is over its bar is no failure."""
        return any(topic.figures is None or topic.figures.has_failed_proof for topic in self.topics)


def save(run: BenchRun, file: Path) -> None:
    """Write a run."""
    topics = [
        dataclasses.asdict(topic) | {"figures": None if topic.figures is None else figures_to_dict(topic.figures)}
        for topic in run.topics
    ]
    values = {"schema": SCHEMA, "machine": dict(run.machine), "topics": topics}
    file.write_text(json.dumps(values, indent=1, ensure_ascii=False) + "\n")


def load(file: Path) -> BenchRun:
    """Read a run.

    Raises:
        ValueError: the file is not one that `save` wrote.
    """
    values = json.loads(file.read_text())
    if not isinstance(values, dict) or values.get("schema") != SCHEMA:
        raise ValueError(f"{file} is not a run of the benchmarks of schema {SCHEMA}")
    topics = tuple(
        TopicResult(**topic | {"figures": None if topic["figures"] is None else figures_from_dict(topic["figures"])})
        for topic in values["topics"]
    )
    return BenchRun(values["machine"], topics)


def figures_to_dict(figures: Figures) -> dict[str, Any]:
    """Return a topic's figures as a dictionary, with derived values (holds, exponent) for other programs."""
    return {
        "rows": [dataclasses.asdict(row) | {"holds": row.is_met} for row in figures.rows],
        "curves": [dataclasses.asdict(c) | {"exponent": c.exponent, "holds": c.is_met} for c in figures.curves],
        "tables": [dataclasses.asdict(table) for table in figures.tables],
    }


def figures_from_dict(values: Mapping[str, Any]) -> Figures:
    """The inverse of `figures_to`."""
    return Figures(
        tuple(_row(row) for row in values["rows"]),
        tuple(
            Curve(curve["what"], curve["of"], tuple((size, cost) for size, cost in curve["points"]), curve["note"])
            for curve in values["curves"]
        ),
        tuple(
            Table(table["title"], tuple(table["header"]), tuple(map(tuple, table["rows"])), tuple(table["notes"]))
            for table in values["tables"]
        ),
    )


def _row(values: Mapping[str, Any]) -> Row:
    known = {name: value for name, value in values.items() if name != "holds"}
    bar = values["bar"]
    return Row(
        **known | {"bar": None if bar is None else Threshold(Comparison(bar["sign"]), bar["value"], bar["proof"])}
    )
