"""When is a dirty store calm enough to look at? Pure: time comes in, nothing else is known.

A mark waits until its store has been still for the quiet time, but never longer than the cap after the first
mark, so that a writer without pauses cannot keep a store from being looked at. A store that takes long to look at may
be given a rest, which nothing shortens.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

Key = TypeVar("Key")


@dataclass(slots=True)
class _Mark:
    first: float
    last: float


class Debounce(Generic[Key]):
    """Marks, each due `quiet_seconds` after its last and at most `max_seconds` after its first repetition.

    Times are seconds of any clock that does not jump. A clock that goes back only makes a mark due sooner.
    """

    def __init__(self, quiet_seconds: float, max_seconds: float) -> None:
        self._quiet = quiet_seconds
        self._max = max(max_seconds, quiet_seconds)
        self._marks: dict[Key, _Mark] = {}
        self._rests: dict[Key, float] = {}

    def __len__(self) -> int:
        return len(self._marks)

    def mark(self, key: Key, now: float) -> None:
        """Something happened to `key` at `now`."""
        mark = self._marks.setdefault(key, _Mark(now, now))
        mark.last = now

    def rest(self, key: Key, until: float) -> None:
        """`key` is not due before `until`, whatever happens to it."""
        self._rests[key] = until

    def ready(self, now: float) -> tuple[Key, ...]:
        """The keys that are due, those marked first before the others; they are no longer marked."""
        self._rests = {key: until for key, until in self._rests.items() if until > now}
        due = [key for key in self._marks if self._due(key) <= now]
        for key in due:
            del self._marks[key]
        return tuple(due)

    def next_due(self) -> float | None:
        """When the next key is due, if nothing else happens; None if none is marked."""
        return min(map(self._due, self._marks), default=None)

    def _due(self, key: Key) -> float:
        mark = self._marks[key]
        calm = min(mark.last + self._quiet, mark.first + self._max)
        return max(calm, self._rests.get(key, calm))
