"""The remember job: a person's words become an entry of the notes form, at the end of the role's memory file."""

from __future__ import annotations

from datetime import date
from pathlib import PurePosixPath

from echod.jobs.base import JobBlocked, JobContext, JobOutcome, Proposal, plan_and_commit
from echod.memory.document import new_memory_file, parse
from echod.memory.identity import entry_ids
from echod.memory.model import Document, Unreadable
from echod.memory.notes import Note, UnwritableNote, find_same_note, with_note
from echod.state.job import JobKind
from echod.store import layout
from echod.store.changes import ChangeSet, Origin, Write
from echod.store.session import RoleView

NOTES_ROLE = "notes"
"""The role that holds what people asked to remember."""


def run(context: JobContext, note: Note) -> JobOutcome:
    """Write a note into the memory file of `session`, which is begun if there is none.

    Args:
        context: the job, with the role locked.
        note: what to write.

    Raises:
        BusyError, RefusedError, StoreError: see `RoleSession.commit`; nothing was changed.
    """

    def planner(view: RoleView, today: date) -> Proposal | JobOutcome:
        after = plan_note(view, note, today)
        if isinstance(after, UnwritableNote):
            return JobBlocked(after.reason)
        changes = ChangeSet(
            kind=JobKind.REMEMBER.value,
            role=view.role.name,
            summary=f"remembered as {last_entry_id(view.role.name, after)}",
            writes=(Write(PurePosixPath(view.role.name) / layout.MEMORY, view.memory.digest, after.render()),),
            origin=Origin.USER,
        )
        return Proposal(changes)

    return plan_and_commit(context, planner)


def plan_note(view: RoleView, note: Note, today: date) -> Document | UnwritableNote:
    """The memory file with the note; or why not, in words that end without a full stop."""
    document = parse(new_memory_file(view.role.name) if view.memory.data is None else view.memory.text)
    if isinstance(document, Unreadable):
        return UnwritableNote(
            f"{layout.MEMORY} of the role {view.role.name} is left alone: {document.reason.rstrip('.')}"
        )
    if (existing := find_same_note(document, note)) is not None:
        return UnwritableNote(f"this is remembered already, as {entry_ids(view.role.name, document)[existing]}")
    return with_note(document, note, today)


def last_entry_id(role: str, document: Document) -> str:
    """The id of the entry at the end of a document that ends in one."""
    return entry_ids(role, document)[-1] or ""
