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

_DIGITS = 8


class Kind(StrEnum):
    """What an item is about. Those of the engine (`reverted`, `git`, ...) have names of their own."""

    CLAIM = "claim"
    SUPERSEDES = "supersedes"
    SPEAKS_TO_AGENTS = "speaks-to-agents"
    FIRST_PRUNE = "first-prune"
    QUARANTINED = "quarantined"
    UNDONE = "undone"
    TOO_LONG = "too-long"


class Claim(NamedTuple):
    """An agent wants an entry to be in a layer that only a person gives."""

    entry: str
    layer: Layer


class Replaced(NamedTuple):
    """An entry, by its id, of which another one says that it replaces it."""

    entry: str


class Suspicious(NamedTuple):
    """An entry that reads like an instruction to agents."""

    entry: str


@dataclass(frozen=True, slots=True)
class FirstPrune:
    """A first prune of more than half of a memory file, which is held."""


class SetAside(NamedTuple):
    """A findings file in quarantine: its name there, the name it gets back, its content by digest, what is wrong."""

    name: str
    findings: str
    digest: str
    problem: str | None


class GivenBack(NamedTuple):
    """A findings file, by its name and digest, that an undo gave back."""

    name: str
    digest: str


@dataclass(frozen=True, slots=True)
class Told:
    """Something to know; there is nothing to decide."""


Subject = Claim | Replaced | Suspicious | FirstPrune | SetAside | GivenBack | Told


class Item(NamedTuple):
    """One thing that waits for a person.

    Attributes:
        id: the same as long as the item says the same.
        kind: one of `Kind`, or what the engine calls it.
        at: since when (Unix seconds).
        text: what it is, in sentences.
        titles: headings of the entries it is about.
        subject: what an answer acts on.
    """

    id: str
    role: Role
    kind: str
    at: float
    text: str
    titles: tuple[str, ...]
    subject: Subject

    @property
    def accept(self) -> str:
        """What accepting it would change."""
        match self.subject:
            case Claim(entry, layer):
                return f"{entry} becomes {layer.value}: no rule removes it from then on"
            case Replaced(entry):
                return f"{entry} goes to the archive (rule superseded)"
            case Suspicious():
                return "the entry stays as it is, and is not listed again"
            case FirstPrune():
                return "it is pruned as soon as no workflow runs"
            case SetAside(_, findings, _, None):
                return f"it goes back as {findings} and is read again"
            case SetAside(_, _, _, problem):
                return f"nothing yet, since it cannot be read: {problem}"
            case GivenBack(name):
                return f"{name} is folded in again"
            case Told():
                return _DISMISSED
            case other:
                assert_never(other)

    @property
    def reject(self) -> str:
        """What rejecting it would change."""
        match self.subject:
            case Claim():
                return "nothing; it stays inscribed, and is not listed again"
            case Replaced():
                return "nothing; both entries stay, and it is not listed again"
            case Suspicious(entry):
                return f"{entry} goes to the archive (rule forgotten)"
            case FirstPrune():
                return "it stays held until you prune it yourself (echod prune)"
            case SetAside():
                return "nothing; it stays in quarantine, and is not listed again unless it changes"
            case GivenBack(name):
                return f"{name} goes to archive/findings, and nothing of it is added"
            case Told():
                return _DISMISSED
            case other:
                assert_never(other)


_DISMISSED = "nothing; it is not listed again"


def item_id(role: Role, kind: str, *says: object) -> str:
    """The id of an item: a digest of where it is, of what kind, and of what it says."""
    named = json.dumps([role.store.key, role.name, kind, *map(str, says)])
    return hashlib.sha256(named.encode()).hexdigest()[:_DIGITS]


def first_prune_id(role: Role) -> str:
    """The id of the item about a role's held first prune. It says the same until a person prunes the file."""
    return item_id(role, Kind.FIRST_PRUNE)


HOLD_SECONDS = 86_400.0
"""How long the first prune of a memory file waits for a person if it takes more than half of the file."""


def takes_most(lines_before: int, lines_after: int) -> bool:
    """Whether a prune takes so much of a file that the first one waits for a person."""
    return 2 * lines_after < lines_before


def held_until(since: float, now: float) -> float | None:
    """Until when a first prune waits that was first held at `since` (Unix seconds); None: no longer at `now`.

    A clock that was set back must not hold it for longer than a day.
    """
    until = since + HOLD_SECONDS
    return until if since <= now < until else None
