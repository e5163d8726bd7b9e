"""The prune job: what leaves a memory file today goes to the archive, and its points to the knowledge file.

What leaves is decided by `echod.memory.policy`; a dry run calls `plan_for`, the job carries out the same plan.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable
from datetime import date
from pathlib import PurePosixPath
from typing import NamedTuple

from echod.inspection.entry_facts import note_entries, noted_facts
from echod.inspection.review_items import HOLD_SECONDS, first_prune_id, held_until, takes_most
from echod.jobs.archives import append_to, backup_of, pruned_sizes
from echod.jobs.base import Blocked, Deferred, Done, Outcome, Proposal, carry_out, memory_of, without_knowledge
from echod.memory.compose import ComposeError
from echod.memory.document import parse
from echod.memory.knowledge import with_blocks
from echod.memory.model import Document, Unreadable
from echod.memory.policy import Facts, Policy, PrunePlan, archive_name, archive_text, plan_prune
from echod.state.entries import EntryLog
from echod.store import layout
from echod.store.changes import ChangeSet, Gate, Write
from echod.store.layout import Role
from echod.store.session import RoleSession, RoleView


class Untold(NamedTuple):
    """Why entries leave nothing in the knowledge file though they should, in a sentence."""

    reason: str


def run(
    job: int,
    session: RoleSession,
    entries: EntryLog,
    policy: Policy,
    gate: Gate,
    clock: Callable[[], float],
    *,
    writes: bool,
) -> Outcome:
    """Prune the memory file of `session`.

    The first prune of a file that would take more than half of it is held for a day, unless a person let it go
    (`EntryLog.let_go`).

    Raises:
        Busy, Refused, StoreFault: see `RoleSession.commit`; nothing was changed.
    """

    def planner(view: RoleView, today: date) -> Proposal | Outcome:
        if isinstance(unread := without_knowledge(view, clock()), Deferred):
            return unread
        document = memory_of(view)
        if isinstance(document, Blocked):
            return document
        plan = plan_for(view.role, document, noted_facts(view.role, entries, policy, today, document), policy, today)
        if plan.memory is None:
            return Done(in_words(view, plan), changed=False)
        if writes and (held := _held(view, plan, entries, clock())) is not None:
            return held
        return _proposal(job, view, plan, entries, today)

    return carry_out(job, session, planner, gate, clock, writes=writes)


def plan_for(role: Role, memory: Document, facts: Facts, policy: Policy, today: date) -> PrunePlan:
    """What prune would do to a role's memory file on the local day `today`."""
    sizes = pruned_sizes(role)
    plan = plan_prune(role.name, memory, facts, policy, today, archive=archive_name(today.year, sizes))
    adding = len(archive_text(plan.archived, None)) if plan.archived else 0
    roomy = archive_name(today.year, sizes, adding)
    if roomy == plan.archive:
        return plan
    return plan_prune(role.name, memory, facts, policy, today, archive=roomy)


def in_words(view: RoleView, plan: PrunePlan) -> str:
    """The plan in a line: what it does, why the file stays too long if it does, and what does not come about."""
    parts = [plan.summary]
    if plan.over_limit is not None:
        parts.append(f"still {plan.over_limit.sentence.rstrip('.')}")
    return "; ".join([*parts, *filter(None, [untold(view, plan)])])


def untold(view: RoleView, plan: PrunePlan) -> str | None:
    """Why entries leave none of their points in the knowledge file though they should; None if they do."""
    found = _knowledge(view, plan)
    if not isinstance(found, Untold):
        return None
    return f"its points are in the archive alone, as {layout.KNOWLEDGE} cannot take them up: {found.reason.rstrip('.')}"


def _held(view: RoleView, plan: PrunePlan, entries: EntryLog, now: float) -> Deferred | None:
    """Why a first prune waits for a person; None if it does not."""
    role = view.role
    if not takes_most(plan.lines_before, plan.lines_after):
        return None
    since = entries.hold(role.store.key, role.name, now)
    command = f"echod prune {shlex.quote(str(role.store.project))} --role {role.name}"
    if since is not None and entries.answers.rejected(first_prune_id(role)):
        return Deferred(f"you said that you prune this file yourself: {command}", now + HOLD_SECONDS)
    until = None if since is None else held_until(since, now)
    if until is None:
        return None
    reason = (
        f"the first prune of this file would take more than half of it ({in_words(view, plan)}), so it waits for a "
        f"day. To see it: {command} --dry-run. To let it go now: {command}"
    )
    return Deferred(reason, until)


def _proposal(job: int, view: RoleView, plan: PrunePlan, entries: EntryLog, today: date) -> Proposal:
    role = PurePosixPath(view.role.name)
    memory = view.memory
    writes = [Write(role / layout.MEMORY, memory.digest, plan.memory or b"")]
    if isinstance(knowledge := _knowledge(view, plan), Write):
        writes.append(knowledge)
    if (name := backup_of(view.role, memory.text, today)) is not None:
        writes.append(Write(role / name, None, memory.text))

    def note() -> None:
        entries.note_pruned(view.role.store.key, view.role.name, today, plan.inscribed_archived)
        after = parse(plan.memory or b"")
        if isinstance(after, Document):
            note_entries(entries, view.role, after, today, plan.renumbered)

    changes = ChangeSet(
        kind="prune",
        role=view.role.name,
        summary=in_words(view, plan),
        writes=tuple(writes),
        appends=append_to(role / plan.archive, plan.archived, job),
    )
    return Proposal(changes, note)


def _knowledge(view: RoleView, plan: PrunePlan) -> Write | Untold | None:
    """The knowledge file with what the entries leave there; None if it stays as it is.

    A knowledge file that cannot take anything up keeps no entry in the memory file: all of it is in the archive.
    """
    if not plan.knowledge:
        return None
    snapshot = view.knowledge
    if snapshot is None:
        return Untold(view.no_knowledge.reason if view.no_knowledge else "it cannot be read")
    try:
        data = with_blocks(view.role.name, snapshot.data, plan.knowledge)
    except ComposeError as error:
        return Untold(str(error))
    if isinstance(data, Unreadable):
        return Untold(data.reason)
    if data == snapshot.data:
        return None
    return Write(PurePosixPath(view.role.name) / layout.KNOWLEDGE, snapshot.digest, data)
