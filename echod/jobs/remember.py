"""The remember job: append a note of the user to the role's memory file."""

from __future__ import annotations

from datetime import date

from echod.jobs.base import JobBlocked, JobContext, JobOutcome, Proposal, change_set, plan_and_commit, write_memory
from echod.memory.compose import Note, UnwritableNote, find_same_note, with_note
from echod.memory.document import new_memory_file, parse
from echod.memory.identity import entry_ids
from echod.memory.model import Document, Unreadable
from echod.state.job import JobKind
from echod.store import layout
from echod.store.session import RoleView

NOTES_ROLE = "notes"
"""The role for the notes of `echod remember`."""


def run(context: JobContext, note: Note) -> JobOutcome:
    """Append a note to the memory file, which is created if it is missing.

    Raises:
        BusyError, RefusedError, StoreError: see `RoleSession.commit`; nothing was changed.
    """

    def planner(view: RoleView, today: date) -> Proposal | JobOutcome:
        after = plan_note(view, note, today)
        if isinstance(after, UnwritableNote):
            return JobBlocked(after.reason)
        summary = f"remembered as {last_entry_id(view.role.name, after)}"
        return Proposal(change_set(view, JobKind.REMEMBER, summary, [write_memory(view, after.render())]))

    return plan_and_commit(context, planner)


def plan_note(view: RoleView, note: Note, today: date) -> Document | UnwritableNote:
    """Return the memory file with the note, or the reason why it cannot be added, without a full stop."""
    document = parse(new_memory_file(view.role.name) if view.memory.data is None else view.memory.text)
    if isinstance(document, Unreadable):
        return UnwritableNote(
            f"{layout.MEMORY} of the role {view.role.name} is left alone: {document.reason.rstrip('.')}"
        )
    if (existing := find_same_note(document, note)) is not None:
        return UnwritableNote(f"this is remembered already, as {entry_ids(view.role.name, document)[existing]}")
    return with_note(document, note, today)


def last_entry_id(role: str, document: Document) -> str:
    """Return the id of the last entry of a document that ends in an entry."""
    return entry_ids(role, document)[-1] or ""
