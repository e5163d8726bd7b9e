"""From a plan to a commit: the part that jobs which plan from what a role holds have in common.

How a run of a job ended, in words for the person.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from typing import NamedTuple

from echod.clock import local_date
from echod.memory.document import parse
from echod.memory.model import Document, Unreadable
from echod.store import layout
from echod.store.changes import ChangeSet, CommitGate, CommitResult
from echod.store.session import RoleSession, RoleView


@dataclass(frozen=True, slots=True)
class JobDone:
    """It did what there was to do; `changed` is false where there was nothing (or nothing may be written)."""

    summary: str
    changed: bool


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


Planner = Callable[[RoleView, date], Proposal | JobOutcome]
"""Plans from what a role holds on a local day; an outcome where there is nothing to change, or not now."""


def plan_and_commit(
    job_id: int,
    session: RoleSession,
    planner: Planner,
    gate: CommitGate,
    clock: Callable[[], float],
    *,
    allow_writes: bool,
) -> JobOutcome:
    """Plan and commit, again if someone else was faster.

    Args:
        job_id: the job's number.
        session: the role that is held.
        planner: decides what to change.
        gate: asked just before the point of no return.
        clock: Unix seconds.
        allow_writes: whether anything may be written at all, or only reported.

    Raises:
        BusyError, RefusedError, StoreError: see `RoleSession.commit`; nothing was changed.
    """
    for _ in range(_MAX_PLANS):
        proposal = planner(session.read(), local_date(clock()))
        if not isinstance(proposal, Proposal):
            return proposal
        summary = proposal.changes.summary
        if not allow_writes:
            return JobDone(f"report only: would do: {summary}", changed=False)
        if isinstance(session.commit(job_id, proposal.changes, gate=gate), CommitResult):
            proposal.after_commit()
            return JobDone(summary, changed=True)
    return JobDeferred("other programs keep writing the same files", clock() + RETRY_SECONDS)


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
