"""The reset job: empty the files of a role, and move their entries to the archive.

Findings files and the archive are kept. The memory file is copied unchanged before anything is removed from it.
"""

from __future__ import annotations

from datetime import date
from typing import NamedTuple

from echod.jobs.archives import append_removed, backup_name
from echod.jobs.base import (
    JobBlocked,
    JobContext,
    JobDone,
    JobOutcome,
    Proposal,
    change_set,
    knowledge_unavailable,
    plan_and_commit,
    role_path,
)
from echod.memory.document import new_memory_file, parse
from echod.memory.knowledge.blocks import new_knowledge_file
from echod.memory.model import Unreadable
from echod.memory.policy.manual import ResetPlan, plan_reset
from echod.state.job import JobKind
from echod.store.changes import Write
from echod.store.session import RoleView
from echod.store.snapshot import Snapshot


class RoleResetPlan(NamedTuple):
    """The effect of a reset on the files of a role.

    Attributes:
        files: the files that it empties, each with its plan.
        skipped: a sentence for each file that is left alone.
    """

    files: tuple[tuple[Snapshot, ResetPlan], ...]
    skipped: tuple[str, ...]

    @property
    def entries(self) -> int:
        """The number of removed entries."""
        return sum(plan.entry_count for _, plan in self.files)

    @property
    def summary(self) -> str:
        """The result, in a phrase."""
        names = " and ".join(file.path.name for file, _ in self.files)
        return f"{names} emptied, {self.entries} {'entry' if self.entries == 1 else 'entries'} archived"


def run(context: JobContext) -> JobOutcome:
    """Empty the memory and knowledge file of the role.

    Raises:
        BusyError, RefusedError, StoreError: see `RoleSession.commit`; nothing was changed.
    """

    def planner(view: RoleView, today: date) -> Proposal | JobOutcome:
        if (unavailable := knowledge_unavailable(view, context.clock())) is not None:
            return unavailable
        plan = plan_role(view, today)
        if not plan.files:
            return JobBlocked(plan.skipped[0]) if plan.skipped else JobDone("there was nothing in it", changed=False)
        return _build_proposal(context.job_id, view, plan, today)

    return plan_and_commit(context, planner)


def plan_role(view: RoleView, today: date) -> RoleResetPlan:
    """Return the effect of a reset of a role on the local day `today`."""
    role = view.role.name
    files: list[tuple[Snapshot, ResetPlan]] = []
    skipped: list[str] = []
    for file, new in ((view.memory, new_memory_file(role)), (view.knowledge, new_knowledge_file(role))):
        if file is None or file.data is None:
            continue
        document = parse(file.data)
        if isinstance(document, Unreadable):
            skipped.append(f"{file.path.name} is left alone: {document.reason}")
        elif (plan := plan_reset(role, document, new, today, file=file.path.name)) is not None:
            files.append((file, plan))
    return RoleResetPlan(tuple(files), tuple(skipped))


def _build_proposal(job_id: int, view: RoleView, plan: RoleResetPlan, today: date) -> Proposal:
    memory = view.memory.data
    writes = [Write(role_path(view, file.path.name), file.digest, reset.data) for file, reset in plan.files]
    if memory is not None and (name := backup_name(view.role, memory, today)) is not None:
        writes.append(Write(role_path(view, name), None, memory))
    archived = [entry for _, reset in plan.files for entry in reset.archived]
    appends = append_removed(view.role, today, archived, job_id)
    return Proposal(change_set(view, JobKind.RESET, plan.summary, writes, appends=appends))
