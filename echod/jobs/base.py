"""From a plan to a commit: the part that jobs which plan from what a role holds have in common.

How a run of a job ended, in words for the person.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from typing import NamedTuple

from echod.clock import local_date
from echod.memory.document import parse
from echod.memory.model import Document, Unreadable
from echod.memory.policy import PolicySettings
from echod.state.entries import EntryStore
from echod.store import layout
from echod.store.changes import ChangeSet, CommitGate, CommitResult
from echod.store.engine import Engine
from echod.store.layout import Role
from echod.store.session import RoleSession, RoleView


@dataclass(frozen=True, slots=True)
class JobDone:
    """The job completed.

    Attributes:
        summary: what it did, in a phrase.
        changed: false if there was nothing to do, or nothing may be written.
        skipped: a sentence for each file that was left unchanged although it should have been changed.
    """

    summary: str
    changed: bool
    skipped: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class JobDeferred:
    """It has to wait: `reason` says for what, `until` (Unix seconds) when to look again at the latest."""

    reason: str
    until: float


@dataclass(frozen=True, slots=True)
class JobBlocked:
    """Trying again is pointless until the input changes; a person may have to act."""

    reason: str


@dataclass(frozen=True, slots=True)
class JobFailed:
    """It went wrong; it will be tried again with growing pauses."""

    error: str


JobOutcome = JobDone | JobDeferred | JobBlocked | JobFailed


RETRY_SECONDS = 10.0
_MAX_PLANS = 5


def _no_record() -> None:
    """There is nothing to be written down beside the commit."""


class Proposal(NamedTuple):
    """What a job wants to change, and what is to be written down of it once it is done."""

    changes: ChangeSet
    after_commit: Callable[[], None] = _no_record


class JobContext(NamedTuple):
    """What every job kind works with: its number, the role it holds, and the collaborators.

    Attributes:
        job_id: the job's number, under which its commit is recorded.
        session: the role, locked for this job.
        entries: what is recorded about entries.
        policy: the numbers of the maintenance policies for the role's project.
        gate: asked just before the point of no return of a commit.
        clock: returns Unix seconds.
        allow_writes: false in report mode: the job only reports what it would do.
    """

    job_id: int
    session: RoleSession
    entries: EntryStore
    policy: PolicySettings
    gate: CommitGate
    clock: Callable[[], float]
    allow_writes: bool = True


class JobResources(NamedTuple):
    """A job before a role is locked: the engine that opens roles, and the other fields of its `JobContext`."""

    job_id: int
    engine: Engine
    entries: EntryStore
    policy: PolicySettings
    gate: CommitGate
    clock: Callable[[], float]
    allow_writes: bool = True

    @contextmanager
    def open_role(self, role: Role) -> Iterator[JobContext]:
        """Lock a role for the job.

        Raises:
            BusyError, RefusedError, StoreError: see `Engine.open_role`.
        """
        with self.engine.open_role(role) as session:
            yield JobContext(self.job_id, session, self.entries, self.policy, self.gate, self.clock, self.allow_writes)


Planner = Callable[[RoleView, date], Proposal | JobOutcome]
"""Plans from what a role holds on a local day; an outcome where there is nothing to change, or not now."""


def plan_and_commit(context: JobContext, planner: Planner) -> JobOutcome:
    """Plan and commit; plan again if another program wrote in between.

    Raises:
        BusyError, RefusedError, StoreError: see `RoleSession.commit`; nothing was changed.
    """
    for _ in range(_MAX_PLANS):
        proposal = planner(context.session.read(), local_date(context.clock()))
        if not isinstance(proposal, Proposal):
            return proposal
        summary = proposal.changes.summary
        if not context.allow_writes:
            return JobDone(f"report only: would do: {summary}", changed=False)
        if isinstance(context.session.commit(context.job_id, proposal.changes, gate=context.gate), CommitResult):
            proposal.after_commit()
            return JobDone(summary, changed=True)
    return JobDeferred("other programs keep writing the same files", context.clock() + RETRY_SECONDS)


def parse_memory(view: RoleView) -> Document | JobBlocked:
    """The memory file that a job plans from; or what becomes of the job where it cannot be understood."""
    document = parse(view.memory.text)
    return (
        JobBlocked(f"{layout.MEMORY} is left alone: {document.reason}")
        if isinstance(document, Unreadable)
        else document
    )


def knowledge_unavailable(view: RoleView, now: float) -> JobDeferred | JobBlocked | None:
    """What becomes of a job that needs the knowledge file where that cannot be read; None where it can."""
    problem = view.knowledge_problem
    if problem is None:
        return None
    return JobBlocked(problem.reason) if problem.permanent else JobDeferred(problem.reason, now + RETRY_SECONDS)
