"""`echod consolidate`: show how the findings of agents would change the memory, and add them by manual jobs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import date
from functools import partial
from pathlib import Path
from typing import NamedTuple

import click

from echod.app.context import ReadContext
from echod.cli.commands.prune import require_dry_run
from echod.cli.context import CommandContext
from echod.cli.execute import Change, JobRunner, ManualJob, Step, WriteOptions, make_change
from echod.cli.output import sanitize, short_path, title_text, wrap
from echod.cli.targets import RoleSelection, parse_as_of, select_roles
from echod.contract.codec import to_json
from echod.contract.commands import ConsolidationReport, PlannedFinding, PlannedFindingsFile
from echod.jobs.consolidate import consolidate_selected, preview_selected
from echod.memory.consolidation.deduplicate import SupersedeProblem
from echod.memory.consolidation.plan import ConsolidationPlan
from echod.memory.document import parse
from echod.memory.identity import entry_ids
from echod.memory.model import Document, Unreadable
from echod.memory.text import pluralize
from echod.state.job import JobKind
from echod.store.layout import MEMORY, Role
from echod.store.session import RoleView
from echod.store.snapshot import find_replacement_problem

_SUPERSEDE_PROBLEMS = {
    SupersedeProblem.NONE: "no entry has that title",
    SupersedeProblem.SEVERAL: "several entries have that title",
    SupersedeProblem.NEWER: "that entry is newer",
    SupersedeProblem.PROTECTED: "only the user removes that entry",
    SupersedeProblem.PINNED: "that entry is pinned",
    SupersedeProblem.UNCLOSED_BLOCK: "a code block or comment above that entry is never closed",
}


class _RolePlan(NamedTuple):
    """The planned consolidation of a role. `digests` identify the findings files that are ready."""

    role: Role
    findings: tuple[PlannedFinding, ...]
    files: tuple[PlannedFindingsFile, ...]
    digests: frozenset[str]


def consolidate(
    context: CommandContext,
    *,
    path: Path | None,
    in_all: bool,
    role: str | None,
    dry_run: bool,
    as_of: str | None,
    json: bool,
    force: bool,
) -> None:
    """Run `echod consolidate`."""
    require_dry_run(dry_run=dry_run, as_of=as_of, as_json=json)
    with context.open_read_context() as read_context:
        today = parse_as_of(as_of, context.now())
        roles = select_roles(context, read_context, RoleSelection(path, in_all, role), dry_run=dry_run)
        plans = [_plan_role(read_context, selected, today) for selected in roles]
    if json:
        click.echo(to_json(_consolidation_report(plans)))
        return
    change = Change(
        preview="\n".join(_preview_lines(plans)),
        steps=[Step(plan.role.name, partial(_run_job, plan)) for plan in plans if plan.digests],
    )
    make_change(context, change, WriteOptions(dry_run, force=force))


def _plan_role(read_context: ReadContext, role: Role, today: date) -> _RolePlan:
    if not read_context.need_settings(role.store.project).consolidate:
        return _skipped_plan(role, "the project's settings contain consolidate: false")
    view = read_context.reader.read_role(role)
    pinned = (
        frozenset[str]() if read_context.entries is None else read_context.entries.pinned_ids(role.store.key, today)
    )
    digests = frozenset(file.digest for file in view.findings if file.digest)
    findings: list[PlannedFinding] = []
    files = [
        PlannedFindingsFile("wait", busy.path.name, role.store.key, role.name, busy.reason)
        for busy in view.unavailable_findings
    ]
    for plan in preview_selected(view, digests, pinned, today):
        if isinstance(plan, Unreadable):
            return _skipped_plan(role, plan.reason)
        if plan.memory is not None and (refusal := find_replacement_problem(view.memory.path)) is not None:
            files.append(_skipped_file(role, f"it would be refused: {refusal}"))
        findings += _planned_findings(role, plan, view)
        files += _planned_files(role, plan)
    return _RolePlan(role, tuple(findings), tuple(files), digests)


def _skipped_plan(role: Role, reason: str) -> _RolePlan:
    return _RolePlan(role, (), (_skipped_file(role, reason),), frozenset())


def _skipped_file(role: Role, reason: str) -> PlannedFindingsFile:
    return PlannedFindingsFile("skip", MEMORY, role.store.key, role.name, reason)


def _planned_findings(role: Role, plan: ConsolidationPlan, view: RoleView) -> Iterator[PlannedFinding]:
    titles = {added.id: added.title for added in plan.added} | _entry_titles(view)
    for added in plan.added:
        yield PlannedFinding("add", added.id, added.title, role.store.key, role.name)
    for duplicate in plan.duplicates:
        yield PlannedFinding("duplicate", duplicate.id, duplicate.title, role.store.key, role.name)
    for superseded in plan.superseded:
        note = f"replaced by {superseded.replaced_by}"
        yield PlannedFinding("supersede", superseded.archived.id, superseded.title, role.store.key, role.name, note)
    for claim, layer in plan.layer_claims:
        note = f"it claims to be {layer.value}"
        yield PlannedFinding("review", claim.id, claim.title, role.store.key, role.name, note)
    for unresolved in plan.pending_supersedes:
        note = f"it claims to replace {unresolved.target!r}, but {_SUPERSEDE_PROBLEMS[unresolved.problem]}"
        title = titles.get(unresolved.id, "")
        yield PlannedFinding("review", unresolved.id, title, role.store.key, role.name, note)


def _entry_titles(view: RoleView) -> dict[str, str]:
    document = parse(view.memory.text)
    if not isinstance(document, Document):
        return {}
    pairs = zip(entry_ids(view.role.name, document), document.blocks, strict=True)
    return {identity: block.entry.title for identity, block in pairs if identity is not None and block.entry}


def _planned_files(role: Role, plan: ConsolidationPlan) -> Iterator[PlannedFindingsFile]:
    for file in plan.consumed:
        yield PlannedFindingsFile("consume", file.name, role.store.key, role.name)
    for quarantined in plan.quarantined:
        yield PlannedFindingsFile("quarantine", quarantined.name, role.store.key, role.name, quarantined.reason)


def _consolidation_report(plans: Sequence[_RolePlan]) -> ConsolidationReport:
    return ConsolidationReport(
        findings=tuple(finding for plan in plans for finding in plan.findings),
        files=tuple(file for plan in plans for file in plan.files),
    )


def _preview_lines(plans: Sequence[_RolePlan]) -> Iterator[str]:
    busy = [plan for plan in plans if plan.files]
    yield from (line for plan in busy for line in _plan_lines(plan))
    if calm := len(plans) - len(busy):
        noun = pluralize(calm, "other role" if busy else "role")
        yield f"Nothing to consolidate in {noun}: no findings wait."


def _plan_lines(plan: _RolePlan) -> Iterator[str]:
    yield f"{plan.role.name}  {short_path(plan.role.store.key)}"
    for finding in plan.findings:
        note = "" if finding.note is None else f" ({sanitize(finding.note)})"
        yield wrap(f"{title_text(finding.title)}{note}", indent=f"  {finding.action:<10} {finding.id}  ")
    for file in plan.files:
        if file.note is not None:
            yield wrap(f"{file.name}: {sanitize(file.note)}", indent=f"  {file.action:<10} ")


def _run_job(plan: _RolePlan, runner: JobRunner) -> str:
    """Run the job on a role. It plans again, from the files as they are then."""
    manual_job = ManualJob(JobKind.CONSOLIDATE, plan.role)
    return runner.run_multi_role(
        manual_job, lambda resources: consolidate_selected(resources, plan.role, plan.digests)
    ).describe(plan.role.name)
