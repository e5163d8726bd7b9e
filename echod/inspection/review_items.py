"""What waits for a person, as values: what it is, and what an answer to it would change.

The first prune of a memory file: if it would take most of the file it waits for a day, for a person to look.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple, assert_never

from echod.memory.model import Layer
from echod.store.layout import Role

_ID_DIGITS = 8


class ReviewKind(StrEnum):
    """What an item is about. Those of the engine (`reverted`, `git`, ...) have names of their own."""

    CLAIM = "claim"
    SUPERSEDES = "supersedes"
    SUSPICIOUS_INSTRUCTION = "suspicious-instruction"
    FIRST_PRUNE = "first-prune"
    QUARANTINED = "quarantined"
    UNDONE = "undone"
    OVER_LIMIT = "over-limit"


class LayerClaim(NamedTuple):
    """An agent wants an entry to be in a layer that only a person gives."""

    entry: str
    layer: Layer


class SupersededEntry(NamedTuple):
    """An entry, by its id, of which another one says that it replaces it."""

    entry: str


class SuspiciousEntry(NamedTuple):
    """An entry that reads like an instruction to agents."""

    entry: str


@dataclass(frozen=True, slots=True)
class HeldFirstPrune:
    """A first prune of more than half of a memory file, which is held."""


class QuarantinedFile(NamedTuple):
    """A findings file in quarantine: its name there, the name it gets back, its content by digest, what is wrong."""

    name: str
    original_name: str
    digest: str
    problem: str | None


class RestoredFindingsFile(NamedTuple):
    """A findings file, by its name and digest, that an undo gave back."""

    name: str
    digest: str


@dataclass(frozen=True, slots=True)
class Information:
    """Something to know; there is nothing to decide."""


ReviewSubject = (
    LayerClaim
    | SupersededEntry
    | SuspiciousEntry
    | HeldFirstPrune
    | QuarantinedFile
    | RestoredFindingsFile
    | Information
)


class OpenReviewItem(NamedTuple):
    """One thing that waits for a person.

    Attributes:
        id: the same as long as the item says the same.
        kind: one of `Kind`, or what the engine calls it.
        since: since when (Unix seconds).
        text: what it is, in sentences.
        titles: headings of the entries it is about.
        subject: what an answer acts on.
    """

    id: str
    role: Role
    kind: str
    since: float
    text: str
    titles: tuple[str, ...]
    subject: ReviewSubject

    @property
    def accept_effect(self) -> str:
        """What accepting it would change."""
        match self.subject:
            case LayerClaim(entry, layer):
                return f"{entry} becomes {layer.value}: no rule removes it from then on"
            case SupersededEntry(entry):
                return f"{entry} goes to the archive (rule superseded)"
            case SuspiciousEntry():
                return "the entry stays as it is, and is not listed again"
            case HeldFirstPrune():
                return "it is pruned as soon as no workflow runs"
            case QuarantinedFile(_, findings, _, None):
                return f"it goes back as {findings} and is read again"
            case QuarantinedFile(_, _, _, problem):
                return f"nothing yet, since it cannot be read: {problem}"
            case RestoredFindingsFile(name):
                return f"{name} is folded in again"
            case Information():
                return _DISMISSED
            case other:
                assert_never(other)

    @property
    def reject_effect(self) -> str:
        """What rejecting it would change."""
        match self.subject:
            case LayerClaim():
                return "nothing; it stays inscribed, and is not listed again"
            case SupersededEntry():
                return "nothing; both entries stay, and it is not listed again"
            case SuspiciousEntry(entry):
                return f"{entry} goes to the archive (rule forgotten)"
            case HeldFirstPrune():
                return "it stays held until you prune it yourself (echod prune)"
            case QuarantinedFile():
                return "nothing; it stays in quarantine, and is not listed again unless it changes"
            case RestoredFindingsFile(name):
                return f"{name} goes to archive/findings, and nothing of it is added"
            case Information():
                return _DISMISSED
            case other:
                assert_never(other)


_DISMISSED = "nothing; it is not listed again"


def item_id(role: Role, kind: str, *content: object) -> str:
    """The id of an item: a digest of where it is, of what kind, and of what it says."""
    named = json.dumps([role.store.key, role.name, kind, *map(str, content)])
    return hashlib.sha256(named.encode()).hexdigest()[:_ID_DIGITS]


def first_prune_id(role: Role) -> str:
    """The id of the item about a role's held first prune. It says the same until a person prunes the file."""
    return item_id(role, ReviewKind.FIRST_PRUNE)


FIRST_PRUNE_HOLD_SECONDS = 86_400.0
"""How long the first prune of a memory file waits for a person if it takes more than half of the file."""


def removes_majority(lines_before: int, lines_after: int) -> bool:
    """Whether a prune takes so much of a file that the first one waits for a person."""
    return 2 * lines_after < lines_before


def first_prune_deadline(since: float, now: float) -> float | None:
    """Until when a first prune waits that was first held at `since` (Unix seconds); None: no longer at `now`.

    A clock that was set back must not hold it for longer than a day.
    """
    until = since + FIRST_PRUNE_HOLD_SECONDS
    return until if since <= now < until else None
