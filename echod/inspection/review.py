"""Everything that waits for a person in a store, less what was answered.

Looks only. Where single items come from is told in `review_sources`, what an answer does in `answering`.

Findings that wait for a person: their consolidation was undone, and the same is not done again unasked.

Where single review items come from: what agents asked for, what reads badly, what was set aside.
"""

from __future__ import annotations

import os
import shlex
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import NamedTuple

from echod.clock import local_date
from echod.errors import EchodError
from echod.files import FileVersion, VersionedCache, read_regular
from echod.inspection.counts import FileStatsCache, read_document
from echod.inspection.entries import (
    EntrySummary,
    MemoryInspector,
    MemorySummary,
    readable_file_version,
    summarize_entries,
)
from echod.inspection.review_items import (
    HeldFirstPrune,
    Information,
    LayerClaim,
    OpenReviewItem,
    QuarantinedFile,
    RestoredFindingsFile,
    ReviewKind,
    SupersededEntry,
    SuspiciousEntry,
    first_prune_deadline,
    first_prune_id,
    item_id,
    removes_majority,
)
from echod.log import get_logger
from echod.memory.consolidation.deduplicate import SupersedeProblem
from echod.memory.model import MAX_FILE_BYTES, Layer
from echod.projects.maintenance import MaintenancePolicy
from echod.state.entries import EntryStore
from echod.state.job import JobKind
from echod.state.review_answers import QuestionKey
from echod.store import layout
from echod.store.journal.notices import CLAIM, Notices, Question
from echod.store.layout import Role, Store, original_findings_name
from echod.store.reader import StoreReader
from echod.store.snapshot import content_digest

log = get_logger(__name__)


class RestoredFindings(NamedTuple):
    """A findings file that was given back.

    Attributes:
        since: when it was given back (Unix seconds).
        digest: its content.
        undo_job: the job that undid its consolidation; None where several did so in this role, or it is forgotten.
    """

    role: Role
    path: Path
    since: float
    digest: str
    undo_job: int | None

    @property
    def reason(self) -> str:
        """Why it waits, in a sentence."""
        return f"{self.path.name} is not folded in again: a person took back what it gave."

    @property
    def remedy(self) -> str:
        """What a person can do about it."""
        project = shlex.quote(str(self.role.store.project))
        command = f"consolidate {project} --role {self.role.name}" if self.undo_job is None else f"undo {self.undo_job}"
        return f"Change or delete the file; or fold it in as it is with: echod {command}"


def find_restored_findings(reader: StoreReader, notices: Notices) -> tuple[RestoredFindings, ...]:
    """The findings of a store that wait for a person, by role and name. `notices` are the store's. Writes nothing.

    A role that cannot be read now is left out; that it cannot is told elsewhere.
    """
    found: list[RestoredFindings] = []
    for role in notices.restored_findings:
        try:
            found += _restored_in_role(reader, role)
        except EchodError as error:
            log.info("role_unreadable", role=str(role.path), reason=str(error))
    return tuple(found)


def _restored_in_role(reader: StoreReader, role: Role) -> list[RestoredFindings]:
    if not os.path.lexists(role.path):
        return []
    view = reader.read_role(role)
    undone = [findings for findings in view.findings if findings.digest in view.restored_findings]
    if not undone:
        return []
    done = [d for d in reader.history([role.store]) if d.role == role and d.kind == JobKind.UNDO]
    undos = {d.job for d in done if d.undone_by is None}
    by = undos.pop() if len(undos) == 1 else None
    return [
        RestoredFindings(role, role.path / findings.path.name, findings.mtime_ns / 1e9, findings.digest or "", by)
        for findings in undone
    ]


_NOT_REPLACED_REASONS: Mapping[str, str] = {
    SupersedeProblem.SEVERAL: "it is not the only one of that title",
    SupersedeProblem.NEWER: "it is newer",
    SupersedeProblem.PINNED: "it was pinned",
    SupersedeProblem.UNCLOSED_BLOCK: "a code block or comment above it is never closed",
}


def layer_claim_items(role: Role, question: Question, entry: EntrySummary) -> Iterator[OpenReviewItem]:
    """That an agent claims a layer for an entry, unless a person gave one.

    The item keeps its id though the entry's changes, so that an answer holds; the same is so for replacements.
    """
    if entry.layer is None or entry.layer.protected:
        return
    layer = Layer(question.target)
    text = f"An agent wants this entry in the layer {layer.value}; it was stored as {entry.layer.value}."
    identity = item_id(role, ReviewKind.CLAIM, question.entry, layer.value, entry.content_digest)
    yield OpenReviewItem(
        identity, role, ReviewKind.CLAIM, question.at, text, (entry.title,), LayerClaim(entry.id, layer)
    )


def superseded_items(
    role: Role, question: Question, entry: EntrySummary, entries: Mapping[str, EntrySummary]
) -> Iterator[OpenReviewItem]:
    """Each entry that another one says it replaces; or that there is none."""
    others = [other for other in entries.values() if other.normalized_title == question.target and other.id != entry.id]
    for other in others:
        why = _not_replaced_reason(other, question)
        text = f"{entry.title!r} ({entry.id}) says that it replaces this entry, which stayed because {why}."
        identity = item_id(
            role, ReviewKind.SUPERSEDES, question.entry, entry.content_digest, other.id, other.content_digest
        )
        yield OpenReviewItem(
            identity, role, ReviewKind.SUPERSEDES, question.at, text, (other.title,), SupersededEntry(other.id)
        )
    if not others and question.problem == SupersedeProblem.NONE:
        text = f"This entry says that it replaces {question.target!r}, but no entry has that title."
        identity = item_id(role, ReviewKind.SUPERSEDES, question.entry, question.target)
        yield OpenReviewItem(identity, role, ReviewKind.SUPERSEDES, question.at, text, (entry.title,), Information())


def _not_replaced_reason(other: EntrySummary, question: Question) -> str:
    if other.layer is None or other.layer.protected:
        return f"it is {other.layer.value if other.layer else 'of an unknown layer'}"
    return _NOT_REPLACED_REASONS.get(question.problem, "it came later")


def suspicious_items(role: Role, summary: MemorySummary) -> Iterator[OpenReviewItem]:
    """The entries that read like instructions to agents."""
    for entry in summary.suspicious:
        text = (
            f"An entry reads like an instruction to agents ({entry.suspicious_phrase}); read "
            f"it, and reject it if it is one."
        )
        identity = item_id(role, ReviewKind.SUSPICIOUS_INSTRUCTION, entry.id, entry.title, entry.content_digest)
        yield OpenReviewItem(
            identity,
            role,
            ReviewKind.SUSPICIOUS_INSTRUCTION,
            summary.modified_at,
            text,
            (entry.title,),
            SuspiciousEntry(entry.id),
        )


def quarantined_items(role: Role, cache: VersionedCache[OpenReviewItem]) -> Iterator[OpenReviewItem]:
    """The findings files in a role's quarantine; one that is the same as in `cache` is not read again."""
    directory = role.path / layout.QUARANTINE
    try:
        names = os.listdir(directory)  # noqa: PTH208  mostly there is none, and paths cost more than the look
    except OSError:
        return
    if directory.is_symlink():
        return
    for path in sorted(directory / name for name in names if not name.startswith(".")):
        version = None if path.name == layout.QUARANTINE_REASONS else readable_file_version(path)
        if version is None:
            continue
        with suppress(OSError):  # gone since
            yield cache.get_or_compute(path, version, partial(_quarantined_item, role, path, version))


def _quarantined_item(role: Role, path: Path, version: FileVersion) -> OpenReviewItem:
    # Slow to load, and quarantines are mostly empty.
    from echod.memory.document import parse  # noqa: PLC0415
    from echod.memory.model import Unreadable  # noqa: PLC0415

    data = read_regular(path, MAX_FILE_BYTES)
    name = original_findings_name(path.name)
    if layout.AGENT_FINDINGS.fullmatch(name) is None:
        problem: str | None = "its name is not that of a findings file"
    else:
        read = parse(data)
        problem = read.reason if isinstance(read, Unreadable) else None
    text = f"{path.name} was set aside in quarantine. " + ("It can be read now." if problem is None else problem)
    subject = QuarantinedFile(path.name, name, content_digest(data), problem)
    identity = item_id(role, ReviewKind.QUARANTINED, path.name, subject.digest)
    return OpenReviewItem(identity, role, ReviewKind.QUARANTINED, version[2] / 1e9, text, (), subject)


_TrackedQuestion = tuple[Question, str]
"""A question, and the id that the entry that it is about had at the last look at its file."""


@dataclass(frozen=True, slots=True)
class _StoreCache:
    """What was seen in a store: its memory files, what agents asked for by role, what was set aside."""

    inspector: MemoryInspector
    question_items: VersionedCache[tuple[OpenReviewItem, ...]] = field(default_factory=VersionedCache)
    quarantine_items: VersionedCache[OpenReviewItem] = field(default_factory=VersionedCache)

    def evict_unused(self) -> None:
        for remembered in (self.inspector, self.question_items, self.quarantine_items):
            remembered.evict_unused()


class ReviewCollector:
    """Gathers what waits; one for a process, since it remembers what it read."""

    def __init__(self, entries: EntryStore | None, stats_cache: FileStatsCache) -> None:
        self._entries = entries
        self._caches: defaultdict[str, _StoreCache] = defaultdict(lambda: _StoreCache(MemoryInspector(stats_cache)))

    def collect(
        self,
        store: Store,
        roles: Sequence[Role],
        notices: Notices,
        maintenance: MaintenancePolicy,
        restored: Sequence[RestoredFindings],
        now: float,
    ) -> tuple[OpenReviewItem, ...]:
        """What waits in a store, the oldest first. A role that cannot be read is told elsewhere.

        Args:
            store: the store.
            roles: its roles, as far as they can be listed.
            notices: what its journal has for a person.
            maintenance: what may be done in its project.
            restored: its findings that an undo gave back.
            now: Unix seconds.
        """
        answered = frozenset[str]() if self._entries is None else self._entries.answers.answered_items(store.key)
        cache = self._caches[store.key]
        items = self._collect_all(store, cache, roles, notices, maintenance, restored, now)
        found = {item.id: item for item in items if item.id not in answered}
        cache.evict_unused()
        return tuple(sorted(found.values(), key=lambda item: (item.since, item.id)))

    def _collect_all(
        self,
        store: Store,
        cache: _StoreCache,
        roles: Sequence[Role],
        notices: Notices,
        maintenance: MaintenancePolicy,
        restored: Sequence[RestoredFindings],
        now: float,
    ) -> Iterator[OpenReviewItem]:
        asked: defaultdict[str, list[Question]] = defaultdict(list)
        for question in notices.questions:
            asked[question.role].append(question)
        current_ids = (
            {} if self._entries is None or not asked else self._entries.question_subjects.current_ids(store.key)
        )
        for name, questions in asked.items():
            yield from self._question_items(
                Role(store, name), _with_current_ids(questions, current_ids), cache.question_items
            )
        held = {} if self._entries is None else self._entries.held_first_prunes(store.key)
        pins = self._entries is not None and bool(self._entries.pinned_ids(store.key, local_date(now)))
        for role in roles:
            summary = cache.inspector.inspect(role)
            yield from suspicious_items(role, summary)
            yield from self._prune_items(
                role, cache.inspector, summary, maintenance, held.get(role.name), now, has_pins=pins
            )
            yield from quarantined_items(role, cache.quarantine_items)
        for one in restored:
            name = one.path.name
            identity = item_id(one.role, ReviewKind.UNDONE, name, one.digest)
            yield OpenReviewItem(
                identity, one.role, ReviewKind.UNDONE, one.since, one.reason, (), RestoredFindingsFile(name, one.digest)
            )
        for review in notices.notices:
            role = Role(store, review.role)
            identity = item_id(role, review.kind, review.at, review.text)
            yield OpenReviewItem(identity, role, review.kind, review.at, review.text, review.titles, Information())

    def _question_items(
        self, role: Role, questions: tuple[_TrackedQuestion, ...], cache: VersionedCache[tuple[OpenReviewItem, ...]]
    ) -> tuple[OpenReviewItem, ...]:
        """What agents asked for in a role. Whether it still matters stands in the memory file."""
        version = readable_file_version(role.memory)
        if version is None:
            return ()
        with suppress(OSError):  # told elsewhere
            return cache.get_or_compute(
                role, (version, questions), lambda: tuple(self._open_question_items(role, questions))
            )
        return ()

    def _open_question_items(self, role: Role, questions: Iterable[_TrackedQuestion]) -> Iterator[OpenReviewItem]:
        document = read_document(role.memory)
        if document is None:
            return
        entries = summarize_entries(role, document)
        moves: Mapping[str, str] = {}
        if self._entries is not None:
            from echod.memory.entry_matching import present_entries  # noqa: PLC0415  slow to load, and questions are rare

            moves = self._entries.find_renames(role.store.key, role.name, present_entries(role.name, document))
        for question, identity in questions:
            entry = entries.get(moves.get(identity, identity))
            if entry is None:
                continue
            if question.kind == CLAIM:
                yield from layer_claim_items(role, question, entry)
            else:
                yield from superseded_items(role, question, entry, entries)

    def _prune_items(
        self,
        role: Role,
        inspector: MemoryInspector,
        summary: MemorySummary,
        maintenance: MaintenancePolicy,
        held_since: float | None,
        now: float,
        *,
        has_pins: bool,
    ) -> Iterator[OpenReviewItem]:
        if maintenance.disabled_reason(JobKind.PRUNE) is not None:
            return
        until = None if held_since is None else first_prune_deadline(held_since, now)
        limit = maintenance.policy.memory_line_limit
        # A plan costs more than all else that is looked at here, and in most files it is plain what it would say.
        if until is None and (summary.lines <= limit or (not has_pins and summary.protected_lines <= limit)):
            return
        preview = inspector.preview_prune(role, self._entries, maintenance.policy, local_date(now))
        if preview is None:
            return
        if held_since is not None and until is not None and removes_majority(preview.lines_before, preview.lines_after):
            text = (
                f"The first prune of this file would take more than half of it ({preview.summary}), "
                f"so it waits until {datetime.fromtimestamp(until).astimezone():%Y-%m-%d %H:%M}."
            )
            yield OpenReviewItem(
                first_prune_id(role), role, ReviewKind.FIRST_PRUNE, held_since, text, (), HeldFirstPrune()
            )
        over = preview.over_limit
        if over is not None and not over.can_shrink_tomorrow:
            identity = item_id(role, ReviewKind.OVER_LIMIT, over.limit, over.protected, over.pinned, over.not_removable)
            yield OpenReviewItem(
                identity,
                role,
                ReviewKind.OVER_LIMIT,
                summary.modified_at,
                f"It stays too long: {over.description}",
                (),
                Information(),
            )


def _with_current_ids(
    questions: Iterable[Question], current_ids: Mapping[QuestionKey, str]
) -> tuple[_TrackedQuestion, ...]:
    """The questions, each with its entry's id of the last look; the id that it had then where none is known."""
    return tuple((one, current_ids.get(QuestionKey(one.key, one.entry), one.entry)) for one in questions)
