"""The consolidate job: fold the findings of a role into its memory file.

What becomes of each finding is decided by `echod.memory.consolidation.plan`; this module reads, asks, and commits.

What findings files say, kept from the moment they were understood until they are folded in.

To understand a file takes time that grows with it. The writers' lock must not be held meanwhile, so a job reads ahead
of taking it; and a file that is taken up by parts is understood once, not for each part.

Folding in the findings that a person chose: what it would do, and doing it, by as many parts as it takes.

The same plans as of the consolidate job; a preview and the run agree finding by finding.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import date, datetime
from pathlib import PurePosixPath
from typing import NamedTuple

from echod.inspection.entry_facts import record_entries
from echod.jobs.archives import append_pruned, backup_name
from echod.jobs.base import JobBlocked, JobContext, JobDeferred, JobDone, JobOutcome, JobResources
from echod.memory.consolidation.intake import AcceptedFile, RejectedFile, read_and_redact
from echod.memory.consolidation.plan import ConsolidationPlan, FindingsFile, plan_consolidation
from echod.memory.document import parse
from echod.memory.entry_matching import NO_ID_CHANGES
from echod.memory.model import Document, Unreadable
from echod.state.entries import EntryStore, Reference
from echod.state.review_answers import QuestionKey
from echod.store import layout
from echod.store.changes import Append, ChangeSet, CommitResult, ConsumeFindings, PartialConsume, Write
from echod.store.journal.notices import CLAIM, SUPERSEDES, Question
from echod.store.layout import Role, findings_archive_path, quarantine_path
from echod.store.session import RoleSession, RoleView
from echod.store.snapshot import Snapshot, content_digest

_CacheKey = tuple[str, str, str, date, date]


class FindingsCache:
    """Remembers the files of the newest `preload`; one for a worker."""

    def __init__(self) -> None:
        self._results: dict[_CacheKey, AcceptedFile | RejectedFile] = {}

    def preload(self, files: Iterable[FindingsFile], today: date) -> None:
        """Understand these files, and forget all others."""
        self._results = {_cache_key(file, today): self.get(file, today) for file in files}

    def get(self, file: FindingsFile, today: date) -> AcceptedFile | RejectedFile:
        """What `echod.memory.consolidation.intake.read_and_redact` says of a file, at once where it was read ahead."""
        summaries = self._results.get(_cache_key(file, today))
        return read_and_redact(file, today) if summaries is None else replace(summaries, file=file)


def _cache_key(file: FindingsFile, today: date) -> _CacheKey:
    return file.name, file.agent, content_digest(file.data), file.date, today


RETRY_SECONDS = 10.0
_MAX_PLANS = 5
"""The engine goes on by itself after a few overtaken plans; more than this never happens unless it is wrong."""

_MAX_FILES, _MAX_BYTES = 500, 512 << 10
"""What is folded in at once. Planning more would hold the writers' lock so long that others come first, for ever."""

_MAX_CHANGES = 1_000
"""Entries that are added or refreshed at once, for the same reason: a small file may hold very many small findings."""


class ConsolidateSettings(NamedTuple):
    """What holds for a run.

    Attributes:
        quiet_seconds: how long findings must be still.
        only_digests: the findings files that a person chose, by digest; None for all but those that an undo gave back.
    """

    quiet_seconds: float
    only_digests: frozenset[str] | None = None


def preload_findings(
    session: RoleSession, cache: FindingsCache, settings: ConsolidateSettings, clock: Callable[[], float]
) -> None:
    """Understand the files that `run` will fold in; to be called before the writers' lock is taken.

    Raises:
        BusyError, StoreError: as `RoleSession.read` says.
    """
    view = session.read(min_age_seconds=settings.quiet_seconds)
    cache.preload(_findings_files(view, next_batch(view, settings)), _local_date(clock()))


def run(context: JobContext, settings: ConsolidateSettings, cache: FindingsCache) -> JobOutcome:
    """Consolidate the role of `session`. A finding that an entry holds already is counted as a reference to it.

    What is more than can be folded in at once is left to the next job: it is found by the next look at the store.

    Raises:
        BusyError, RefusedError, StoreError: see `RoleSession.commit`; nothing was changed.
    """
    session, entries = context.session, context.entries
    for _ in range(_MAX_PLANS):
        view = session.read(min_age_seconds=settings.quiet_seconds)
        now = context.clock()
        ready = next_batch(view, settings)
        if not ready:
            return _outcome_without_batch(view, now)
        _record_entries(entries, view, view.memory.data, _local_date(now))
        plan = plan_role(
            view, ready, entries.pinned_ids(view.role.store.key, _local_date(now)), cache, _local_date(now)
        )
        if isinstance(plan, Unreadable):
            return JobBlocked(f"{layout.MEMORY} is left alone: {plan.reason}")
        if not context.allow_writes:
            return JobDone(f"report only: would do: {plan.summary}", changed=False)
        questions = tuple(_questions(view.role.name, plan, now))
        session.record_questions(questions)
        about = [QuestionKey(one.key, one.entry) for one in questions]
        changes = _change_set(context.job_id, view, ready, plan, _local_date(now))
        entries.question_subjects.record(view.role.store.key, about)  # now, so that no kill after the commit loses it
        if isinstance(session.commit(context.job_id, changes, gate=context.gate), CommitResult):
            _record_entries(entries, view, plan.memory, _local_date(now), plan.id_changes)
            entries.question_subjects.record(
                view.role.store.key, about
            )  # the ids that moved just now were those before the commit
            _count_references(entries, view, ready, plan, _local_date(now))
            return JobDone(plan.summary, changed=True)
    return JobDeferred("other programs keep writing the same files", context.clock() + RETRY_SECONDS)


def plan_role(
    view: RoleView, ready: Iterable[Snapshot], pinned: Container[str], cache: FindingsCache, today: date
) -> ConsolidationPlan | Unreadable:
    """What becomes of these findings, as far as they are folded in at once.

    Args:
        view: the role.
        ready: findings files of it.
        pinned: ids of entries that no rule touches.
        cache: what the files say.
        today: the local day.
    """
    return plan_consolidation(
        view.role.name,
        view.memory.data,
        _findings_files(view, ready),
        today,
        known_keys=view.consumed_keys,
        pinned_ids=pinned,
        max_changes=_MAX_CHANGES,
        read_file=cache.get,
    )


def next_batch(view: RoleView, settings: ConsolidateSettings) -> tuple[Snapshot, ...]:
    """The first of the wanted findings files, one at least; the next look at the store finds the rest."""
    chosen: list[Snapshot] = []
    size = 0
    for found in view.findings:
        if (
            found.digest in view.restored_findings
            if settings.only_digests is None
            else found.digest not in settings.only_digests
        ):
            continue
        size += len(found.text)
        if chosen and (size > _MAX_BYTES or len(chosen) == _MAX_FILES):
            break
        chosen.append(found)
    return tuple(chosen)


def _outcome_without_batch(view: RoleView, now: float) -> JobOutcome:
    if young := [busy.until for busy in view.unavailable_findings if busy.until is not None]:
        return JobDeferred("the findings are still being written", max(min(young), now + 0.1))
    if view.unavailable_findings:
        return JobDeferred(view.unavailable_findings[0].reason, now + RETRY_SECONDS)
    if view.findings:
        return JobDone("nothing to do: a person took back what the findings gave", changed=False)
    return JobDone("nothing to do: the findings are gone", changed=False)


def _findings_files(view: RoleView, ready: Iterable[Snapshot]) -> tuple[FindingsFile, ...]:
    return tuple(
        FindingsFile(
            name=found.path.name,
            agent=layout.agent_name(found.path),
            data=found.text,
            date=_local_date(found.mtime_ns / 1e9),
            partly_consumed=found.digest in view.partially_consumed,
        )
        for found in ready
    )


def _change_set(
    job_id: int, view: RoleView, ready: Iterable[Snapshot], plan: ConsolidationPlan, today: date
) -> ChangeSet:
    role = PurePosixPath(view.role.name)
    before = {found.path.name: found.digest or "" for found in ready}
    consumed = tuple(
        ConsumeFindings(
            path=role / file.name,
            before=before[file.name],
            archive=role / findings_archive_path(file.name, today),
            archived_text=file.redacted_data,
            keys=file.keys,
        )
        for file in plan.consumed
    )
    quarantined = tuple(
        ConsumeFindings(
            path=role / file.name,
            before=before[file.name],
            archive=role / quarantine_path(file.name, today),
            archived_text=file.redacted_data,
        )
        for file in plan.quarantined
    )
    writes = [] if plan.memory is None else [Write(role / layout.MEMORY, view.memory.digest, plan.memory)]
    archived = [one.archived for one in plan.superseded]
    if archived and (name := backup_name(view.role, view.memory.text, today)) is not None:
        writes.append(Write(role / name, None, view.memory.text))
    reasons = "".join(f"- {today:%Y-%m-%d} `{file.name}`: {file.reason}\n" for file in plan.quarantined)
    return ChangeSet(
        kind="consolidate",
        role=view.role.name,
        summary=plan.summary,
        writes=tuple(writes),
        appends=(
            *append_pruned(view.role, today, archived, job_id),
            *((Append(role / layout.QUARANTINE / layout.QUARANTINE_REASONS, reasons.encode()),) if reasons else ()),
        ),
        consumes=consumed + quarantined,
        partial_consumes=tuple(PartialConsume(before[file.name], file.keys) for file in plan.partly_consumed),
    )


def _questions(role: str, plan: ConsolidationPlan, now: float) -> Iterator[Question]:
    """What of it only a person may do."""
    for claim, layer in plan.layer_claims:
        yield Question(now, CLAIM, role, claim.key, claim.id, layer.value, "")
    for one in plan.pending_supersedes:
        yield Question(now, SUPERSEDES, role, one.key, one.id, one.target, one.problem.value)


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
    entries: EntryStore, view: RoleView, ready: Iterable[Snapshot], plan: ConsolidationPlan, today: date
) -> None:
    """A learning that agents found again was of use; once in the workflow that they found it in, if that is known."""
    store = view.role.store
    written = {found.path.name: found.mtime_ns / 1e9 for found in ready}
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


def _local_date(at: float) -> date:
    return datetime.fromtimestamp(at).astimezone().date()


def preview_selected(
    view: RoleView, digests: frozenset[str], pinned: Container[str], today: date
) -> Iterator[ConsolidationPlan | Unreadable]:
    """What `consolidate_selected` would do with these findings files of a role, one plan for each part.

    Writes nothing.
    """
    settings, cache = _selected_settings(digests), FindingsCache()
    while ready := next_batch(view, settings):
        plan = plan_role(view, ready, pinned, cache, today)
        yield plan
        if isinstance(plan, Unreadable):
            return
        view = _view_after(view, plan)


def consolidate_selected(resources: JobResources, role: Role, digests: frozenset[str]) -> JobOutcome:
    """Fold in findings files, named by their digests, also those whose consolidation was taken back.

    The role is held for each part anew, so that others come in between.

    Raises:
        BusyError, RefusedError, StoreError: see `RoleSession.commit`; what was folded in before stays so.
    """
    settings, cache, summaries = _selected_settings(digests), FindingsCache(), list[str]()
    while True:
        with resources.engine.open_read_only(role) as session:
            preload_findings(session, cache, settings, resources.clock)
        with resources.open_role(role) as context:
            outcome = run(context, settings, cache)
        if isinstance(outcome, JobDone) and outcome.changed:
            summaries.append(outcome.summary)
        else:
            return JobDone("; ".join(summaries), changed=True) if summaries else outcome


def _selected_settings(digests: frozenset[str]) -> ConsolidateSettings:
    return ConsolidateSettings(quiet_seconds=0.0, only_digests=digests)


def _view_after(view: RoleView, plan: ConsolidationPlan) -> RoleView:
    """The role as it would be after a part."""
    gone = {file.name for file in plan.consumed} | {file.name for file in plan.quarantined}
    begun = {file.name for file in plan.partly_consumed}
    keys = {key for done in plan.consumed for key in done.keys} | {
        key for part in plan.partly_consumed for key in part.keys
    }
    memory = view.memory if plan.memory is None else replace(view.memory, data=plan.memory)
    return replace(
        view,
        memory=memory,
        findings=tuple(found for found in view.findings if found.path.name not in gone),
        consumed_keys=frozenset(view.consumed_keys) | keys,
        partially_consumed=view.partially_consumed
        | {found.digest or "" for found in view.findings if found.path.name in begun},
    )
