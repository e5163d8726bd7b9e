"""Plan what leaves a memory file today, and what replaces it.

1. Expiry: observations without references for long, at any file size; while the file is over its limit also inscribed
   and traced entries that are old and low.
2. Pressure, if the file is over its limit then: all noise beyond its budget is removed. While that is not enough,
   inscribed entries are condensed, then the rest of the noise is removed, then the lowest inscribed entries, a few a
   day, stopping as soon as the file fits.
3. Protected blocks (etched, notes, opaque, of an unknown layer) never move. Neither does a pinned entry.

All text that is removed or condensed is verbatim in the plan's archived entries. A plan for a file that is still over
its limit explains why, in lines, and whether another day will help.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from datetime import date
from typing import NamedTuple

from echod.memory.document import count_lines
from echod.memory.identity import entry_ids
from echod.memory.knowledge import extract_material, knowledge_blocks
from echod.memory.merge import round_trips
from echod.memory.model import Block, Document, Layer
from echod.memory.policy.archive import ArchivedEntry, select_archive_file, to_archived_entry
from echod.memory.policy.candidates import (
    PruneCandidate,
    allowed_in_knowledge,
    condense_block,
    expired_at_any_size,
    expired_over_limit,
    inscribed_allowance,
    inscribed_queue,
    long_queue,
    noise_budget,
    noise_queue,
)
from echod.memory.policy.scoring import (
    NOISE_LAYERS,
    EntryStatus,
    Facts,
    ScoreTerms,
    count_document_lines,
    entry_statuses,
)
from echod.memory.policy_model import PolicySettings, PruneAction, PruneExtent, Rule
from echod.memory.text import pluralize

# A learning removed for lack of room, not for its age, leaves its points in the knowledge file.
_SUMMARIZED_RULES = frozenset({Rule.LONG, Rule.LOWEST_INSCRIBED})


_Statuses = Sequence[EntryStatus]


class EntryAction(NamedTuple):
    """The action on one entry."""

    id: str
    title: str
    layer: Layer | None  # None for an unknown one
    score: float | None  # None for an unknown layer
    terms: ScoreTerms | None
    rule: Rule | None  # None where the entry is unchanged
    action: PruneAction
    is_protected: bool  # only the user may touch it, at any age
    pinned_until: date | None  # the last day on which no rule touches it


class PrunePlan(NamedTuple):
    """The actions of prune today. The dry run shows it, the job carries it out."""

    role: str
    actions: tuple[EntryAction, ...]  # every entry in file order
    memory: bytes | None  # the new bytes of the memory file; None if unchanged
    archived: tuple[ArchivedEntry, ...]  # the entries for the archive, in file order
    archive: str  # the archive file that condensed entries name, relative to the role
    knowledge: tuple[str, ...]  # blocks to add to the knowledge file
    lines_before: int  # lines of the file now
    lines_after: int  # lines of the new file
    over_limit: OverLimit | None  # why it is still over its limit; None if it is not
    inscribed_archived: int  # entries removed by rule `lowest-inscribed`; they count against today's allowance
    # Old id -> new id of the entries whose id changes, because an exact repeat of theirs was removed. Apply all of it
    # in one step, after the removed ids are processed.
    id_changes: Mapping[str, str]

    @property
    def extent(self) -> PruneExtent:
        """How much it removes."""
        removed = [a for a in self.actions if a.action in (PruneAction.ARCHIVE, PruneAction.COMPRESS)]
        inscribed = sum(a.layer is Layer.INSCRIBED for a in removed)
        return PruneExtent(self.lines_before, self.lines_after, len(self.actions), len(removed), inscribed)

    @property
    def summary(self) -> str:
        """The plan in one line."""
        counts = {action: sum(a.action is action for a in self.actions) for action in PruneAction}
        words = {
            PruneAction.ARCHIVE: "archived",
            PruneAction.COMPRESS: "compressed",
            PruneAction.CONDENSE: "condensed",
        }
        parts = [f"{counts[action]} {word}" for action, word in words.items() if counts[action]]
        return f"{', '.join(parts) or 'nothing to do'}; {self.lines_before} -> {self.lines_after} lines"


class OverLimit(NamedTuple):
    """The lines of a file that is over its limit, by the reason that keeps them."""

    lines: int
    limit: int
    protected: int  # lines that only the user may remove: etched, notes, entries of an unknown layer, other text
    pinned: int  # lines of pinned entries
    deferred: int  # lines of entries that are due on another day
    not_removable: int  # lines that no rule can remove, because the text around them would read differently

    @property
    def can_shrink_tomorrow(self) -> bool:
        """Pruning again tomorrow can make the file shorter. Otherwise the file waits for the user."""
        return self.deferred > 0

    @property
    def description(self) -> str:
        """The reasons in a sentence."""
        parts = (
            (self.protected, "only you may remove (etched, notes, other text)"),
            (self.pinned, "are pinned"),
            (self.deferred, "are inscribed entries, and a few of those may be removed each day"),
            (self.not_removable, "contain a code block or comment that is never closed; close it"),
        )
        details = "; ".join(f"{pluralize(lines, 'line')} {what}" for lines, what in parts if lines)
        return f"{self.lines} lines, {self.lines - self.limit} over the limit of {self.limit}: {details}."


def plan_prune(
    role: str, document: Document, facts: Facts, policy: PolicySettings, today: date, *, archive: str | None = None
) -> PrunePlan:
    """Plan what leaves a memory file today. The same arguments always make the same plan.

    `archive` is the archive file for the text, relative to the role (`select_archive_file` finds it).
    """
    archive = archive or select_archive_file(today.year, {})
    statuses = entry_statuses(role, document, facts, policy, today)
    draft = _PruneDraft(document, statuses, policy, archive)
    _remove_expired(draft, statuses, policy)
    _reduce_to_limit(draft, statuses, policy, inscribed_allowance(statuses, facts.inscribed_archived_today, policy))
    draft.keep_last_entry()
    after = draft.document()
    if not round_trips(after):
        # Code or comments that are never closed can connect blocks in ways that no rule anticipates.
        draft = _PruneDraft(document, statuses, policy, archive)
        after = document
    return _build_plan(role, document, after, statuses, draft, policy, today, archive)


def _remove_expired(draft: _PruneDraft, statuses: Sequence[EntryStatus], policy: PolicySettings) -> None:
    for status in expired_at_any_size(statuses, policy):
        draft.remove(PruneCandidate(status, Rule.EXPIRED))
    for status in expired_over_limit(statuses, policy):
        if not draft.is_over_limit():
            return
        draft.remove(PruneCandidate(status, Rule.EXPIRED))


def _reduce_to_limit(draft: _PruneDraft, statuses: _Statuses, policy: PolicySettings, allowance: int) -> None:
    if not draft.is_over_limit():
        return
    noise = noise_queue(statuses, policy)
    for candidate in draft.remaining(noise):
        if not draft.exceeds_noise_budget() and candidate.rule is not Rule.SAME_TITLE:
            break
        draft.remove(candidate)
    for candidate in draft.remaining(long_queue(statuses, policy)):
        if not draft.is_over_limit():
            return
        draft.condense(candidate)
    for candidate in draft.remaining(noise):
        if not draft.is_over_limit():
            return
        draft.remove(PruneCandidate(candidate.status, Rule.REMAINING_NOISE))
    for candidate in list(draft.remaining(inscribed_queue(statuses)))[:allowance]:
        if not draft.is_over_limit():
            return
        draft.remove(candidate)


class _PruneDraft:
    """A plan in progress: removes entries from a file, and counts its lines."""

    def __init__(self, document: Document, statuses: _Statuses, policy: PolicySettings, archive: str) -> None:
        self.removed: dict[int, PruneCandidate] = {}
        self.condensed: dict[int, Block] = {}
        self._document = document
        self._archive = archive
        self._limit = policy.memory_line_limit
        self._budget = noise_budget(policy)
        self._lines = count_document_lines(document)
        self._noise = sum(s.file_lines for s in statuses if s.layer in NOISE_LAYERS)

    def is_over_limit(self) -> bool:
        return self._lines > self._limit

    def exceeds_noise_budget(self) -> bool:
        """Return whether observations and traced entries take more than their budget."""
        return self._noise > self._budget

    def contains(self, status: EntryStatus) -> bool:
        return status.index not in self.removed

    def remove(self, candidate: PruneCandidate) -> None:
        status = candidate.status
        self.removed[status.index] = candidate
        block = self.condensed.get(status.index)
        self._lines -= count_lines(block.text) if block else status.file_lines
        if status.layer in NOISE_LAYERS:
            self._noise -= status.file_lines

    def keep_last_entry(self) -> None:
        """Restore the entry removed last, if the file would be empty, because an emptied file looks like a lost one."""
        if self.removed and not self.document().render().strip():
            _, candidate = self.removed.popitem()
            status = candidate.status
            block = self.condensed.get(status.index)
            self._lines += count_lines(block.text) if block else status.file_lines
            self._noise += status.file_lines if status.layer in NOISE_LAYERS else 0

    def condense(self, candidate: PruneCandidate) -> None:
        """Condense an entry, if that makes it shorter."""
        status = candidate.status
        block = condense_block(status.block, status.id, self._archive)
        if block is not None:
            self.condensed[status.index] = block
            self._lines += count_lines(block.text) - status.file_lines

    def remaining(self, queue: Iterable[PruneCandidate]) -> Iterable[PruneCandidate]:
        """Return the candidates of a queue that are still in the file, in its order."""
        return (candidate for candidate in queue if self.contains(candidate.status))

    def document(self) -> Document:
        blocks = enumerate(self._document.blocks)
        return Document(
            self._document.preamble,
            tuple(self.condensed.get(index, block) for index, block in blocks if index not in self.removed),
        )

    def action_of(self, status: EntryStatus) -> PruneAction:
        candidate = self.removed.get(status.index)
        if candidate is not None:
            return candidate.action
        return PruneAction.CONDENSE if status.index in self.condensed else PruneAction.KEEP


def _build_plan(
    role: str,
    document: Document,
    after: Document,
    statuses: Sequence[EntryStatus],
    draft: _PruneDraft,
    policy: PolicySettings,
    today: date,
    archive: str,
) -> PrunePlan:
    actions = tuple(_entry_action(status, draft) for status in statuses)
    changed = [(s, a) for s, a in zip(statuses, actions, strict=True) if a.rule is not None]
    archived = tuple(
        to_archived_entry(s.block, s.id, role, a.rule, today, score=s.score, terms=s.terms)
        for s, a in changed
        if a.rule is not None
    )
    compressed = {s.index for s, a in changed if a.action is PruneAction.COMPRESS or a.rule in _SUMMARIZED_RULES}
    summarized = [s for s, _ in changed if s.index in compressed | draft.condensed.keys() and allowed_in_knowledge(s)]
    return PrunePlan(
        role=role,
        actions=actions,
        memory=after.render() if changed else None,
        archived=archived,
        archive=archive,
        knowledge=knowledge_blocks([extract_material(s.block, s.entry, s.verified) for s in summarized]),
        lines_before=count_document_lines(document),
        lines_after=count_document_lines(after),
        over_limit=_measure_over_limit(document, after, statuses, draft.removed, policy),
        inscribed_archived=sum(a.rule is Rule.LOWEST_INSCRIBED for a in actions),
        id_changes=_id_changes(role, after, [s for s in statuses if draft.contains(s)]) if changed else {},
    )


def _entry_action(status: EntryStatus, draft: _PruneDraft) -> EntryAction:
    candidate = draft.removed.get(status.index)
    action = draft.action_of(status)
    rule = candidate.rule if candidate else Rule.LONG if action is PruneAction.CONDENSE else None
    return EntryAction(
        id=status.id,
        title=status.entry.title,
        layer=status.layer,
        score=status.score,
        terms=status.terms,
        rule=rule,
        action=action,
        is_protected=status.is_protected,
        pinned_until=status.pinned_until,
    )


def _id_changes(role: str, after: Document, remaining: Sequence[EntryStatus]) -> Mapping[str, str]:
    new = [entry_id for entry_id in entry_ids(role, after) if entry_id is not None]
    return {s.id: entry_id for s, entry_id in zip(remaining, new, strict=True) if s.id != entry_id}


def _measure_over_limit(
    document: Document,
    after: Document,
    statuses: Sequence[EntryStatus],
    removed: Container[int],
    policy: PolicySettings,
) -> OverLimit | None:
    """Return why `after` is over its limit; None if it is not. `removed` are indexes of entries in `document`."""
    lines = count_document_lines(after)
    if lines <= policy.memory_line_limit:
        return None
    remaining = [index for index in range(len(document.blocks)) if index not in removed]
    lines_by_index = {index: count_lines(block.text) for index, block in zip(remaining, after.blocks, strict=True)}
    movable = [s for s in statuses if s.index in lines_by_index and not s.is_protected]
    pinned = sum(lines_by_index[s.index] for s in movable if s.pinned_until is not None)
    deferred = sum(lines_by_index[s.index] for s in movable if s.is_removable)
    not_removable = sum(lines_by_index[s.index] for s in movable) - pinned - deferred
    return OverLimit(
        lines=lines,
        limit=policy.memory_line_limit,
        protected=lines - pinned - not_removable - deferred,
        pinned=pinned,
        deferred=deferred,
        not_removable=not_removable,
    )
