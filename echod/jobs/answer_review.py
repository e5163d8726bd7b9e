"""The review job: carry out the user's answer to a review item."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from pathlib import Path

from echod.inspection.review import (
    HeldFirstPrune,
    LayerClaim,
    OpenReviewItem,
    ProposedChange,
    QuarantinedFile,
    RemovedEntries,
    RestoredFindingsFile,
    SupersededEntry,
    SuspiciousEntry,
)
from echod.jobs import manual, propose
from echod.jobs.base import (
    JobBlocked,
    JobContext,
    JobDone,
    JobOutcome,
    JobResources,
    Proposal,
    change_set,
    list_archived_entries,
    plan_and_commit,
    role_path,
)
from echod.jobs.consolidate import consolidate_selected
from echod.memory.policy_model import Rule
from echod.memory.proposals import ProposedEntry
from echod.memory.redact import redact_bytes
from echod.state.decisions import ReviewAnswer
from echod.state.jobs import JobKind
from echod.store import layout
from echod.store.changes import ConsumeFindings, Write
from echod.store.engine import RoleView
from echod.store.layout import findings_archive_path, restored_findings_name


def changes_files(item: OpenReviewItem, answer: ReviewAnswer) -> bool:
    """Return whether an answer changes files of the role. Other answers are only recorded."""
    if answer is ReviewAnswer.DISMISSED or item.effects is None:
        return False
    if answer is ReviewAnswer.ACCEPTED:
        return not isinstance(item.subject, SuspiciousEntry | HeldFirstPrune)
    return isinstance(item.subject, SuspiciousEntry | RestoredFindingsFile)


def must_record_answer(item: OpenReviewItem, answer: ReviewAnswer) -> bool:
    """Return whether the item would reappear unless its answer is recorded."""
    return not changes_files(item, answer) and not (
        answer is ReviewAnswer.ACCEPTED and isinstance(item.subject, HeldFirstPrune)
    )


def run(resources: JobResources, item: OpenReviewItem, answer: ReviewAnswer) -> JobOutcome:
    """Carry out an answer that changes files. The role is locked once, or for each batch of findings."""
    if isinstance(item.subject, RestoredFindingsFile) and answer is ReviewAnswer.ACCEPTED:
        return consolidate_selected(resources, item.role, frozenset([item.subject.digest]))
    with resources.open_role(item.role) as context:
        match item.subject, answer:
            case LayerClaim(entry, layer), ReviewAnswer.ACCEPTED:
                return manual.set_layer(context, entry, layer)
            case SupersededEntry(entry), ReviewAnswer.ACCEPTED:
                return manual.forget(context, [entry], rule=Rule.SUPERSEDED)
            case SuspiciousEntry(entry), ReviewAnswer.REJECTED:
                return manual.forget(context, [entry], rule=Rule.FORGOTTEN)
            case ProposedChange(entries, title, text), ReviewAnswer.ACCEPTED:
                return propose.accept(context, ProposedEntry(entries, title, text))
            case RemovedEntries(entries), ReviewAnswer.ACCEPTED:
                return _restore_removed(context, entries)
            case QuarantinedFile() as quarantined, ReviewAnswer.ACCEPTED:
                return _restore_quarantined(context, quarantined)
            case RestoredFindingsFile(name, digest), ReviewAnswer.REJECTED:
                return _archive_findings(context, name, digest)
            case _:
                return JobDone("nothing was changed", changed=False)


def _restore_removed(context: JobContext, entries: Sequence[str]) -> JobOutcome:
    """Restore the newest archived text of each entry of the memory file. A knowledge file may have had the same ids."""
    archived = [copy.entry for copy in list_archived_entries(context.session.role)]
    copies = {entry.id: entry for entry in archived if entry.text and entry.file == layout.MEMORY}
    missing = [entry for entry in entries if entry not in copies]
    if missing:
        return JobBlocked(f"the archive has no {' and no '.join(missing)} any more")
    return manual.restore(context, [copies[entry] for entry in entries])


def _restore_quarantined(context: JobContext, quarantined: QuarantinedFile) -> JobOutcome:
    """Return the file to the findings of the role. The quarantined copy moves to the findings archive."""
    if quarantined.problem is not None:
        return JobBlocked(f"{quarantined.name} cannot be read: {quarantined.problem}")

    def planner(view: RoleView, _: date) -> Proposal | JobOutcome:
        file = context.session.read_file(f"{layout.QUARANTINE}/{quarantined.name}")
        if file.data is None or file.digest != quarantined.digest:
            return JobBlocked(f"{quarantined.name} has changed; review it again: echod review")
        text = redact_bytes(file.data)
        write = Write(role_path(view, _free_name(view.role.path, quarantined.original_name)), None, text)
        consume = ConsumeFindings(
            path=role_path(view, layout.QUARANTINE) / quarantined.name,
            before=quarantined.digest,
            archive=role_path(view, layout.FINDINGS_ARCHIVE) / quarantined.name,
            archived_text=text,
        )
        summary = f"{quarantined.name} restored from quarantine"
        return Proposal(change_set(view, JobKind.REVIEW, summary, [write], consumes=[consume]))

    return plan_and_commit(context, planner)


def _archive_findings(context: JobContext, name: str, digest: str) -> JobOutcome:
    """Move a findings file to the findings archive without adding its findings to the memory."""

    def planner(view: RoleView, today: date) -> Proposal | JobOutcome:
        file = next((file for file in view.findings if file.path.name == name and file.digest == digest), None)
        if file is None:
            return JobBlocked(f"{name} has changed; review it again: echod review")
        consume = ConsumeFindings(
            path=role_path(view, name),
            before=digest,
            archive=role_path(view, findings_archive_path(name, today)),
            archived_text=redact_bytes(file.text),
        )
        summary = f"{name} archived, none of its findings added"
        return Proposal(change_set(view, JobKind.REVIEW, summary, consumes=[consume]))

    return plan_and_commit(context, planner)


def _free_name(directory: Path, name: str) -> str:
    """Return an unused name for a findings file."""
    free, number = name, 1
    while (directory / free).exists():
        number += 1
        free = restored_findings_name(name, number)
    return free
