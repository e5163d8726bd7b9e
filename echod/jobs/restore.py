"""The restore job: return an archived entry to its file, word for word, and pin it for some days."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, timedelta

from echod.inspection.entry_facts import record_entries
from echod.jobs.archives import append_removed, append_short_form
from echod.jobs.base import (
    JobBlocked,
    JobContext,
    JobOutcome,
    Proposal,
    change_set,
    knowledge_unavailable,
    plan_and_commit,
    role_path,
)
from echod.memory.document import new_memory_file, parse
from echod.memory.knowledge.blocks import new_knowledge_file
from echod.memory.model import Unreadable
from echod.memory.policy import ArchivedEntry, Rule
from echod.memory.policy.manual import EditRefusal, Restoration, restore_entry
from echod.memory.redact import redact_entry
from echod.state.job import JobKind
from echod.store import layout
from echod.store.changes import Write
from echod.store.session import RoleView
from echod.store.snapshot import Snapshot


def run(context: JobContext, archived: ArchivedEntry) -> JobOutcome:
    """Append an archived entry to the file that it was removed from. An entry of the memory file is pinned.

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

        def record() -> None:
            if archived.file == layout.MEMORY:
                record_entries(context.entries, view.role, restoration.document, today)
                until = today + timedelta(days=context.policy.pin_days)
                context.entries.pin(view.role.store.key, [restoration.id], until)

        changes = change_set(
            view,
            JobKind.RESTORE,
            f"{restoration.id} restored from the archive",
            [Write(role_path(view, archived.file), file.digest, restoration.document.render())],
            appends=(
                *append_short_form(view.role, restoration.condensed_text, today),
                *append_removed(view.role, today, [_restored_marker(archived, today)], context.job_id),
            ),
        )
        return Proposal(changes, after_commit=record)

    return plan_and_commit(context, planner)


def read_target_file(view: RoleView, archived: ArchivedEntry) -> Snapshot | None:
    """Return the present content of the entry's file; None while another program writes it."""
    return view.knowledge if archived.file == layout.KNOWLEDGE else view.memory


def plan_restoration(view: RoleView, file: Snapshot, archived: ArchivedEntry) -> Restoration | EditRefusal:
    """Return the file with the entry, or the reason why it cannot be restored, without a full stop."""
    # An archive that another program wrote may contain anything.
    archived = replace(archived, text=redact_entry(archived.text).text)
    new = new_knowledge_file if archived.file == layout.KNOWLEDGE else new_memory_file
    document = parse(new(view.role.name) if file.data is None else file.text)
    if isinstance(document, Unreadable):
        return EditRefusal(f"{archived.file} is left alone: {document.reason.rstrip('.')}")
    return restore_entry(view.role.name, document, archived)


def _restored_marker(archived: ArchivedEntry, today: date) -> ArchivedEntry:
    """Return the archive's record of the restoration, so that the entry does not count as forgotten any more."""
    return replace(archived, rule=Rule.RESTORED.value, day=today, text="", score=None, terms=None, redacted=False)
