"""The forget job: move entries from the memory file to the archive at the user's request."""

from __future__ import annotations

from collections.abc import Collection
from datetime import date

from echod.jobs.archives import append_removed
from echod.jobs.base import (
    JobBlocked,
    JobContext,
    JobDone,
    JobOutcome,
    Proposal,
    change_set,
    plan_memory_and_commit,
    write_memory,
)
from echod.memory.model import Document
from echod.memory.policy import Rule
from echod.memory.policy.manual import EditRefusal, remove_entries
from echod.state.job import JobKind
from echod.store import layout
from echod.store.session import RoleView


def run(context: JobContext, entries: Collection[str], *, rule: Rule) -> JobOutcome:
    """Move entries to `archive/removed-{year}.md`.

    Args:
        context: the job, with the role locked.
        entries: full ids, all of them in the memory file.
        rule: the reason that the archive records.

    Raises:
        BusyError, RefusedError, StoreError: see `RoleSession.commit`; nothing was changed.
    """

    def planner(view: RoleView, document: Document, today: date) -> Proposal | JobOutcome:
        removal = remove_entries(view.role.name, document, entries, rule, today)
        if isinstance(removal, EditRefusal):
            return JobBlocked(f"{layout.MEMORY} stays as it is: {removal.reason}")
        if not removal.archived:
            return JobDone("there was nothing to remove", changed=False)
        changes = change_set(
            view,
            JobKind.FORGET,
            _summary(entries, rule),
            [write_memory(view, removal.document.render())],
            appends=append_removed(view.role, today, removal.archived, context.job_id),
        )
        return Proposal(changes)

    return plan_memory_and_commit(context, planner)


def _summary(entries: Collection[str], rule: Rule) -> str:
    first, *others = sorted(entries)
    return f"{first} {rule.value}" if not others else f"{first} and {len(others)} more {rule.value}"
