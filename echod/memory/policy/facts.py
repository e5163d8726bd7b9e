"""What the policies are told about entries and the project, apart from the file itself. Values only.

Whatever is not known is left out or None, and every policy takes unknown for "not yet", never for "never".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from types import MappingProxyType


@dataclass(frozen=True, slots=True)
class History:
    """What is known about one entry.

    Attributes:
        first_seen: the day on which echod first saw it.
        last_reference: the day on which it was last referenced.
        references: how often it was referenced, once for each session or workflow where that is known.
        workflows: how many of the workflows that `Facts.workflows_seen` counts referenced it.
    """

    first_seen: date | None = None
    last_reference: date | None = None
    references: int = 0
    workflows: int = 0


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known about a memory file's entries and its project.

    Attributes:
        histories: entry id -> its history; an id that is missing was seen for the first time today.
        workflows_seen: workflows seen in the project in the last `Policy.relevance_days` days.
        alive_days: local days on which a workflow was seen or memory changed.
        pinned: entry id -> the last day on which no rule touches it.
        inscribed_archived_today: inscribed entries of this file that rule `lowest-inscribed` archived today.
    """

    histories: Mapping[str, History] = field(default_factory=lambda: MappingProxyType({}))
    workflows_seen: int = 0
    alive_days: frozenset[date] = frozenset()
    pinned: Mapping[str, date] = field(default_factory=lambda: MappingProxyType({}))
    inscribed_archived_today: int = 0


UNKNOWN_HISTORY = History()
