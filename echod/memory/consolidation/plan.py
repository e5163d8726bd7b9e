"""Plan the consolidation of a role's findings, as a pure function of values.

A new finding becomes an entry at the end of the memory file. A duplicate of an entry only refreshes that entry. A
finding that was consumed before is skipped. A finding that names the title it replaces supersedes that entry, if there
is no doubt which one. A findings file that cannot be read is quarantined with the reason. An unreadable memory file
stops everything.

Read in this order: `similarity` (equal learnings), `deduplicate` (new, duplicate or replaced), this module.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import NamedTuple

from echod.memory.archive import ArchivedEntry, to_archived_entry
from echod.memory.compose import ComposeError, compose_entry, detect_form, detect_newline, with_entries
from echod.memory.consolidation.deduplicate import (
    AcceptedFile,
    FindingMatcher,
    FindingsFile,
    RejectedFile,
    ResolvedSupersede,
    SupersedeProblem,
    UnresolvedSupersede,
    read_and_redact,
    resolve_supersedes,
)
from echod.memory.document import new_memory_file, parse, parse_block, round_trips
from echod.memory.findings import Finding
from echod.memory.identity import entry_ids
from echod.memory.model import Block, Document, Layer, Unreadable
from echod.memory.policy_model import Rule

FindingsReader = Callable[[FindingsFile, date], AcceptedFile | RejectedFile]


class AppliedFinding(NamedTuple):
    """A finding, and the id of the entry that contains it.

    The finding became that entry or, as a duplicate, counts as one reference to it. `claimed` is the protected layer
    that it asked for, which only the user can give.
    """

    key: str
    id: str
    title: str
    claimed: Layer | None


class AppliedSupersede(NamedTuple):
    """An entry that was superseded by a finding."""

    key: str
    replaced_by: str  # the id of the entry that contains the finding
    title: str  # the title of the superseded entry
    archived: ArchivedEntry  # the superseded entry for the archive
    finding_key: str | None  # the finding that the superseded entry came from, if it was new too and never in the file


class PendingSupersede(NamedTuple):
    """A finding that replaces a title, where the user has to decide which entry is superseded."""

    key: str
    id: str  # the id of the entry that contains it
    target: str  # the title that it names, normalised
    problem: SupersedeProblem  # why nothing was superseded


class ConsumedFile(NamedTuple):
    """A findings file that is consumed: its name, the keys of all its findings, its text without secrets."""

    name: str
    keys: tuple[str, ...]
    redacted_data: bytes


class PartlyConsumedFile(NamedTuple):
    """A findings file that is consumed only in part for now: its name, the keys of the part."""

    name: str
    keys: tuple[str, ...]


class PlannedQuarantine(NamedTuple):
    """A findings file to quarantine: its name, the reason in a sentence, its bytes without secrets."""

    name: str
    reason: str
    redacted_data: bytes


class ConsolidationPlan(NamedTuple):
    """The decisions about all findings."""

    memory: bytes | None  # the new bytes of the memory file; None if unchanged
    added: tuple[AppliedFinding, ...]  # one for each new entry, in file order
    # One for each finding that is in the memory already, or twice in the findings.
    duplicates: tuple[AppliedFinding, ...]
    superseded: tuple[AppliedSupersede, ...]  # one for each superseded entry, in file order
    # One for each finding that replaces a title where the user has to decide.
    pending_supersedes: tuple[PendingSupersede, ...]
    skipped_keys: tuple[str, ...]  # keys of findings that were consumed before
    consumed: tuple[ConsumedFile, ...]  # every consumed findings file, in name order
    partly_consumed: tuple[PartlyConsumedFile, ...]  # the file that exceeds the limit of changes, if any
    quarantined: tuple[PlannedQuarantine, ...]  # every findings file that cannot be read
    # Old id -> new id of the entries whose id changes because a repeat of theirs was superseded.
    id_changes: Mapping[str, str]

    @property
    def layer_claims(self) -> tuple[tuple[AppliedFinding, Layer], ...]:
        """The findings that claim a protected layer, each with that layer."""
        return tuple((finding, finding.claimed) for finding in (*self.added, *self.duplicates) if finding.claimed)

    @property
    def summary(self) -> str:
        """The plan in one line."""
        known_count, quarantined_count = len(self.duplicates) + len(self.skipped_keys), len(self.quarantined)
        review_count = len(self.pending_supersedes) + len(self.layer_claims)
        counts = (
            (len(self.added), "added"),
            (len(self.superseded), "superseded"),
            (known_count, "already known"),
            (quarantined_count, "file quarantined" if quarantined_count == 1 else "files quarantined"),
            (review_count, "for you to review"),
        )
        parts = [f"{count} {what}" for count, what in counts if count]
        parts += [f"the rest of {file.name} follows" for file in self.partly_consumed]
        return ", ".join(parts) or "nothing new"


def plan_consolidation(
    role: str,
    memory: bytes | None,
    files: Iterable[FindingsFile],
    today: date,
    *,
    known_keys: Container[str] = frozenset(),
    pinned_ids: Container[str] = frozenset(),
    max_changes: int | None = None,
    read_file: FindingsReader = read_and_redact,
) -> ConsolidationPlan | Unreadable:
    """Plan what happens to these findings. The order of `files` makes no difference.

    If they would add or refresh more than `max_changes` entries, the files that are last in name order wait, and so
    does the rest of the file in which the number is reached.

    Args:
        role: part of the entries' ids.
        memory: the memory file's bytes; None if it does not exist.
        files: the findings files that are ready.
        today: the local day; nothing counts as verified later than it.
        known_keys: the ledger: findings consumed before, which a stale copy of their file must not add again.
        pinned_ids: entries that are never superseded.
        max_changes: None for no limit.
        read_file: `read_and_redact`, or a cached version of it.
    """
    document = parse(new_memory_file(role) if memory is None else memory)
    if isinstance(document, Unreadable):
        return document
    results = [read_file(file, today) for file in sorted(files, key=lambda file: (file.name, file.data))]
    pending = [_Portion(file, file.findings, is_complete=True) for file in results if isinstance(file, AcceptedFile)]
    rejected = [file for file in results if isinstance(file, RejectedFile)]
    options = _ConsolidationOptions(role, memory, today, known_keys, pinned_ids, max_changes)
    matcher = FindingMatcher(document, today)
    portions, skipped_keys = _add_findings(matcher, pending, options)
    try:
        return _build_plan(document, matcher, portions, skipped_keys, rejected, options)
    except ComposeError:
        writable, unwritable = _split_writable(document, portions)
        matcher = FindingMatcher(document, today)
        portions, skipped_keys = _add_findings(matcher, writable, options)
        return _build_plan(document, matcher, portions, skipped_keys, [*rejected, *unwritable], options)


class _ConsolidationOptions(NamedTuple):
    role: str
    memory: bytes | None
    today: date
    known_keys: Container[str]
    pinned_ids: Container[str]
    max_changes: int | None


@dataclass(frozen=True, slots=True)
class _Portion:
    """The findings of a file that are consumed now; `is_complete` if they are all."""

    file: AcceptedFile
    findings: Sequence[Finding]
    is_complete: bool

    def keys(self, known_keys: Container[str]) -> tuple[str, ...]:
        """Return the keys to record as consumed. Those of parts consumed before are known, and may be very many."""
        is_partial = self.file.file.partly_consumed or not self.is_complete
        return tuple(finding.key for finding in self.findings if not is_partial or finding.key not in known_keys)


def _add_findings(
    matcher: FindingMatcher, pending: Iterable[_Portion], options: _ConsolidationOptions
) -> tuple[list[_Portion], list[str]]:
    """Add findings up to the limit; return the portions of the files, and the keys that were known."""
    portions: list[_Portion] = []
    skipped_keys: list[str] = []
    for portion in pending:
        for position, finding in enumerate(portion.findings):
            if finding.key in options.known_keys:
                if not portion.file.file.partly_consumed:
                    skipped_keys.append(finding.key)
            elif options.max_changes is not None and matcher.changed_count >= options.max_changes:
                if position:
                    portions.append(replace(portion, findings=portion.findings[:position], is_complete=False))
                return portions, skipped_keys
            else:
                matcher.add(finding)
        portions.append(portion)
    return portions, skipped_keys


def _split_writable(document: Document, portions: Sequence[_Portion]) -> tuple[list[_Portion], list[RejectedFile]]:
    """Return the portions whose findings can be written, and the others as rejected files with the reason."""
    writable: list[_Portion] = []
    rejected: list[RejectedFile] = []
    for portion in portions:
        try:
            after = with_entries(document, portion.findings)
        except ComposeError as error:
            rejected.append(RejectedFile(portion.file.file, str(error), portion.file.redacted_data))
            continue
        writable.append(portion)
        document = document if isinstance(after, Unreadable) else after
    return writable, rejected


def _build_plan(
    document: Document,
    matcher: FindingMatcher,
    portions: Sequence[_Portion],
    skipped_keys: Sequence[str],
    rejected: Sequence[RejectedFile],
    options: _ConsolidationOptions,
) -> ConsolidationPlan | Unreadable:
    resolved, unresolved = _resolve_supersedes(document, matcher, options)
    consolidated = _apply_findings(options.role, document, matcher, resolved.keys())
    if isinstance(consolidated, Unreadable):
        return consolidated
    ids, data = consolidated.ids, consolidated.after.render()
    new = enumerate(matcher.new, start=len(document.blocks))
    return ConsolidationPlan(
        memory=None if data == options.memory or not (matcher.new or options.memory) else data,
        added=tuple(_applied(finding, ids[index]) for index, finding in new if index not in resolved),
        duplicates=tuple(_applied(finding, ids[index]) for finding, index in matcher.duplicates),
        superseded=tuple(_applied_supersede(resolved[i], consolidated, matcher, options) for i in sorted(resolved)),
        pending_supersedes=tuple(
            PendingSupersede(request.finding.key, ids[request.block_index], request.target, problem)
            for request, problem in unresolved
        ),
        skipped_keys=tuple(skipped_keys),
        consumed=tuple(
            ConsumedFile(portion.file.file.name, portion.keys(options.known_keys), portion.file.redacted_data)
            for portion in portions
            if portion.is_complete
        ),
        partly_consumed=tuple(
            PartlyConsumedFile(portion.file.file.name, portion.keys(options.known_keys))
            for portion in portions
            if not portion.is_complete
        ),
        quarantined=tuple(PlannedQuarantine(file.file.name, file.reason, file.redacted_data) for file in rejected),
        id_changes=consolidated.id_changes,
    )


def _applied(finding: Finding, entry_id: str) -> AppliedFinding:
    return AppliedFinding(finding.key, entry_id, finding.title, finding.claimed_layer)


def _resolve_supersedes(
    document: Document, matcher: FindingMatcher, options: _ConsolidationOptions
) -> tuple[Mapping[int, ResolvedSupersede], Sequence[UnresolvedSupersede]]:
    """Return the superseded entries by index, and the requests that the user decides."""
    if not matcher.supersede_requests:
        return {}, ()
    ids = entry_ids(options.role, document)
    resolved, unresolved = resolve_supersedes(matcher, options.today, lambda index: ids[index] in options.pinned_ids)
    by_index = {supersede.block_index: supersede for supersede in resolved}
    if by_index and not round_trips(_without_entries(document, matcher, by_index)):
        # Only the heading of a superseded entry ends a code block or comment above it.
        unclosed = (UnresolvedSupersede(s.request, SupersedeProblem.UNCLOSED_BLOCK) for s in resolved)
        return {}, [*unresolved, *unclosed]
    return by_index, unresolved


def _applied_supersede(
    resolved: ResolvedSupersede,
    consolidated: _ConsolidatedDocument,
    matcher: FindingMatcher,
    options: _ConsolidationOptions,
) -> AppliedSupersede:
    index, number = resolved.block_index, resolved.block_index - len(matcher.blocks)
    block = consolidated.superseded_blocks[index]
    return AppliedSupersede(
        key=resolved.request.finding.key,
        replaced_by=consolidated.ids[resolved.request.block_index],
        title=block.entry.title if block.entry else "",
        archived=to_archived_entry(block, consolidated.ids[index], options.role, Rule.SUPERSEDED, options.today),
        finding_key=matcher.new[number].key if number >= 0 else None,
    )


class _ConsolidatedDocument(NamedTuple):
    """The result, by index as in `FindingMatcher`."""

    after: Document
    ids: Mapping[int, str]  # the new id of each entry; of a superseded one, its old id
    superseded_blocks: Mapping[int, Block]  # the superseded blocks as they were, or would have been
    id_changes: Mapping[str, str]  # old id -> new id of the entries whose id changes


def _apply_findings(
    role: str, document: Document, matcher: FindingMatcher, superseded: Collection[int]
) -> _ConsolidatedDocument | Unreadable:
    """Return the file with all new findings that were not superseded themselves.

    `Unreadable` is returned where the file would be too large to be read again.
    """
    old = range(len(document.blocks))
    new = range(len(old), len(old) + len(matcher.new))
    added = [index for index in new if index not in superseded]
    remaining = _without_entries(document, matcher, superseded)
    after = with_entries(remaining, [matcher.new[index - len(old)] for index in added])
    if isinstance(after, Unreadable):
        return after
    form, newline = detect_form(remaining), detect_newline(remaining)
    # Superseded entries are archived as they were, without the refresh.
    superseded_blocks = {index: document.blocks[index] for index in old if index in superseded}
    superseded_findings = {
        i: parse_block(compose_entry(matcher.new[i - len(old)], form, newline)) for i in new if i in superseded
    }
    before = _ids_by_index(old, entry_ids(role, document))
    indexes = [*(index for index in old if index not in superseded), *added, *superseded_findings]
    ids = _ids_by_index(indexes, entry_ids(role, after.with_blocks([*after.blocks, *superseded_findings.values()])))
    return _ConsolidatedDocument(
        after=after,
        ids={**before, **ids},
        superseded_blocks={**superseded_blocks, **superseded_findings},
        id_changes={old_id: ids[index] for index, old_id in before.items() if ids.get(index, old_id) != old_id},
    )


def _without_entries(document: Document, matcher: FindingMatcher, superseded: Collection[int]) -> Document:
    """Return the old file with refreshed entries, and without superseded ones."""
    return document.with_blocks(block for index, block in enumerate(matcher.blocks) if index not in superseded)


def _ids_by_index(indexes: Collection[int], ids: Collection[str | None]) -> dict[int, str]:
    return {index: entry_id for index, entry_id in zip(indexes, ids, strict=True) if entry_id is not None}
