"""`echod consolidate`: show what agents' findings would do to the memory, and fold them in as a job of its own.

Commands that keep memory and knowledge files in shape.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import date
from pathlib import Path
from typing import NamedTuple

import click

from echod.app.context import ReadContext, open_read_context
from echod.app.services import Services, open_services
from echod.cli import options
from echod.cli.commands.prune import parse_as_of, require_dry_run, select_roles
from echod.cli.context import CommandContext, notify_daemon
from echod.cli.execute import ManualJob, run_multi_role_job
from echod.cli.output import sanitize, short_path, wrap
from echod.cli.root import example, pass_command_context
from echod.cli.targets import require_write_mode
from echod.contract.commands import ConsolidationReport, PlannedFinding, PlannedFindingsFile
from echod.contract.status import to_json
from echod.jobs.base import JobOutcome, JobResources
from echod.jobs.consolidate import consolidate_selected, preview_selected
from echod.memory.consolidation.plan import ConsolidationPlan
from echod.memory.consolidation.supersede import SupersedeProblem
from echod.memory.document import parse
from echod.memory.identity import entry_ids
from echod.memory.model import Document, Unreadable
from echod.state.job import JobKind
from echod.store.layout import MEMORY, Role
from echod.store.session import RoleView

_SUPERSEDE_PROBLEMS = {
    SupersedeProblem.NONE: "no entry has that title",
    SupersedeProblem.SEVERAL: "several entries have that title",
    SupersedeProblem.NEWER: "that entry is newer",
    SupersedeProblem.PROTECTED: "only you take that entry out",
    SupersedeProblem.PINNED: "that entry is pinned",
    SupersedeProblem.UNCLOSED_BLOCK: "a code block or comment above that entry is never closed",
}


class _RoleConsolidation(NamedTuple):
    """What would become of a role's findings; `digests` names the files that are ready."""

    role: Role
    findings: tuple[PlannedFinding, ...]
    files: tuple[PlannedFindingsFile, ...]
    digests: frozenset[str]


def consolidate_findings(
    context: CommandContext,
    path: Path | None,
    role: str | None,
    *,
    dry_run: bool,
    as_of: str | None,
    as_json: bool,
    force: bool,
) -> None:
    """Fold the findings of a project's roles into their memory files, those of one role if it is named.

    Raises:
        UsageError: the options do not go together, or there is no such role.
        WriteNotAllowedError: a workflow is at work, or the settings forbid to write; nothing was changed.
        EchodError: a file could not be changed, the sentence says why.
    """
    require_dry_run(dry_run=dry_run, as_of=as_of, as_json=as_json)
    with open_read_context(context.paths, context.settings, context.environ, context.now) as read_context:
        today = parse_as_of(as_of, context.now())
        plans = [_plan_role(read_context, one, today) for one in select_roles(context, read_context, path, role)]
    if as_json:
        click.echo(to_json(_consolidation_report(plans)))
        return
    context.print_plan("\n".join(line for plan in plans for line in _role_plan_lines(plan)), always=dry_run)
    todo = [plan for plan in plans if plan.digests]
    if dry_run or not todo:
        return
    require_write_mode(context)
    with open_services(context.paths, context.settings, context.environ, context.now) as services:
        for plan in todo:
            _run_role_plan(context, services, plan, force=force)
    notify_daemon(context)


def _plan_role(read_context: ReadContext, role: Role, today: date) -> _RoleConsolidation:
    if not read_context.need_settings(role.store.project).consolidate:
        return _skipped_plan(role, "the project's own settings say consolidate: false")
    view = read_context.reader.read_role(role)
    pinned = (
        frozenset[str]() if read_context.entries is None else read_context.entries.pinned_ids(role.store.key, today)
    )
    digests = frozenset(found.digest for found in view.findings if found.digest)
    findings: list[PlannedFinding] = []
    files = [
        PlannedFindingsFile("wait", busy.path.name, role.store.key, role.name, busy.reason)
        for busy in view.unavailable_findings
    ]
    for plan in preview_selected(view, digests, pinned, today):
        if isinstance(plan, Unreadable):
            return _skipped_plan(role, plan.reason)
        findings += _planned_findings(role, plan, view)
        files += _planned_files(role, plan)
    return _RoleConsolidation(role, tuple(findings), tuple(files), digests)


def _skipped_plan(role: Role, reason: str) -> _RoleConsolidation:
    return _RoleConsolidation(
        role, (), (PlannedFindingsFile("left", MEMORY, role.store.key, role.name, reason),), frozenset()
    )


def _planned_findings(role: Role, plan: ConsolidationPlan, view: RoleView) -> Iterator[PlannedFinding]:
    titles = {one.id: one.title for one in plan.added} | _entry_titles(view)
    for one in plan.added:
        yield PlannedFinding("add", one.id, one.title, role.store.key, role.name)
    for duplicate in plan.duplicates:
        yield PlannedFinding("duplicate", duplicate.id, duplicate.title, role.store.key, role.name)
    for superseded in plan.superseded:
        note = f"gives way to {superseded.replaced_by}"
        yield PlannedFinding("supersede", superseded.archived.id, superseded.title, role.store.key, role.name, note)
    for claim, layer in plan.layer_claims:
        note = f"it claims to be {layer.value}"
        yield PlannedFinding("review", claim.id, claim.title, role.store.key, role.name, note)
    for unresolved in plan.pending_supersedes:
        note = f"it says that it replaces {unresolved.target!r}, but {_SUPERSEDE_PROBLEMS[unresolved.problem]}"
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


def _consolidation_report(plans: Sequence[_RoleConsolidation]) -> ConsolidationReport:
    return ConsolidationReport(
        findings=tuple(finding for plan in plans for finding in plan.findings),
        files=tuple(file for plan in plans for file in plan.files),
    )


def _role_plan_lines(plan: _RoleConsolidation) -> Iterator[str]:
    yield f"{plan.role.name}  {short_path(plan.role.store.key)}"
    if not plan.files:
        yield "  no findings"
    for finding in plan.findings:
        title = sanitize(finding.title) or "(untitled)"
        text = title if finding.note is None else f"{title} ({sanitize(finding.note)})"
        yield wrap(text, indent=f"  {finding.action:<10} {finding.id}  ")
    for file in plan.files:
        if file.note is not None:
            yield wrap(f"{file.name}: {sanitize(file.note)}", indent=f"  {file.action:<10} ")


def _run_role_plan(context: CommandContext, services: Services, plan: _RoleConsolidation, *, force: bool) -> None:
    """Do it, as a job of its own. The plan is made anew from the files as they are then."""

    def work(resources: JobResources) -> JobOutcome:
        return consolidate_selected(resources, plan.role, plan.digests)

    manual_job = ManualJob(JobKind.CONSOLIDATE, plan.role, "a person asked for it")
    context.print_info(run_multi_role_job(context, services, manual_job, work, force=force).describe(plan.role.name))


@click.command(epilog=example("echod consolidate ~/src/my-project --dry-run"))
@options.project_path_or_all
@options.only_role
@options.dry_run
@options.as_of
@options.plan_json
@options.force
@pass_command_context
def consolidate(
    context: CommandContext,
    *,
    path: Path | None,
    role: str | None,
    dry_run: bool,
    as_of: str | None,
    json: bool,
    force: bool,
) -> None:
    """Add agents' findings to the memory now.

    Files that are being written wait. Every findings file is kept in the role's archive.
    """
    consolidate_findings(context, path, role, dry_run=dry_run, as_of=as_of, as_json=json, force=force)
