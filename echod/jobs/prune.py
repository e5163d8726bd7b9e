"""The prune job: what leaves a memory file today goes to the archive, and its points to the knowledge file.

What leaves is decided by `echod.memory.policy`; a dry run calls `plan_for`, the job carries out the same plan.
"""

from __future__ import annotations

import shlex
from datetime import date
from pathlib import PurePosixPath
from typing import NamedTuple

from echod.inspection.entry_facts import record_and_get_facts, record_entries
from echod.inspection.review_items import (
    FIRST_PRUNE_HOLD_SECONDS,
    first_prune_deadline,
    first_prune_id,
    removes_majority,
)
from echod.jobs.archives import append_to_archive, backup_name, pruned_archive_sizes
from echod.jobs.base import (
    JobBlocked,
    JobContext,
    JobDeferred,
    JobDone,
    JobOutcome,
    Proposal,
    knowledge_unavailable,
    parse_memory,
    plan_and_commit,
)
from echod.memory.compose import ComposeError
from echod.memory.document import parse
from echod.memory.knowledge import with_blocks
from echod.memory.model import Document, Unreadable
from echod.memory.policy import (
    Facts,
    PolicySettings,
    PrunePlan,
    plan_prune,
    render_archived_entries,
    select_archive_file,
)
from echod.state.entries import EntryStore
from echod.store import layout
from echod.store.changes import ChangeSet, Write
from echod.store.layout import Role
from echod.store.session import RoleView


class KnowledgeSkipped(NamedTuple):
    """Why entries leave nothing in the knowledge file though they should, in a sentence."""

    reason: str


def run(context: JobContext) -> JobOutcome:
    """Prune the memory file of `session`.

    The first prune of a file that would take more than half of it is held for a day, unless a person let it go
    (`EntryStore.let_go`).

    Raises:
        BusyError, RefusedError, StoreError: see `RoleSession.commit`; nothing was changed.
    """

    def planner(view: RoleView, today: date) -> Proposal | JobOutcome:
        if isinstance(unavailable := knowledge_unavailable(view, context.clock()), JobDeferred):
            return unavailable
        document = parse_memory(view)
        if isinstance(document, JobBlocked):
            return document
        facts = record_and_get_facts(view.role, context.entries, context.policy, today, document)
        plan = plan_role(view.role, document, facts, context.policy, today)
        if plan.memory is None:
            return JobDone(describe_plan(view, plan), changed=False)
        if (
            context.allow_writes
            and (outcome := _hold_first_prune(view, plan, context.entries, context.clock())) is not None
        ):
            return outcome
        return _build_proposal(context.job_id, view, plan, context.entries, today)

    return plan_and_commit(context, planner)


def plan_role(role: Role, memory: Document, facts: Facts, policy: PolicySettings, today: date) -> PrunePlan:
    """What prune would do to a role's memory file on the local day `today`."""
    sizes = pruned_archive_sizes(role)
    plan = plan_prune(role.name, memory, facts, policy, today, archive=select_archive_file(today.year, sizes))
    adding = len(render_archived_entries(plan.archived, None)) if plan.archived else 0
    roomy = select_archive_file(today.year, sizes, adding)
    if roomy == plan.archive:
        return plan
    return plan_prune(role.name, memory, facts, policy, today, archive=roomy)


def describe_plan(view: RoleView, plan: PrunePlan) -> str:
    """The plan in a line: what it does, why the file stays too long if it does, and what does not come about."""
    parts = [plan.summary]
    if plan.over_limit is not None:
        parts.append(f"still {plan.over_limit.description.rstrip('.')}")
    return "; ".join([*parts, *filter(None, [knowledge_skipped_reason(view, plan)])])


def knowledge_skipped_reason(view: RoleView, plan: PrunePlan) -> str | None:
    """Why entries leave none of their points in the knowledge file though they should; None if they do."""
    found = _knowledge_write(view, plan)
    if not isinstance(found, KnowledgeSkipped):
        return None
    return f"its points are in the archive alone, as {layout.KNOWLEDGE} cannot take them up: {found.reason.rstrip('.')}"


def _hold_first_prune(view: RoleView, plan: PrunePlan, entries: EntryStore, now: float) -> JobDeferred | None:
    """Why a first prune waits for a person; None if it does not."""
    role = view.role
    if not removes_majority(plan.lines_before, plan.lines_after):
        return None
    since = entries.hold_first_prune(role.store.key, role.name, now)
    command = f"echod prune {shlex.quote(str(role.store.project))} --role {role.name}"
    if since is not None and entries.answers.is_rejected(first_prune_id(role)):
        return JobDeferred(f"you said that you prune this file yourself: {command}", now + FIRST_PRUNE_HOLD_SECONDS)
    until = None if since is None else first_prune_deadline(since, now)
    if until is None:
        return None
    reason = (
        f"the first prune of this file would take more than half of it "
        f"({describe_plan(view, plan)}), so it waits for a "
        f"day. To see it: {command} --dry-run. To let it go now: {command}"
    )
    return JobDeferred(reason, until)


def _build_proposal(job_id: int, view: RoleView, plan: PrunePlan, entries: EntryStore, today: date) -> Proposal:
    role = PurePosixPath(view.role.name)
    memory = view.memory
    writes = [Write(role / layout.MEMORY, memory.digest, plan.memory or b"")]
    if isinstance(knowledge := _knowledge_write(view, plan), Write):
        writes.append(knowledge)
    if (name := backup_name(view.role, memory.text, today)) is not None:
        writes.append(Write(role / name, None, memory.text))

    def note() -> None:
        entries.record_prune(view.role.store.key, view.role.name, today, plan.inscribed_archived)
        after = parse(plan.memory or b"")
        if isinstance(after, Document):
            record_entries(entries, view.role, after, today, plan.id_changes)

    changes = ChangeSet(
        kind="prune",
        role=view.role.name,
        summary=describe_plan(view, plan),
        writes=tuple(writes),
        appends=append_to_archive(role / plan.archive, plan.archived, job_id),
    )
    return Proposal(changes, note)


def _knowledge_write(view: RoleView, plan: PrunePlan) -> Write | KnowledgeSkipped | None:
    """The knowledge file with what the entries leave there; None if it stays as it is.

    A knowledge file that cannot take anything up keeps no entry in the memory file: all of it is in the archive.
    """
    if not plan.knowledge:
        return None
    snapshot = view.knowledge
    if snapshot is None:
        return KnowledgeSkipped(view.knowledge_problem.reason if view.knowledge_problem else "it cannot be read")
    try:
        data = with_blocks(view.role.name, snapshot.data, plan.knowledge)
    except ComposeError as error:
        return KnowledgeSkipped(str(error))
    if isinstance(data, Unreadable):
        return KnowledgeSkipped(data.reason)
    if data == snapshot.data:
        return None
    return Write(PurePosixPath(view.role.name) / layout.KNOWLEDGE, snapshot.digest, data)
