"""The prune job: archive entries of a memory file, and keep their points in the knowledge file.

`echod.memory.policy` selects the entries. A dry run calls `plan_role`, and the job carries out the same plan.
"""

from __future__ import annotations

import shlex
from datetime import date
from typing import NamedTuple

from echod.inspection.inspect import record_and_get_facts, record_entries
from echod.inspection.review import FIRST_PRUNE_HOLD_SECONDS, first_prune_deadline, first_prune_id
from echod.jobs.base import (
    JobBlocked,
    JobContext,
    JobDeferred,
    JobDone,
    JobOutcome,
    Proposal,
    append_to_archive,
    backup_name,
    change_set,
    knowledge_unavailable,
    parse_memory,
    plan_and_commit,
    pruned_archive_sizes,
    role_path,
    write_memory,
)
from echod.memory.archive import render_archived_entries, select_archive_file
from echod.memory.compose import ComposeError
from echod.memory.document import parse
from echod.memory.knowledge import with_blocks
from echod.memory.model import Document, Unreadable
from echod.memory.policy import Facts, PrunePlan, plan_prune
from echod.memory.policy_model import PolicySettings
from echod.state.entries import EntryStore
from echod.state.jobs import JobKind
from echod.store import layout
from echod.store.changes import Write
from echod.store.engine import RoleView
from echod.store.fs import find_replacement_problem
from echod.store.layout import Role


class KnowledgeSkipped(NamedTuple):
    """The reason why the points of archived entries are not added to the knowledge file."""

    reason: str


def run(context: JobContext) -> JobOutcome:
    """Prune the memory file.

    The first prune of a file is held for a day if it would remove much (`PruneExtent.hold_reason`), unless the user
    released it (`EntryStore.release_first_prune`).
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
        held = _hold_first_prune(view, plan, context.entries, context.clock()) if context.allow_writes else None
        if held is not None:
            return held
        return _build_proposal(context.job_id, view, plan, context.entries, today)

    return plan_and_commit(context, planner)


def plan_role(role: Role, memory: Document, facts: Facts, policy: PolicySettings, today: date) -> PrunePlan:
    """Return the effect of prune on a role's memory file on the local day `today`."""
    sizes = pruned_archive_sizes(role)
    plan = plan_prune(role.name, memory, facts, policy, today, archive=select_archive_file(today.year, sizes))
    adding = len(render_archived_entries(plan.archived, None)) if plan.archived else 0
    archive = select_archive_file(today.year, sizes, adding)
    if archive == plan.archive:
        return plan
    return plan_prune(role.name, memory, facts, policy, today, archive=archive)


def describe_plan(view: RoleView, plan: PrunePlan) -> str:
    """Describe the plan in a line, including why the file stays over its limit and which points are not kept."""
    over = plan.over_limit and f"still {plan.over_limit.description.rstrip('.')}"
    return "; ".join(filter(None, [plan.summary, over, knowledge_skipped_reason(view, plan)]))


def knowledge_skipped_reason(view: RoleView, plan: PrunePlan) -> str | None:
    """Return why the points of the entries are not added to the knowledge file; None if they are."""
    result = _knowledge_write(view, plan)
    if not isinstance(result, KnowledgeSkipped):
        return None
    reason = result.reason.rstrip(".")
    return f"its points are only in the archive, since {layout.KNOWLEDGE} cannot be extended: {reason}"


def find_write_problem(view: RoleView, plan: PrunePlan) -> str | None:
    """Return why the commit of the plan would be refused, as far as its files show it; None if it is not."""
    knowledge = _knowledge_write(view, plan)
    files = [view.memory] if plan.memory is not None else []
    files += [view.knowledge] if isinstance(knowledge, Write) and view.knowledge is not None else []
    return next(filter(None, (find_replacement_problem(file.path) for file in files)), None)


def _hold_first_prune(view: RoleView, plan: PrunePlan, entries: EntryStore, now: float) -> JobDeferred | None:
    """Return the deferral of a first prune that has to wait for the user; None if it may run."""
    role = view.role
    hold_reason = plan.extent.hold_reason
    if hold_reason is None:
        return None
    since = entries.hold_first_prune(role.store.key, role.name, now)
    command = f"echod prune {shlex.quote(str(role.store.project))} --role {role.name}"
    answers, key = entries.answers, role.store.key
    if since is not None and answers.is_rejected(key, first_prune_id(role, answers.store_name(key))):
        reason = f"you rejected the first prune of this file; to do it yourself: {command}"
        return JobDeferred(reason, now + FIRST_PRUNE_HOLD_SECONDS)
    until = None if since is None else first_prune_deadline(since, now)
    if until is None:
        return None
    reason = (
        f"the first prune of this file {hold_reason} ({describe_plan(view, plan)}), so it waits for a day. "
        f"To see it: {command} --dry-run. To do it now: {command}"
    )
    return JobDeferred(reason, until)


def _build_proposal(job_id: int, view: RoleView, plan: PrunePlan, entries: EntryStore, today: date) -> Proposal:
    writes = [write_memory(view, plan.memory or b"")]
    if isinstance(knowledge := _knowledge_write(view, plan), Write):
        writes.append(knowledge)
    if (name := backup_name(view.role, view.memory.text, today)) is not None:
        writes.append(Write(role_path(view, name), None, view.memory.text))

    def record() -> None:
        entries.record_prune(view.role.store.key, view.role.name, today, plan.learnings_archived)
        after = parse(plan.memory or b"")
        if isinstance(after, Document):
            record_entries(entries, view.role, after, today, plan.id_changes)

    appends = append_to_archive(role_path(view, plan.archive), plan.archived, job_id)
    changes = change_set(view, JobKind.PRUNE, describe_plan(view, plan), writes, appends=appends)
    # A kill between the commit and its record must not lose which entry is which.
    known = {action.id for action in plan.actions}
    carried = {**{old: new for old, new in plan.id_changes.items() if new not in known}, **plan.merged}
    return Proposal(
        changes,
        before_commit=lambda: entries.copy_references(view.role.store.key, carried),
        after_commit=record,
    )


def _knowledge_write(view: RoleView, plan: PrunePlan) -> Write | KnowledgeSkipped | None:
    """Return the knowledge file with the points of the entries; None if it does not change.

    An unusable knowledge file does not keep entries in the memory file, since the archive has their full text.
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
    return Write(role_path(view, layout.KNOWLEDGE), snapshot.digest, data)
