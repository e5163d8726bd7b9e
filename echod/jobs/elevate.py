"""The elevate job: an entry of a project is written into the global memory, because a person asked for it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from pathlib import PurePosixPath

from echod.jobs.base import Blocked, Outcome, Proposal, carry_out
from echod.memory.document import new_memory_file, parse
from echod.memory.model import Block, Document, Unreadable
from echod.memory.packs.elevation import GLOBAL_ROLE, Elevated, Elevation, Unfit, elevated
from echod.state.job import JobKind
from echod.store import layout
from echod.store.changes import ChangeSet, Gate, Origin, Write
from echod.store.layout import Role
from echod.store.session import RoleSession, RoleView


def run(
    job: int, session: RoleSession, block: Block, home: Role, domain: str, gate: Gate, clock: Callable[[], float]
) -> Outcome:
    """Write an entry into the global memory, which is begun if there is none.

    Args:
        job: the job's number.
        session: the global memory's role, held.
        block: the entry.
        home: the role that it stands in.
        domain: what it is about there.
        gate: asked just before the point of no return.
        clock: Unix seconds.

    Raises:
        Busy, Refused, StoreFault: see `RoleSession.commit`; nothing was changed.
    """

    def planner(view: RoleView, today: date) -> Proposal | Outcome:
        after = with_it(view.memory.data, block, home, domain, today)
        if isinstance(after, Unfit):
            return Blocked(after.reason)
        changes = ChangeSet(
            kind=JobKind.ELEVATE.value,
            role=view.role.name,
            summary=f"elevated from {home.name} of {home.store.project.name} as {after.id}",
            writes=(Write(PurePosixPath(layout.MEMORY), view.memory.digest, after.document.render()),),
            origin=Origin.PERSON,
        )
        return Proposal(changes)

    return carry_out(job, session, planner, gate, clock, writes=True)


def with_it(memory: bytes | None, block: Block, home: Role, domain: str, today: date) -> Elevated | Unfit:
    """The global memory with the entry; or why not, in words that end without a full stop."""
    document: Document | Unreadable = parse(new_memory_file(GLOBAL_ROLE) if memory is None else memory)
    if isinstance(document, Unreadable):
        return Unfit(f"the global memory is left alone: {document.reason.rstrip('.')}")
    return elevated(document, Elevation(block, home.store.project.name, home.name, domain, today))
