"""`echod prune` and `echod compress`: show what would leave the files, and do it as a job of its own.

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
from echod.cli.context import CommandContext, notify_daemon
from echod.cli.execute import ManualJob, run_manual_job
from echod.cli.output import pluralize, sanitize, short_path, wrap
from echod.cli.root import example, pass_command_context
from echod.cli.targets import WriteOptions, confirm, require_write_mode, select_stores
from echod.clock import local_date
from echod.contract.commands import PlannedEntry, PlannedFile, PlanReport
from echod.contract.status import to_json
from echod.errors import UsageError
from echod.inspection.entry_facts import get_facts
from echod.jobs import compress as compress_job
from echod.jobs import prune as prune_job
from echod.memory.document import parse, parse_block
from echod.memory.model import Document, Unreadable
from echod.memory.policy import Facts, PruneAction, Rule
from echod.projects.maintenance import MaintenancePolicy
from echod.state.job import JobKind
from echod.store.layout import Role, Store, find_roles
from echod.store.session import RoleView


class RoleFilePlan(NamedTuple):
    """What would become of one file."""

    role: Role
    has_changes: bool
    summary: str
    entries: tuple[PlannedEntry, ...]
    file: PlannedFile


def prune_or_compress(
    context: CommandContext,
    kind: JobKind,
    path: Path | None,
    role: str | None,
    write_options: WriteOptions,
    *,
    as_of: str | None,
    as_json: bool,
) -> None:
    """Prune memory files or compress knowledge files, those of one role if it is named.

    Raises:
        UsageError: the options do not go together, there is no such role, or a question cannot be asked.
        WriteNotAllowedError: a workflow is at work, or the settings forbid to write; nothing was changed.
        EchodError: a file could not be changed, the sentence says why.
    """
    require_dry_run(dry_run=write_options.dry_run, as_of=as_of, as_json=as_json)
    with open_read_context(context.paths, context.settings, context.environ, context.now) as read_context:
        today = parse_as_of(as_of, context.now())
        plans = list(_plan_files(context, read_context, kind, select_roles(context, read_context, path, role), today))
    if as_json:
        click.echo(to_json(_plan_report(plans)))
        return
    todo = [plan for plan in plans if plan.has_changes]
    text = "\n".join(line for plan in plans for line in _file_plan_lines(plan, show_entries=write_options.dry_run))
    if write_options.dry_run and todo:
        text += "\n\nWhat the rules mean: docs/lifecycle.md. About one entry: echod explain ID"
    context.print_plan(text, always=write_options.shows_plan)
    if write_options.dry_run or not todo:
        return
    require_write_mode(context)
    if not write_options.yes:
        confirm(f"{kind.value.capitalize()} {pluralize(len(todo), 'file')}? `echod undo` takes it back.")
    with (
        open_services(context.paths, context.settings, context.environ, context.now) as services,
        context.progress_line() as progress,
    ):
        for number, plan in enumerate(todo, start=1):
            progress.show(f"file {number} of {len(todo)}: {plan.role.name}")
            message = _run_file_job(context, services, kind, plan.role, force=write_options.force)
            progress.clear()
            context.print_info(message)
    notify_daemon(context)


def require_dry_run(*, dry_run: bool, as_of: str | None, as_json: bool) -> None:
    """What is asked of a plan goes with no change.

    Raises:
        UsageError: it was asked of a command that is to change something.
    """
    if not dry_run and (as_of is not None or as_json):
        raise UsageError("--as-of and --json go with --dry-run; nothing was changed.")


def parse_as_of(text: str | None, now: float) -> date:
    """The local day that `--as-of` names; today if it is not said.

    Raises:
        UsageError: it is no date.
    """
    if text is None:
        return local_date(now)
    try:
        return date.fromisoformat(text)
    except ValueError as error:
        raise UsageError(f"{sanitize(text)} is not a date; write it like 2026-11-20.") from error


def read_facts_if_recorded(
    read_context: ReadContext, role: Role, maintenance: MaintenancePolicy, today: date, memory: Document | None = None
) -> Facts:
    """What is known about a role's entries, as `get_facts` tells it; nothing where nothing was ever recorded."""
    return (
        Facts()
        if read_context.entries is None
        else get_facts(role, read_context.entries, maintenance.policy, today, memory)
    )


def select_roles(context: CommandContext, read_context: ReadContext, path: Path | None, name: str | None) -> list[Role]:
    """The roles of the project at `path` (None: as `select_stores` says), or the one of that name in each store.

    Raises:
        UsageError: there is no project, no memory, or no such role.
    """
    stores: Sequence[Store] = select_stores(context, path) or read_context.discover_stores().stores
    roles = [role for store in stores for role in find_roles(store)]
    if not roles:
        raise UsageError("There is no memory here; name a project, or add one with: echod add PATH")
    found = [role for role in roles if name in (None, role.name)]
    if not found:
        raise UsageError(
            f"There is no role {sanitize(name or '')}; there are {', '.join(sorted({r.name for r in roles}))}."
        )
    return found


def _plan_files(
    context: CommandContext, read_context: ReadContext, kind: JobKind, roles: Sequence[Role], today: date
) -> Iterator[RoleFilePlan]:
    with context.progress_line() as progress:
        for number, role in enumerate(roles, start=1):
            progress.show(f"looking at file {number} of {len(roles)}: {role.name}")
            yield plan_role_file(read_context, kind, role, today)


def plan_role_file(read_context: ReadContext, kind: JobKind, role: Role, today: date) -> RoleFilePlan:
    """What a prune or compress job would do to a role on the local day `today`; it writes nothing.

    Raises:
        EchodError: a file cannot be read.
    """
    maintenance = read_context.maintenance_policy(role.store.project)
    if (unwanted := maintenance.disabled_reason(kind)) is not None:
        return _skipped_file_plan(role, unwanted)
    view = read_context.reader.read_role(role)
    if kind is JobKind.COMPRESS:
        return _compress_file_plan(
            view, read_facts_if_recorded(read_context, role, maintenance, today), maintenance, today
        )
    memory = parse(view.memory.text)
    if isinstance(memory, Unreadable):
        return _skipped_file_plan(role, memory.reason)
    return _prune_file_plan(
        view, memory, read_facts_if_recorded(read_context, role, maintenance, today, memory), maintenance, today
    )


def _skipped_file_plan(role: Role, reason: str) -> RoleFilePlan:
    note = f"It is left alone: {reason}"
    return RoleFilePlan(
        role, has_changes=False, summary="", entries=(), file=PlannedFile(role.store.key, role.name, 0, 0, 0, note)
    )


def _prune_file_plan(
    view: RoleView, memory: Document, facts: Facts, maintenance: MaintenancePolicy, today: date
) -> RoleFilePlan:
    role = view.role
    plan = prune_job.plan_role(role, memory, facts, maintenance.policy, today)
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
        )
        for action in plan.actions
    )
    notes = (plan.over_limit and plan.over_limit.description, prune_job.knowledge_skipped_reason(view, plan))
    note = "; ".join(note for note in notes if note) or None
    limit = maintenance.policy.memory_line_limit
    file = PlannedFile(role.store.key, role.name, plan.lines_before, plan.lines_after, limit, note)
    return RoleFilePlan(role, plan.memory is not None, plan.summary, entries, file)


def _compress_file_plan(view: RoleView, facts: Facts, maintenance: MaintenancePolicy, today: date) -> RoleFilePlan:
    role = view.role
    if view.knowledge_problem is not None:
        return _skipped_file_plan(role, view.knowledge_problem.reason)
    plan = compress_job.plan_role(view, facts, maintenance.policy, today)
    if isinstance(plan, Unreadable):
        return _skipped_file_plan(role, plan.reason)
    entries = tuple(
        PlannedEntry(
            id=entry.id,
            title=_entry_title(entry.text),
            layer=entry.layer and entry.layer.value,
            score=None,
            rule=entry.rule,
            action=(PruneAction.COMPRESS if entry.rule == Rule.TOPIC else PruneAction.ARCHIVE).value,
            store=role.store.key,
            role=role.name,
        )
        for entry in plan.archived
    )
    file = PlannedFile(role.store.key, role.name, plan.lines_before, plan.lines_after, plan.limit)
    return RoleFilePlan(role, plan.knowledge is not None, plan.summary, entries, file)


def _entry_title(text: str) -> str:
    block = parse_block(text)
    return block.entry.title if block.entry else text.strip().partition("\n")[0]


def _plan_report(plans: Sequence[RoleFilePlan]) -> PlanReport:
    return PlanReport(tuple(entry for plan in plans for entry in plan.entries), tuple(plan.file for plan in plans))


def _file_plan_lines(plan: RoleFilePlan, *, show_entries: bool) -> Iterator[str]:
    yield f"{plan.role.name}  {short_path(plan.role.store.key)}"
    if plan.summary:
        yield wrap(plan.summary, indent="  ")
    if plan.file.note:
        yield wrap(plan.file.note, indent="  ")
    for entry in plan.entries if show_entries else ():
        if entry.rule is not None:
            prefix = f"  {entry.action:<8} {entry.rule:<16} {entry.id}  "
            yield wrap(sanitize(entry.title) or "(untitled)", indent=prefix)


def _run_file_job(context: CommandContext, services: Services, kind: JobKind, role: Role, *, force: bool) -> str:
    """Do it, as a job of its own, and say what was done. The plan is made anew from the file as it is then."""
    run = prune_job.run if kind is JobKind.PRUNE else compress_job.run
    return run_manual_job(
        context,
        services,
        ManualJob(kind, role, "a person asked for it"),
        run,
        prepare=lambda: services.entries.release_first_prune(role.store.key, [role.name]),
        force=force,
    ).describe(role.name)


@click.command(epilog=example("echod prune ~/src/my-project --dry-run"))
@options.project_path_or_all
@options.only_role
@options.dry_run
@options.as_of
@options.plan_json
@options.yes
@options.force
@pass_command_context
def prune(
    context: CommandContext,
    *,
    path: Path | None,
    role: str | None,
    dry_run: bool,
    as_of: str | None,
    json: bool,
    yes: bool,
    force: bool,
) -> None:
    """Archive entries from memory files over their limit.

    Every entry that goes stands in the role's archive, and the file as it was beside it.
    """
    from echod.cli.targets import WriteOptions
    from echod.state.job import JobKind

    write_options = WriteOptions(dry_run=dry_run, yes=yes, force=force)
    prune_or_compress(context, JobKind.PRUNE, path, role, write_options, as_of=as_of, as_json=json)


@click.command(epilog=example("echod compress ~/src/my-project --dry-run"))
@options.project_path_or_all
@options.only_role
@options.dry_run
@options.as_of
@options.plan_json
@options.yes
@options.force
@pass_command_context
def compress(
    context: CommandContext,
    *,
    path: Path | None,
    role: str | None,
    dry_run: bool,
    as_of: str | None,
    json: bool,
    yes: bool,
    force: bool,
) -> None:
    """Shorten knowledge files over their limit.

    Every reference is kept, and every text that goes stands in the role's archive.
    """
    from echod.cli.targets import WriteOptions
    from echod.state.job import JobKind

    write_options = WriteOptions(dry_run=dry_run, yes=yes, force=force)
    prune_or_compress(context, JobKind.COMPRESS, path, role, write_options, as_of=as_of, as_json=json)
