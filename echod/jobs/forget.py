"""The forget job: entries leave the memory file for the archive, because a person wants them gone."""

from __future__ import annotations

from collections.abc import Collection
from datetime import date
from pathlib import PurePosixPath

from echod.jobs.archives import append_removed
from echod.jobs.base import JobBlocked, JobContext, JobDone, JobOutcome, Proposal, parse_memory, plan_and_commit
from echod.memory.policy import Rule
from echod.memory.policy.manual import EditRefusal, remove_entries
from echod.state.job import JobKind
from echod.store import layout
from echod.store.changes import ChangeSet, Origin, Write
from echod.store.session import RoleView


def run(context: JobContext, entries: Collection[str], *, rule: Rule) -> JobOutcome:
    """Take entries out of the memory file of `session`; each stands in `archive/removed-{year}.md` then.

    Args:
        context: the job, with the role locked.
        entries: full ids, all of them in the file.
        rule: why they go, as the archive says it.

    Raises:
        BusyError, RefusedError, StoreError: see `RoleSession.commit`; nothing was changed.
    """

    def planner(view: RoleView, today: date) -> Proposal | JobOutcome:
        document = parse_memory(view)
        if isinstance(document, JobBlocked):
            return document
        removal = remove_entries(view.role.name, document, entries, rule, today)
        if isinstance(removal, EditRefusal):
            return JobBlocked(f"{layout.MEMORY} stays as it is: {removal.reason}")
        if not removal.archived:
            return JobDone("there was nothing to take out", changed=False)
        changes = ChangeSet(
            kind=JobKind.FORGET.value,
            role=view.role.name,
            summary=_summary(entries, rule),
            writes=(
                Write(PurePosixPath(view.role.name) / layout.MEMORY, view.memory.digest, removal.document.render()),
            ),
            appends=append_removed(view.role, today, removal.archived, context.job_id),
            origin=Origin.USER,
        )
        return Proposal(changes)

    return plan_and_commit(context, planner)


def _summary(entries: Collection[str], rule: Rule) -> str:
    first, *others = sorted(entries)
    return f"{first} {rule.value}" if not others else f"{first} and {len(others)} more {rule.value}"
