"""The elevate job: an entry of a project is written into the global memory, because a person asked for it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from pathlib import PurePosixPath

from echod.jobs.base import JobBlocked, JobOutcome, Proposal, plan_and_commit
from echod.memory.document import new_memory_file, parse
from echod.memory.model import Block, Document, Unreadable
from echod.memory.packs.elevation import GLOBAL_ROLE, ElevationRequest, ElevationResult, NotEligible, elevate_entry
from echod.state.job import JobKind
from echod.store import layout
from echod.store.changes import ChangeSet, CommitGate, Origin, Write
from echod.store.layout import Role
from echod.store.session import RoleSession, RoleView


def run(
    job_id: int,
    session: RoleSession,
    block: Block,
    source_role: Role,
    domain: str,
    gate: CommitGate,
    clock: Callable[[], float],
) -> JobOutcome:
    """Write an entry into the global memory, which is begun if there is none.

    Args:
        job_id: the job's number.
        session: the global memory's role, held.
        block: the entry.
        source_role: the role that it stands in.
        domain: what it is about there.
        gate: asked just before the point of no return.
        clock: Unix seconds.

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

    return plan_and_commit(job_id, session, planner, gate, clock, allow_writes=True)


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
