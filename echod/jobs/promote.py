"""The promote job: make observations that were referenced often enough inscribed. `memory.policy` selects them."""

from __future__ import annotations

from datetime import date

from echod.inspection.inspect import record_and_get_facts, record_entries
from echod.jobs.base import (
    JobContext,
    JobDone,
    JobOutcome,
    Proposal,
    change_set,
    plan_memory_and_commit,
    write_memory,
)
from echod.memory.document import parse
from echod.memory.model import Document
from echod.memory.policy import PromotionPlan, plan_promotion
from echod.state.jobs import JobKind
from echod.store.engine import RoleView


def run(context: JobContext) -> JobOutcome:
    """Promote entries of the memory file."""

    def planner(view: RoleView, document: Document, today: date) -> Proposal | JobOutcome:
        facts = record_and_get_facts(view.role, context.entries, context.policy, today, document)
        promotion = plan_promotion(view.role.name, document, facts, context.policy, today)
        if promotion.memory is None:
            return JobDone(_summary(promotion), changed=False)
        after = parse(promotion.memory)

        def record() -> None:
            if isinstance(after, Document):
                record_entries(context.entries, view.role, after, today)

        writes = [write_memory(view, promotion.memory)]
        return Proposal(change_set(view, JobKind.PROMOTE, _summary(promotion), writes), after_commit=record)

    return plan_memory_and_commit(context, planner)


def _summary(promotion: PromotionPlan) -> str:
    blocked = "".join(f"; {entry.id} is left for you: {entry.reason}" for entry in promotion.blocked)
    return f"{promotion.summary}{blocked}"
