"""Match findings with a memory file: which are new, and which are duplicates of an entry.

A duplicate refreshes its entry (verified: the later day, confidence: the higher one), whose text stays. A protected
entry (etched, a note, or of an unknown layer) is not even refreshed, because only the user changes those.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from datetime import date
from typing import NamedTuple

from echod.memory.compose import normalize_finding
from echod.memory.edit import with_confidence, with_verified
from echod.memory.findings import Finding
from echod.memory.identity import normalize_title
from echod.memory.model import DEFAULT_CONFIDENCE, Block, Document, Entry, full_title
from echod.memory.policy_model import MAX_FUTURE
from echod.memory.similarity import DuplicateFinder, Learning, LearningFeatures, bare_title, features_of, learning_of

_QUOTES = "\"'\u201c\u201d\u2018\u2019"


class SupersedeRequest(NamedTuple):
    """A finding, now at `block_index`, that replaces the entries of this title."""

    finding: Finding
    block_index: int
    target: str
    is_new: bool


class FindingMatcher:
    """Matches findings one after the other.

    An *index* is a block's number in the file; the indexes of new findings follow those of the blocks.

    Attributes:
        blocks: the blocks of the file, with entries refreshed by duplicates.
        new: the findings that no entry contains, in order.
        duplicates: the findings that an entry or an earlier finding contains, each with its index.
        supersede_requests: the findings that name the title they replace, in order.
        days: by index, the last day on which the learning was learned or verified; indexes without a known day are
            absent.
        superseded_titles: the normalised titles that entries of the file have in `supersedes`.
        changed_count: the number of new or refreshed entries.
    """

    def __init__(self, document: Document, today: date) -> None:
        self.blocks = list(document.blocks)
        self.new: list[Finding] = []
        self.duplicates: list[tuple[Finding, int]] = []
        self.supersede_requests: list[SupersedeRequest] = []
        self.days: dict[int, date] = {}
        self.superseded_titles: set[str] = set()
        self.changed_count = 0
        self._today = today
        self._duplicate_finder = DuplicateFinder()
        self._indexes_by_title: defaultdict[str, list[int]] = defaultdict(list)
        for index, block in enumerate(self.blocks):
            if block.entry:
                self._register(index, features_of(learning_of(block, block.entry)))
                self.superseded_titles.add(supersedes_key(block.entry.supersedes))
                self._record_days(index, block.entry.heading_date, block.entry.verified)

    def add(self, finding: Finding) -> None:
        """Add a finding, as a new entry or as a duplicate of an equal entry or finding."""
        learning, target = features_of(_to_learning(finding)), supersedes_key(finding.supersedes)
        # A finding that replaces an entry is not a duplicate of it, however similar they are.
        index = self._duplicate_finder.find(learning, excluded=self.with_title(target))
        is_new = index is None
        if index is None:
            index = len(self.blocks) + len(self.new)
            self._register(index, learning)
            self.new.append(finding)
            self.changed_count += 1
        else:
            self._refresh_existing(index, finding)
        self._record_days(index, finding.heading_date, finding.verified)
        if target:
            self.supersede_requests.append(SupersedeRequest(finding, index, target, is_new))

    def with_title(self, title: str) -> Sequence[int]:
        """Return the indexes of all entries and new findings of a normalised title, in order."""
        return self._indexes_by_title.get(title, ())

    def _record_days(self, index: int, *days: date | None) -> None:
        plausible_days = [
            day for day in (*days, self.days.get(index)) if day is not None and not is_future(day, self._today)
        ]
        if plausible_days:
            self.days[index] = max(plausible_days)

    def _register(self, index: int, learning: LearningFeatures) -> None:
        self._duplicate_finder.add(index, learning)
        self._indexes_by_title[learning.normalized_title].append(index)

    def _refresh_existing(self, index: int, finding: Finding) -> None:
        self.duplicates.append((finding, index))
        if index < len(self.blocks):
            before = self.blocks[index]
            self.blocks[index] = _refresh_entry(before, finding, self._today)
            self.changed_count += self.blocks[index] is not before
            return
        first = self.new[index - len(self.blocks)]
        self.new[index - len(self.blocks)] = replace(
            first,
            verified=max(first.verified, finding.verified),
            confidence=max(first.confidence, finding.confidence),
        )


def _refresh_entry(block: Block, finding: Finding, today: date) -> Block:
    """Return the block of an entry that has a duplicate, with the later date and the higher confidence."""
    entry = block.entry
    if entry is None or entry.protected:
        return block
    last_day = _last_verified(entry, today)
    verified = min(finding.verified, today)
    if last_day is None or verified > last_day:
        block = with_verified(block, verified)
    current_confidence = DEFAULT_CONFIDENCE if entry.confidence is None else entry.confidence
    return with_confidence(block, finding.confidence) if finding.confidence > current_confidence else block


def _last_verified(entry: Entry, today: date) -> date | None:
    """Return the day on which an entry was last verified, if it has one. A day in the future is a mistake."""
    days = (day for day in (entry.verified, entry.heading_date) if day and not is_future(day, today))
    return next(days, None)


def _to_learning(finding: Finding) -> Learning:
    normalized = normalize_finding(finding)
    return Learning(
        full_title(normalized.kind, normalized.title), normalized.text, normalized.evidence, normalized.layer
    )


def is_future(day: date, today: date) -> bool:
    """Return whether a day is so far ahead that it must be a mistake, and not another time zone."""
    return day > today + MAX_FUTURE


def supersedes_key(supersedes: str | None) -> str:
    """Return the normalised title in a `supersedes` value; empty without one."""
    return normalize_title(bare_title(supersedes.strip().strip(_QUOTES))) if supersedes else ""
