"""The reset job: the files of a role are as on their first day; what stood in them is in the archive.

Findings files and the archive stay. The memory file is copied as it is before anything leaves it.
"""

from __future__ import annotations

from datetime import date
from pathlib import PurePosixPath
from typing import NamedTuple

from echod.jobs.archives import append_removed, backup_name
from echod.jobs.base import (
    JobBlocked,
    JobContext,
    JobDone,
    JobOutcome,
    Proposal,
    knowledge_unavailable,
    plan_and_commit,
)
from echod.memory.document import new_memory_file, parse
from echod.memory.knowledge.blocks import new_knowledge_file
from echod.memory.model import Unreadable
from echod.memory.policy.manual import ResetPlan, plan_reset
from echod.state.job import JobKind
from echod.store.changes import ChangeSet, Origin, Write
from echod.store.session import RoleView
from echod.store.snapshot import Snapshot


class RoleResetPlan(NamedTuple):
    """What a reset does to the files of a role.

    Attributes:
        files: the files that it empties, each with what it means.
        skipped: why which file is left alone, a sentence each.
    """

    files: tuple[tuple[Snapshot, ResetPlan], ...]
    skipped: tuple[str, ...]

    @property
    def entries(self) -> int:
        """How many entries go."""
        return sum(plan.entry_count for _, plan in self.files)

    @property
    def summary(self) -> str:
        """What is done, in a line."""
        names = " and ".join(file.path.name for file, _ in self.files)
        return f"{names} emptied, {self.entries} {'entry' if self.entries == 1 else 'entries'} archived"


def run(context: JobContext) -> JobOutcome:
    """Empty the memory and knowledge file of `session`.

    Raises:
        BusyError, RefusedError, StoreError: see `RoleSession.commit`; nothing was changed.
    """

    def planner(view: RoleView, today: date) -> Proposal | JobOutcome:
        if (unavailable := knowledge_unavailable(view, context.clock())) is not None:
            return unavailable
        reset_plan = plan_role(view, today)
        if not reset_plan.files:
            return (
                JobBlocked(reset_plan.skipped[0])
                if reset_plan.skipped
                else JobDone("there was nothing in it", changed=False)
            )
        role, memory = PurePosixPath(view.role.name), view.memory
        writes = [Write(role / file.path.name, file.digest, plan.data) for file, plan in reset_plan.files]
        if memory.data is not None and (name := backup_name(view.role, memory.data, today)) is not None:
            writes.append(Write(role / name, None, memory.data))
        changes = ChangeSet(
            kind=JobKind.RESET.value,
            role=view.role.name,
            summary=reset_plan.summary,
            writes=tuple(writes),
            appends=append_removed(
                view.role, today, [e for _, plan in reset_plan.files for e in plan.archived], context.job_id
            ),
            origin=Origin.USER,
        )
        return Proposal(changes)

    return plan_and_commit(context, planner)


def plan_role(view: RoleView, today: date) -> RoleResetPlan:
    """What a reset would do to a role on the local day `today`."""
    role = view.role.name
    files: list[tuple[Snapshot, ResetPlan]] = []
    skipped: list[str] = []
    kinds = ((view.memory, new_memory_file(role)), (view.knowledge, new_knowledge_file(role)))
    for file, new in kinds:
        if file is None or file.data is None:
            continue
        document = parse(file.data)
        if isinstance(document, Unreadable):
            skipped.append(f"{file.path.name} is left alone: {document.reason}")
        elif (plan := plan_reset(role, document, new, today, file=file.path.name)) is not None:
            files.append((file, plan))
    return RoleResetPlan(tuple(files), tuple(skipped))
