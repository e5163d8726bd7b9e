"""Pressure: the order in which entries leave a file that is over its limit.

The order is by layer, because a fresh observation outscores a month-old learning and there are fifty of them a day:
first noise beyond its budget (observations and traced entries), then length (long inscribed entries are condensed),
then what is left of the noise, then the lowest inscribed entries, a few a day. Each queue here is a fixed order that
does not depend on the limit; `prune` takes from them as
much as it must. So a lower limit always takes more of the
same.

Expiry: what nobody referenced for its layer's age.

Observations expire at any file size. Inscribed and traced entries expire only while the file is over its limit, and
only with a low score.

Condensing: a long entry becomes its heading, its metadata and the lead sentence of each learning.

The last line names where the full text is, and by it a condensed entry is known and never condensed again.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import date, timedelta
from fractions import Fraction
from typing import NamedTuple

from echod.memory import markdown
from echod.memory.document import parse_block
from echod.memory.identity import normalise_title
from echod.memory.knowledge.text import first_sentence, learnings
from echod.memory.model import Block, Entry, Layer
from echod.memory.policy.scoring import Standing, Terms, entry_lines, recency, score_of
from echod.memory.policy_model import Action, Policy, Rule
from echod.memory.prompt_injection import speaks_to_agents
from echod.memory.redact import redact


class Age(NamedTuple):
    """When entries of a layer expire: after so many unreferenced days, and with a score below this (None: any)."""

    days: int
    below: float | None


def age_of(layer: Layer | None, policy: Policy) -> Age | None:
    """The layer's age; None where entries do not expire."""
    if layer is Layer.OBSERVATIONS:
        return Age(policy.observations_days, None)
    if layer is Layer.INSCRIBED:
        return Age(policy.inscribed_days, policy.inscribed_score)
    if layer is Layer.TRACED:
        return Age(policy.traced_days, policy.traced_score)
    return None


def expired(standing: Standing, policy: Policy) -> bool:
    """Whether the entry is old enough (and low enough) to go."""
    age = age_of(standing.layer, policy)
    if age is None or standing.score is None or standing.idle_days < age.days:
        return False
    return age.below is None or standing.score < age.below


def expired_at_any_size(standings: Iterable[Standing], policy: Policy) -> tuple[Standing, ...]:
    """The observations that go whatever the size of the file, the first to go first."""
    old = (s for s in standings if s.free and s.layer is Layer.OBSERVATIONS and expired(s, policy))
    return tuple(sorted(old, key=lambda s: s.order))


def expired_over_limit(standings: Iterable[Standing], policy: Policy) -> tuple[Standing, ...]:
    """The inscribed and traced entries that go while the file is over its limit, the first to go first."""
    old = (s for s in standings if s.free and s.layer is not Layer.OBSERVATIONS and expired(s, policy))
    return tuple(sorted(old, key=lambda s: s.order))


def expires_on(standing: Standing, policy: Policy, today: date) -> date | None:
    """The first day on which the entry is old and low enough; None if it never will be as things are.

    It reckons that the project is alive every day from tomorrow on, that nobody references the entry, and that the
    share of workflows that referenced it stays the same.
    """
    age = age_of(standing.layer, policy)
    if age is None or standing.layer is None or standing.terms is None:
        return None
    day = today + timedelta(days=max(0, age.days - standing.idle_days))
    if age.below is None:
        return day
    lowest = standing.verified + timedelta(days=policy.max_age(standing.layer) or 0)
    while not _low(standing, policy, day, age.below):
        if day >= lowest:
            return None
        day += timedelta(days=1)
    return day


def _low(standing: Standing, policy: Policy, day: date, below: float) -> bool:
    if standing.terms is None or standing.layer is None:
        return False
    then = recency(standing.layer, standing.verified, policy, day)
    return score_of(Terms(standing.terms.importance, standing.terms.relevance, then), policy) < below


_POINTER = re.compile(r"- Full text: `archive/[\w.-]+`, entry [0-9a-f]{12}\.")


def condensed(block: Block, identity: str, archive: str) -> Block | None:
    """The block condensed; None where that would save no line or not read back as the same entry.

    Args:
        block: an entry.
        identity: its id, under which the archive has the full text.
        archive: the archive file, relative to the role (`archive/pruned-2026.md`).
    """
    entry = block.entry
    if entry is None or is_condensed(block, entry):
        return None
    text = block.text
    newline = "\r\n" if text.partition("\n")[0].endswith("\r") else "\n"
    kept = [
        text[_line_start(text, f.span.start) : f.span.end].rstrip()
        for f in entry.fields
        if f.span.start >= entry.body.start
    ]
    leads = dict.fromkeys(first_sentence(learning) for learning in learnings(text[entry.body.start : entry.body.end]))
    pointer = f"- Full text: `{archive}`, entry {identity}."
    body = [*kept, *([""] if kept else []), *(f"- {redact(lead).text}" for lead in leads), pointer]
    result = parse_block(text[: entry.body.start] + newline.join(body) + _tail(text, entry, newline))
    if entry_lines(result.text) >= entry_lines(text) or not _same_but_for_body(entry, result):
        return None
    return result


def is_condensed(block: Block, entry: Entry) -> bool:
    """Whether the entry's last line says that the full text is in the archive."""
    last_line = block.text[entry.body.start : entry.body.end].rpartition("\n")[2]
    return _POINTER.fullmatch(last_line.strip()) is not None


def _line_start(text: str, position: int) -> int:
    return text.rfind("\n", 0, position) + 1


def _tail(text: str, entry: Entry, newline: str) -> str:
    """What stands behind the body: blank lines, a separator, the file's rhythm."""
    tail = text[entry.body.end :].lstrip(" \t")
    # A separator right below text could make a heading of it.
    return newline + newline + tail.lstrip("\r\n") if tail.strip(" \t\r\n") else tail


def _same_but_for_body(entry: Entry, result: Block) -> bool:
    new = result.entry
    return (
        new is not None
        and (new.form, new.layer, new.title, new.kind, new.heading_date)
        == (entry.form, entry.layer, entry.title, entry.kind, entry.heading_date)
        and [(field.name, field.value) for field in new.fields] == [(f.name, f.value) for f in entry.fields]
        and is_condensed(result, new)
        and markdown.structure(result.text).closing is None
    )


class Leaving(NamedTuple):
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
