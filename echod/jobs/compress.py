"""The compress job: a knowledge file over its limit becomes one block for each topic. `memory.policy` decides how."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from pathlib import PurePosixPath

from echod.inspection.entry_facts import facts_of_knowledge
from echod.jobs.archives import pruned
from echod.jobs.base import Blocked, Done, Outcome, Proposal, carry_out, without_knowledge
from echod.memory.document import parse
from echod.memory.model import Document, Unreadable
from echod.memory.policy import CompressPlan, Facts, Policy, plan_compress
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
    """Compress the knowledge file of `session`.

    Raises:
        Busy, Refused, StoreFault: see `RoleSession.commit`; nothing was changed.
    """

    def planner(view: RoleView, today: date) -> Proposal | Outcome:
        if (unread := without_knowledge(view, clock())) is not None:
            return unread
        document = _document(view)
        if isinstance(document, Unreadable):
            return Blocked(f"{layout.KNOWLEDGE} is left alone: {document.reason}")
        facts = facts_of_knowledge(view.role, entries, policy, today, document)
        plan = plan_compress(view.role.name, document, facts, policy, today)
        if plan.knowledge is None:
            return Done(plan.summary, changed=False)
        return _proposal(job, view, plan, plan.knowledge, today)

    return carry_out(job, session, planner, gate, clock, writes=writes)


def plan_for(view: RoleView, facts: Facts, policy: Policy, today: date) -> CompressPlan | Unreadable:
    """What compress would do to this knowledge file on the local day `today`."""
    document = _document(view)
    if isinstance(document, Unreadable):
        return document
    return plan_compress(view.role.name, document, facts, policy, today)


def _document(view: RoleView) -> Document | Unreadable:
    return parse(b"" if view.knowledge is None else view.knowledge.text)


def _proposal(job: int, view: RoleView, plan: CompressPlan, data: bytes, today: date) -> Proposal:
    role = PurePosixPath(view.role.name)
    digest = None if view.knowledge is None else view.knowledge.digest
    changes = ChangeSet(
        kind="compress",
        role=view.role.name,
        summary=plan.summary,
        writes=(Write(role / layout.KNOWLEDGE, digest, data),),
        appends=pruned(view.role, today, plan.archived, job),
    )
    return Proposal(changes)
