"""Plan what leaves a memory file today and what replaces it, and the compression of a knowledge file over its limit.

1. Expiry: observations without references for long, at any file size; while the file is over its limit also inscribed
   and traced entries that are old and low.
2. Pressure, if the file is over its limit then: the steps of `pressure`, stopping as soon as the file fits.
3. Protected blocks (etched, notes, opaque, of an unknown layer) never move. Neither does a pinned entry.

The text of every entry that is removed or changed is verbatim in the plan's archived entries. A plan for a file that is
still over its limit explains why, in lines, and whether another day will help.

Nothing is lost, because every text that leaves the file is archived verbatim. Protected and pinned entries, opaque
blocks, and entries that read like instructions to agents are unchanged.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import date
from typing import NamedTuple

from echod.memory import KNOWLEDGE_FILE
from echod.memory.archive import ArchivedEntry, select_archive_file, to_archived_entry
from echod.memory.document import count_lines, parse, parse_block, round_trips
from echod.memory.edit import learnings, split_body
from echod.memory.identity import entry_ids
from echod.memory.knowledge import CompressibleEntry, compress_knowledge, extract_materials, knowledge_blocks
from echod.memory.knowledge.blocks import BlockMaterial
from echod.memory.model import Block, Document, Layer
from echod.memory.policy.draft import EntryChange, PruneDraft
from echod.memory.policy.pressure import reduce_to_limit
from echod.memory.policy.scoring import (
    NOISE_LAYERS,
    EntryStatus,
    Facts,
    allowed_in_knowledge,
    count_document_lines,
    entry_statuses,
    expired_at_any_size,
    expired_over_limit,
    noise_budget,
)
from echod.memory.policy_model import PolicySettings, PruneAction, PruneExtent, Rule, ScoreTerms
from echod.memory.text import pluralize

_FEW_LINES = 5
"""Lines above the limit that are not worth a question to the user."""


class EntryAction(NamedTuple):
    """The action on one entry."""

    id: str
    title: str
    layer: Layer | None  # None for an unknown one
    score: float | None  # None for an unknown layer
    terms: ScoreTerms | None
    rule: Rule | None  # the last rule that applied; None where the entry is unchanged
    action: PruneAction
    is_protected: bool  # only the user may touch it, at any age
    pinned_until: date | None  # the last day on which no rule touches it
    rules: tuple[Rule, ...] = ()  # every rule that applied, in order
    learnings: tuple[str, ...] = ()  # the learnings that leave the entry, or leave with it, to make room
    merged_into: str | None = None  # the id of the entry that counts it from now on


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
    learnings_archived: int  # learnings removed by rule `lowest-learning`; they count against today's allowance
    # Old id -> new id of the entries whose id changes, because an exact repeat of theirs was removed. Apply all of it
    # in one step, after the removed ids are processed.
    id_changes: Mapping[str, str]
    # Id of an entry that was rolled up -> id of the entry that counts it, which gets its references.
    merged: Mapping[str, str]

    @property
    def extent(self) -> PruneExtent:
        """How much it removes. An entry without content is no inscribed learning."""
        removed = [a for a in self.actions if a.action not in (PruneAction.KEEP, PruneAction.CONDENSE)]
        lossy = [a for a in self.actions if (a in removed and a.rule is not Rule.EMPTY) or a.learnings]
        inscribed = sum(a.layer is Layer.INSCRIBED for a in lossy)
        return PruneExtent(self.lines_before, self.lines_after, len(self.actions), len(removed), inscribed)

    @property
    def summary(self) -> str:
        """The plan in one line."""
        counts = {action: sum(a.action is action for a in self.actions) for action in PruneAction}
        words = {
            PruneAction.ARCHIVE: "archived",
            PruneAction.COMPRESS: "compressed",
            PruneAction.CONDENSE: "condensed",
            PruneAction.ROLL_UP: "rolled up",
        }
        parts = [f"{counts[action]} {word}" for action, word in words.items() if counts[action]]
        if self.learnings_archived:
            parts.append(f"{pluralize(self.learnings_archived, 'learning')} moved to knowledge.md")
        return f"{', '.join(parts) or 'nothing to do'}; {self.lines_before} -> {self.lines_after} lines"


class OverLimit(NamedTuple):
    """The lines of a file that is over its limit, by the reason that keeps them."""

    lines: int
    limit: int
    protected: int  # lines that only the user may remove: etched, notes, entries of an unknown layer, other text
    pinned: int  # lines of pinned entries
    best: int  # lines of the best learnings and of the noise within its budget, which stay in any case
    deferred: int  # lines of entries that are due on another day
    not_removable: int  # lines that no rule can remove, because the text around them would read differently
    protected_kinds: tuple[str, ...] = ()  # what the protected lines are

    @property
    def can_shrink_tomorrow(self) -> bool:
        """Pruning again tomorrow can make the file shorter. Otherwise the file waits for the user."""
        return self.deferred > 0

    @property
    def needs_user(self) -> bool:
        """No day makes the file fit, and it is more than a few lines too long."""
        return not self.can_shrink_tomorrow and self.lines - self.limit > _FEW_LINES

    @property
    def description(self) -> str:
        """The reasons in a sentence."""
        parts = (
            (self.protected, f"only you may remove ({', '.join(self.protected_kinds) or 'above the first entry'})"),
            (self.pinned, "are pinned"),
            (self.best, "are the best learnings and the most telling observations, which stay"),
            (self.deferred, "are learnings, and a few of those may be removed each day"),
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
    draft = PruneDraft(document, statuses, policy)
    _remove_expired(draft, statuses, policy)
    reduce_to_limit(draft, facts, today)
    _keep_best_entry(draft)
    if not draft.changes:
        draft.remove_pointer()
    if not round_trips(draft.document()):
        # Code or comments that are never closed can connect blocks in ways that no rule anticipates.
        draft = PruneDraft(document, statuses, policy)
    return _build_plan(role, document, draft, today, archive)


def _remove_expired(draft: PruneDraft, statuses: Sequence[EntryStatus], policy: PolicySettings) -> None:
    for status in expired_at_any_size(statuses, policy):
        draft.remove(status.index, Rule.EXPIRED)
    for status in expired_over_limit(statuses, policy):
        if not draft.is_over_limit():
            return
        draft.remove(status.index, Rule.EXPIRED)


def _keep_best_entry(draft: PruneDraft) -> None:
    """Restore the best entry where pressure would leave none, or the file would be empty and look like a lost one."""
    if not draft.changes or any(index in draft.statuses for index in draft.remaining()):
        return
    under_pressure = [index for index, change in draft.changes.items() if change.rules != [Rule.EXPIRED]]
    if under_pressure or not draft.document().render().strip():
        best = max(under_pressure or draft.changes, key=lambda index: draft.statuses[index].removal_order)
        draft.restore(best)


def _build_plan(role: str, document: Document, draft: PruneDraft, today: date, archive: str) -> PrunePlan:
    after = draft.document()
    changed = [(draft.statuses[index], change) for index, change in sorted(draft.changes.items())]
    ids_after = dict(zip(draft.remaining(), entry_ids(role, after), strict=True))
    merged = {draft.statuses[index].id: ids_after[kept] or "" for index, kept in draft.merged.items()}
    actions = tuple(_entry_action(status, draft, merged) for status in draft.statuses.values())
    materials = [material for status, change in changed for material in _knowledge_materials(status, change)]
    return PrunePlan(
        role=role,
        actions=actions,
        memory=after.render() if changed else None,
        archived=tuple(
            to_archived_entry(s.block, s.id, role, c.rules[-1], today, score=s.score, terms=s.terms) for s, c in changed
        ),
        archive=archive,
        knowledge=knowledge_blocks(materials) if materials else (),
        lines_before=count_document_lines(document),
        lines_after=count_document_lines(after),
        over_limit=_measure_over_limit(draft),
        learnings_archived=sum(max(1, len(c.removed_learnings)) for _, c in changed if Rule.LOWEST_LEARNING in c.rules),
        id_changes={
            status.id: new
            for index, new in ids_after.items()
            if (status := draft.statuses.get(index)) and new and new != status.id and status.id not in merged
        },
        merged=merged,
    )


def _entry_action(status: EntryStatus, draft: PruneDraft, merged: Mapping[str, str]) -> EntryAction:
    change = draft.changes.get(status.index)
    return EntryAction(
        id=status.id,
        title=status.entry.title,
        layer=status.layer,
        score=status.score,
        terms=status.terms,
        rule=change.rules[-1] if change else None,
        action=change.action if change else PruneAction.KEEP,
        is_protected=status.is_protected,
        pinned_until=status.pinned_until,
        rules=tuple(change.rules) if change else (),
        learnings=_removed_learnings(change),
        merged_into=merged.get(status.id),
    )


def _removed_learnings(change: EntryChange | None) -> tuple[str, ...]:
    if change is None or change.before_removal is None:
        return ()
    parts = learnings(split_body(change.before_removal.body))
    return tuple(parts[position].text for position in change.removed_learnings if position < len(parts))


def _knowledge_materials(status: EntryStatus, change: EntryChange) -> tuple[BlockMaterial, ...]:
    """Return what an entry leaves in the knowledge file: its learnings that left for space, whole."""
    if not allowed_in_knowledge(status) or status.block.entry is None:
        return ()
    if change.action is PruneAction.COMPRESS:
        block = change.before_removal or status.block
        return extract_materials(block, block.entry or status.entry, status.verified, whole=True)
    if change.before_removal is not None and change.before_removal.entry is not None:
        left = _only_learnings(change.before_removal, change.removed_learnings)
        return extract_materials(left, left.entry or status.entry, status.verified, whole=True)
    return ()


def _only_learnings(block: Block, positions: Sequence[int]) -> Block:
    """Return the entry with only these of its learnings."""
    parts = learnings(split_body(block.body))
    body = "\n".join(parts[position].text for position in positions)
    start = block.entry.body.start if block.entry else 0
    return parse_block(f"{block.text[:start]}{body}\n")


def _measure_over_limit(draft: PruneDraft) -> OverLimit | None:
    """Return why the file is over its limit; None if it is not."""
    lines = count_document_lines(draft.document())
    limit = draft.policy.memory_line_limit
    if lines <= limit:
        return None
    movable = [s for i in draft.remaining() if (s := draft.statuses.get(i)) is not None and not s.is_protected]
    pinned = sum(draft.lines_of(s.index) for s in movable if s.pinned_until is not None)
    removable = [s for s in movable if s.is_removable]
    noise = sum(draft.lines_of(s.index) for s in removable if s.layer in NOISE_LAYERS)
    inscribed = sum(draft.lines_of(s.index) for s in removable) - noise
    not_removable = sum(draft.lines_of(s.index) for s in movable) - pinned - noise - inscribed
    best = noise + min(inscribed, noise_budget(draft.policy))
    return OverLimit(
        lines=lines,
        limit=limit,
        protected=lines - pinned - not_removable - noise - inscribed,
        pinned=pinned,
        best=best,
        deferred=noise + inscribed - best,
        not_removable=not_removable,
        protected_kinds=tuple(_protected_kinds(draft)),
    )


def _protected_kinds(draft: PruneDraft) -> Iterator[str]:
    """Yield what only the user may remove: layers, and text that is no entry."""
    remaining = [draft.statuses.get(index) for index in draft.remaining()]
    protected = {status.layer for status in remaining if status is not None and status.is_protected}
    yield from (layer.value for layer in Layer if layer in protected)
    if None in protected:
        yield "entries of an unknown layer"
    if None in remaining:
        yield "text that is no entry"


_CHARACTERS_PER_TOKEN = 4


class CompressPlan(NamedTuple):
    """The compression of today."""

    role: str
    knowledge: bytes | None  # the new bytes of the knowledge file; None if unchanged
    archived: tuple[ArchivedEntry, ...]  # the entries for the archive, in file order
    lines_before: int  # lines of the file now
    lines_after: int  # lines of the new file
    tokens_before: int  # the approximate number of tokens that an agent reads now
    tokens_after: int  # the approximate number of tokens in the new file
    limit: int  # lines; a file that is still over it contains protected text and waits for the user

    @property
    def summary(self) -> str:
        """The plan in one line."""
        counts = Counter(entry.rule for entry in self.archived)
        words = {Rule.CONDENSED: "condensed", Rule.TOPIC: "compressed", Rule.OLDEST_KNOWLEDGE: "archived"}
        parts = [f"{counts[rule.value]} {word}" for rule, word in words.items() if counts[rule.value]]
        return f"{', '.join(parts) or 'nothing to do'}; {self.lines_before} -> {self.lines_after} lines"


def plan_compress(role: str, document: Document, facts: Facts, policy: PolicySettings, today: date) -> CompressPlan:
    """Plan what happens to a knowledge file today. The arguments are those of `plan_prune`, with the knowledge file."""
    old_data = document.render()
    lines = count_document_lines(document)
    archived: list[ArchivedEntry] = []
    new_data = old_data
    if lines > policy.knowledge_line_limit:
        statuses = {s.index: s for s in entry_statuses(role, document, facts, policy, today)}
        sources = [
            CompressibleEntry(s.index, s.block, s.entry, s.verified)
            for s in statuses.values()
            if s.is_removable and allowed_in_knowledge(s)
        ]
        result = compress_knowledge(document, sources, policy.knowledge_line_limit)
        rules = dict.fromkeys(result.condensed, Rule.CONDENSED)
        rules |= dict.fromkeys(result.merged, Rule.TOPIC)
        rules |= dict.fromkeys(result.dropped, Rule.OLDEST_KNOWLEDGE)
        if _preserves_other_blocks(document, result.data, rules.keys()):
            new_data = result.data
            for index, rule in sorted(rules.items()):
                status = statuses[index]
                entry = to_archived_entry(status.block, status.id, role, rule, today, file=KNOWLEDGE_FILE)
                archived.append(entry)
    return CompressPlan(
        role=role,
        knowledge=new_data if archived else None,
        archived=tuple(archived),
        lines_before=lines,
        lines_after=count_lines(new_data.decode()),
        tokens_before=len(old_data.decode()) // _CHARACTERS_PER_TOKEN,
        tokens_after=len(new_data.decode()) // _CHARACTERS_PER_TOKEN,
        limit=policy.knowledge_line_limit,
    )


def _preserves_other_blocks(document: Document, data: bytes, compressed: Collection[int]) -> bool:
    """Return whether every block that was not compressed reads as before."""
    reparsed = parse(data)
    if not isinstance(reparsed, Document) or reparsed.preamble != document.preamble:
        return False
    present_texts = {block.text.rstrip() for block in reparsed.blocks}
    untouched = [block for index, block in enumerate(document.blocks) if index not in compressed]
    return len(reparsed.blocks) >= len(untouched) and all(block.text.rstrip() in present_texts for block in untouched)
