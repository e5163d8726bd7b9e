"""The forget job: entries leave the memory file for the archive, because a person wants them gone."""

from __future__ import annotations

from collections.abc import Callable, Collection
from datetime import date
from pathlib import PurePosixPath

from echod.jobs.archives import removed
from echod.jobs.base import Blocked, Done, Outcome, Proposal, carry_out, memory_of
from echod.memory.policy import Rule
from echod.memory.policy.manual import Impossible, taken_out
from echod.state.job import JobKind
from echod.store import layout
from echod.store.changes import ChangeSet, Gate, Origin, Write
from echod.store.session import RoleSession, RoleView


def run(
    job: int,
    session: RoleSession,
    entries: Collection[str],
    gate: Gate,
    clock: Callable[[], float],
    *,
    rule: Rule,
) -> Outcome:
    """Take entries out of the memory file of `session`; each stands in `archive/removed-{year}.md` then.

    Args:
        job: the job's number.
        session: the role, held.
        entries: full ids, all of them in the file.
        gate: asked just before the point of no return.
        clock: Unix seconds.
        rule: why they go, as the archive says it.

    Raises:
        Busy, Refused, StoreFault: see `RoleSession.commit`; nothing was changed.
    """

    def planner(view: RoleView, today: date) -> Proposal | Outcome:
        document = memory_of(view)
        if isinstance(document, Blocked):
            return document
        out = taken_out(view.role.name, document, entries, rule, today)
        if isinstance(out, Impossible):
            return Blocked(f"{layout.MEMORY} stays as it is: {out.reason}")
        if not out.archived:
            return Done("there was nothing to take out", changed=False)
        changes = ChangeSet(
            kind=JobKind.FORGET.value,
            role=view.role.name,
            summary=_in_words(entries, rule),
            writes=(Write(PurePosixPath(view.role.name) / layout.MEMORY, view.memory.digest, out.document.render()),),
            appends=removed(view.role, today, out.archived, job),
            origin=Origin.PERSON,
        )
        return Proposal(changes)

    return carry_out(job, session, planner, gate, clock, writes=True)


def _in_words(entries: Collection[str], rule: Rule) -> str:
    first, *others = sorted(entries)
    return f"{first} {rule.value}" if not others else f"{first} and {len(others)} more {rule.value}"
