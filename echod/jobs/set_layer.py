"""The raise job: one entry gets another layer, because a person asked for it. Nothing else of it changes."""

from __future__ import annotations

from datetime import date
from pathlib import PurePosixPath

from echod.jobs.base import JobBlocked, JobContext, JobDone, JobOutcome, Proposal, parse_memory, plan_and_commit
from echod.memory.model import Layer
from echod.memory.policy.manual import EditRefusal, change_layer
from echod.state.job import JobKind
from echod.store import layout
from echod.store.changes import ChangeSet, Origin, Write
from echod.store.session import RoleView


def run(context: JobContext, entry: str, layer: Layer) -> JobOutcome:
    """Put an entry of the memory file of `session` into a layer; it keeps its id.

    Args:
        context: the job, with the role locked.
        entry: the entry's full id.
        layer: the layer that it is to have.

    Raises:
        BusyError, RefusedError, StoreError: see `RoleSession.commit`; nothing was changed.
    """

    def planner(view: RoleView, _: date) -> Proposal | JobOutcome:
        document = parse_memory(view)
        if isinstance(document, JobBlocked):
            return document
        after = change_layer(view.role.name, document, entry, layer)
        if isinstance(after, EditRefusal):
            return JobBlocked(f"{entry} stays as it is: {after.reason}")
        if after is document:
            return JobDone(f"{entry} is {layer.value} already", changed=False)
        changes = ChangeSet(
            kind=JobKind.RAISE.value,
            role=view.role.name,
            summary=f"{entry} is now {layer.value}",
            writes=(Write(PurePosixPath(view.role.name) / layout.MEMORY, view.memory.digest, after.render()),),
            origin=Origin.USER,
        )
        return Proposal(changes)

    return plan_and_commit(context, planner)
