"""Match findings with a memory file: new ones, duplicates of an entry, and those that supersede an entry.

A duplicate refreshes its entry (verified: the later day, confidence: the higher one), whose text stays. A protected
entry (etched, a note, or of an unknown layer) is not even refreshed, because only the user changes those.

A finding with `supersedes: title` archives the one entry of that title, if it is older and may be removed. In every
other case the user decides, because a title that matches nothing, or several entries, or a newer one is more likely a
mistake than an order.

All text that is stored later (entries, the archived copy of a findings file, a quarantined one) comes from here.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from enum import StrEnum
from typing import NamedTuple

from echod.lazy import lazy_pattern
from echod.memory.compose import normalize_finding
from echod.memory.edit import with_confidence, with_verified
from echod.memory.findings import Finding, read_findings
from echod.memory.identity import normalize_title
from echod.memory.model import DEFAULT_CONFIDENCE, Block, Document, Unreadable, full_title
from echod.memory.policy_model import MAX_FUTURE
from echod.memory.redact import find_email_in_evidence, redact, redact_bytes
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
    """

    def __init__(self, document: Document, today: date) -> None:
        self.blocks = list(document.blocks)  # the blocks of the file, with entries refreshed by duplicates
        self.new: list[Finding] = []  # the findings that no entry contains, in order
        # The findings that an entry or an earlier finding contains, each with its index.
        self.duplicates: list[tuple[Finding, int]] = []
        self.supersede_requests: list[SupersedeRequest] = []  # the findings that name the title they replace, in order
        # By index, the last day on which the learning was learned or verified; indexes without a known day are absent.
        self.days: dict[int, date] = {}
        self.superseded_titles: set[str] = set()  # the normalised titles that entries of the file have in `supersedes`
        self.changed_count = 0  # the number of new or refreshed entries
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
        plausible = [day for day in (*days, self.days.get(index)) if day and not is_future(day, self._today)]
        if plausible:
            self.days[index] = max(plausible)

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
    # A day in the future is a mistake.
    last_day = next((day for day in (entry.verified, entry.heading_date) if day and not is_future(day, today)), None)
    verified = min(finding.verified, today)
    if last_day is None or verified > last_day:
        block = with_verified(block, verified)
    current_confidence = DEFAULT_CONFIDENCE if entry.confidence is None else entry.confidence
    return with_confidence(block, finding.confidence) if finding.confidence > current_confidence else block


def _to_learning(finding: Finding) -> Learning:
    finding = normalize_finding(finding)
    return Learning(full_title(finding.kind, finding.title), finding.text, finding.evidence, finding.layer)


def is_future(day: date, today: date) -> bool:
    """Return whether a day is so far ahead that it must be a mistake, and not another time zone."""
    return day > today + MAX_FUTURE


def supersedes_key(supersedes: str | None) -> str:
    """Return the normalised title in a `supersedes` value; empty without one."""
    return normalize_title(bare_title(supersedes.strip().strip(_QUOTES))) if supersedes else ""


class SupersedeProblem(StrEnum):
    """The reasons why a finding superseded no entry."""

    NONE = "none"
    SEVERAL = "several"
    NEWER = "newer"
    PROTECTED = "protected"
    PINNED = "pinned"
    UNCLOSED_BLOCK = "unclosed-block"


class ResolvedSupersede(NamedTuple):
    """The index of the superseded entry, and the request."""

    block_index: int
    request: SupersedeRequest


class UnresolvedSupersede(NamedTuple):
    """A request that supersedes nothing, and the reason."""

    request: SupersedeRequest
    problem: SupersedeProblem


def resolve_supersedes(
    matcher: FindingMatcher, today: date, is_pinned: Callable[[int], bool]
) -> tuple[list[ResolvedSupersede], list[UnresolvedSupersede]]:
    """Return the requests that supersede an entry, in the order of their days, and those that the user decides."""
    resolved: dict[int, ResolvedSupersede] = {}
    unresolved: list[UnresolvedSupersede] = []
    for request in sorted(matcher.supersede_requests, key=lambda r: (_effective_day(r.finding, today), r.block_index)):
        same_title = matcher.with_title(request.target)
        replacing = _final_index(request.block_index, resolved)
        remaining = [index for index in same_title if index not in resolved and index != replacing]
        # An entry that was learned or verified on a later day is newer. An entry without a day is older.
        day = _effective_day(request.finding, today)
        older = [index for index in remaining if matcher.days.get(index, day) <= day]
        problem = _find_problem(remaining, older, matcher, is_pinned)
        if problem is None:
            resolved[older[0]] = ResolvedSupersede(older[0], request)
        elif problem is not SupersedeProblem.NONE or not _was_superseded(request, resolved, matcher):
            unresolved.append(UnresolvedSupersede(request, problem))
    return [resolved[index] for index in sorted(resolved)], unresolved


def _final_index(index: int, resolved: Mapping[int, ResolvedSupersede]) -> int:
    """Return the index that finally replaces an entry. Superseding that too would lose all entries of a circle."""
    while index in resolved:
        index = resolved[index].request.block_index
    return index


def _find_problem(
    remaining: Sequence[int], older: Sequence[int], matcher: FindingMatcher, is_pinned: Callable[[int], bool]
) -> SupersedeProblem | None:
    if not older:
        return SupersedeProblem.NEWER if remaining else SupersedeProblem.NONE
    if len(older) > 1:
        return SupersedeProblem.SEVERAL
    (index,) = older
    entry = matcher.blocks[index].entry if index < len(matcher.blocks) else None  # None for a finding
    if entry is not None and entry.protected:
        return SupersedeProblem.PROTECTED
    return SupersedeProblem.PINNED if entry is not None and is_pinned(index) else None


def _was_superseded(request: SupersedeRequest, resolved: Collection[int], matcher: FindingMatcher) -> bool:
    """Return whether the target was replaced before, by this finding or another one."""
    if not request.is_new or any(index in resolved for index in matcher.with_title(request.target)):
        return True
    return request.target in matcher.superseded_titles


def _effective_day(finding: Finding, today: date) -> date:
    return finding.verified if is_future(finding.heading_date, today) else finding.heading_date


# Also a word without "@", so that no word is scanned twice.
_EMAIL_OR_WORD = lazy_pattern(r"[A-Za-z0-9._%+-]++(?:@[A-Za-z0-9.-]+)?")
_EMAIL_MARKER = "[REDACTED:email]"
# The line limit of a findings file. A file full of tiny findings would take minutes and a gigabyte to parse.
_MAX_LINES = 200_000


@dataclass(frozen=True, slots=True)
class FindingsFile:
    """A findings file as it is on disk."""

    name: str  # the file's name in its role
    agent: str  # the agent that wrote it (the name without `-findings.md`)
    data: bytes
    date: date  # the local day on which it was last changed
    # A part of it was consumed before; known findings in it are not counted as duplicates.
    partly_consumed: bool = False


@dataclass(frozen=True, slots=True)
class AcceptedFile:
    """The findings of a file, and its text to archive, both without secrets."""

    file: FindingsFile
    findings: tuple[Finding, ...]
    redacted_data: bytes


@dataclass(frozen=True, slots=True)
class RejectedFile:
    """A findings file that cannot be read, the reason in a sentence, and its bytes to quarantine."""

    file: FindingsFile
    reason: str
    redacted_data: bytes


def read_and_redact(file: FindingsFile, today: date) -> AcceptedFile | RejectedFile:
    """Read a findings file and redact all of it. A file dated in the future counts as today's."""
    redacted_data = redact_bytes(file.data)
    lines = redacted_data.count(b"\n")
    if lines > _MAX_LINES:
        reason = f"It has {lines:,} lines, more than the limit of {_MAX_LINES:,}. Split it."
        return RejectedFile(file, reason, redacted_data)
    agent = redact(file.agent).text
    findings = read_findings(redacted_data, agent=agent, file_date=min(file.date, today))
    if isinstance(findings, Unreadable):
        return RejectedFile(file, findings.reason, redacted_data)
    cleaned = [_redact_addresses(finding) for finding in findings]
    addresses = frozenset[str]().union(*(removed for _, removed in cleaned))
    redacted_data = _mask_addresses(redacted_data.decode(), addresses).encode()
    return AcceptedFile(file, tuple(finding for finding, _ in cleaned), redacted_data)


def _redact_addresses(finding: Finding) -> tuple[Finding, frozenset[str]]:
    """Return the finding without e-mail addresses in its evidence, unless it is about e-mail, and those addresses."""
    if not finding.evidence or "@" not in finding.evidence:
        return finding, frozenset()
    line = f"evidence: {finding.evidence}"
    spans = find_email_in_evidence(f"{line}\n\n{finding.title}\n\n{finding.text}")
    addresses = frozenset(line[span.start : span.end] for span in spans if span.end <= len(line))
    return replace(finding, evidence=_mask_addresses(finding.evidence, addresses)), addresses


def _mask_addresses(text: str, addresses: frozenset[str]) -> str:
    """Return the text with a marker for each of these addresses, in one pass regardless of their number."""

    def mask(match: re.Match[str]) -> str:
        address = match[0].rstrip("-") if "@" in match[0] else ""
        while address and address not in addresses:
            address = address.rpartition(".")[0]  # the text behind an address may look like a part of it
        return _EMAIL_MARKER + match[0][len(address) :] if address else match[0]

    return _EMAIL_OR_WORD.sub(mask, text) if addresses else text
