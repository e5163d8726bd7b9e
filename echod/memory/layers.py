"""The layers of entries; apart from the other values of a memory file, since settings are told by them too."""

from __future__ import annotations

from enum import StrEnum


class Layer(StrEnum):
    """How long an entry is meant to live, from permanent to fleeting."""

    ETCHED = "etched"
    NOTES = "notes"
    INSCRIBED = "inscribed"
    OBSERVATIONS = "observations"
    TRACED = "traced"
