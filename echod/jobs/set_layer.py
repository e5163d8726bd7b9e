"""The raise job: move an entry to another layer at the user's request. Nothing else of the entry changes."""

from __future__ import annotations

from datetime import date

from echod.jobs.base import (
    JobBlocked,
    JobContext,
    JobDone,
    JobOutcome,
    Proposal,
    change_set,
    plan_memory_and_commit,
    write_memory,
)
from echod.memory.model import Document, Layer
from echod.memory.policy.manual import EditRefusal, change_layer
from echod.state.job import JobKind
from echod.store.session import RoleView


def run(context: JobContext, entry: str, layer: Layer) -> JobOutcome:
    """Move an entry of the memory file, given by its full id, to a layer. The entry keeps its id.

    Raises:
        BusyError, RefusedError, StoreError: see `RoleSession.commit`; nothing was changed.
    """

    def planner(view: RoleView, document: Document, _: date) -> Proposal | JobOutcome:
        after = change_layer(view.role.name, document, entry, layer)
        if isinstance(after, EditRefusal):
            return JobBlocked(f"{entry} stays as it is: {after.reason}")
        if after is document:
            return JobDone(f"{entry} is {layer.value} already", changed=False)
        writes = [write_memory(view, after.render())]
        return Proposal(change_set(view, JobKind.RAISE, f"{entry} is now {layer.value}", writes))

    return plan_memory_and_commit(context, planner)
