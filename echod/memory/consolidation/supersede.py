"""Which entries give way to findings that say what they replace (`supersedes: title`).

The one entry of that title goes to the archive, if it is older and may be taken out. In every other case a person
decides: a title that fits nothing, or several, or something newer is more likely a mistake than an order.

Why an agent's word that its finding replaces an entry is left to a person.
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
    """Why nothing gave way to a finding that says what it replaces."""

    NONE = "none"
    SEVERAL = "several"
    NEWER = "newer"
    PROTECTED = "protected"
    PINNED = "pinned"
    UNCLOSED_BLOCK = "unclosed-block"


class ResolvedSupersede(NamedTuple):
    """The place of what gives way, and for what."""

    block_index: int
    request: SupersedeRequest


@dataclass(frozen=True, slots=True)
class UnresolvedSupersede:
    """Nothing gives way, and why."""

    request: SupersedeRequest
    problem: SupersedeProblem


def resolve_supersedes(
    matcher: FindingMatcher, today: date, is_pinned: Callable[[int], bool]
) -> tuple[list[ResolvedSupersede], list[UnresolvedSupersede]]:
    """What gives way to the findings received, in the order of their days, and what is left to a person.

    Args:
        matcher: all that was received.
        today: the local day.
        is_pinned: whether the entry at a place is pinned.
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
        # What was learned, or found to be true again, on a later day is newer. What has no day is older.
        day = _effective_day(request.finding, today)
        older = [index for index in remaining if matcher.days.get(index, day) <= day]
        problem = _find_problem(remaining, older, matcher, is_pinned)
        if problem is None:
            resolved[older[0]] = ResolvedSupersede(older[0], request)
        elif problem is not SupersedeProblem.NONE or not _was_already_superseded(request, resolved, matcher):
            unresolved.append(UnresolvedSupersede(request, problem))
    return [resolved[index] for index in sorted(resolved)], unresolved


def _final_index(index: int, resolved: Mapping[int, ResolvedSupersede]) -> int:
    """What stands in the end for what stood at a place. Were it to give way too, all of a circle would be gone."""
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
    """Whether what a finding replaces is known to be gone: the same was said before, by itself or another one."""
    if not request.is_new or any(index in resolved for index in matcher.with_title(request.target)):
        return True
    return request.target in matcher.superseded_titles


def _effective_day(finding: Finding, today: date) -> date:
    return finding.verified if is_future(finding.heading_date, today) else finding.heading_date


def _entry_at(index: int, matcher: FindingMatcher) -> Entry | None:
    """The entry at a place of the file; None for a finding."""
    return matcher.blocks[index].entry if index < len(matcher.blocks) else None
