"""The raise job: one entry gets another layer, because a person asked for it. Nothing else of it changes."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from pathlib import PurePosixPath

from echod.jobs.base import Blocked, Done, Outcome, Proposal, carry_out, memory_of
from echod.memory.model import Layer
from echod.memory.policy.manual import Impossible, raised
from echod.state.job import JobKind
from echod.store import layout
from echod.store.changes import ChangeSet, Gate, Origin, Write
from echod.store.session import RoleSession, RoleView


def run(job: int, session: RoleSession, entry: str, layer: Layer, gate: Gate, clock: Callable[[], float]) -> Outcome:
    """Put an entry of the memory file of `session` into a layer; it keeps its id.

    Args:
        job: the job's number.
        session: the role, held.
        entry: the entry's full id.
        layer: the layer that it is to have.
        gate: asked just before the point of no return.
        clock: Unix seconds.

    Raises:
        Busy, Refused, StoreFault: see `RoleSession.commit`; nothing was changed.
    """

    def planner(view: RoleView, _: date) -> Proposal | Outcome:
        document = memory_of(view)
        if isinstance(document, Blocked):
            return document
        after = raised(view.role.name, document, entry, layer)
        if isinstance(after, Impossible):
            return Blocked(f"{entry} stays as it is: {after.reason}")
        if after is document:
            return Done(f"{entry} is {layer.value} already", changed=False)
        changes = ChangeSet(
            kind=JobKind.RAISE.value,
            role=view.role.name,
            summary=f"{entry} is now {layer.value}",
            writes=(Write(PurePosixPath(view.role.name) / layout.MEMORY, view.memory.digest, after.render()),),
            origin=Origin.PERSON,
        )
        return Proposal(changes)

    return carry_out(job, session, planner, gate, clock, writes=True)
