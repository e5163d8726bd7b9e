"""Decide which entries are superseded by findings that name the title they replace (`supersedes: title`).

The one entry of that title is archived, if it is older and may be removed. In every other case the user decides,
because a title that matches nothing, or several entries, or a newer one is more likely a mistake than an order.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from enum import StrEnum
from typing import NamedTuple

from echod.memory.consolidation.deduplicate import FindingMatcher, SupersedeRequest, is_future
from echod.memory.findings import Finding
from echod.memory.model import Entry


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


@dataclass(frozen=True, slots=True)
class UnresolvedSupersede:
    """A request that supersedes nothing, and the reason."""

    request: SupersedeRequest
    problem: SupersedeProblem


def resolve_supersedes(
    matcher: FindingMatcher, today: date, is_pinned: Callable[[int], bool]
) -> tuple[list[ResolvedSupersede], list[UnresolvedSupersede]]:
    """Return the requests that supersede an entry, in the order of their days, and those that the user decides.

    Args:
        matcher: all findings.
        today: the local day.
        is_pinned: returns whether the entry at an index is pinned.
    """
    resolved: dict[int, ResolvedSupersede] = {}
    unresolved: list[UnresolvedSupersede] = []
    for request in sorted(matcher.supersede_requests, key=lambda r: (_effective_day(r.finding, today), r.block_index)):
        same_title = matcher.with_title(request.target)
        remaining = [
            index
            for index in same_title
            if index not in resolved and index != _final_index(request.block_index, resolved)
        ]
        # An entry that was learned or verified on a later day is newer. An entry without a day is older.
        day = _effective_day(request.finding, today)
        older = [index for index in remaining if matcher.days.get(index, day) <= day]
        problem = _find_problem(remaining, older, matcher, is_pinned)
        if problem is None:
            resolved[older[0]] = ResolvedSupersede(older[0], request)
        elif problem is not SupersedeProblem.NONE or not _was_already_superseded(request, resolved, matcher):
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
    entry = _entry_at(index, matcher)
    if entry is not None and entry.protected:
        return SupersedeProblem.PROTECTED
    return SupersedeProblem.PINNED if entry is not None and is_pinned(index) else None


def _was_already_superseded(
    request: SupersedeRequest, resolved: Mapping[int, ResolvedSupersede], matcher: FindingMatcher
) -> bool:
    """Return whether the target was replaced before, by this finding or another one."""
    if not request.is_new or any(index in resolved for index in matcher.with_title(request.target)):
        return True
    return request.target in matcher.superseded_titles


def _effective_day(finding: Finding, today: date) -> date:
    return finding.verified if is_future(finding.heading_date, today) else finding.heading_date


def _entry_at(index: int, matcher: FindingMatcher) -> Entry | None:
    """Return the entry at an index of the file; None for a finding."""
    return matcher.blocks[index].entry if index < len(matcher.blocks) else None
