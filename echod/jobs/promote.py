"""The promote job: observations that were referenced often enough become inscribed. `memory.policy` says which."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from pathlib import PurePosixPath

from echod.inspection.entry_facts import note_entries, noted_facts
from echod.jobs.base import Blocked, Done, Outcome, Proposal, carry_out, memory_of
from echod.memory.document import parse
from echod.memory.model import Document
from echod.memory.policy import Policy, Promotion, plan_promotion
from echod.state.entries import EntryLog
from echod.store import layout
from echod.store.changes import ChangeSet, Gate, Write
from echod.store.session import RoleSession, RoleView


def run(
    job: int,
    session: RoleSession,
    entries: EntryLog,
    policy: Policy,
    gate: Gate,
    clock: Callable[[], float],
    *,
    writes: bool,
) -> Outcome:
    """Promote entries of the memory file of `session`.

    Raises:
        Busy, Refused, StoreFault: see `RoleSession.commit`; nothing was changed.
    """

    def planner(view: RoleView, today: date) -> Proposal | Outcome:
        document = memory_of(view)
        if isinstance(document, Blocked):
            return document
        facts = noted_facts(view.role, entries, policy, today, document)
        promotion = plan_promotion(view.role.name, document, facts, policy, today)
        if promotion.memory is None:
            return Done(_in_words(promotion), changed=False)
        return _proposal(view, promotion, promotion.memory, entries, today)

    return carry_out(job, session, planner, gate, clock, writes=writes)


def _in_words(promotion: Promotion) -> str:
    held = "".join(f"; {held.id} is left for a person: {held.reason}" for held in promotion.held)
    return f"{promotion.summary}{held}"


def _proposal(view: RoleView, promotion: Promotion, data: bytes, entries: EntryLog, today: date) -> Proposal:
    after = parse(data)

    def note() -> None:
        if isinstance(after, Document):
            note_entries(entries, view.role, after, today)

    path = PurePosixPath(view.role.name) / layout.MEMORY
    changes = ChangeSet(
        kind="promote",
        role=view.role.name,
        summary=_in_words(promotion),
        writes=(Write(path, view.memory.digest, data),),
    )
    return Proposal(changes, note)
