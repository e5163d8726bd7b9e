"""Select the entries that may be pruned, in a fixed order that does not depend on the line limit.

Expiry removes entries without references for their layer's age. Observations expire at any file size. Inscribed and
traced entries expire only while the file is over its limit, and only with a low score.

Pressure removes entries while the file is over its limit. The order is by layer, because a fresh observation outscores
a month-old learning and there are fifty of them a day: first noise beyond its budget (observations and traced entries),
then length (long inscribed entries are condensed), then the rest of the noise, then the lowest inscribed entries, a few
a day. `prune` takes from each queue as much as it must, so a lower limit always removes a superset.

Condensing shortens a long entry to its heading, its metadata and the lead sentence of each learning. The last line
names the archive file with the full text. It also marks the entry, which is never condensed again.
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
from echod.memory.identity import normalize_title
from echod.memory.knowledge.text import extract_learnings, first_sentence
from echod.memory.model import Block, Entry, Layer
from echod.memory.policy.scoring import EntryStatus, ScoreTerms, compute_score, count_entry_lines, recency
from echod.memory.policy_model import PolicySettings, PruneAction, Rule
from echod.memory.prompt_injection import find_injection
from echod.memory.redact import redact

_POINTER = re.compile(r"- Full text: `archive/[\w.-]+`, entry [0-9a-f]{12}\.")


class PruneCandidate(NamedTuple):
    """A candidate for removal: the entry, the rule that selected it, and the action."""

    status: EntryStatus
    rule: Rule
    action: PruneAction = PruneAction.ARCHIVE


class ExpiryThreshold(NamedTuple):
    """When entries of a layer expire: after this number of idle days, with a score below this (None: any)."""

    days: int
    score_below: float | None


def expiry_threshold(layer: Layer | None, policy: PolicySettings) -> ExpiryThreshold | None:
    """Return the threshold of a layer; None where entries do not expire."""
    scores = {Layer.OBSERVATIONS: None, Layer.INSCRIBED: policy.inscribed_score, Layer.TRACED: policy.traced_score}
    days = policy.max_age_days(layer) if layer else None
    return ExpiryThreshold(days, scores[layer]) if layer and days is not None else None


def expires_on(status: EntryStatus, policy: PolicySettings, today: date) -> date | None:
    """Return the first day on which the entry is old and low enough; None if it never will be under present conditions.

    This assumes that the project is alive every day from tomorrow on, that nothing references the entry, and that the
    share of workflows that referenced it stays the same.
    """
    threshold = expiry_threshold(status.layer, policy)
    if threshold is None or status.layer is None or status.terms is None:
        return None
    day = today + timedelta(days=max(0, threshold.days - status.idle_days))
    if threshold.score_below is None:
        return day
    zero_recency_day = status.verified + timedelta(days=policy.max_age_days(status.layer) or 0)
    while not _scores_below(status, policy, day, threshold.score_below):
        if day >= zero_recency_day:
            return None
        day += timedelta(days=1)
    return day


def _scores_below(status: EntryStatus, policy: PolicySettings, day: date, threshold: float) -> bool:
    if status.terms is None or status.layer is None:
        return False
    later_recency = recency(status.layer, status.verified, policy, day)
    return compute_score(ScoreTerms(status.terms.importance, status.terms.relevance, later_recency), policy) < threshold


def expired_at_any_size(statuses: Iterable[EntryStatus], policy: PolicySettings) -> tuple[EntryStatus, ...]:
    """Return the observations that expire regardless of the size of the file, in order of removal."""
    return _expired((s for s in statuses if s.layer is Layer.OBSERVATIONS), policy)


def expired_over_limit(statuses: Iterable[EntryStatus], policy: PolicySettings) -> tuple[EntryStatus, ...]:
    """Return the inscribed and traced entries that expire while the file is over its limit, in order of removal."""
    return _expired((s for s in statuses if s.layer is not Layer.OBSERVATIONS), policy)


def _expired(statuses: Iterable[EntryStatus], policy: PolicySettings) -> tuple[EntryStatus, ...]:
    expired = (s for s in statuses if s.is_removable and _is_expired(s, policy))
    return tuple(sorted(expired, key=lambda s: s.removal_order))


def _is_expired(status: EntryStatus, policy: PolicySettings) -> bool:
    """Return whether the entry is old enough (and low enough) to expire."""
    threshold = expiry_threshold(status.layer, policy)
    if threshold is None or status.score is None or status.idle_days < threshold.days:
        return False
    return threshold.score_below is None or status.score < threshold.score_below


def noise_budget(policy: PolicySettings) -> int:
    """Return the lines that observations and traced entries may take together."""
    return math.floor(_exact_fraction(policy.noise_share) * policy.memory_line_limit)


def noise_queue(statuses: Iterable[EntryStatus], policy: PolicySettings) -> tuple[PruneCandidate, ...]:
    """Return all removable observations and traced entries, in order of removal.

    The order: of observations with the same title all but the newest; the lowest traced entries; the middle of the
    traced entries, which are compressed; the other observations from the lowest on; the best traced entries.
    """
    removable = [s for s in statuses if s.is_removable]
    observations = [s for s in removable if s.layer is Layer.OBSERVATIONS]
    repeated = _older_duplicates(observations)
    repeated_indexes = {s.index for s in repeated}
    unrepeated = sorted((s for s in observations if s.index not in repeated_indexes), key=lambda s: s.removal_order)
    compress, archive = PruneAction.COMPRESS, PruneAction.ARCHIVE
    lowest, middle, best = _split_traced([s for s in removable if s.layer is Layer.TRACED], policy)
    return (
        *(PruneCandidate(s, Rule.SAME_TITLE) for s in repeated),
        *(PruneCandidate(s, Rule.LOWEST_TRACED) for s in lowest),
        *(PruneCandidate(s, Rule.MIDDLE_TRACED, compress if allowed_in_knowledge(s) else archive) for s in middle),
        *(PruneCandidate(s, Rule.NOISE_BUDGET) for s in (*unrepeated, *best)),
    )


def _older_duplicates(observations: Sequence[EntryStatus]) -> list[EntryStatus]:
    by_title: defaultdict[str, list[EntryStatus]] = defaultdict(list)
    for status in observations:
        by_title[normalize_title(status.entry.title)].append(status)
    older = []
    for same in by_title.values():
        newest = max(same, key=lambda s: (s.verified, s.index))
        older += [s for s in same if s is not newest]
    return sorted(older, key=lambda s: s.removal_order)


def _split_traced(traced: list[EntryStatus], policy: PolicySettings) -> tuple[list[EntryStatus], ...]:
    """Return the lowest, the middle and the best of the traced entries, each from the lowest on."""
    ranked = sorted(traced, key=lambda s: s.removal_order)
    best = math.floor(_exact_fraction(policy.traced_keep_share) * len(ranked))
    middle = min(len(ranked) - best, max(1, math.ceil(_exact_fraction(policy.traced_compress_share) * len(ranked))))
    lowest = len(ranked) - best - middle
    return ranked[:lowest], ranked[lowest : lowest + middle], ranked[lowest + middle :]


def _exact_fraction(number: float) -> Fraction:
    """Return the number as it is written, so that 0.35 of 20 is 7 and 0.3 of 10 is 3."""
    return Fraction(repr(float(number)))


def allowed_in_knowledge(status: EntryStatus) -> bool:
    """Return whether an entry's points may go to the knowledge file: not if it reads like an instruction to agents.

    There it would be among learnings, with a higher standing than it had.
    """
    return find_injection(status.block.text) is None


def long_queue(statuses: Iterable[EntryStatus], policy: PolicySettings) -> tuple[PruneCandidate, ...]:
    """Return the inscribed entries that may be condensed, the longest first."""
    inscribed = (s for s in statuses if s.is_removable and s.layer is Layer.INSCRIBED)
    long = [s for s in inscribed if s.content_lines > policy.condense_over_lines and not is_condensed(s.block)]
    long.sort(key=lambda s: (-s.content_lines, *s.removal_order))
    return tuple(PruneCandidate(s, Rule.LONG, PruneAction.CONDENSE) for s in long)


def inscribed_queue(statuses: Iterable[EntryStatus]) -> tuple[PruneCandidate, ...]:
    """Return the removable inscribed entries, the lowest first."""
    inscribed = (s for s in statuses if s.is_removable and s.layer is Layer.INSCRIBED)
    return tuple(PruneCandidate(s, Rule.LOWEST_INSCRIBED) for s in sorted(inscribed, key=lambda s: s.removal_order))


def inscribed_allowance(statuses: Iterable[EntryStatus], archived_today: int, policy: PolicySettings) -> int:
    """Return the number of inscribed entries that may still be archived today to make room."""
    inscribed_count = sum(1 for s in statuses if s.layer is Layer.INSCRIBED) + archived_today
    return max(0, max(1, math.floor(_exact_fraction(policy.daily_inscribed_share) * inscribed_count)) - archived_today)


def condense_block(block: Block, entry_id: str, archive: str) -> Block | None:
    """Return an entry condensed; None if that would save no line or not read back as the same entry.

    The archive file, relative to the role (`archive/pruned-2026.md`), has the full text under the entry's id.
    """
    entry = block.entry
    if entry is None or is_condensed(block):
        return None
    text = block.text
    newline = "\r\n" if text.partition("\n")[0].endswith("\r") else "\n"
    spans = [field.span for field in entry.fields if field.span.start >= entry.body.start]
    body_fields = [text[text.rfind("\n", 0, span.start) + 1 : span.end].rstrip() for span in spans]
    leads = dict.fromkeys(first_sentence(learning) for learning in extract_learnings(block.body))
    pointer = f"- Full text: `{archive}`, entry {entry_id}."
    body = [*body_fields, *([""] if body_fields else []), *(f"- {redact(lead).text}" for lead in leads), pointer]
    result = parse_block(text[: entry.body.start] + newline.join(body) + _tail(text, entry, newline))
    if count_entry_lines(result.text) >= count_entry_lines(text) or not _differs_only_in_body(entry, result):
        return None
    return result


def _tail(text: str, entry: Entry, newline: str) -> str:
    """Return the text behind the body: blank lines and a separator."""
    tail = text[entry.body.end :].lstrip(" \t")
    # A separator right below text could make the text a heading.
    return newline + newline + tail.lstrip("\r\n") if tail.strip(" \t\r\n") else tail


def _differs_only_in_body(entry: Entry, result: Block) -> bool:
    new = result.entry
    return (
        new is not None
        and (new.form, new.layer, new.title, new.kind, new.heading_date)
        == (entry.form, entry.layer, entry.title, entry.kind, entry.heading_date)
        and [(field.name, field.value) for field in new.fields] == [(f.name, f.value) for f in entry.fields]
        and is_condensed(result)
        and markdown.parse_structure(result.text).closing is None
    )


def is_condensed(block: Block) -> bool:
    """Return whether the last line of the block's entry names the archive with the full text."""
    last_line = block.body.rpartition("\n")[2]
    return _POINTER.fullmatch(last_line.strip()) is not None
