"""The elevate job: copy an entry of a project to the global memory at the user's request."""

from __future__ import annotations

from datetime import date

from echod.jobs.base import JobBlocked, JobContext, JobOutcome, Proposal, change_set, plan_and_commit, write_memory
from echod.memory.document import new_memory_file, parse
from echod.memory.model import Block, Document, Unreadable
from echod.memory.packs.elevation import GLOBAL_ROLE, ElevationRequest, ElevationResult, NotEligible, elevate_entry
from echod.state.job import JobKind
from echod.store.layout import Role
from echod.store.session import RoleView


def run(context: JobContext, block: Block, source_role: Role, domain: str) -> JobOutcome:
    """Add an entry to the global memory, which is created if it is missing.

    Args:
        context: the job, with the global memory's role locked.
        block: the entry.
        source_role: the entry's role.
        domain: the entry's domain in the global memory.

    Raises:
        BusyError, RefusedError, StoreError: see `RoleSession.commit`; nothing was changed.
    """

    def planner(view: RoleView, today: date) -> Proposal | JobOutcome:
        after = plan_elevation(view.memory.data, block, source_role, domain, today)
        if isinstance(after, NotEligible):
            return JobBlocked(after.reason)
        summary = f"elevated from {source_role.name} of {source_role.store.project.name} as {after.id}"
        return Proposal(change_set(view, JobKind.ELEVATE, summary, [write_memory(view, after.document.render())]))

    return plan_and_commit(context, planner)


def plan_elevation(
    memory: bytes | None, block: Block, source_role: Role, domain: str, today: date
) -> ElevationResult | NotEligible:
    """Return the global memory with the entry, or the reason why it is not eligible, without a full stop."""
    document: Document | Unreadable = parse(new_memory_file(GLOBAL_ROLE) if memory is None else memory)
    if isinstance(document, Unreadable):
        return NotEligible(f"the global memory is left alone: {document.reason.rstrip('.')}")
    return elevate_entry(
        document, ElevationRequest(block, source_role.store.project.name, source_role.name, domain, today)
    )
