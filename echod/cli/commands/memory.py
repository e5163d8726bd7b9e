"""`echod reset`: a project's memory as on its first day, after a backup, and after the person typed its name."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from echod.app.context import open_read_context
from echod.app.services import Services, open_services
from echod.cli.by_hand import WriteOptions, confirm_by_typing, require_write_mode
from echod.cli.context import CommandContext
from echod.cli.execute import JobRefusedError, ManualJob, run_manual_job, summary_or_raise
from echod.cli.output import pluralize, sanitize, short_path, wrap
from echod.cli.wake import notify_daemon
from echod.clock import local_date
from echod.errors import EchodError, UsageError
from echod.jobs import reset as reset_job
from echod.state.job import Job, JobKind
from echod.store.changes import CommitGate
from echod.store.layout import Role, Store, find_roles


class _RoleReset(NamedTuple):
    """What would become of a role."""

    role: Role
    changes: reset_job.RoleResetPlan


def reset_memory(context: CommandContext, path: Path, role: str | None, write_options: WriteOptions) -> None:
    """Empty the memory and knowledge files of a project, those of one role if it is named.

    Raises:
        UsageError: there is no such project or role, or a question cannot be asked.
        WriteNotAllowedError: a workflow is at work, or the settings forbid to write; nothing was changed.
        EchodError: a role could not be emptied, the sentence says why and what was done.
    """
    project = context.find_project(path)
    today = local_date(context.now())
    with open_read_context(context.paths, context.settings, context.environ, context.now) as read_context:
        views = [read_context.reader.read_role(found) for found in _select_roles(context, project, role)]
        plans = [_RoleReset(view.role, reset_job.plan_role(view, today)) for view in views]
    todo = [plan for plan in plans if plan.changes.files]
    for plan in plans:
        context.print_plan("\n".join(_reset_plan_lines(plan)), always=write_options.shows_plan)
    if not todo:
        context.print_info("There is nothing to empty.")
        return
    message = "Everything goes to the archive of its role, with a copy of the memory file; findings stay."
    context.print_plan(wrap(message), always=write_options.shows_plan)
    if write_options.dry_run:
        return
    require_write_mode(context)
    if not write_options.yes:
        confirm_by_typing(
            project.name, f"To empty all of that, type the name of the project ({sanitize(project.name)})"
        )
    with open_services(context.paths, context.settings, context.environ, context.now) as services:
        for store in dict.fromkeys(plan.role.store for plan in todo):
            _reset_store(
                context,
                services,
                store,
                [plan.role for plan in todo if plan.role.store == store],
                force=write_options.force,
            )
    notify_daemon(context)


def _select_roles(context: CommandContext, project: Path, name: str | None) -> list[Role]:
    roles = [role for store in context.list_stores(project) for role in find_roles(store)]
    found = [role for role in roles if name in (None, role.name)]
    if name is not None and not found:
        existing = ", ".join(sorted({role.name for role in roles})) or "none"
        raise UsageError(f"There is no role {sanitize(name)}; there are: {existing}.")
    return found


def _reset_plan_lines(plan: _RoleReset) -> Iterator[str]:
    files = " and ".join(file.path.name for file, _ in plan.changes.files)
    summary = f"{files}: {pluralize(plan.changes.entries, 'entry', 'entries')}" if files else "nothing in it"
    yield wrap(summary, indent=f"  {plan.role.name:<14} ")
    for reason in plan.changes.skipped:
        yield wrap(sanitize(reason), indent="    ! ")


def _reset_store(
    context: CommandContext, services: Services, store: Store, roles: Sequence[Role], *, force: bool
) -> None:
    """Empty the roles of one store as one job, so that one undo takes it back."""
    emptied_roles: list[str] = []

    def work(job: Job, gate: CommitGate) -> str:
        for role in roles:
            try:
                with services.engine.open_role(role) as session:
                    summary_or_raise(reset_job.run(job.id, session, gate, context.now))
            except EchodError as error:
                if not emptied_roles:
                    raise
                raise JobRefusedError(
                    f"{role.name} was not emptied: {error} Before it {' and '.join(emptied_roles)} were; "
                    f"to take that back: echod undo {job.id}"
                ) from error
            emptied_roles.append(role.name)
        return f"emptied {', '.join(emptied_roles)}"

    job_role = Role(store, roles[0].name if len(roles) == 1 else "")
    result = run_manual_job(
        context, services, ManualJob(JobKind.RESET, job_role, "a person asked for it"), work, force=force
    )
    context.print_info(wrap(f"Emptied {', '.join(emptied_roles)} in {short_path(store.key)}.", hang="  "))
    context.print_info(result.undo_hint)
