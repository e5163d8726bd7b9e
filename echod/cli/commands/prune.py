"""`echod prune`, `compress` and `consolidate`: show the plan for each role, and carry it out by manual jobs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import date
from functools import partial
from pathlib import Path
from textwrap import shorten
from typing import NamedTuple

import click

from echod.app.context import ReadContext
from echod.cli.context import CommandContext
from echod.cli.execute import Change, Confirmation, JobRunner, ManualJob, Step, WriteOptions, make_change
from echod.cli.output import sanitize, short_path, title_text, wrap
from echod.cli.targets import RoleSelection, block_title, parse_as_of, read_facts, select_roles
from echod.contract.codec import to_json
from echod.contract.commands import (
    ConsolidationReport,
    PlannedEntry,
    PlannedFile,
    PlannedFinding,
    PlannedFindingsFile,
    PlanReport,
)
from echod.errors import UsageError
from echod.jobs import compress as compress_job
from echod.jobs import prune as prune_job
from echod.jobs.consolidate import consolidate_selected, preview_selected
from echod.memory.consolidation.deduplicate import SupersedeProblem
from echod.memory.consolidation.plan import ConsolidationPlan
from echod.memory.document import parse, parse_block
from echod.memory.identity import entry_ids
from echod.memory.model import Document, Unreadable
from echod.memory.policy_model import PruneAction, Rule
from echod.memory.text import pluralize
from echod.projects.settings import MaintenancePolicy
from echod.state.jobs import JobKind
from echod.store.engine import RoleView
from echod.store.fs import find_replacement_problem
from echod.store.layout import KNOWLEDGE, MEMORY, Role

_COMPRESS_ACTIONS = {Rule.CONDENSED.value: PruneAction.CONDENSE, Rule.TOPIC.value: PruneAction.COMPRESS}
_LEARNING_WIDTH = 120
"""Characters of a learning that a dry run shows. `--json` has all of it."""


class RoleFilePlan(NamedTuple):
    """The planned change of one memory or knowledge file.

    `hold_reason` is why the first prune of a memory file waits for the user; None if it does not wait. `refusal` is why
    the file would not be changed at all.
    """

    role: Role
    has_changes: bool
    summary: str
    entries: tuple[PlannedEntry, ...]
    file: PlannedFile
    hold_reason: str | None = None
    refusal: str | None = None


def prune(
    context: CommandContext,
    *,
    path: Path | None,
    in_all: bool,
    role: str | None,
    dry_run: bool,
    as_of: str | None,
    json: bool,
    yes: bool,
    force: bool,
) -> None:
    """Run `echod prune`."""
    require_dry_run(dry_run=dry_run, as_of=as_of, as_json=json)
    plans = _plan_files(context, JobKind.PRUNE, RoleSelection(path, in_all, role), as_of, dry_run=dry_run, as_json=json)
    _show_or_run(context, JobKind.PRUNE, plans, WriteOptions(dry_run, yes, force), as_json=json)


def compress(
    context: CommandContext,
    *,
    path: Path | None,
    in_all: bool,
    role: str | None,
    dry_run: bool,
    as_of: str | None,
    json: bool,
    yes: bool,
    force: bool,
) -> None:
    """Run `echod compress`."""
    require_dry_run(dry_run=dry_run, as_of=as_of, as_json=json)
    plans = _plan_files(
        context, JobKind.COMPRESS, RoleSelection(path, in_all, role), as_of, dry_run=dry_run, as_json=json
    )
    _show_or_run(context, JobKind.COMPRESS, plans, WriteOptions(dry_run, yes, force), as_json=json)


def require_dry_run(*, dry_run: bool, as_of: str | None, as_json: bool) -> None:
    """Check that options about a plan are used with `--dry-run`.

    Raises:
        UsageError: the command would change something.
    """
    if not dry_run and (as_of is not None or as_json):
        raise UsageError("--as-of and --json require --dry-run. Nothing was changed.")


def _plan_files(
    context: CommandContext, kind: JobKind, selection: RoleSelection, as_of: str | None, *, dry_run: bool, as_json: bool
) -> list[RoleFilePlan]:
    plans = []
    with context.open_read_context() as read_context, context.progress_line(json=as_json) as progress:
        today = parse_as_of(as_of, context.now())
        roles = select_roles(context, read_context, selection, dry_run=dry_run)
        for number, role in enumerate(roles, start=1):
            progress.show(f"reading file {number} of {len(roles)}: {role.name}")
            plans.append(plan_role_file(read_context, kind, role, today))
    return plans


def plan_role_file(read_context: ReadContext, kind: JobKind, role: Role, today: date) -> RoleFilePlan:
    """Plan what a prune or compress job would do to a role on the local day `today`. Read-only.

    Raises:
        EchodError: a file cannot be read.
    """
    maintenance = read_context.maintenance_policy(role.store.project)
    if (disabled_reason := maintenance.disabled_reason(kind)) is not None:
        return _skipped_file_plan(role, disabled_reason)
    view = read_context.reader.read_role(role)
    if kind is JobKind.COMPRESS:
        return _compress_file_plan(read_context, view, maintenance, today)
    memory = parse(view.memory.text)
    if isinstance(memory, Unreadable):
        return _skipped_file_plan(role, memory.reason)
    return _prune_file_plan(read_context, view, memory, maintenance, today)


def _skipped_file_plan(role: Role, reason: str) -> RoleFilePlan:
    file = PlannedFile(role.store.key, role.name, 0, 0, 0, f"It is skipped: {reason}")
    return RoleFilePlan(role, has_changes=False, summary="", entries=(), file=file)


def _prune_file_plan(
    read_context: ReadContext, view: RoleView, memory: Document, maintenance: MaintenancePolicy, today: date
) -> RoleFilePlan:
    role, policy = view.role, maintenance.policy
    plan = prune_job.plan_role(role, memory, read_facts(read_context, role, today, memory), policy, today)
    entries = tuple(
        PlannedEntry(
            id=action.id,
            title=action.title,
            layer=action.layer and action.layer.value,
            score=action.score,
            rule=action.rule and action.rule.value,
            action=action.action.value,
            store=role.store.key,
            role=role.name,
            rules=tuple(rule.value for rule in action.rules),
            learnings=action.learnings,
            merged_into=action.merged_into,
        )
        for action in plan.actions
    )
    refusal = prune_job.find_write_problem(view, plan)
    notes = (
        refusal and _refusal_note(refusal),
        plan.over_limit and plan.over_limit.description,
        prune_job.knowledge_skipped_reason(view, plan),
    )
    note = "; ".join(note.rstrip(".") for note in notes if note) or None
    file = PlannedFile(role.store.key, role.name, plan.lines_before, plan.lines_after, policy.memory_line_limit, note)
    return RoleFilePlan(role, plan.memory is not None, plan.summary, entries, file, plan.extent.hold_reason, refusal)


def _refusal_note(refusal: str) -> str:
    return f"it would be refused: {refusal}"


def _compress_file_plan(
    read_context: ReadContext, view: RoleView, maintenance: MaintenancePolicy, today: date
) -> RoleFilePlan:
    role = view.role
    if view.knowledge_problem is not None:
        return _skipped_file_plan(role, view.knowledge_problem.reason)
    plan = compress_job.plan_role(view, read_facts(read_context, role, today), maintenance.policy, today)
    if isinstance(plan, Unreadable):
        return _skipped_file_plan(role, plan.reason)
    entries = tuple(
        PlannedEntry(
            id=entry.id,
            title=block_title(parse_block(entry.text)),
            layer=entry.layer and entry.layer.value,
            score=None,
            rule=entry.rule,
            action=_COMPRESS_ACTIONS.get(entry.rule, PruneAction.ARCHIVE).value,
            store=role.store.key,
            role=role.name,
        )
        for entry in plan.archived
    )
    has_changes = plan.knowledge is not None
    refusal = find_replacement_problem(role.path / KNOWLEDGE) if has_changes else None
    note = refusal and _refusal_note(refusal)
    file = PlannedFile(role.store.key, role.name, plan.lines_before, plan.lines_after, plan.limit, note)
    return RoleFilePlan(role, has_changes, plan.summary, entries, file, refusal=refusal)


def _show_or_run(
    context: CommandContext, kind: JobKind, plans: Sequence[RoleFilePlan], write_options: WriteOptions, *, as_json: bool
) -> None:
    if as_json:
        entries = tuple(entry for plan in plans for entry in plan.entries)
        click.echo(to_json(PlanReport(entries, tuple(plan.file for plan in plans))))
        return
    changed = [plan for plan in plans if plan.has_changes]
    shown = [plan for plan in plans if plan.has_changes or plan.file.note]
    lines = [line for plan in shown for line in _plan_lines(plan, show_entries=write_options.dry_run)]
    if calm := len(plans) - len(shown):
        noun = pluralize(calm, "other role" if shown else "role")
        lines.append(f"Nothing to {kind.value} in {noun}: {'it is' if calm == 1 else 'they are'} within the limit.")
    if write_options.dry_run and changed:
        lines.append("\nWhy one entry leaves: echod explain ID. All rules: docs/lifecycle.md")
    change = Change(
        preview="\n".join(lines),
        steps=[Step(plan.role.name, partial(_run_job, kind, plan.role)) for plan in changed],
        question=Confirmation(
            f"{kind.value.capitalize()} {pluralize(len(changed), 'file')}? `echod undo` reverses it."
        ),
    )
    make_change(context, change, write_options)


def _plan_lines(plan: RoleFilePlan, *, show_entries: bool) -> Iterator[str]:
    yield f"{plan.role.name}  {short_path(plan.role.store.key)}"
    if plan.summary and plan.has_changes:
        yield wrap(plan.summary, indent="  ")
    if plan.file.note:
        yield wrap(plan.file.note, indent="  ")
    for entry in plan.entries if show_entries else ():
        if entry.rule is not None:
            yield wrap(title_text(entry.title), indent=f"  {entry.action:<8} {entry.rule:<16} {entry.id}  ")
            for learning in entry.learnings:
                yield wrap(f"leaves: {title_text(shorten(learning, _LEARNING_WIDTH))}", indent="           ")


def _run_job(kind: JobKind, role: Role, runner: JobRunner) -> str:
    """Run the job on a role. It plans again, from the file as it is then."""
    return runner.run(
        ManualJob(kind, role),
        prune_job.run if kind is JobKind.PRUNE else compress_job.run,
        prepare=lambda: runner.services.entries.release_first_prune(role.store.key, [role.name]),
    ).describe(role.name)


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
        steps=[Step(plan.role.name, partial(_run_consolidation, plan)) for plan in plans if plan.digests],
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
    yield from (line for plan in busy for line in _findings_lines(plan))
    if calm := len(plans) - len(busy):
        noun = pluralize(calm, "other role" if busy else "role")
        yield f"Nothing to consolidate in {noun}: no findings wait."


def _findings_lines(plan: _RolePlan) -> Iterator[str]:
    yield f"{plan.role.name}  {short_path(plan.role.store.key)}"
    for finding in plan.findings:
        note = "" if finding.note is None else f" ({sanitize(finding.note)})"
        yield wrap(f"{title_text(finding.title)}{note}", indent=f"  {finding.action:<10} {finding.id}  ")
    for file in plan.files:
        if file.note is not None:
            yield wrap(f"{file.name}: {sanitize(file.note)}", indent=f"  {file.action:<10} ")


def _run_consolidation(plan: _RolePlan, runner: JobRunner) -> str:
    """Run the job on a role. It plans again, from the files as they are then."""
    manual_job = ManualJob(JobKind.CONSOLIDATE, plan.role)
    return runner.run_multi_role(
        manual_job, lambda resources: consolidate_selected(resources, plan.role, plan.digests)
    ).describe(plan.role.name)
