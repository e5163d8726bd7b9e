"""The remember job: a person's words become an entry of the notes form, at the end of the role's memory file."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from pathlib import PurePosixPath

from echod.jobs.base import Blocked, Outcome, Proposal, carry_out
from echod.memory.document import new_memory_file, parse
from echod.memory.identity import entry_ids
from echod.memory.model import Document, Unreadable
from echod.memory.notes import Note, Unwritable, same_note, with_note
from echod.state.job import JobKind
from echod.store import layout
from echod.store.changes import ChangeSet, Gate, Origin, Write
from echod.store.session import RoleSession, RoleView

ROLE = "notes"
"""The role that holds what people asked to remember."""


def run(job: int, session: RoleSession, note: Note, gate: Gate, clock: Callable[[], float]) -> Outcome:
    """Write a note into the memory file of `session`, which is begun if there is none.

    Args:
        job: the job's number.
        session: the role, held.
        note: what to write.
        gate: asked just before the point of no return.
        clock: Unix seconds.

    Raises:
        Busy, Refused, StoreFault: see `RoleSession.commit`; nothing was changed.
    """

    def planner(view: RoleView, today: date) -> Proposal | Outcome:
        after = with_it(view, note, today)
        if isinstance(after, Unwritable):
            return Blocked(after.reason)
        changes = ChangeSet(
            kind=JobKind.REMEMBER.value,
            role=view.role.name,
            summary=f"remembered as {last_id(view.role.name, after)}",
            writes=(Write(PurePosixPath(view.role.name) / layout.MEMORY, view.memory.digest, after.render()),),
            origin=Origin.PERSON,
        )
        return Proposal(changes)

    return carry_out(job, session, planner, gate, clock, writes=True)


def with_it(view: RoleView, note: Note, today: date) -> Document | Unwritable:
    """The memory file with the note; or why not, in words that end without a full stop."""
    document = parse(new_memory_file(view.role.name) if view.memory.data is None else view.memory.text)
    if isinstance(document, Unreadable):
        return Unwritable(f"{layout.MEMORY} of the role {view.role.name} is left alone: {document.reason.rstrip('.')}")
    if (standing := same_note(document, note)) is not None:
        return Unwritable(f"this is remembered already, as {entry_ids(view.role.name, document)[standing]}")
    return with_note(document, note, today)


def last_id(role: str, document: Document) -> str:
    """The id of the entry at the end of a document that ends in one."""
    return entry_ids(role, document)[-1] or ""
