"""The promote job: observations that were referenced often enough become inscribed. `memory.policy` says which."""

from __future__ import annotations

from datetime import date
from pathlib import PurePosixPath

from echod.inspection.entry_facts import record_and_get_facts, record_entries
from echod.jobs.base import JobBlocked, JobContext, JobDone, JobOutcome, Proposal, parse_memory, plan_and_commit
from echod.memory.document import parse
from echod.memory.model import Document
from echod.memory.policy import PromotionPlan, plan_promotion
from echod.state.entries import EntryStore
from echod.store import layout
from echod.store.changes import ChangeSet, Write
from echod.store.session import RoleView


def run(context: JobContext) -> JobOutcome:
    """Promote entries of the memory file of `session`.

    Raises:
        BusyError, RefusedError, StoreError: see `RoleSession.commit`; nothing was changed.
    """

    def planner(view: RoleView, today: date) -> Proposal | JobOutcome:
        document = parse_memory(view)
        if isinstance(document, JobBlocked):
            return document
        facts = record_and_get_facts(view.role, context.entries, context.policy, today, document)
        promotion = plan_promotion(view.role.name, document, facts, context.policy, today)
        if promotion.memory is None:
            return JobDone(_summary(promotion), changed=False)
        return _build_proposal(view, promotion, promotion.memory, context.entries, today)

    return plan_and_commit(context, planner)


def _summary(promotion: PromotionPlan) -> str:
    held = "".join(f"; {held.id} is left for a person: {held.reason}" for held in promotion.blocked)
    return f"{promotion.summary}{held}"


def _build_proposal(
    view: RoleView, promotion: PromotionPlan, data: bytes, entries: EntryStore, today: date
) -> Proposal:
    after = parse(data)

    def note() -> None:
        if isinstance(after, Document):
            record_entries(entries, view.role, after, today)

    path = PurePosixPath(view.role.name) / layout.MEMORY
    changes = ChangeSet(
        kind="promote",
        role=view.role.name,
        summary=_summary(promotion),
        writes=(Write(path, view.memory.digest, data),),
    )
    return Proposal(changes, note)
