"""The reset job: the files of a role are as on their first day; what stood in them is in the archive.

Findings files and the archive stay. The memory file is copied as it is before anything leaves it.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from pathlib import PurePosixPath
from typing import NamedTuple

from echod.jobs.archives import backup_of, removed
from echod.jobs.base import Blocked, Done, Outcome, Proposal, carry_out, without_knowledge
from echod.memory.document import new_memory_file, parse
from echod.memory.knowledge.blocks import new_knowledge_file
from echod.memory.model import Unreadable
from echod.memory.policy.manual import Reset, plan_reset
from echod.state.job import JobKind
from echod.store.changes import ChangeSet, Gate, Origin, Write
from echod.store.session import RoleSession, RoleView
from echod.store.snapshot import Snapshot


class Emptied(NamedTuple):
    """What a reset does to the files of a role.

    Attributes:
        files: the files that it empties, each with what it means.
        left: why which file is left alone, a sentence each.
    """

    files: tuple[tuple[Snapshot, Reset], ...]
    left: tuple[str, ...]

    @property
    def entries(self) -> int:
        """How many entries go."""
        return sum(plan.entries for _, plan in self.files)

    @property
    def summary(self) -> str:
        """What is done, in a line."""
        names = " and ".join(file.path.name for file, _ in self.files)
        return f"{names} emptied, {self.entries} {'entry' if self.entries == 1 else 'entries'} archived"


def run(job: int, session: RoleSession, gate: Gate, clock: Callable[[], float]) -> Outcome:
    """Empty the memory and knowledge file of `session`.

    Args:
        job: the job's number.
        session: the role, held.
        gate: asked just before the point of no return.
        clock: Unix seconds.

    Raises:
        Busy, Refused, StoreFault: see `RoleSession.commit`; nothing was changed.
    """

    def planner(view: RoleView, today: date) -> Proposal | Outcome:
        if (unread := without_knowledge(view, clock())) is not None:
            return unread
        emptied = plan_for(view, today)
        if not emptied.files:
            return Blocked(emptied.left[0]) if emptied.left else Done("there was nothing in it", changed=False)
        role, memory = PurePosixPath(view.role.name), view.memory
        writes = [Write(role / file.path.name, file.digest, plan.data) for file, plan in emptied.files]
        if memory.data is not None and (name := backup_of(view.role, memory.data, today)) is not None:
            writes.append(Write(role / name, None, memory.data))
        changes = ChangeSet(
            kind=JobKind.RESET.value,
            role=view.role.name,
            summary=emptied.summary,
            writes=tuple(writes),
            appends=removed(view.role, today, [e for _, plan in emptied.files for e in plan.archived], job),
            origin=Origin.PERSON,
        )
        return Proposal(changes)

    return carry_out(job, session, planner, gate, clock, writes=True)


def plan_for(view: RoleView, today: date) -> Emptied:
    """What a reset would do to a role on the local day `today`."""
    role = view.role.name
    files: list[tuple[Snapshot, Reset]] = []
    left: list[str] = []
    kinds = ((view.memory, new_memory_file(role)), (view.knowledge, new_knowledge_file(role)))
    for file, new in kinds:
        if file is None or file.data is None:
            continue
        document = parse(file.data)
        if isinstance(document, Unreadable):
            left.append(f"{file.path.name} is left alone: {document.reason}")
        elif (plan := plan_reset(role, document, new, today, file=file.path.name)) is not None:
            files.append((file, plan))
    return Emptied(tuple(files), tuple(left))
