"""Score a memory file against a judged list: what is whole counts 1, where only the trap is left one half."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from tests.bench.quality.judged import Judged

_DECAY = 0.95  # the weight of an item in relation to the one before it
_MAX_UNIT_LINES = 9


def weighted_recall(units: Sequence[str], judged: Sequence[Judged]) -> float:
    """Return the weighted share of a list that the units contain."""
    total = found = 0.0
    for place, item in enumerate(judged):
        weight = _DECAY**place if item.weight is None else item.weight
        total += weight
        found += weight * _verdict(units, item)
    return found / total


def _verdict(units: Sequence[str], item: Judged) -> float:
    if any(_has_all(unit, item.whole) for unit in units):
        return 1.0
    return 0.5 if any(_has_all(unit, item.trap) for unit in units) else 0.0


def _has_all(unit: str, patterns: Sequence[str]) -> bool:
    return all(re.search(pattern, unit, re.IGNORECASE) for pattern in patterns)


def split_units(text: str) -> list[str]:
    """Return what a reader takes in at once: a list item or paragraph, or a short entry as a whole."""
    return list(_iterate_units(text))


def _iterate_units(text: str) -> Iterator[str]:
    for block in re.split(r"\n(?=##+ )", text):
        lines = [line for line in block.split("\n") if line.strip()]
        if lines and lines[0].startswith("## Observations") and len(lines) <= _MAX_UNIT_LINES:
            yield "\n".join(lines)
            continue
        unit: list[str] = []
        for line in block.split("\n"):
            if not line.strip() or re.match(r"(?:\d+\.|[-*+]) ", line):
                yield "\n".join(unit)
                unit = []
            unit.append(line)
        yield "\n".join(unit)
