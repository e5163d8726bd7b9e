"""Pressure: the order in which entries leave a file that is over its limit.

The order is by layer, because a fresh observation outscores a month-old learning and there are fifty of them a day:
first noise beyond its budget (observations and traced entries), then length (long inscribed entries are condensed),
then what is left of the noise, then the lowest inscribed entries, a few a day. Each queue here is a fixed order that
does not depend on the limit; `prune` takes from them as
much as it must. So a lower limit always takes more of the
same.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from echod.memory.identity import normalise_title
from echod.memory.layers import Layer
from echod.memory.policy.condense import is_condensed
from echod.memory.policy.model import Policy
from echod.memory.policy.rules import Action, Rule
from echod.memory.policy.scoring import Standing
from echod.memory.prompt_injection import speaks_to_agents


@dataclass(frozen=True, slots=True)
class Leaving:
    """An entry in a queue, why its turn comes there, and what then becomes of it."""

    standing: Standing
    rule: Rule
    action: Action = Action.ARCHIVE


def noise_budget(policy: Policy) -> int:
    """Lines that observations and traced entries may take together."""
    return math.floor(_share(policy.noise_share) * policy.memory_line_limit)


def noise_queue(standings: Iterable[Standing], policy: Policy) -> tuple[Leaving, ...]:
    """All observations and traced entries that may go, the first to go first.

    Of observations with the same title all but the newest; the lowest traced entries; the middle of the traced ones,
    which are compressed; the other observations from the lowest on; last the best of the traced ones.
    """
    free = [s for s in standings if s.free]
    observations = [s for s in free if s.layer is Layer.OBSERVATIONS]
    repeated = _older_of_same_title(observations)
    again = {s.index for s in repeated}
    once = sorted((s for s in observations if s.index not in again), key=lambda s: s.order)
    lowest, middle, best = _thirds([s for s in free if s.layer is Layer.TRACED], policy)
    return (
        *(Leaving(s, Rule.SAME_TITLE) for s in repeated),
        *(Leaving(s, Rule.LOWEST_TRACED) for s in lowest),
        *(Leaving(s, Rule.MIDDLE_TRACED, Action.COMPRESS if may_be_told(s) else Action.ARCHIVE) for s in middle),
        *(Leaving(s, Rule.NOISE_BUDGET) for s in (*once, *best)),
    )


def may_be_told(standing: Standing) -> bool:
    """Whether an entry may leave its points in the knowledge file: not if it reads like an instruction to agents.

    There it would stand among learnings, above what it was.
    """
    return speaks_to_agents(standing.block.text) is None


def long_queue(standings: Iterable[Standing], policy: Policy) -> tuple[Leaving, ...]:
    """The inscribed entries that may be condensed, the longest first."""
    long = (
        s
        for s in standings
        if s.free
        and s.layer is Layer.INSCRIBED
        and s.lines > policy.condense_over_lines
        and not is_condensed(s.block, s.entry)
    )
    return tuple(Leaving(s, Rule.LONG, Action.CONDENSE) for s in sorted(long, key=lambda s: (-s.lines, *s.order)))


def inscribed_queue(standings: Iterable[Standing]) -> tuple[Leaving, ...]:
    """The inscribed entries that may go, the lowest first."""
    inscribed = (s for s in standings if s.free and s.layer is Layer.INSCRIBED)
    return tuple(Leaving(s, Rule.LOWEST_INSCRIBED) for s in sorted(inscribed, key=lambda s: s.order))


def inscribed_allowance(standings: Iterable[Standing], archived_today: int, policy: Policy) -> int:
    """How many inscribed entries may still be archived for room today."""
    had = sum(1 for s in standings if s.layer is Layer.INSCRIBED) + archived_today
    return max(0, max(1, math.floor(_share(policy.daily_inscribed_share) * had)) - archived_today)


def _older_of_same_title(observations: Sequence[Standing]) -> list[Standing]:
    by_title: defaultdict[str, list[Standing]] = defaultdict(list)
    for standing in observations:
        by_title[normalise_title(standing.entry.title)].append(standing)
    older = []
    for same in by_title.values():
        newest = max(same, key=lambda s: (s.verified, s.index))
        older += [s for s in same if s is not newest]
    return sorted(older, key=lambda s: s.order)


def _thirds(traced: list[Standing], policy: Policy) -> tuple[list[Standing], list[Standing], list[Standing]]:
    """The lowest, the middle and the best of the traced entries, each from the lowest on."""
    ranked = sorted(traced, key=lambda s: s.order)
    best = math.floor(_share(policy.traced_keep_share) * len(ranked))
    middle = min(len(ranked) - best, max(1, math.ceil(_share(policy.traced_compress_share) * len(ranked))))
    lowest = len(ranked) - best - middle
    return ranked[:lowest], ranked[lowest : lowest + middle], ranked[lowest + middle :]


def _share(number: float) -> Fraction:
    """The number as it is written, so that 0.35 of 20 is 7 and 0.3 of 10 is 3."""
    return Fraction(repr(float(number)))
