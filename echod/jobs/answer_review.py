"""The review job: what a person's answer to a review item changes in a role."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date
from pathlib import Path, PurePosixPath

from echod.inspection.review_items import (
    HeldFirstPrune,
    LayerClaim,
    OpenReviewItem,
    QuarantinedFile,
    RestoredFindingsFile,
    SupersededEntry,
    SuspiciousEntry,
)
from echod.jobs import forget, set_layer
from echod.jobs.base import JobBlocked, JobContext, JobDone, JobOutcome, JobResources, Proposal, plan_and_commit
from echod.jobs.consolidate import consolidate_selected
from echod.memory.policy import Rule
from echod.memory.redact import redact_bytes
from echod.state.job import JobKind
from echod.state.review_answers import ReviewAnswer
from echod.store import layout
from echod.store.changes import ChangeSet, ConsumeFindings, Origin, Write
from echod.store.layout import findings_archive_path, restored_findings_name
from echod.store.session import RoleView


def changes_files(item: OpenReviewItem, answer: ReviewAnswer) -> bool:
    """Whether an answer changes files of the role. One that does not is only remembered."""
    if answer is ReviewAnswer.ACCEPTED:
        return isinstance(item.subject, LayerClaim | SupersededEntry | QuarantinedFile | RestoredFindingsFile)
    return isinstance(item.subject, SuspiciousEntry | RestoredFindingsFile)


def must_record_answer(item: OpenReviewItem, answer: ReviewAnswer) -> bool:
    """Whether the item would be there again, had nobody written down that it was answered."""
    return not changes_files(item, answer) and not (
        answer is ReviewAnswer.ACCEPTED and isinstance(item.subject, HeldFirstPrune)
    )


def run(resources: JobResources, item: OpenReviewItem, answer: ReviewAnswer) -> JobOutcome:
    """Carry out an answer that changes files.

    Raises:
        BusyError, RefusedError, StoreError: see `RoleSession.commit`; nothing was changed.
    """
    if isinstance(item.subject, RestoredFindingsFile) and answer is ReviewAnswer.ACCEPTED:
        return consolidate_selected(resources, item.role, frozenset([item.subject.digest]))
    with resources.open_role(item.role) as context:
        match item.subject, answer:
            case LayerClaim(entry, layer), ReviewAnswer.ACCEPTED:
                return set_layer.run(context, entry, layer)
            case SupersededEntry(entry), ReviewAnswer.ACCEPTED:
                return forget.run(context, [entry], rule=Rule.SUPERSEDED)
            case SuspiciousEntry(entry), ReviewAnswer.REJECTED:
                return forget.run(context, [entry], rule=Rule.FORGOTTEN)
            case QuarantinedFile() as aside, ReviewAnswer.ACCEPTED:
                return _restore_quarantined(context, aside)
            case RestoredFindingsFile(name, digest), ReviewAnswer.REJECTED:
                return _archive_findings(context, name, digest)
            case _:
                return JobDone("nothing was changed", changed=False)


def _restore_quarantined(context: JobContext, quarantined: QuarantinedFile) -> JobOutcome:
    """The file goes back to where it is read; what stood in quarantine is kept with the other findings."""
    if quarantined.problem is not None:
        return JobBlocked(f"{quarantined.name} cannot be read: {quarantined.problem}")

    def planner(view: RoleView, _: date) -> Proposal | JobOutcome:
        role = PurePosixPath(view.role.name)
        found = context.session.read_file(f"{layout.QUARANTINE}/{quarantined.name}")
        if found.data is None or found.digest != quarantined.digest:
            return JobBlocked(f"{quarantined.name} has changed since; look at it again: echod review")
        write = Write(role / _free_name(view.role.path, quarantined.original_name), None, redact_bytes(found.data))
        consume = ConsumeFindings(
            path=role / layout.QUARANTINE / quarantined.name,
            before=quarantined.digest,
            archive=role / layout.FINDINGS_ARCHIVE / quarantined.name,
            archived_text=redact_bytes(found.data),
        )
        return Proposal(_change_set(view, f"{quarantined.name} is read again", [write], [consume]))

    return plan_and_commit(context, planner)


def _archive_findings(context: JobContext, name: str, digest: str) -> JobOutcome:
    """A findings file goes to where the others are that were consumed, but nothing of it to the memory."""

    def planner(view: RoleView, today: date) -> Proposal | JobOutcome:
        role = PurePosixPath(view.role.name)
        found = next((one for one in view.findings if one.path.name == name and one.digest == digest), None)
        if found is None:
            return JobBlocked(f"{name} has changed since; look at it again: echod review")
        consume = ConsumeFindings(
            path=role / name,
            before=digest,
            archive=role / findings_archive_path(name, today),
            archived_text=redact_bytes(found.text),
        )
        return Proposal(_change_set(view, f"{name} archived, nothing of it added", [], [consume]))

    return plan_and_commit(context, planner)


def _change_set(
    view: RoleView, summary: str, writes: Iterable[Write], consumes: Iterable[ConsumeFindings]
) -> ChangeSet:
    return ChangeSet(
        kind=JobKind.REVIEW.value,
        role=view.role.name,
        summary=summary,
        writes=tuple(writes),
        consumes=tuple(consumes),
        origin=Origin.USER,
    )


def _free_name(directory: Path, name: str) -> str:
    """A name for a findings file that no other one has."""
    free, number = name, 1
    while (directory / free).exists():
        number += 1
        free = restored_findings_name(name, number)
    return free
