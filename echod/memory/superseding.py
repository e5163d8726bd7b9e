"""Which entries give way to findings that say what they replace (`supersedes: title`).

The one entry of that title goes to the archive, if it is older and may be taken out. In every other case a person
decides: a title that fits nothing, or several, or something newer is more likely a mistake than an order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from enum import StrEnum

from echod.memory.document import Entry, Layer
from echod.memory.findings import Finding
from echod.memory.reception import Reception, Replacement

_REPLACEABLE = frozenset({Layer.INSCRIBED, Layer.OBSERVATIONS, Layer.TRACED})


class Doubt(StrEnum):
    """Why nothing gave way to a finding that says what it replaces."""

    NONE = "none"
    SEVERAL = "several"
    NEWER = "newer"
    PROTECTED = "protected"
    PINNED = "pinned"
    STUCK = "stuck"


@dataclass(frozen=True, slots=True)
class Going:
    """The place of what gives way, and for what."""

    place: int
    replacement: Replacement


@dataclass(frozen=True, slots=True)
class Doubtful:
    """Nothing gives way, and why."""

    replacement: Replacement
    doubt: Doubt


def decide(reception: Reception, today: date, is_pinned: Callable[[int], bool]) -> tuple[list[Going], list[Doubtful]]:
    """What gives way to the findings received, the earliest of them first, and what is left to a person.

    Args:
        reception: all that was received.
        today: the local day.
        is_pinned: whether the entry at a place is pinned.
    """
    going: dict[int, Going] = {}
    doubtful: list[Doubtful] = []
    for replacement in sorted(reception.replacements, key=lambda r: (r.finding.heading_date, r.place)):
        places = [place for place in reception.titled(replacement.target) if place not in going]
        places = [place for place in places if _came_before(place, replacement, reception)]
        doubt = _doubt(places, replacement.finding, reception, today, is_pinned)
        if doubt is None:
            going[places[0]] = Going(places[0], replacement)
        elif replacement.is_new or doubt is not Doubt.NONE:
            # What is found again may have replaced the other one long ago.
            doubtful.append(Doubtful(replacement, doubt))
    return [going[place] for place in sorted(going)], doubtful


def _came_before(place: int, replacement: Replacement, reception: Reception) -> bool:
    """Whether something was there before a finding that would replace it. No finding can replace a later one."""
    if place == replacement.place:
        return False
    number = place - len(reception.blocks)
    if number < 0:
        return True
    other = reception.new[number]
    return (other.heading_date, place) < (replacement.finding.heading_date, replacement.place)


def _doubt(
    places: Sequence[int], finding: Finding, reception: Reception, today: date, is_pinned: Callable[[int], bool]
) -> Doubt | None:
    if not places:
        return Doubt.NONE
    if len(places) > 1:
        return Doubt.SEVERAL
    (place,) = places
    if place >= len(reception.blocks):
        return None
    entry = reception.blocks[place].entry
    if entry is None or entry.layer not in _REPLACEABLE:
        return Doubt.PROTECTED
    if is_newer(entry, finding, today):
        return Doubt.NEWER
    return Doubt.PINNED if is_pinned(place) else None


def is_newer(entry: Entry, finding: Finding, today: date) -> bool:
    """Whether an entry was learned, or found to be true again, after a finding. One without a day is older."""
    latest = today + timedelta(days=1)
    learned, verified = (day if day and day <= latest else None for day in (entry.heading_date, entry.verified))
    if learned is not None and learned > finding.heading_date:
        return True
    return verified is not None and verified > max(finding.heading_date, finding.verified)
