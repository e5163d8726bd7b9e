"""Folding in the findings that a person chose: what it would do, and doing it, by as many parts as it takes.

The same plans as of the consolidate job; a preview and the run agree finding by finding.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator
from dataclasses import dataclass, replace
from datetime import date

from echod.jobs import consolidate
from echod.jobs.outcome import Done, Outcome
from echod.jobs.reading import Reading
from echod.memory.consolidation.plan import Consolidation
from echod.memory.model import Unreadable
from echod.state.entries import EntryLog
from echod.store.engine import Engine
from echod.store.layout import Role
from echod.store.plan import Gate
from echod.store.session import RoleView


@dataclass(frozen=True, slots=True)
class Means:
    """What it is done with: the job's number, the engine, what is known of entries, the gate and the clock."""

    job: int
    engine: Engine
    entries: EntryLog
    gate: Gate
    clock: Callable[[], float]


def foresee(
    view: RoleView, digests: frozenset[str], pinned: Container[str], today: date
) -> Iterator[Consolidation | Unreadable]:
    """What `fold_in` would do with these findings files of a role, one plan for each part; writes nothing."""
    terms, reading = _terms(digests), Reading()
    while ready := consolidate.at_once(view, terms):
        plan = consolidate.plan_for(view, ready, pinned, reading, today)
        yield plan
        if isinstance(plan, Unreadable):
            return
        view = _after(view, plan)


def fold_in(role: Role, digests: frozenset[str], means: Means) -> Outcome:
    """Fold in findings files, named by their digests, also those whose consolidation was taken back.

    The role is held for each part anew, so that others come in between.

    Raises:
        Busy, Refused, StoreFault: see `RoleSession.commit`; what was folded in before stays so.
    """
    terms, reading, said = _terms(digests), Reading(), list[str]()
    while True:
        with means.engine.only_look(role) as session:
            consolidate.read_ahead(session, reading, terms, means.clock)
        with means.engine.open_role(role) as session:
            outcome = consolidate.run(means.job, session, means.entries, terms, reading, means.gate, means.clock)
        if isinstance(outcome, Done) and outcome.changed:
            said.append(outcome.summary)
        else:
            return Done("; ".join(said), changed=True) if said else outcome


def _terms(digests: frozenset[str]) -> consolidate.Terms:
    return consolidate.Terms(quiet_seconds=0.0, writes=True, only=digests)


def _after(view: RoleView, plan: Consolidation) -> RoleView:
    """The role as it would be after a part."""
    gone = {file.name for file in plan.consumed} | {file.name for file in plan.quarantined}
    begun = {file.name for file in plan.begun}
    keys = {key for done in plan.consumed for key in done.keys} | {key for part in plan.begun for key in part.keys}
    memory = view.memory if plan.memory is None else replace(view.memory, data=plan.memory)
    return replace(
        view,
        memory=memory,
        findings=tuple(found for found in view.findings if found.path.name not in gone),
        known_keys=frozenset(view.known_keys) | keys,
        begun=view.begun | {found.digest or "" for found in view.findings if found.path.name in begun},
    )
