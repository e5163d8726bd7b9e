"""The restore job: an entry of the archive stands in its file again, word for word, and is pinned for a while."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, timedelta
from pathlib import PurePosixPath

from echod.inspection.entry_facts import record_entries
from echod.jobs.archives import append_removed, append_short_form
from echod.jobs.base import JobBlocked, JobContext, JobOutcome, Proposal, knowledge_unavailable, plan_and_commit
from echod.memory.document import new_memory_file, parse
from echod.memory.knowledge.blocks import new_knowledge_file
from echod.memory.model import Unreadable
from echod.memory.policy import ArchivedEntry, Rule
from echod.memory.policy.manual import EditRefusal, Restoration, restore_entry
from echod.memory.redact import redact_entry
from echod.state.job import JobKind
from echod.store import layout
from echod.store.changes import ChangeSet, Origin, Write
from echod.store.session import RoleView
from echod.store.snapshot import Snapshot


def run(context: JobContext, archived: ArchivedEntry) -> JobOutcome:
    """Put an archived entry back into the file in which it stood, at its end; it is pinned then.

    Args:
        context: the job, with the role locked.
        archived: the entry, as its archive has it.

    Raises:
        BusyError, RefusedError, StoreError: see `RoleSession.commit`; nothing was changed.
    """

    def planner(view: RoleView, today: date) -> Proposal | JobOutcome:
        file = read_target_file(view, archived)
        if file is None:
            return knowledge_unavailable(view, context.clock()) or JobBlocked(f"{archived.file} cannot be read")
        restoration = plan_restoration(view, file, archived)
        if isinstance(restoration, EditRefusal):
            return JobBlocked(restoration.reason)

        def note() -> None:
            if archived.file == layout.MEMORY:
                record_entries(context.entries, view.role, restoration.document, today)
                until = today + timedelta(days=context.policy.pin_days)
                context.entries.pin(view.role.store.key, [restoration.id], until)

        role = PurePosixPath(view.role.name)
        changes = ChangeSet(
            kind=JobKind.RESTORE.value,
            role=view.role.name,
            summary=f"{restoration.id} brought back from the archive",
            writes=(Write(role / archived.file, file.digest, restoration.document.render()),),
            appends=(
                *append_short_form(view.role, restoration.condensed_text, today),
                *append_removed(view.role, today, [_restored_marker(archived, today)], context.job_id),
            ),
            origin=Origin.USER,
        )
        return Proposal(changes, note)

    return plan_and_commit(context, planner)


def read_target_file(view: RoleView, archived: ArchivedEntry) -> Snapshot | None:
    """The file in which an archived entry stood, as it is now; None where someone is writing it."""
    return view.knowledge if archived.file == layout.KNOWLEDGE else view.memory


def plan_restoration(view: RoleView, file: Snapshot, archived: ArchivedEntry) -> Restoration | EditRefusal:
    """That file with the entry in it; or why not, in words that end without a full stop."""
    archived = replace(
        archived, text=redact_entry(archived.text).text
    )  # an archive that others wrote may hold anything
    new = new_knowledge_file if archived.file == layout.KNOWLEDGE else new_memory_file
    document = parse(new(view.role.name) if file.data is None else file.text)
    if isinstance(document, Unreadable):
        return EditRefusal(f"{archived.file} is left alone: {document.reason.rstrip('.')}")
    return restore_entry(view.role.name, document, archived)


def _restored_marker(archived: ArchivedEntry, today: date) -> ArchivedEntry:
    """What the archive says of an entry that was brought back; so it is not taken for a forgotten one any more."""
    return replace(archived, rule=Rule.RESTORED.value, day=today, text="", score=None, terms=None, redacted=False)
