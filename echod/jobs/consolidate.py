"""The consolidate job: add the findings of a role to its memory file.

`echod.memory.consolidation.plan` decides about each finding. This module reads, plans and commits. `run` is the job of
the service. `consolidate_selected` processes the findings files that the user selected in as many batches as
necessary; `preview_selected` makes the same plans without writing.

Parsing a findings file takes time in proportion to its size, and the role must not be locked meanwhile. A
`FindingsCache` is therefore filled before the lock is taken. A file that is consumed in parts is parsed once.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import date
from pathlib import PurePosixPath
from typing import NamedTuple

from echod.clock import local_date
from echod.files import content_digest
from echod.inspection.inspect import record_entries
from echod.jobs.base import (
    RETRY_SECONDS,
    JobBlocked,
    JobContext,
    JobDeferred,
    JobDone,
    JobOutcome,
    JobResources,
    Proposal,
    append_pruned,
    backup_name,
    change_set,
    replan_and_commit,
    role_path,
    write_memory,
)
from echod.memory.consolidation.deduplicate import AcceptedFile, FindingsFile, RejectedFile, read_and_redact
from echod.memory.consolidation.plan import ConsolidationPlan, plan_consolidation
from echod.memory.document import parse
from echod.memory.entry_matching import NO_ID_CHANGES
from echod.memory.model import Document, Unreadable
from echod.state.decisions import QuestionKey
from echod.state.entries import EntryStore, Reference
from echod.state.jobs import JobKind
from echod.store import layout
from echod.store.changes import Append, ChangeSet, ConsumeFindings, PartialConsume, Write
from echod.store.engine import RoleSession, RoleView
from echod.store.fs import Snapshot
from echod.store.journal.ledger import CLAIM, SUPERSEDES, Question
from echod.store.layout import Role, findings_archive_path, quarantine_path

_MAX_FILES, _MAX_BYTES = 500, 512 << 10
"""The size of a batch. Planning more would hold the role's lock so long that other writers always come first."""

_MAX_CHANGES = 1_000
"""Entries that are added or refreshed in one batch, for the same reason. A small file may contain many findings."""

_CacheKey = tuple[str, str, str, date, date]


class _PlanInput(NamedTuple):
    """Everything that decides a plan."""

    role: Role
    memory: str | None
    findings: tuple[FindingsFile, ...]
    consumed_keys: frozenset[str]
    pinned: Container[str]
    today: date


class FindingsCache:
    """The parsed files of the latest `preload`, and the latest plan. One for each worker.

    Both take long, so that they are made before the role is locked, and used then if nothing has changed.
    """

    def __init__(self) -> None:
        self._results: dict[_CacheKey, AcceptedFile | RejectedFile] = {}
        self._planned: tuple[_PlanInput, ConsolidationPlan | Unreadable] | None = None
        self.recorded_memory: tuple[Role, str | None] | None = None
        """The memory file whose entries were recorded last, by its role and digest."""

    def plan(
        self, wanted: _PlanInput, make: Callable[[], ConsolidationPlan | Unreadable]
    ) -> ConsolidationPlan | Unreadable:
        """Return the latest plan if it was made from the same input, else a new one."""
        if self._planned is None or self._planned[0] != wanted:
            self._planned = wanted, make()
        return self._planned[1]

    def preload(self, files: Iterable[FindingsFile], today: date) -> None:
        """Parse these files, and drop all others."""
        self._results = {_cache_key(file, today): self.get(file, today) for file in files}

    def get(self, file: FindingsFile, today: date) -> AcceptedFile | RejectedFile:
        """Return the result of `read_and_redact` for a file, which is cached if it was preloaded."""
        result = self._results.get(_cache_key(file, today))
        return read_and_redact(file, today) if result is None else replace(result, file=file)


def _cache_key(file: FindingsFile, today: date) -> _CacheKey:
    return file.name, file.agent, content_digest(file.data), file.date, today


class ConsolidateSettings(NamedTuple):
    """The settings of a run: how long findings must be unchanged, and the digests of the selected files.

    Without `only_digests`, all files are consolidated but those that an undo restored.
    """

    quiet_seconds: float
    only_digests: frozenset[str] | None = None


def preload_findings(
    session: RoleSession,
    cache: FindingsCache,
    settings: ConsolidateSettings,
    entries: EntryStore,
    clock: Callable[[], float],
) -> None:
    """Parse the files that `run` will consume, and plan it. Must be called before the role is locked.

    Raises:
        BusyError, StoreError: see `RoleSession.read`.
    """
    view = session.read(min_age_seconds=settings.quiet_seconds)
    today, batch = local_date(clock()), next_batch(view, settings)
    cache.preload(_findings_files(view, batch), today)
    if batch:
        _plan_batch(entries, view, batch, cache, today)


def _plan_batch(
    entries: EntryStore, view: RoleView, batch: Iterable[Snapshot], cache: FindingsCache, today: date
) -> ConsolidationPlan | Unreadable:
    recorded = view.role, view.memory.digest
    if cache.recorded_memory != recorded:  # first, since pins move to new ids
        _record_entries(entries, view, view.memory.data, today)
        cache.recorded_memory = recorded
    return plan_role(view, batch, entries.pinned_ids(view.role.store.key, today), cache, today)


def run(context: JobContext, settings: ConsolidateSettings, cache: FindingsCache) -> JobOutcome:
    """Consolidate the role. A finding that an entry already contains counts as a reference to the entry.

    Findings beyond one batch are left for the next job, which the next look at the store queues.
    """
    session, entries = context.session, context.entries

    def plan() -> Proposal | JobOutcome:
        view = session.read(min_age_seconds=settings.quiet_seconds)
        now = context.clock()
        store, today = view.role.store.key, local_date(now)
        batch = next_batch(view, settings)
        if not batch:
            return _outcome_without_batch(view, now)
        plan = _plan_batch(entries, view, batch, cache, today)
        if isinstance(plan, Unreadable):
            return JobBlocked(f"{layout.MEMORY} is left alone: {plan.reason}")
        questions = tuple(_questions(view.role.name, plan, now))
        subjects = [QuestionKey(question.key, question.entry) for question in questions]

        def record_questions() -> None:
            session.record_questions(questions)
            entries.question_subjects.record(store, subjects)  # before the commit, so that a kill after it loses none

        def record_results() -> None:
            _record_entries(entries, view, plan.memory, today, plan.id_changes)
            # Again: the ids that were moved just now were those before the commit.
            entries.question_subjects.record(store, subjects)
            _count_references(entries, view, batch, plan, today)

        changes = _change_set(context.job_id, view, batch, plan, today)
        return Proposal(changes, before_commit=record_questions, after_commit=record_results)

    return replan_and_commit(context, plan)


def consolidate_selected(resources: JobResources, role: Role, digests: frozenset[str]) -> JobOutcome:
    """Consolidate findings files, given by their digests, including those that an undo restored.

    The role is locked for each batch separately, so that other writers can write in between.

    Raises:
        BusyError, RefusedError, StoreError: see `RoleSession.commit`; earlier batches remain consolidated.
    """
    settings, cache, summaries = _selected_settings(digests), FindingsCache(), list[str]()
    while True:
        with resources.engine.open_read_only(role) as session:
            preload_findings(session, cache, settings, resources.entries, resources.clock)
        with resources.open_role(role) as context:
            outcome = run(context, settings, cache)
        if isinstance(outcome, JobDone) and outcome.changed:
            summaries.append(outcome.summary)
        else:
            return JobDone("; ".join(summaries), changed=True) if summaries else outcome


def preview_selected(
    view: RoleView, digests: frozenset[str], pinned: Container[str], today: date
) -> Iterator[ConsolidationPlan | Unreadable]:
    """Yield the plans that `consolidate_selected` would carry out, one for each batch. Writes nothing."""
    settings, cache = _selected_settings(digests), FindingsCache()
    while batch := next_batch(view, settings):
        cache.preload(_findings_files(view, batch), today)
        plan = plan_role(view, batch, pinned, cache, today)
        yield plan
        if isinstance(plan, Unreadable):
            return
        view = _view_after(view, plan)


def plan_role(
    view: RoleView, batch: Iterable[Snapshot], pinned: Container[str], cache: FindingsCache, today: date
) -> ConsolidationPlan | Unreadable:
    """Plan the consolidation of a batch, up to the maximum number of changes. No rule may change `pinned` entries."""
    findings = _findings_files(view, batch)
    memory = None if view.memory.data is None else content_digest(view.memory.data)
    wanted = _PlanInput(view.role, memory, findings, frozenset(view.consumed_keys), pinned, today)
    return cache.plan(
        wanted,
        lambda: plan_consolidation(
            view.role.name,
            view.memory.data,
            findings,
            today,
            known_keys=view.consumed_keys,
            pinned_ids=pinned,
            max_changes=_MAX_CHANGES,
            read_file=cache.get,
        ),
    )


def next_batch(view: RoleView, settings: ConsolidateSettings) -> tuple[Snapshot, ...]:
    """Return the first of the selected findings files, at least one if there is any."""
    batch: list[Snapshot] = []
    size = 0
    for file in view.findings:
        only = settings.only_digests
        if file.digest in view.restored_findings if only is None else file.digest not in only:
            continue
        size += len(file.text)
        if batch and (size > _MAX_BYTES or len(batch) == _MAX_FILES):
            break
        batch.append(file)
    return tuple(batch)


def _outcome_without_batch(view: RoleView, now: float) -> JobOutcome:
    if ready_times := [busy.until for busy in view.unavailable_findings if busy.until is not None]:
        return JobDeferred("the findings are still being written", max(min(ready_times), now + 0.1))
    if view.unavailable_findings:
        return JobDeferred(view.unavailable_findings[0].reason, now + RETRY_SECONDS)
    if view.findings:
        return JobDone("nothing to do: an undo restored the findings", changed=False)
    return JobDone("nothing to do: the findings were removed", changed=False)


def _selected_settings(digests: frozenset[str]) -> ConsolidateSettings:
    return ConsolidateSettings(quiet_seconds=0.0, only_digests=digests)


def _view_after(view: RoleView, plan: ConsolidationPlan) -> RoleView:
    """Return the role as it would be after a batch."""
    removed = {file.name for file in plan.consumed} | {file.name for file in plan.quarantined}
    partial = {file.name for file in plan.partly_consumed}
    keys = {key for file in plan.consumed for key in file.keys}
    keys |= {key for file in plan.partly_consumed for key in file.keys}
    memory = view.memory if plan.memory is None else view.memory._replace(data=plan.memory)
    return replace(
        view,
        memory=memory,
        findings=tuple(file for file in view.findings if file.path.name not in removed),
        consumed_keys=frozenset(view.consumed_keys) | keys,
        partially_consumed=view.partially_consumed
        | {file.digest or "" for file in view.findings if file.path.name in partial},
    )


def _findings_files(view: RoleView, batch: Iterable[Snapshot]) -> tuple[FindingsFile, ...]:
    return tuple(
        FindingsFile(
            name=file.path.name,
            agent=layout.agent_name(file.path),
            data=file.text,
            date=local_date(file.mtime_ns / 1e9),
            partly_consumed=file.digest in view.partially_consumed,
        )
        for file in batch
    )


def _change_set(
    job_id: int, view: RoleView, batch: Iterable[Snapshot], plan: ConsolidationPlan, today: date
) -> ChangeSet:
    before = {file.path.name: file.digest or "" for file in batch}

    def consume(name: str, archive: PurePosixPath, text: bytes, keys: tuple[str, ...] = ()) -> ConsumeFindings:
        return ConsumeFindings(role_path(view, name), before[name], role_path(view, archive), text, keys)

    consumes = [
        *(consume(f.name, findings_archive_path(f.name, today), f.redacted_data, f.keys) for f in plan.consumed),
        *(consume(f.name, quarantine_path(f.name, today), f.redacted_data) for f in plan.quarantined),
    ]
    writes = [] if plan.memory is None else [write_memory(view, plan.memory)]
    archived = [superseded.archived for superseded in plan.superseded]
    if archived and (name := backup_name(view.role, view.memory.text, today)) is not None:
        writes.append(Write(role_path(view, name), None, view.memory.text))
    appends = [*append_pruned(view.role, today, archived, job_id)]
    if reasons := "".join(f"- {today:%Y-%m-%d} `{file.name}`: {file.reason}\n" for file in plan.quarantined):
        appends.append(Append(role_path(view, layout.QUARANTINE) / layout.QUARANTINE_REASONS, reasons.encode()))
    partial_consumes = tuple(PartialConsume(before[file.name], file.keys) for file in plan.partly_consumed)
    changes = change_set(view, JobKind.CONSOLIDATE, plan.summary, writes, appends=appends, consumes=consumes)
    return changes._replace(partial_consumes=partial_consumes)


def _questions(role: str, plan: ConsolidationPlan, now: float) -> Iterator[Question]:
    """Yield a question for each change that requires the user's consent."""
    for claim, layer in plan.layer_claims:
        yield Question(now, CLAIM, role, claim.key, claim.id, layer.value, "")
    for pending in plan.pending_supersedes:
        yield Question(now, SUPERSEDES, role, pending.key, pending.id, pending.target, pending.problem.value)


def _record_entries(
    entries: EntryStore,
    view: RoleView,
    memory: bytes | None,
    today: date,
    known_renames: Mapping[str, str] = NO_ID_CHANGES,
) -> None:
    document = None if memory is None else parse(memory)
    if isinstance(document, Document):
        record_entries(entries, view.role, document, today, known_renames)


def _count_references(
    entries: EntryStore, view: RoleView, batch: Iterable[Snapshot], plan: ConsolidationPlan, today: date
) -> None:
    """Count each duplicate finding as a reference to its entry, once for each workflow if that is known."""
    store = view.role.store
    written = {file.path.name: file.mtime_ns / 1e9 for file in batch}
    found_at = {key: written[file.name] for file in plan.consumed for key in file.keys}
    found_at |= {key: written[file.name] for file in plan.partly_consumed for key in file.keys}
    references = []
    for duplicate in plan.duplicates:
        at = found_at.get(duplicate.key)
        workflow = None if at is None else entries.workflow_at(str(store.project), at)
        cause = f"finding:{duplicate.key}" if workflow is None else f"workflow:{workflow}"
        if duplicate.id:
            references.append(Reference(duplicate.id, cause, workflow))
    entries.add_references(store.key, references, today)
