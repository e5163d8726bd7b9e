"""The compress job: reduce a knowledge file over its limit to one block per topic. `memory.policy` plans it."""

from __future__ import annotations

from datetime import date

from echod.inspection.inspect import get_knowledge_facts
from echod.jobs.base import (
    JobBlocked,
    JobContext,
    JobDone,
    JobOutcome,
    Proposal,
    append_pruned,
    change_set,
    knowledge_unavailable,
    plan_and_commit,
    role_path,
)
from echod.memory.document import parse
from echod.memory.model import Document, Unreadable
from echod.memory.policy import CompressPlan, Facts, plan_compress
from echod.memory.policy_model import PolicySettings
from echod.state.jobs import JobKind
from echod.store import layout
from echod.store.changes import Write
from echod.store.engine import RoleView


def run(context: JobContext) -> JobOutcome:
    """Compress the knowledge file."""

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
        digest = None if view.knowledge is None else view.knowledge.digest
        writes = [Write(role_path(view, layout.KNOWLEDGE), digest, plan.knowledge)]
        appends = append_pruned(view.role, today, plan.archived, context.job_id)
        return Proposal(change_set(view, JobKind.COMPRESS, plan.summary, writes, appends=appends))

    return plan_and_commit(context, planner)


def plan_role(view: RoleView, facts: Facts, policy: PolicySettings, today: date) -> CompressPlan | Unreadable:
    """Return the effect of compress on the knowledge file on the local day `today`."""
    document = _parse_knowledge(view)
    if isinstance(document, Unreadable):
        return document
    return plan_compress(view.role.name, document, facts, policy, today)


def _parse_knowledge(view: RoleView) -> Document | Unreadable:
    return parse(b"" if view.knowledge is None else view.knowledge.text)
