"""How each entry of a file stands today: its score, how long nobody referenced it, and whether a rule may touch it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date

from echod.memory import markdown as scan
from echod.memory.identity import entry_ids
from echod.memory.layers import Layer
from echod.memory.model import Block, Document, Entry
from echod.memory.policy.facts import UNKNOWN_HISTORY, Facts, History
from echod.memory.policy.lines import entry_lines, room
from echod.memory.policy.model import Policy
from echod.memory.policy.score import Terms, idle_days, idle_since, score_of, terms_of, verified_on

DEFAULT_CONFIDENCE = 0.5
PROTECTED_LAYERS = frozenset({Layer.ETCHED, Layer.NOTES})
NOISE_LAYERS = frozenset({Layer.OBSERVATIONS, Layer.TRACED})

_MAY_STAY_OPEN = ("```", "~~~", "<")


@dataclass(frozen=True, slots=True)
class Standing:
    """An entry with everything that the rules ask about it.

    Attributes:
        index: its place among the blocks of the file.
        terms: None where the layer is not known; then there is no score either.
        idle_days: days on which the project was alive since the entry was last verified, referenced or first seen.
        room: lines that it takes in the file.
        lines: lines without blank ones at its end.
        pinned_until: the last day on which no rule touches it.
        separates: the block above leaves a code block or comment open, and only this heading ends it.
    """

    index: int
    id: str
    block: Block
    entry: Entry
    terms: Terms | None
    score: float | None
    verified: date
    idle_days: int
    history: History
    room: int
    lines: int
    pinned_until: date | None
    separates: bool

    @property
    def layer(self) -> Layer | None:
        """The layer; None where it is not known."""
        return self.entry.layer

    @property
    def protected(self) -> bool:
        """Whether only a person may change or remove it, whatever its age."""
        return self.entry.layer is None or self.entry.layer in PROTECTED_LAYERS

    @property
    def free(self) -> bool:
        """Whether a rule may touch it today."""
        return not self.protected and self.pinned_until is None and not self.separates

    @property
    def order(self) -> tuple[float, float, date, int]:
        """What goes first: the lower score, then the lower confidence, then the older, then the higher in the file."""
        confidence = self.entry.confidence
        return (
            self.score or 0.0,
            DEFAULT_CONFIDENCE if confidence is None else confidence,
            self.verified,
            self.index,
        )


def standings(role: str, document: Document, facts: Facts, policy: Policy, today: date) -> tuple[Standing, ...]:
    """Every entry of the file in file order; opaque blocks have no standing."""
    alive = sorted(facts.alive_days)
    found = []
    above_is_open = False
    for index, (block, identity) in enumerate(zip(document.blocks, entry_ids(role, document), strict=True)):
        if block.entry is not None and identity is not None:
            entry = block.entry
            history = facts.histories.get(identity, UNKNOWN_HISTORY)
            verified = verified_on(entry, history, today)
            terms = (
                terms_of(entry.layer, verified, history, facts.workflows_seen, policy, today) if entry.layer else None
            )
            until = facts.pinned.get(identity)
            found.append(
                Standing(
                    index=index,
                    id=identity,
                    block=block,
                    entry=entry,
                    terms=terms,
                    score=score_of(terms, policy) if terms else None,
                    verified=verified,
                    idle_days=idle_days(idle_since(verified, history, today), alive, today),
                    history=history,
                    room=room(block.text),
                    lines=entry_lines(block.text),
                    pinned_until=until if until is not None and until >= today else None,
                    separates=above_is_open,
                )
            )
        above_is_open = stays_open(block.text)
    return tuple(found)


def stays_open(text: str) -> bool:
    """Whether a block ends inside a code block or comment."""
    return any(mark in text for mark in _MAY_STAY_OPEN) and scan.structure(text).closing is not None
