"""`echod reset`: a project's memory as on its first day, after a backup, and after the person typed its name.

`echod remember`: what a person says becomes a note that every agent of the project reads, and no rule removes.

Commands about a whole memory: look at it, add to it, empty it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import click

from echod.app.context import ReadContext, open_read_context
from echod.app.services import Services, open_services
from echod.cli import options
from echod.cli.context import CommandContext, notify_daemon
from echod.cli.execute import JobRefusedError, ManualJob, run_manual_job, run_multi_role_job, summary_or_raise
from echod.cli.output import pluralize, sanitize, short_path, wrap
from echod.cli.root import example, pass_command_context
from echod.cli.targets import WriteOptions, confirm_by_typing, require_write_mode
from echod.clock import local_date
from echod.errors import EchodError, UsageError
from echod.jobs import remember as remember_job
from echod.jobs import reset as reset_job
from echod.jobs.base import JobDone, JobOutcome, JobResources
from echod.memory.document import new_memory_file, parse
from echod.memory.model import Document
from echod.memory.notes import Note, UnwritableNote, create_note, with_note
from echod.state.job import JobKind
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

    def work(resources: JobResources) -> JobOutcome:
        for role in roles:
            try:
                with resources.open_role(role) as job:
                    summary_or_raise(reset_job.run(job))
            except EchodError as error:
                if not emptied_roles:
                    raise
                raise JobRefusedError(
                    f"{role.name} was not emptied: {error} Before it {' and '.join(emptied_roles)} were; "
                    f"to take that back: echod undo {resources.job_id}"
                ) from error
            emptied_roles.append(role.name)
        return JobDone(f"emptied {', '.join(emptied_roles)}", changed=True)

    job_role = Role(store, roles[0].name if len(roles) == 1 else "")
    result = run_multi_role_job(
        context, services, ManualJob(JobKind.RESET, job_role, "a person asked for it"), work, force=force
    )
    context.print_info(wrap(f"Emptied {', '.join(emptied_roles)} in {short_path(store.key)}.", hang="  "))
    context.print_info(result.undo_hint)


_MAX_CHARACTERS = 20_000
_STDIN = "-"


def remember_note(
    context: CommandContext, text: str, title: str | None, path: Path | None, write_options: WriteOptions
) -> None:
    """Write a note into the memory of a project.

    Raises:
        UsageError: there is no project, or nothing to remember.
        WriteNotAllowedError: a workflow is at work, or the settings forbid to write; nothing was changed.
        EchodError: it cannot be written, or is remembered already.
    """
    note = _build_note(_read_text(text), title)
    # Of two stores the first is the one that echod's own entries go to.
    role = Role(context.list_stores(context.find_project(path or Path()))[0], remember_job.NOTES_ROLE)
    with open_read_context(context.paths, context.settings, context.environ, context.now) as read_context:
        plan = _plan_note(read_context, role, note, context.now())
    if isinstance(plan, UnwritableNote):
        raise JobRefusedError(f"Nothing was changed: {plan.reason}.")
    if note.redacted:
        context.print_info(wrap("A secret was taken out of it: memory is read by agents, and often shared."))
    if write_options.dry_run:
        click.echo(f"It would be added to {short_path(str(role.memory))}:")
        click.echo("\n".join(f"  {sanitize(line)}".rstrip() for line in plan.blocks[-1].text.splitlines()))
        return
    require_write_mode(context)
    with open_services(context.paths, context.settings, context.environ, context.now) as services:
        result = run_manual_job(
            context,
            services,
            ManualJob(JobKind.REMEMBER, role, "a person asked for it"),
            lambda job: remember_job.run(job, note),
            prepare=lambda: services.engine.create_role(role),
            force=write_options.force,
        )
    notify_daemon(context)
    context.print_info(
        wrap(sanitize(note.title), indent=f"{result.summary[:1].upper()}{result.summary[1:]}: ", hang="  ")
    )
    context.print_info(f"It stands in {short_path(str(role.memory))}. {result.undo_hint}")


def _read_text(text: str) -> str:
    if text != _STDIN:
        return text
    if sys.stdin.isatty():
        click.echo("What is to be remembered? End with Ctrl-D.", err=True)
    try:
        return sys.stdin.read(_MAX_CHARACTERS + 1)
    except UnicodeDecodeError as error:
        raise UsageError("What came in is not text (UTF-8), so nothing was remembered.") from error


def _build_note(text: str, title: str | None) -> Note:
    if len(text) > _MAX_CHARACTERS:
        raise UsageError(
            f"That is more than {_MAX_CHARACTERS:,} characters; a note is read by every agent. Shorten it."
        )
    note = create_note(text, title)
    if note is None:
        raise UsageError("There is nothing to remember; say it: echod remember 'Use uv, never pip'")
    return note


def _plan_note(read_context: ReadContext, role: Role, note: Note, now: float) -> Document | UnwritableNote:
    today = local_date(now)
    if role.path.exists():
        return remember_job.plan_note(read_context.reader.read_role(role), note, today)
    document = parse(new_memory_file(role.name))
    assert isinstance(document, Document)  # noqa: S101  our own text
    return with_note(document, note, today)


@click.command(epilog=example("echod remember 'Use uv, never pip.'"))
@click.argument("text", help="What to remember; - reads it from standard input.")
@click.option("--title", metavar="TITLE", help="Its title; default: how it begins.")
@options.project_option
@options.dry_run
@options.force
@pass_command_context
def remember(
    context: CommandContext, *, text: str, title: str | None, project: Path | None, dry_run: bool, force: bool
) -> None:
    """Add a note to a project's memory."""
    from echod.cli.targets import WriteOptions

    remember_note(context, text, title, project, WriteOptions(dry_run, yes=True, force=force))


@click.command(epilog=example("echod reset ~/src/my-project --role reviewer"))
@options.project_path_or_cwd
@options.only_role
@options.dry_run
@options.yes
@options.force
@pass_command_context
def reset(context: CommandContext, *, path: Path, role: str | None, dry_run: bool, yes: bool, force: bool) -> None:
    """Archive everything in a role and start over.

    All that stood in them goes to the archives of their roles. Findings and archives stay.
    """
    from echod.cli.targets import WriteOptions

    reset_memory(context, path, role, WriteOptions(dry_run, yes, force))
