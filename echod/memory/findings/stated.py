"""Hands out the metadata that a finding states, and keeps account of what nobody understood.

A value that is understood is taken; one that is understood in part, or not at all, stays as a note, so that its words
survive.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from echod.memory.findings.text import Reading, read_confidence, read_date, read_layer

T = TypeVar("T")
Fields = Sequence[tuple[str, str]]

_READERS: Mapping[str, Callable[[str], Reading[object] | None]] = {
    "layer": read_layer,
    "confidence": read_confidence,
    "verified": read_date,
    "date": read_date,
}
_CORE = frozenset({"layer", "source", "confidence", "evidence", "verified", "supersedes", "date", "kind", "title"})


class Said:
    """The fields of one finding: its own first, and those of the groups around it for what it does not say."""

    def __init__(self, own: Fields, inherited: Fields) -> None:
        stated = {name for name, _ in own}
        overruled = [
            (f"{name}_note", value) for name, value in inherited if name in stated and not _is_plain(name, value)
        ]
        missing = [field for field in inherited if field[0] not in stated]
        self._fields = list(dict.fromkeys([*own, *missing, *overruled]))

    def take(self, name: str) -> str | None:
        """The value of this name, no longer counted as unread; several pieces of evidence are joined."""
        values = [value for field, value in self._fields if field == name]
        if not values:
            return None
        if name == "evidence":
            self._fields = [field for field in self._fields if field[0] != name]
            return "; ".join(values)
        self._fields.remove((name, values[0]))
        return values[0]

    def take_if(self, name: str, accepts: Callable[[str], bool]) -> str | None:
        """The value of this name if it is acceptable; else it stays."""
        value = next((value for field, value in self._fields if field == name), None)
        return self.take(name) if value is not None and accepts(value) else None

    def take_read(self, name: str, read: Callable[[str], Reading[T] | None], known: T | None = None) -> T | None:
        """What the value of this name means, unless it is known already; words beside the meaning stay as a note."""
        value = next((value for field, value in self._fields if field == name), None)
        reading = None if value is None else read(value)
        if value is None or reading is None or (known is not None and reading.value != known):
            return known
        if reading.whole:
            self.take(name)
        return known if known is not None else reading.value

    def rest(self) -> tuple[tuple[str, str], ...]:
        """Everything that was not taken, in order; a core field that is left over is called a note."""
        return tuple((f"{name}_note" if name in _CORE else name, value) for name, value in self._fields)


def _is_plain(name: str, value: str) -> bool:
    """Whether the value says nothing but what its name promises, so that a nearer one replaces it entirely."""
    read = _READERS.get(name)
    reading = read(value) if read else None
    return reading is not None and reading.whole
