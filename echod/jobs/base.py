"""From a plan to a commit: the part that jobs which plan from what a role holds have in common.

How a run of a job ended, in words for the person.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from typing import NamedTuple

from echod.clock import local_day
from echod.memory.document import parse
from echod.memory.model import Document, Unreadable
from echod.store import layout
from echod.store.changes import ChangeSet, Committed, Gate
from echod.store.session import RoleSession, RoleView


@dataclass(frozen=True, slots=True)
class Done:
    """It did what there was to do; `changed` is false where there was nothing (or nothing may be written)."""

    summary: str
    changed: bool


@dataclass(frozen=True, slots=True)
class Deferred:
    """It has to wait: `reason` says for what, `until` (Unix seconds) when to look again at the latest."""

    reason: str
    until: float


@dataclass(frozen=True, slots=True)
class Blocked:
    """Trying again is pointless until the input changes; a person may have to act."""

    reason: str


@dataclass(frozen=True, slots=True)
class Failed:
    """It went wrong; it will be tried again with growing pauses."""

    error: str


Outcome = Done | Deferred | Blocked | Failed


RETRY_SECONDS = 10.0
_PLANS = 5


def _nothing() -> None:
    """There is nothing to be written down beside the commit."""


class Proposal(NamedTuple):
    """What a job wants to change, and what is to be written down of it once it is done."""

    changes: ChangeSet
    note: Callable[[], None] = _nothing


Planner = Callable[[RoleView, date], Proposal | Outcome]
"""Plans from what a role holds on a local day; an outcome where there is nothing to change, or not now."""


def carry_out(
    job: int, session: RoleSession, planner: Planner, gate: Gate, clock: Callable[[], float], *, writes: bool
) -> Outcome:
    """Plan and commit, again if someone else was faster.

    Args:
        job: the job's number.
        session: the role that is held.
        planner: decides what to change.
        gate: asked just before the point of no return.
        clock: Unix seconds.
        writes: whether anything may be written at all, or only reported.

    Raises:
        Busy, Refused, StoreFault: see `RoleSession.commit`; nothing was changed.
    """
    for _ in range(_PLANS):
        proposal = planner(session.read(), local_day(clock()))
        if not isinstance(proposal, Proposal):
            return proposal
        summary = proposal.changes.summary
        if not writes:
            return Done(f"report only: would do: {summary}", changed=False)
        if isinstance(session.commit(job, proposal.changes, gate=gate), Committed):
            proposal.note()
            return Done(summary, changed=True)
    return Deferred("other programs keep writing the same files", clock() + RETRY_SECONDS)


def memory_of(view: RoleView) -> Document | Blocked:
    """The memory file that a job plans from; or what becomes of the job where it cannot be understood."""
    document = parse(view.memory.text)
    return (
        Blocked(f"{layout.MEMORY} is left alone: {document.reason}") if isinstance(document, Unreadable) else document
    )


def without_knowledge(view: RoleView, now: float) -> Deferred | Blocked | None:
    """What becomes of a job that needs the knowledge file where that cannot be read; None where it can."""
    found = view.no_knowledge
    if found is None:
        return None
    return Blocked(found.reason) if found.lasting else Deferred(found.reason, now + RETRY_SECONDS)
