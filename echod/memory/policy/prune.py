"""Prune: what leaves a memory file today, and where it goes.

1. Expiry: observations that nobody referenced for long, at any file size; while the file is over its limit also
   inscribed and traced entries that are old and low.
2. Pressure, where the file is over its limit then: noise beyond its budget goes, all of it. While that is not enough,
   the length of inscribed entries, then the rest of the noise, then the lowest inscribed entries, a few a day,
   stopping as soon as the file fits.
3. Etched, notes, opaque blocks and entries of an unknown layer never move; nor does a pinned entry.

Everything that leaves, and everything that is condensed, stands verbatim in what the plan archives.

The file while a plan is made: what was taken so far, and whether it fits.

Why a file is still over its limit after it was pruned, in lines, and whether another day will help.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from datetime import date
from typing import NamedTuple

from echod.memory.identity import entry_ids
from echod.memory.knowledge import knowledge_blocks, material_of
from echod.memory.merge import reads_as_written
from echod.memory.model import Block, Document, Layer
from echod.memory.policy.archive import ArchivedEntry, archive_name, archived_entry
from echod.memory.policy.candidates import (
    Leaving,
    condensed,
    expired_at_any_size,
    expired_over_limit,
    inscribed_allowance,
    inscribed_queue,
    long_queue,
    may_be_told,
    noise_budget,
    noise_queue,
)
from echod.memory.policy.scoring import NOISE_LAYERS, Facts, Standing, Terms, document_lines, room, standings
from echod.memory.policy_model import Action, Policy, Rule


class Desk:
    """Takes entries out of a file, and counts lines."""

    def __init__(self, document: Document, standings: Sequence[Standing], policy: Policy, archive: str) -> None:
        self.taken: dict[int, Leaving] = {}
        self.condensed: dict[int, Block] = {}
        self._document = document
        self._archive = archive
        self._limit = policy.memory_line_limit
        self._budget = noise_budget(policy)
        self._lines = document_lines(document)
        self._noise = sum(s.room for s in standings if s.layer in NOISE_LAYERS)

    @property
    def lines(self) -> int:
        """Lines of the file as it would be now."""
        return self._lines

    def is_over(self) -> bool:
        """Whether the file is over its limit as it would be now."""
        return self._lines > self._limit

    def is_noisy(self) -> bool:
        """Whether observations and traced entries take more than their budget."""
        return self._noise > self._budget

    def has(self, standing: Standing) -> bool:
        """Whether the entry still stands in the file."""
        return standing.index not in self.taken

    def take(self, leaving: Leaving) -> None:
        """Take an entry out."""
        standing = leaving.standing
        self.taken[standing.index] = leaving
        block = self.condensed.get(standing.index)
        self._lines -= room(block.text) if block else standing.room
        if standing.layer in NOISE_LAYERS:
            self._noise -= standing.room

    def spare_last(self) -> None:
        """Put back what was taken last, if nothing would be left of the file: an emptied file looks like a lost one."""
        if self.taken and not self.document().render().strip():
            _, leaving = self.taken.popitem()
            standing = leaving.standing
            block = self.condensed.get(standing.index)
            self._lines += room(block.text) if block else standing.room
            self._noise += standing.room if standing.layer in NOISE_LAYERS else 0

    def condense(self, leaving: Leaving) -> None:
        """Condense an entry, if that makes it shorter."""
        standing = leaving.standing
        block = condensed(standing.block, standing.id, self._archive)
        if block is not None:
            self.condensed[standing.index] = block
            self._lines += room(block.text) - standing.room

    def waiting(self, queue: Iterable[Leaving]) -> Iterable[Leaving]:
        """What of a queue still stands in the file, in its order."""
        return (leaving for leaving in queue if self.has(leaving.standing))

    def document(self) -> Document:
        """The file as it would be now."""
        blocks = enumerate(self._document.blocks)
        return Document(
            self._document.preamble,
            tuple(self.condensed.get(index, block) for index, block in blocks if index not in self.taken),
        )

    def action_of(self, standing: Standing) -> Action:
        """What becomes of an entry."""
        leaving = self.taken.get(standing.index)
        if leaving is not None:
            return leaving.action
        return Action.CONDENSE if standing.index in self.condensed else Action.KEEP


class OverLimit(NamedTuple):
    """The lines of a file that is over its limit, by what keeps them there.

    Attributes:
        lines: lines of the file.
        limit: its limit.
        protected: lines that only a person may remove: etched, notes, entries of an unknown layer, other text.
        pinned: lines of entries that are pinned.
        waiting: lines of entries whose turn comes on another day.
        stuck: lines that no rule can take out, because what stands around them would read differently.
    """

    lines: int
    limit: int
    protected: int
    pinned: int
    waiting: int
    stuck: int

    @property
    def another_day_helps(self) -> bool:
        """Whether pruning again tomorrow can make the file shorter. Without it the file waits for a person."""
        return self.waiting > 0

    @property
    def sentence(self) -> str:
        """All of it in words."""
        parts = (
            (self.protected, "only a person may remove (etched, notes, other text)"),
            (self.pinned, "are pinned"),
            (self.waiting, "are inscribed entries, of which a few may go each day"),
            (self.stuck, "hold a code block or comment that is never closed; close it"),
        )
        told = "; ".join(f"{lines} {'line' if lines == 1 else 'lines'} {what}" for lines, what in parts if lines)
        return f"{self.lines} lines, {self.lines - self.limit} over the limit of {self.limit}: {told}."


def over_limit(
    document: Document, after: Document, found: Sequence[Standing], taken: Container[int], policy: Policy
) -> OverLimit | None:
    """Why `after` is over its limit; None if it is not.

    Args:
        document: the file before.
        after: the file then.
        found: every entry before.
        taken: places of the entries that are no longer in the file.
        policy: the numbers.
    """
    lines = document_lines(after)
    if lines <= policy.memory_line_limit:
        return None
    kept = [index for index in range(len(document.blocks)) if index not in taken]
    size = {index: room(block.text) for index, block in zip(kept, after.blocks, strict=True)}
    staying = [s for s in found if s.index in size]
    pinned = sum(size[s.index] for s in staying if not s.protected and s.pinned_until is not None)
    stuck = sum(size[s.index] for s in staying if not s.protected and s.pinned_until is None and s.separates)
    waiting = sum(size[s.index] for s in staying if s.free)
    return OverLimit(
        lines=lines,
        limit=policy.memory_line_limit,
        protected=lines - pinned - stuck - waiting,
        pinned=pinned,
        waiting=waiting,
        stuck=stuck,
    )


_TOLD = frozenset({Rule.LONG, Rule.LOWEST_INSCRIBED})
"""A learning that goes for want of room, not for its age, leaves its points in the knowledge file."""


class EntryAction(NamedTuple):
    """What becomes of one entry.

    Attributes:
        layer: None where it is not known.
        score: None with it.
        rule: None where the entry stays as it is.
        protected: only a person may touch it, whatever its age.
        pinned_until: the last day on which no rule touches it.
    """

    id: str
    title: str
    layer: Layer | None
    score: float | None
    terms: Terms | None
    rule: Rule | None
    action: Action
    protected: bool
    pinned_until: date | None


class PrunePlan(NamedTuple):
    """What prune would do today. The dry run shows it, the job does it.

    Attributes:
        role: the role.
        actions: every entry in file order.
        memory: the new bytes of the memory file; None if nothing changes.
        archived: what goes to the archive, in file order.
        archive: the archive file that condensed entries name, relative to the role.
        knowledge: blocks to add to the knowledge file.
        lines_before: lines of the file now.
        lines_after: lines of the file then.
        over_limit: why it is still over its limit; None if it is not.
        inscribed_archived: entries that rule `lowest-inscribed` takes; they count against today's allowance.
        renumbered: old id -> new id of the entries that stay under another id, because an exact repeat of theirs
            went. Apply all of it in one step, after the ids of the entries that went are done with.
    """

    role: str
    actions: tuple[EntryAction, ...]
    memory: bytes | None
    archived: tuple[ArchivedEntry, ...]
    archive: str
    knowledge: tuple[str, ...]
    lines_before: int
    lines_after: int
    over_limit: OverLimit | None
    inscribed_archived: int
    renumbered: Mapping[str, str]

    @property
    def summary(self) -> str:
        """The plan in one line."""
        counts = {action: sum(a.action is action for a in self.actions) for action in Action}
        told = [
            f"{count} {word}"
            for action, word in (
                (Action.ARCHIVE, "archived"),
                (Action.COMPRESS, "compressed"),
                (Action.CONDENSE, "condensed"),
            )
            if (count := counts[action])
        ]
        return f"{', '.join(told) or 'nothing to do'}; {self.lines_before} -> {self.lines_after} lines"


def plan_prune(
    role: str, document: Document, facts: Facts, policy: Policy, today: date, *, archive: str | None = None
) -> PrunePlan:
    """Decide what leaves a memory file today. The same arguments always give the same plan.

    Args:
        role: the role's name; part of the entries' ids.
        document: the memory file.
        facts: what is known about its entries and the project.
        policy: the numbers.
        today: the local day.
        archive: the archive file that will take the text, relative to the role (`archive_name` finds it).
    """
    archive = archive or archive_name(today.year, {})
    found = standings(role, document, facts, policy, today)
    desk = Desk(document, found, policy, archive)
    _expire(desk, found, policy)
    _press(desk, found, policy, inscribed_allowance(found, facts.inscribed_archived_today, policy))
    desk.spare_last()
    after = desk.document()
    if not reads_as_written(after):
        # A file with code or comments that are never closed can hang together in ways that no rule foresees.
        desk = Desk(document, found, policy, archive)
        after = document
    return _plan(role, document, after, found, desk, policy, today, archive)


def _expire(desk: Desk, found: Sequence[Standing], policy: Policy) -> None:
    for standing in expired_at_any_size(found, policy):
        desk.take(Leaving(standing, Rule.EXPIRED))
    for standing in expired_over_limit(found, policy):
        if not desk.is_over():
            return
        desk.take(Leaving(standing, Rule.EXPIRED))


def _press(desk: Desk, found: Sequence[Standing], policy: Policy, allowance: int) -> None:
    if not desk.is_over():
        return
    noise = noise_queue(found, policy)
    for leaving in desk.waiting(noise):
        if not desk.is_noisy() and leaving.rule is not Rule.SAME_TITLE:
            break
        desk.take(leaving)
    for leaving in desk.waiting(long_queue(found, policy)):
        if not desk.is_over():
            return
        desk.condense(leaving)
    for leaving in desk.waiting(noise):
        if not desk.is_over():
            return
        desk.take(Leaving(leaving.standing, Rule.REMAINING_NOISE))
    for leaving in list(desk.waiting(inscribed_queue(found)))[:allowance]:
        if not desk.is_over():
            return
        desk.take(leaving)


def _plan(
    role: str,
    document: Document,
    after: Document,
    found: Sequence[Standing],
    desk: Desk,
    policy: Policy,
    today: date,
    archive: str,
) -> PrunePlan:
    actions = tuple(_action(standing, desk) for standing in found)
    moved = [(s, a) for s, a in zip(found, actions, strict=True) if a.rule is not None]
    archived = tuple(
        archived_entry(s.block, s.id, role, a.rule, today, score=s.score, terms=s.terms)
        for s, a in moved
        if a.rule is not None
    )
    told = [s for s, a in moved if a.action is Action.COMPRESS or a.rule in _TOLD or s.index in desk.condensed]
    told = [s for s in told if may_be_told(s)]
    lines_after = document_lines(after)
    return PrunePlan(
        role=role,
        actions=actions,
        memory=after.render() if moved else None,
        archived=archived,
        archive=archive,
        knowledge=knowledge_blocks([material_of(s.block, s.entry, s.verified) for s in told]),
        lines_before=document_lines(document),
        lines_after=lines_after,
        over_limit=over_limit(document, after, found, desk.taken, policy),
        inscribed_archived=sum(a.rule is Rule.LOWEST_INSCRIBED for a in actions),
        renumbered=_renumbered(role, after, [s for s in found if desk.has(s)]) if moved else {},
    )


def _action(standing: Standing, desk: Desk) -> EntryAction:
    leaving = desk.taken.get(standing.index)
    action = desk.action_of(standing)
    rule = leaving.rule if leaving else Rule.LONG if action is Action.CONDENSE else None
    return EntryAction(
        id=standing.id,
        title=standing.entry.title,
        layer=standing.layer,
        score=standing.score,
        terms=standing.terms,
        rule=rule,
        action=action,
        protected=standing.protected,
        pinned_until=standing.pinned_until,
    )


def _renumbered(role: str, after: Document, stay: Sequence[Standing]) -> Mapping[str, str]:
    new = [identity for identity in entry_ids(role, after) if identity is not None]
    return {s.id: identity for s, identity in zip(stay, new, strict=True) if s.id != identity}
