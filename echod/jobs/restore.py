"""The restore job: an entry of the archive stands in its file again, word for word, and is pinned for a while."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import date, timedelta
from pathlib import PurePosixPath
from typing import NamedTuple

from echod.inspection.entry_facts import note_entries
from echod.jobs.archives import gave_way, removed
from echod.jobs.base import Blocked, Outcome, Proposal, carry_out, without_knowledge
from echod.memory.document import new_memory_file, parse
from echod.memory.knowledge.blocks import new_knowledge_file
from echod.memory.model import Unreadable
from echod.memory.policy import ArchivedEntry, Rule
from echod.memory.policy.manual import BroughtBack, Impossible, brought_back
from echod.memory.redact import redact_entry
from echod.state.entries import EntryLog
from echod.state.job import JobKind
from echod.store import layout
from echod.store.changes import ChangeSet, Gate, Origin, Write
from echod.store.session import RoleSession, RoleView
from echod.store.snapshot import Snapshot


class Pins(NamedTuple):
    """Where it is written down that no rule touches an entry, and for how many days."""

    entries: EntryLog
    days: int


def run(
    job: int, session: RoleSession, kept: ArchivedEntry, pins: Pins, gate: Gate, clock: Callable[[], float]
) -> Outcome:
    """Put an archived entry back into the file in which it stood, at its end; it is pinned then.

    Args:
        job: the job's number.
        session: the role, held.
        kept: the entry, as its archive has it.
        pins: where it is pinned.
        gate: asked just before the point of no return.
        clock: Unix seconds.

    Raises:
        Busy, Refused, StoreFault: see `RoleSession.commit`; nothing was changed.
    """

    def planner(view: RoleView, today: date) -> Proposal | Outcome:
        file = file_of(view, kept)
        if file is None:
            return without_knowledge(view, clock()) or Blocked(f"{kept.file} cannot be read")
        back = with_it(view, file, kept)
        if isinstance(back, Impossible):
            return Blocked(back.reason)

        def note() -> None:
            if kept.file == layout.MEMORY:
                note_entries(pins.entries, view.role, back.document, today)
                pins.entries.pin(view.role.store.key, [back.id], today + timedelta(days=pins.days))

        role = PurePosixPath(view.role.name)
        changes = ChangeSet(
            kind=JobKind.RESTORE.value,
            role=view.role.name,
            summary=f"{back.id} brought back from the archive",
            writes=(Write(role / kept.file, file.digest, back.document.render()),),
            appends=(*gave_way(view.role, back.short, today), *removed(view.role, today, [_mark(kept, today)], job)),
            origin=Origin.PERSON,
        )
        return Proposal(changes, note)

    return carry_out(job, session, planner, gate, clock, writes=True)


def file_of(view: RoleView, kept: ArchivedEntry) -> Snapshot | None:
    """The file in which an archived entry stood, as it is now; None where someone is writing it."""
    return view.knowledge if kept.file == layout.KNOWLEDGE else view.memory


def with_it(view: RoleView, file: Snapshot, kept: ArchivedEntry) -> BroughtBack | Impossible:
    """That file with the entry in it; or why not, in words that end without a full stop."""
    kept = replace(kept, text=redact_entry(kept.text).text)  # an archive that others wrote may hold anything
    new = new_knowledge_file if kept.file == layout.KNOWLEDGE else new_memory_file
    document = parse(new(view.role.name) if file.data is None else file.text)
    if isinstance(document, Unreadable):
        return Impossible(f"{kept.file} is left alone: {document.reason.rstrip('.')}")
    return brought_back(view.role.name, document, kept)


def _mark(kept: ArchivedEntry, today: date) -> ArchivedEntry:
    """What the archive says of an entry that was brought back; so it is not taken for a forgotten one any more."""
    return replace(kept, rule=Rule.RESTORED.value, day=today, text="", score=None, terms=None, redacted=False)
