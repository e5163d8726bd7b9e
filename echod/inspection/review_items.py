"""Review items as values: subjects, effects of the answers, and how long a first prune is held."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple, assert_never

from echod.memory.model import Layer
from echod.store.layout import Role

FIRST_PRUNE_HOLD_SECONDS = 86_400.0
"""How long the first prune of a memory file waits for the user if it would remove more than half of the file."""

_ID_DIGITS = 8
_DISMISSED = "nothing; it is not listed again"


class ReviewKind(StrEnum):
    """The subjects of items. Notices of the store (`reverted`, `git`, ...) have kinds of their own."""

    CLAIM = "claim"
    SUPERSEDES = "supersedes"
    SUSPICIOUS_INSTRUCTION = "suspicious-instruction"
    FIRST_PRUNE = "first-prune"
    QUARANTINED = "quarantined"
    UNDONE = "undone"
    OVER_LIMIT = "over-limit"


class LayerClaim(NamedTuple):
    """An entry for which an agent claims a layer that only the user gives."""

    entry: str
    layer: Layer


class SupersededEntry(NamedTuple):
    """An entry, by its id, that another entry claims to replace."""

    entry: str


class SuspiciousEntry(NamedTuple):
    """An entry, by its id, that reads like an instruction to agents."""

    entry: str


@dataclass(frozen=True, slots=True)
class HeldFirstPrune:
    """A held first prune that would remove more than half of a memory file."""


class QuarantinedFile(NamedTuple):
    """A findings file in quarantine.

    Attributes:
        name: its name there.
        original_name: the name it gets when it is moved back.
        digest: its content.
        problem: why it cannot be read, or None.
    """

    name: str
    original_name: str
    digest: str
    problem: str | None


class RestoredFindingsFile(NamedTuple):
    """A findings file, by its name and digest, that an undo restored."""

    name: str
    digest: str


@dataclass(frozen=True, slots=True)
class Information:
    """A notice without a decision."""


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
    """An item that waits for the user.

    Attributes:
        id: the same as long as the item has the same content.
        kind: a `ReviewKind`, or the kind of the store's notice.
        since: since when it waits (Unix seconds).
        text: its description, in sentences.
        titles: headings of the entries it is about.
        subject: the target of an answer.
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
        """The effect of accepting it."""
        match self.subject:
            case LayerClaim(entry, layer):
                return f"{entry} becomes {layer.value}: no rule removes it from then on"
            case SupersededEntry(entry):
                return f"{entry} is archived (rule superseded)"
            case SuspiciousEntry():
                return "the entry stays as it is, and is not listed again"
            case HeldFirstPrune():
                return "it is pruned as soon as no workflow runs"
            case QuarantinedFile(_, findings, _, None):
                return f"it is moved back as {findings} and read again"
            case QuarantinedFile(_, _, _, problem):
                return f"nothing yet, since it cannot be read: {problem}"
            case RestoredFindingsFile(name):
                return f"{name} is consolidated again"
            case Information():
                return _DISMISSED
            case other:
                assert_never(other)

    @property
    def reject_effect(self) -> str:
        """The effect of rejecting it."""
        match self.subject:
            case LayerClaim():
                return "nothing; it stays inscribed, and is not listed again"
            case SupersededEntry():
                return "nothing; both entries stay, and it is not listed again"
            case SuspiciousEntry(entry):
                return f"{entry} is archived (rule forgotten)"
            case HeldFirstPrune():
                return "it stays held until you prune it yourself (echod prune)"
            case QuarantinedFile():
                return "nothing; it stays in quarantine, and is not listed again unless it changes"
            case RestoredFindingsFile(name):
                return f"{name} is moved to archive/findings, and nothing from it is added"
            case Information():
                return _DISMISSED
            case other:
                assert_never(other)


def item_id(role: Role, kind: str, *content: object) -> str:
    """Return the id of an item: a digest of its role, its kind and its content."""
    named = json.dumps([role.store.key, role.name, kind, *map(str, content)])
    return hashlib.sha256(named.encode()).hexdigest()[:_ID_DIGITS]


def first_prune_id(role: Role) -> str:
    """Return the id of the item about a role's held first prune. It is the same until the user prunes the file."""
    return item_id(role, ReviewKind.FIRST_PRUNE)


def removes_majority(lines_before: int, lines_after: int) -> bool:
    """Return whether a prune removes so much of a file that the first one waits for the user."""
    return 2 * lines_after < lines_before


def first_prune_deadline(since: float, now: float) -> float | None:
    """Return until when a first prune waits that was held at `since` (Unix seconds); None if no longer at `now`.

    A clock that was set back does not hold it for longer than a day.
    """
    until = since + FIRST_PRUNE_HOLD_SECONDS
    return until if since <= now < until else None
