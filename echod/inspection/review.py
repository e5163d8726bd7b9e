"""Collect the open review items of a store. Read-only.

Items come from the memory files (`inspection.cache`), the questions and notices of the journal, the quarantine, and
findings files that an undo restored. `jobs.answer_review` carries out the answers.
"""

from __future__ import annotations

import hashlib
import json
import os
import shlex
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple, assert_never

from echod.clock import local_date, local_datetime
from echod.errors import EchodError
from echod.files import VersionedCache
from echod.inspection.cache import FileInspection, InspectionCache, MaintenancePlan
from echod.lazy import lazy_imports
from echod.log import get_logger
from echod.memory.model import Layer
from echod.projects.settings import MaintenancePolicy
from echod.state.decisions import QuestionKey
from echod.state.entries import EntryStore
from echod.state.jobs import JobKind
from echod.store import layout
from echod.store.journal.ledger import Notice, Notices, Question
from echod.store.layout import Role, Store, original_findings_name
from echod.store.reader import StoreReader

with lazy_imports(__name__):
    from echod.inspection import inspect

FIRST_PRUNE_HOLD_SECONDS = 86_400.0
"""How long the first prune of a memory file waits for the user if it would remove much (`PruneExtent.hold_reason`)."""

_ID_DIGITS = 8
DISMISS_EFFECT = "it is not listed again, and nothing else changes"
"""The effect of dismissing any item."""

_ENTRIES_STAY = "the entries stay as they are, and it is not listed again"

_MAX_PROPOSALS = 3
"""How many entries of a store are proposed as solutions at a time. The next follow when these are answered."""

_WRONG_NAME_PROBLEM = "its name is not the name of a findings file"

log = get_logger(__name__)

TrackedQuestion = tuple[Question, str]
"""A question, and the id that its entry had at the last look at the memory file."""


class ReviewKind(StrEnum):
    """The subjects of items. Notices of the store (`reverted`, `git`, ...) have kinds of their own."""

    CLAIM = "claim"
    SUPERSEDES = "supersedes"
    SUSPICIOUS_INSTRUCTION = "suspicious-instruction"
    FIRST_PRUNE = "first-prune"
    QUARANTINED = "quarantined"
    UNDONE = "undone"
    OVER_LIMIT = "over-limit"
    PROMOTABLE = "promotable"
    PROPOSAL = "proposal"


class LayerClaim(NamedTuple):
    """An entry for which an agent claims a layer that only the user gives."""

    entry: str
    layer: Layer


class SupersededEntry(NamedTuple):
    """An entry, by its id, that another entry claims to replace."""

    entry: str


class SuspiciousEntry(NamedTuple):
    """An entry, by its id, that reads like an instruction to agents."""

    entry: str


@dataclass(frozen=True, slots=True)
class HeldFirstPrune:
    """A held first prune of a memory file."""


class QuarantinedFile(NamedTuple):
    """A findings file in quarantine. It gets its original name when it is moved back.

    `digest` is that of its content. `problem` is the reason why it cannot be read, or None.
    """

    name: str
    original_name: str
    digest: str
    problem: str | None


class RestoredFindingsFile(NamedTuple):
    """A findings file, by its name and digest, that an undo restored."""

    name: str
    digest: str


class RemovedEntries(NamedTuple):
    """Entries that left the memory in another program's write, by their ids. The archive has them."""

    entries: tuple[str, ...]


class AnswerEffects(NamedTuple):
    """The effects of an answer to an item."""

    accept: str
    reject: str


@dataclass(frozen=True, slots=True)
class Information:
    """A notice without a decision."""


class ProposedChange(NamedTuple):
    """A proposal of the user's own command (`memory.proposals`): one entry in place of those with these ids."""

    entries: tuple[str, ...]
    title: str
    text: str | None


ReviewSubject = (
    LayerClaim
    | SupersededEntry
    | SuspiciousEntry
    | HeldFirstPrune
    | QuarantinedFile
    | RestoredFindingsFile
    | ProposedChange
    | RemovedEntries
    | Information
)


class OpenReviewItem(NamedTuple):
    """An item that waits for the user.

    Attributes:
        id: the same as long as the item has the same content.
        kind: a `ReviewKind`, or the kind of the store's notice.
        since: since when it waits (Unix seconds).
        titles: headings of the entries it is about.
        subject: the target of an answer.
    """

    id: str
    role: Role
    kind: str
    since: float
    text: str
    titles: tuple[str, ...]
    subject: ReviewSubject

    @property
    def effects(self) -> AnswerEffects | None:
        """The effects of accepting and of rejecting it; None if it is information, which can only be dismissed."""
        match self.subject:
            case LayerClaim(entry, layer):
                return AnswerEffects(
                    f"{entry} becomes {layer.value}: no rule removes it from then on",
                    "it stays inscribed, and is not listed again",
                )
            case SupersededEntry(entry):
                return AnswerEffects(f"{entry} is archived (rule superseded)", _ENTRIES_STAY)
            case ProposedChange(entries):
                taken = f"one entry takes the place of {' and '.join(entries)}, archived whole (rule superseded)"
                return AnswerEffects(taken, _ENTRIES_STAY)
            case SuspiciousEntry(entry):
                stays = "the entry stays as it is, and is not listed again"
                return AnswerEffects(stays, f"{entry} is archived (rule forgotten)")
            case HeldFirstPrune():
                held = "it stays held until you prune it yourself (echod prune)"
                return AnswerEffects("it is pruned as soon as no workflow runs", held)
            case QuarantinedFile(_, findings, _, None):
                stays = "it stays in quarantine, and is not listed again unless it changes"
                return AnswerEffects(f"it is moved back as {findings} and read again", stays)
            case RestoredFindingsFile(name):
                archived = f"{name} is moved to archive/findings, and nothing from it is added"
                return AnswerEffects(f"{name} is consolidated again", archived)
            case RemovedEntries(entries):
                back = f"{' and '.join(entries)} {'comes' if len(entries) == 1 else 'come'} back from the archive"
                return AnswerEffects(back, "the memory stays as it is, and it is not listed again")
            case QuarantinedFile() | Information():
                return None
            case other:
                assert_never(other)


def new_item(
    role: Role,
    kind: str,
    content: tuple[object, ...],
    since: float,
    text: str,
    titles: tuple[str, ...],
    subject: ReviewSubject,
) -> OpenReviewItem:
    """Return an item, with an id made of its role, its kind and its content: unique in its store."""
    return OpenReviewItem(_digest(role.name, kind, *map(str, content)), role, kind, since, text, titles, subject)


def _digest(*parts: str) -> str:
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:_ID_DIGITS]


def _id_in_store(item: str, store_name: str) -> str:
    """Return the id of an item among those of all stores. A store keeps its name when it is moved."""
    return _digest(store_name, item)


def first_prune_id(role: Role, store_name: str) -> str:
    """Return the id of the item about a role's held first prune. It is the same until the user prunes the file."""
    return _id_in_store(_digest(role.name, ReviewKind.FIRST_PRUNE), store_name)


def first_prune_deadline(since: float, now: float) -> float | None:
    """Return until when a first prune waits that was held at `since` (Unix seconds); None if no longer at `now`.

    A clock that was set back does not hold it for longer than a day.
    """
    until = since + FIRST_PRUNE_HOLD_SECONDS
    return until if since <= now < until else None


class RestoredFindings(NamedTuple):
    """A findings file that an undo restored. It is not consolidated again automatically.

    Attributes:
        since: when it was restored (Unix seconds).
        digest: its content.
        undo_job: the job that undid its consolidation; None if several did so in this role, or it is unknown by now.
    """

    role: Role
    path: Path
    since: float
    digest: str
    undo_job: int | None

    @property
    def reason(self) -> str:
        """Why it waits, in a sentence."""
        return f"{self.path.name} is not consolidated again, because its consolidation was undone."

    @property
    def remedy(self) -> str:
        """The remedy, in a sentence for the user."""
        project = shlex.quote(str(self.role.store.project))
        command = f"consolidate {project} --role {self.role.name}" if self.undo_job is None else f"undo {self.undo_job}"
        return f"Change or delete the file, or consolidate it as it is with: echod {command}"


def find_restored_findings(reader: StoreReader, notices: Notices) -> tuple[RestoredFindings, ...]:
    """Return the restored findings files of a store, by role and name. `notices` are the store's. Read-only.

    A role that cannot be read now is left out. The status reports it.
    """
    restored: list[RestoredFindings] = []
    for role in notices.restored_findings:
        try:
            restored += _restored_in_role(reader, role)
        except EchodError as error:
            log.info("role_unreadable", role=str(role.path), reason=str(error))
    return tuple(restored)


def _restored_in_role(reader: StoreReader, role: Role) -> list[RestoredFindings]:
    if not os.path.lexists(role.path):
        return []
    view = reader.read_role(role)
    undone = [findings for findings in view.findings if findings.digest in view.restored_findings]
    if not undone:
        return []
    commits = [c for c in reader.history([role.store]) if c.role == role and c.kind == JobKind.UNDO]
    undo_jobs = {c.job for c in commits if c.undone_by is None}
    undo_job = undo_jobs.pop() if len(undo_jobs) == 1 else None
    return [
        RestoredFindings(role, role.path / findings.path.name, findings.mtime_ns / 1e9, findings.digest or "", undo_job)
        for findings in undone
    ]


class ReviewCollector:
    """Collects the open review items. One per process, since it caches the items about questions."""

    def __init__(self, entries: EntryStore | None, inspections: InspectionCache) -> None:
        self._entries = entries
        self._inspections = inspections
        self._question_caches: defaultdict[str, VersionedCache[tuple[OpenReviewItem, ...]]] = defaultdict(
            VersionedCache
        )

    def collect(
        self,
        store: Store,
        roles: Sequence[Role],
        notices: Notices,
        maintenance: MaintenancePolicy,
        restored: Sequence[RestoredFindings],
        now: float,
    ) -> tuple[OpenReviewItem, ...]:
        """Return the open items of a store, the oldest first. The status reports roles that cannot be read."""
        answered, store_name = frozenset[str](), store.key
        if self._entries is not None:
            answered = self._entries.answers.answered_items(store.key)
            store_name = self._entries.answers.store_name(store.key)
        collected = self._collect_all(store, roles, notices, maintenance, restored, now)
        named = (item._replace(id=_id_in_store(item.id, store_name)) for item in collected)
        items = {item.id: item for item in named if item.id not in answered}
        self._question_caches[store.key].evict_unused()
        found = sorted(items.values(), key=lambda item: (item.since, item.id))
        later = [item.id for item in found if item.kind == ReviewKind.PROMOTABLE][_MAX_PROPOSALS:]
        return tuple(item for item in found if item.id not in later)

    def _collect_all(
        self,
        store: Store,
        roles: Sequence[Role],
        notices: Notices,
        maintenance: MaintenancePolicy,
        restored: Sequence[RestoredFindings],
        now: float,
    ) -> Iterator[OpenReviewItem]:
        yield from self._journal_items(store, notices)
        held = {} if self._entries is None else self._entries.held_first_prunes(store.key)
        has_pins = self._entries is not None and bool(self._entries.pinned_ids(store.key, local_date(now)))
        for role in roles:
            memory = self._inspections.inspect(role.memory)
            yield from _suspicious_items(role, memory)
            yield from self._promotable_items(role, memory, maintenance, now)
            yield from self._prune_items(role, memory, maintenance, held.get(role.name), now, has_pins=has_pins)
            yield from self._quarantined_items(role)
        for findings in restored:
            content = (findings.path.name, findings.digest)
            subject = RestoredFindingsFile(*content)
            yield new_item(findings.role, ReviewKind.UNDONE, content, findings.since, findings.reason, (), subject)

    def _journal_items(self, store: Store, notices: Notices) -> Iterator[OpenReviewItem]:
        current_ids: Mapping[QuestionKey, str] = {}
        if notices.questions and self._entries is not None:
            current_ids = self._entries.question_subjects.current_ids(store.key)
        names = [*(one.role for one in notices.questions), *(one.role for one in notices.notices)]
        for name in dict.fromkeys(names):
            questions = _with_current_ids((one for one in notices.questions if one.role == name), current_ids)
            yield from self._items_of_role(
                Role(store, name), questions, tuple(one for one in notices.notices if one.role == name)
            )

    def _items_of_role(
        self, role: Role, questions: tuple[TrackedQuestion, ...], notices: tuple[Notice, ...]
    ) -> tuple[OpenReviewItem, ...]:
        """Return the items about questions and notices of a role, from the cache if its memory file is unchanged."""
        version = self._inspections.inspect(role.memory).version

        def open_items() -> tuple[OpenReviewItem, ...]:
            return tuple(inspect.open_journal_items(role, questions, notices, self._entries))

        with suppress(OSError):  # the status reports it
            return self._question_caches[role.store.key].get_or_compute(role, (version, questions, notices), open_items)
        return tuple(inspect.notice_items(role, notices, frozenset()))

    def _prune_items(
        self,
        role: Role,
        memory: FileInspection,
        maintenance: MaintenancePolicy,
        held_since: float | None,
        now: float,
        *,
        has_pins: bool,
    ) -> Iterator[OpenReviewItem]:
        if memory.version is None or memory.lines is None or maintenance.disabled_reason(JobKind.PRUNE) is not None:
            return
        until = None if held_since is None else first_prune_deadline(held_since, now)
        limit = maintenance.policy.memory_line_limit
        # A plan costs more than everything else here, and for most files its result is known without it.
        if until is None and (memory.lines <= limit or (not has_pins and memory.protected_lines <= limit)):
            return
        plan: MaintenancePlan | None = None
        policy, today = maintenance.policy, local_date(now)
        with suppress(OSError):  # the status reports it
            plan = self._inspections.plan(role, role.memory, memory.version, self._entries, policy, today)
        preview = None if plan is None else plan.prune_preview
        if preview is None:
            return
        reason = preview.extent.hold_reason
        if held_since is not None and until is not None and reason is not None:
            text = (
                f"The first prune of this file {reason} ({preview.summary}). "
                f"It waits until {local_datetime(until):%Y-%m-%d %H:%M}."
            )
            yield new_item(role, ReviewKind.FIRST_PRUNE, (), held_since, text, (), HeldFirstPrune())
        over = preview.over_limit
        if over is not None and over.needs_user:
            content = (over.limit, over.protected, over.pinned, over.not_removable)
            text = f"It stays too long: {over.description}"
            yield new_item(role, ReviewKind.OVER_LIMIT, content, memory.modified_at, text, (), Information())

    def _promotable_items(
        self, role: Role, memory: FileInspection, maintenance: MaintenancePolicy, now: float
    ) -> Iterator[OpenReviewItem]:
        """Yield the entries that could become solutions for people."""
        excluded = {entry.id for entry in memory.suspicious}
        if any(entry.sessions for entry in memory.promotable):
            excluded |= self._with_few_references(role, memory, maintenance, now)
        for entry in memory.promotable:
            if entry.id not in excluded:
                command = f"echod promote {entry.id} --category {entry.category}{' --raise' if entry.raises else ''}"
                text = f"This entry could be a solution for people. To promote it: {command}"
                content = (entry.id, entry.content_digest)
                kind, since = ReviewKind.PROMOTABLE, memory.modified_at
                yield new_item(role, kind, content, since, text, (entry.title,), Information())

    def _with_few_references(
        self, role: Role, memory: FileInspection, maintenance: MaintenancePolicy, now: float
    ) -> set[str]:
        """Return the ids of the entries that too few sessions have referenced to be promoted."""
        wanted = {entry.id: entry.sessions for entry in memory.promotable if entry.sessions}
        if self._entries is None:
            return set(wanted)
        days, project = maintenance.policy.relevance_days, str(role.store.project)
        facts = self._entries.get_facts(role.store.key, role.name, project, local_date(now), days, ids=wanted)
        return {
            identity
            for identity, sessions in wanted.items()
            if identity not in facts.histories or facts.histories[identity].references < sessions
        }

    def _quarantined_items(self, role: Role) -> Iterator[OpenReviewItem]:
        """Yield the findings files in a role's quarantine."""
        try:
            # It is nearly always missing, and making a path would cost more than the call.
            names = os.listdir(f"{role.path}/{layout.QUARANTINE}")  # noqa: PTH208
        except OSError:
            return
        directory = role.path / layout.QUARANTINE
        if directory.is_symlink():
            return
        for name in sorted(names):
            if name.startswith(".") or name == layout.QUARANTINE_REASONS:
                continue
            path = directory / name
            inspection = self._inspections.inspect(path)
            if inspection.version is not None:  # else it is not a plain file, or it was moved just now
                yield _quarantined_item(role, path, inspection)


def _suspicious_items(role: Role, memory: FileInspection) -> Iterator[OpenReviewItem]:
    """Yield the entries that read like instructions to agents."""
    for entry in memory.suspicious:
        text = (
            f"An entry reads like an instruction to agents ({entry.suspicious_phrase}). "
            "Read it, and reject it if it is one."
        )
        kind, subject = ReviewKind.SUSPICIOUS_INSTRUCTION, SuspiciousEntry(entry.id)
        content = (entry.id, entry.title, entry.content_digest)
        yield new_item(role, kind, content, memory.modified_at, text, (entry.title,), subject)


def _quarantined_item(role: Role, path: Path, inspection: FileInspection) -> OpenReviewItem:
    name = original_findings_name(path.name)
    problem = _WRONG_NAME_PROBLEM if not layout.is_findings_name(name) else inspection.unreadable
    text = f"{path.name} is in quarantine. " + ("It can be read now." if problem is None else problem)
    subject = QuarantinedFile(path.name, name, inspection.digest, problem)
    content = (path.name, inspection.digest)
    return new_item(role, ReviewKind.QUARANTINED, content, inspection.modified_at, text, (), subject)


def _with_current_ids(
    questions: Iterable[Question], current_ids: Mapping[QuestionKey, str]
) -> tuple[TrackedQuestion, ...]:
    """Return the questions, each with its entry's current id, or with its id at that time if that is unknown."""
    return tuple((one, current_ids.get(QuestionKey(one.key, one.entry), one.entry)) for one in questions)
