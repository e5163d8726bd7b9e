"""The parts that all job kinds share: context, outcomes, change sets, and the loop from a plan to a commit."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from pathlib import PurePosixPath
from typing import NamedTuple

from echod.clock import local_date
from echod.memory.document import parse
from echod.memory.model import Document, Unreadable
from echod.memory.policy import PolicySettings
from echod.state.entries import EntryStore
from echod.state.job import MANUAL_KINDS, JobKind
from echod.store import layout
from echod.store.changes import Append, ChangeSet, CommitGate, CommitResult, ConsumeFindings, Origin, Write
from echod.store.engine import Engine
from echod.store.layout import Role
from echod.store.session import RoleSession, RoleView

RETRY_SECONDS = 10.0
"""The deferral of a job when another program is writing the same files."""

_MAX_PLANS = 5
"""The engine accepts a plan after few retries. More of them happen only if another program never stops writing."""


@dataclass(frozen=True, slots=True)
class JobDone:
    """The job completed. `changed` is false if there was nothing to do, or nothing may be written.

    `skipped` has a sentence for each file that was left unchanged although it should have been changed.
    """

    summary: str
    changed: bool
    skipped: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class JobDeferred:
    """The job has to wait, and checks again at `until` (Unix seconds) at the latest."""

    reason: str
    until: float


@dataclass(frozen=True, slots=True)
class JobBlocked:
    """A retry is pointless until the input changes. The user may have to act."""

    reason: str


@dataclass(frozen=True, slots=True)
class JobFailed:
    """The job failed and is retried after growing pauses."""

    error: str


@dataclass(frozen=True, slots=True)
class JobStalled(JobFailed):
    """The job failed because a disk is full. It is retried every minute until there is room, and never given up."""


JobOutcome = JobDone | JobDeferred | JobBlocked | JobFailed


class JobContext(NamedTuple):
    """The arguments of every job kind: its number, the locked role, and the collaborators.

    Attributes:
        job_id: the number under which the job's commit is recorded.
        gate: called just before the point of no return of a commit.
        clock: returns Unix seconds.
        allow_writes: false in report mode, in which a job only reports what it would do.
    """

    job_id: int
    session: RoleSession
    entries: EntryStore
    policy: PolicySettings
    gate: CommitGate
    clock: Callable[[], float]
    allow_writes: bool = True


class JobResources(NamedTuple):
    """A job before a role is locked: the engine that opens roles, and the other fields of its `JobContext`.

    For jobs that lock several roles, or one role several times.
    """

    job_id: int
    engine: Engine
    entries: EntryStore
    policy: PolicySettings
    gate: CommitGate
    clock: Callable[[], float]
    allow_writes: bool = True

    @contextmanager
    def open_role(self, role: Role) -> Iterator[JobContext]:
        """Lock a role for the job. Raises the errors of `Engine.open_role`."""
        with self.engine.open_role(role) as session:
            yield JobContext(self.job_id, session, self.entries, self.policy, self.gate, self.clock, self.allow_writes)


def _do_nothing() -> None:
    """Do nothing before or after the commit."""


class Proposal(NamedTuple):
    """The changes that a job plans.

    `before_commit` is called just before each attempt to commit, but not in report mode; `after_commit` once the
    changes are on the disk, to record them in the database.
    """

    changes: ChangeSet
    before_commit: Callable[[], None] = _do_nothing
    after_commit: Callable[[], None] = _do_nothing
    skipped: tuple[str, ...] = ()


Planner = Callable[[RoleView, date], Proposal | JobOutcome]
"""Plans from the state of a role on a local day. Returns an outcome if there is nothing to change, or not now."""

MemoryPlanner = Callable[[RoleView, Document, date], Proposal | JobOutcome]
"""A planner for a memory file that can be parsed."""


def plan_memory_and_commit(context: JobContext, planner: MemoryPlanner) -> JobOutcome:
    """Plan from the parsed memory file, and commit. An unreadable file blocks the job."""

    def plan(view: RoleView, today: date) -> Proposal | JobOutcome:
        document = parse_memory(view)
        return document if isinstance(document, JobBlocked) else planner(view, document, today)

    return plan_and_commit(context, plan)


def plan_and_commit(context: JobContext, planner: Planner) -> JobOutcome:
    """Plan from the state of the role, and commit."""
    return replan_and_commit(context, lambda: planner(context.session.read(), local_date(context.clock())))


def replan_and_commit(context: JobContext, plan: Callable[[], Proposal | JobOutcome]) -> JobOutcome:
    """Plan and commit, and plan again whenever another program wrote in between."""
    for _ in range(_MAX_PLANS):
        proposal = plan()
        if not isinstance(proposal, Proposal):
            return proposal
        summary = proposal.changes.summary
        if not context.allow_writes:
            return report_only(summary)
        proposal.before_commit()
        result = context.session.commit(context.job_id, proposal.changes, gate=context.gate)
        if isinstance(result, CommitResult):
            proposal.after_commit()
            return JobDone(summary, changed=True, skipped=proposal.skipped)
    return JobDeferred("other programs keep writing the same files", context.clock() + RETRY_SECONDS)


def report_only(summary: str) -> JobDone:
    """Return the outcome of a job in report mode."""
    return JobDone(f"report only: would do: {summary}", changed=False)


def change_set(
    view: RoleView,
    kind: JobKind,
    summary: str,
    writes: Iterable[Write] = (),
    *,
    appends: Iterable[Append] = (),
    consumes: Iterable[ConsumeFindings] = (),
) -> ChangeSet:
    """Return the change set of a job on the role of `view`. Only manual kinds may change protected content."""
    return ChangeSet(
        kind=kind.value,
        role=view.role.name,
        summary=summary,
        writes=tuple(writes),
        appends=tuple(appends),
        consumes=tuple(consumes),
        origin=Origin.USER if kind in MANUAL_KINDS else Origin.SERVICE,
    )


def write_memory(view: RoleView, data: bytes) -> Write:
    """Return the replacement of the memory file that the job planned from."""
    return Write(role_path(view, layout.MEMORY), view.memory.digest, data)


def role_path(view: RoleView, name: str | PurePosixPath) -> PurePosixPath:
    """Return the path of a file of the role, relative to its store, as change sets use it."""
    return PurePosixPath(view.role.name) / name


def parse_memory(view: RoleView) -> Document | JobBlocked:
    """Parse the memory file, or return the outcome for a file that cannot be parsed."""
    document = parse(view.memory.text)
    if isinstance(document, Unreadable):
        return JobBlocked(f"{layout.MEMORY} is left alone: {document.reason}")
    return document


def knowledge_unavailable(view: RoleView, now: float) -> JobDeferred | JobBlocked | None:
    """Return the outcome of a job that needs the knowledge file while it cannot be read; None if it can."""
    problem = view.knowledge_problem
    if problem is None:
        return None
    return JobBlocked(problem.reason) if problem.permanent else JobDeferred(problem.reason, now + RETRY_SECONDS)
