"""What was found, missed and wrongly found of one kind of secret."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tests.bench.figures import Table


@dataclass(slots=True)
class Counts:
    """How often, and where."""

    found: int = 0
    missed: int = 0
    wrong: int = 0
    places: list[str] = field(default_factory=list)

    @property
    def recall(self) -> float:
        """The share of the secrets that is found."""
        return self.found / (self.found + self.missed) if self.found + self.missed else 1.0

    @property
    def precision(self) -> float:
        """The share of what is found that is secret."""
        return self.found / (self.found + self.wrong) if self.found + self.wrong else 1.0


def total_counts(kinds: Mapping[str, Counts]) -> Counts:
    """All kinds together."""
    every = kinds.values()
    return Counts(sum(one.found for one in every), sum(one.missed for one in every), sum(one.wrong for one in every))


def table(title: str, kinds: Mapping[str, Counts], notes: tuple[str, ...] = ()) -> Table:
    """A row for each kind; the places of what went wrong as notes."""
    rows = tuple(
        (kind, one.found, one.missed, one.wrong, round(one.precision, 3), round(one.recall, 3))
        for kind, one in sorted(kinds.items())
    )
    places = tuple(f"{kind}: {place}" for kind, one in sorted(kinds.items()) for place in one.places)
    return Table(title, ("kind", "found", "missed", "wrong", "precision", "recall"), rows, (*places, *notes))
