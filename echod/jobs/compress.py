"""The compress job: a knowledge file over its limit becomes one block for each topic. `memory.policy` decides how."""

from __future__ import annotations

from datetime import date
from pathlib import PurePosixPath

from echod.inspection.entry_facts import get_knowledge_facts
from echod.jobs.archives import append_pruned
from echod.jobs.base import (
    JobBlocked,
    JobContext,
    JobDone,
    JobOutcome,
    Proposal,
    knowledge_unavailable,
    plan_and_commit,
)
from echod.memory.document import parse
from echod.memory.model import Document, Unreadable
from echod.memory.policy import CompressPlan, Facts, PolicySettings, plan_compress
from echod.store import layout
from echod.store.changes import ChangeSet, Write
from echod.store.session import RoleView


def run(context: JobContext) -> JobOutcome:
    """Compress the knowledge file of `session`.

    Raises:
        BusyError, RefusedError, StoreError: see `RoleSession.commit`; nothing was changed.
    """

    def planner(view: RoleView, today: date) -> Proposal | JobOutcome:
        if (unavailable := knowledge_unavailable(view, context.clock())) is not None:
            return unavailable
        document = _parse_knowledge(view)
        if isinstance(document, Unreadable):
            return JobBlocked(f"{layout.KNOWLEDGE} is left alone: {document.reason}")
        facts = get_knowledge_facts(view.role, context.entries, context.policy, today, document)
        plan = plan_compress(view.role.name, document, facts, context.policy, today)
        if plan.knowledge is None:
            return JobDone(plan.summary, changed=False)
        return _build_proposal(context.job_id, view, plan, plan.knowledge, today)

    return plan_and_commit(context, planner)


def plan_role(view: RoleView, facts: Facts, policy: PolicySettings, today: date) -> CompressPlan | Unreadable:
    """What compress would do to this knowledge file on the local day `today`."""
    document = _parse_knowledge(view)
    if isinstance(document, Unreadable):
        return document
    return plan_compress(view.role.name, document, facts, policy, today)


def _parse_knowledge(view: RoleView) -> Document | Unreadable:
    return parse(b"" if view.knowledge is None else view.knowledge.text)


def _build_proposal(job_id: int, view: RoleView, plan: CompressPlan, data: bytes, today: date) -> Proposal:
    role = PurePosixPath(view.role.name)
    digest = None if view.knowledge is None else view.knowledge.digest
    changes = ChangeSet(
        kind="compress",
        role=view.role.name,
        summary=plan.summary,
        writes=(Write(role / layout.KNOWLEDGE, digest, data),),
        appends=append_pruned(view.role, today, plan.archived, job_id),
    )
    return Proposal(changes)
