"""Where findings are laid beside a memory file: which are new, and which an entry holds already.

An entry that is found again is refreshed (verified: the later day, confidence: the higher one) and keeps its text. One
that is etched, a note, or of an unknown layer is not even refreshed: only a person changes those.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from datetime import date, timedelta
from typing import NamedTuple

from echod.memory.compose import tidied
from echod.memory.edit import with_confidence, with_verified
from echod.memory.findings import DEFAULT_CONFIDENCE, Finding
from echod.memory.identity import normalise_title
from echod.memory.model import Block, Document, Entry, Layer
from echod.memory.similarity import Finder, Learning, Sketch, bare_title, learning_of, sketch

_REFRESHED_LAYERS = frozenset({Layer.INSCRIBED, Layer.OBSERVATIONS, Layer.TRACED})
_QUOTES = "\"'\u201c\u201d\u2018\u2019"


class Replacement(NamedTuple):
    """A finding says that what it reports, which stands at `place`, replaces the entries of this title."""

    finding: Finding
    place: int
    target: str
    is_new: bool


class Reception:
    """Takes findings in, one after the other.

    A *place* is a block's number in the file; those of new findings go on from there.

    Attributes:
        blocks: the blocks of the file, those that were found again refreshed.
        new: the findings that no entry holds, in order.
        duplicates: the findings that an entry, or a finding before them, holds already; with its place.
        replacements: the findings that say what they replace, in order.
        days: by place, when what stands there was last learned or found to be true; nothing where no day is known.
        replaced: the normalised titles that entries of the file say they replaced.
        changed: how many entries are new or refreshed.
    """

    def __init__(self, document: Document, today: date) -> None:
        self.blocks = list(document.blocks)
        self.new: list[Finding] = []
        self.duplicates: list[tuple[Finding, int]] = []
        self.replacements: list[Replacement] = []
        self.days: dict[int, date] = {}
        self.replaced: set[str] = set()
        self.changed = 0
        self._today = today
        self._finder = Finder()
        self._titles: defaultdict[str, list[int]] = defaultdict(list)
        for place, block in enumerate(self.blocks):
            if block.entry:
                self._add(place, sketch(learning_of(block, block.entry)))
                self.replaced.add(as_target(block.entry.supersedes))
                self._seen(place, block.entry.heading_date, block.entry.verified)

    def receive(self, finding: Finding) -> None:
        """Take a finding: as a new entry, or as a duplicate of the entry or finding that says the same."""
        learning, target = sketch(_learning(finding)), as_target(finding.supersedes)
        # What replaces an entry is not the same as it, however alike the two sound.
        place = self._finder.find(learning, unlike=self.titled(target))
        is_new = place is None
        if place is None:
            place = len(self.blocks) + len(self.new)
            self._add(place, learning)
            self.new.append(finding)
            self.changed += 1
        else:
            self._find_again(place, finding)
        self._seen(place, finding.heading_date, finding.verified)
        if target:
            self.replacements.append(Replacement(finding, place, target, is_new))

    def titled(self, title: str) -> Sequence[int]:
        """The places of all entries and new findings of a normalised title, in order."""
        return self._titles.get(title, ())

    def _seen(self, place: int, *days: date | None) -> None:
        known = [day for day in (*days, self.days.get(place)) if day is not None and not is_to_come(day, self._today)]
        if known:
            self.days[place] = max(known)

    def _add(self, place: int, learning: Sketch) -> None:
        self._finder.add(place, learning)
        self._titles[learning.plain_title].append(place)

    def _find_again(self, place: int, finding: Finding) -> None:
        self.duplicates.append((finding, place))
        if place < len(self.blocks):
            before = self.blocks[place]
            self.blocks[place] = refreshed(before, finding, self._today)
            self.changed += self.blocks[place] is not before
            return
        first = self.new[place - len(self.blocks)]
        self.new[place - len(self.blocks)] = replace(
            first,
            verified=max(first.verified, finding.verified),
            confidence=max(first.confidence, finding.confidence),
        )


def refreshed(block: Block, finding: Finding, today: date) -> Block:
    """The block of an entry that was found again: the later date, the higher confidence, nothing else."""
    entry = block.entry
    if entry is None or entry.layer not in _REFRESHED_LAYERS:
        return block
    seen = last_seen(entry, today)
    verified = min(finding.verified, today)
    if seen is None or verified > seen:
        block = with_verified(block, verified)
    held = DEFAULT_CONFIDENCE if entry.confidence is None else entry.confidence
    return with_confidence(block, finding.confidence) if finding.confidence > held else block


def last_seen(entry: Entry, today: date) -> date | None:
    """The day on which an entry was last found to be true, as far as it says. One in the future is a mistake."""
    days = (day for day in (entry.verified, entry.heading_date) if day and not is_to_come(day, today))
    return next(days, None)


def is_to_come(day: date, today: date) -> bool:
    """Whether a day is so far ahead that it must be a mistake, and no other time zone."""
    return day > today + timedelta(days=1)


def _learning(finding: Finding) -> Learning:
    tidy = tidied(finding)
    title = f"{tidy.kind}: {tidy.title}" if tidy.kind else tidy.title
    return Learning(title, tidy.text, tidy.evidence, tidy.layer)


def as_target(supersedes: str | None) -> str:
    """The normalised title that is meant by what stands behind `supersedes`; empty for nothing."""
    return normalise_title(bare_title(supersedes.strip().strip(_QUOTES))) if supersedes else ""
