"""Which entries give way to findings that say what they replace (`supersedes: title`).

The one entry of that title goes to the archive, if it is older and may be taken out. In every other case a person
decides: a title that fits nothing, or several, or something newer is more likely a mistake than an order.

Why an agent's word that its finding replaces an entry is left to a person.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from enum import StrEnum
from typing import NamedTuple

from echod.memory.consolidation.deduplicate import Reception, Replacement, is_to_come
from echod.memory.findings import Finding
from echod.memory.model import Entry, Layer


class Doubt(StrEnum):
    """Why nothing gave way to a finding that says what it replaces."""

    NONE = "none"
    SEVERAL = "several"
    NEWER = "newer"
    PROTECTED = "protected"
    PINNED = "pinned"
    STUCK = "stuck"


_REPLACEABLE = frozenset({Layer.INSCRIBED, Layer.OBSERVATIONS, Layer.TRACED})


class Going(NamedTuple):
    """The place of what gives way, and for what."""

    place: int
    replacement: Replacement


@dataclass(frozen=True, slots=True)
class Doubtful:
    """Nothing gives way, and why."""

    replacement: Replacement
    doubt: Doubt


def decide(reception: Reception, today: date, is_pinned: Callable[[int], bool]) -> tuple[list[Going], list[Doubtful]]:
    """What gives way to the findings received, in the order of their days, and what is left to a person.

    Args:
        reception: all that was received.
        today: the local day.
        is_pinned: whether the entry at a place is pinned.
    """
    going: dict[int, Going] = {}
    doubtful: list[Doubtful] = []
    for replacement in sorted(reception.replacements, key=lambda r: (_day(r.finding, today), r.place)):
        titled = reception.titled(replacement.target)
        standing = [place for place in titled if place not in going and place != _survivor(replacement.place, going)]
        # What was learned, or found to be true again, on a later day is newer. What has no day is older.
        day = _day(replacement.finding, today)
        older = [place for place in standing if reception.days.get(place, day) <= day]
        doubt = _doubt(standing, older, reception, is_pinned)
        if doubt is None:
            going[older[0]] = Going(older[0], replacement)
        elif doubt is not Doubt.NONE or not _gave_way_before(replacement, going, reception):
            doubtful.append(Doubtful(replacement, doubt))
    return [going[place] for place in sorted(going)], doubtful


def _survivor(place: int, going: Mapping[int, Going]) -> int:
    """What stands in the end for what stood at a place. Were it to give way too, all of a circle would be gone."""
    while place in going:
        place = going[place].replacement.place
    return place


def _doubt(
    standing: Sequence[int], older: Sequence[int], reception: Reception, is_pinned: Callable[[int], bool]
) -> Doubt | None:
    if not older:
        return Doubt.NEWER if standing else Doubt.NONE
    if len(older) > 1:
        return Doubt.SEVERAL
    (place,) = older
    entry = _entry(place, reception)
    if entry is not None and entry.layer not in _REPLACEABLE:
        return Doubt.PROTECTED
    return Doubt.PINNED if entry is not None and is_pinned(place) else None


def _gave_way_before(replacement: Replacement, going: Mapping[int, Going], reception: Reception) -> bool:
    """Whether what a finding replaces is known to be gone: the same was said before, by itself or another one."""
    if not replacement.is_new or any(place in going for place in reception.titled(replacement.target)):
        return True
    return replacement.target in reception.replaced


def _day(finding: Finding, today: date) -> date:
    return finding.verified if is_to_come(finding.heading_date, today) else finding.heading_date


def _entry(place: int, reception: Reception) -> Entry | None:
    """The entry at a place of the file; None for a finding."""
    return reception.blocks[place].entry if place < len(reception.blocks) else None
