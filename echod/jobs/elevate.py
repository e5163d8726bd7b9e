"""The elevate job: an entry of a project is written into the global memory, because a person asked for it."""

from __future__ import annotations

from datetime import date
from pathlib import PurePosixPath

from echod.jobs.base import JobBlocked, JobContext, JobOutcome, Proposal, plan_and_commit
from echod.memory.document import new_memory_file, parse
from echod.memory.model import Block, Document, Unreadable
from echod.memory.packs.elevation import GLOBAL_ROLE, ElevationRequest, ElevationResult, NotEligible, elevate_entry
from echod.state.job import JobKind
from echod.store import layout
from echod.store.changes import ChangeSet, Origin, Write
from echod.store.layout import Role
from echod.store.session import RoleView


def run(context: JobContext, block: Block, source_role: Role, domain: str) -> JobOutcome:
    """Write an entry into the global memory, which is begun if there is none.

    Args:
        context: the job, with the role locked.
        block: the entry.
        source_role: the role that it stands in.
        domain: what it is about there.

    Raises:
        BusyError, RefusedError, StoreError: see `RoleSession.commit`; nothing was changed.
    """

    def planner(view: RoleView, today: date) -> Proposal | JobOutcome:
        after = plan_elevation(view.memory.data, block, source_role, domain, today)
        if isinstance(after, NotEligible):
            return JobBlocked(after.reason)
        changes = ChangeSet(
            kind=JobKind.ELEVATE.value,
            role=view.role.name,
            summary=f"elevated from {source_role.name} of {source_role.store.project.name} as {after.id}",
            writes=(Write(PurePosixPath(layout.MEMORY), view.memory.digest, after.document.render()),),
            origin=Origin.USER,
        )
        return Proposal(changes)

    return plan_and_commit(context, planner)


def plan_elevation(
    memory: bytes | None, block: Block, source_role: Role, domain: str, today: date
) -> ElevationResult | NotEligible:
    """The global memory with the entry; or why not, in words that end without a full stop."""
    document: Document | Unreadable = parse(new_memory_file(GLOBAL_ROLE) if memory is None else memory)
    if isinstance(document, Unreadable):
        return NotEligible(f"the global memory is left alone: {document.reason.rstrip('.')}")
    return elevate_entry(
        document, ElevationRequest(block, source_role.store.project.name, source_role.name, domain, today)
    )
