"""Commands about the list of projects: add, projects, pause, resume.

`echod remove`: a project is left alone from now on; with `--purge` also forgotten. Its memory stays as it is.

Commands about the list of projects.
"""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path

import click

from echod.app.forget_project import ProjectData, close_commits, delete_project_data, find_project_data, possible_stores
from echod.app.services import open_services
from echod.cli import options
from echod.cli.context import CommandContext, notify_daemon
from echod.cli.options import PATH
from echod.cli.output import pluralize, short_path, wrap
from echod.cli.root import example, pass_command_context
from echod.cli.targets import confirm
from echod.contract.commands import ProjectInfo, ProjectsReport
from echod.contract.status import to_json
from echod.errors import UsageError
from echod.inbox.spool import Spool
from echod.projects.registry import ProjectRegistry, expand_globs
from echod.runtime.locks import this_process, worker_lock
from echod.state.database import Database


def add_project(context: CommandContext, path: Path) -> None:
    """Register a project, and say what is in it and what its first maintenance will do."""
    from echod.app.context import open_read_context
    from echod.cli.commands.init import first_prune_lines
    from echod.cli.commands.status import check_liveness, findings_count_text
    from echod.cli.context import notify_daemon
    from echod.clock import local_date
    from echod.service.paths import start_hint
    from echod.store import layout
    from echod.store.layout import Role

    project = context.find_project(path)
    context.paths.create_directories()
    is_new = _project_registry(context).add(project)
    notify_daemon(context)
    short_root = short_path(str(project))
    context.print_info(
        f"{short_root} is maintained from now on." if is_new else f"{short_root} was registered already."
    )
    with open_read_context(context.paths, context.settings, context.environ, context.now) as read_context:
        for store in context.list_stores(project):
            info = read_context.store_inspector.inspect(
                store, layout.list_roles(store), read_context.line_limit(project), None
            )
            if info.problem:
                click.echo(wrap(f"{store.root.relative_to(project)}: {info.problem}", indent="  ! "))
                continue
            roles = pluralize(len(info.roles), "role")
            context.print_info(f"  {store.root.relative_to(project)}: {roles}, {findings_count_text(info.roles)}")
            for role in info.roles:
                for line in first_prune_lines(read_context, Role(store, role.name), role, local_date(context.now())):
                    context.print_info(line)
        dry_run_command = f"echod prune {shlex.quote(str(project))} --dry-run"
        context.print_info(f"Every entry that is to leave, and why: {dry_run_command}")
    if not check_liveness(context).is_answering:
        run_once_command = f"echod run --once {shlex.quote(str(project))}"
        context.print_info(
            f"No service runs. To start it: {start_hint(sys.platform, context.environ)}; "
            f"or do it now: {run_once_command}"
        )


def list_projects(context: CommandContext, *, as_json: bool) -> None:
    """Print every project, registered or matched by the settings."""
    projects = _project_registry(context)
    listing, pauses = projects.list_projects(), projects.pauses()
    registered = {project.root: project.missing for project in listing.projects}
    matched = {root: False for root in expand_globs(context.settings.projects) if root not in registered}
    infos = tuple(
        ProjectInfo(str(root), registered=root in registered, missing=missing, paused=pauses.covers(root))
        for root, missing in (*registered.items(), *matched.items())
    )
    if as_json:
        click.echo(to_json(ProjectsReport(infos)))
        return
    for info in infos:
        marks = [
            "missing" if info.missing else "",
            "paused" if info.paused else "",
            "" if info.registered else "from the settings",
        ]
        marks_text = ", ".join(mark for mark in marks if mark)
        click.echo(f"{short_path(info.path)}{f'  ({marks_text})' if marks_text else ''}")
    for warning in listing.warnings:
        click.echo(f"! {warning}", err=True)
    if not infos:
        click.echo("No project is registered; add one with: echod add PATH")


def pause_project(context: CommandContext, path: Path | None) -> None:
    """Hold the jobs of a project, or of all, and let the daemon say so."""
    from echod.cli.context import notify_daemon

    root = None if path is None else context.find_project(path)
    context.paths.create_directories()
    newly_paused = _project_registry(context).pause(root)
    notify_daemon(context)
    name = "Everything" if root is None else short_path(str(root))
    context.print_info(f"{name} is paused until `echod resume`." if newly_paused else f"{name} was paused already.")


def resume_project(context: CommandContext, path: Path | None) -> None:
    """End a pause, and let the daemon go on at once."""
    from echod.app.services import open_services
    from echod.cli.context import notify_daemon

    root = None if path is None else context.find_project(path)
    if not _project_registry(context).resume(root):
        context.print_info("Nothing was paused." if root is None else f"{short_path(str(root))} was not paused.")
        return
    with open_services(context.paths, context.settings, context.environ, context.now) as services:
        discovered = services.read_context.discover_stores()
        for store in discovered.stores if root is None else discovered.stores_in(root):
            services.queue.wake_deferred(store.key, context.now())
    notify_daemon(context)
    context.print_info("Work goes on." if root is None else f"Work on {short_path(str(root))} goes on.")


def _project_registry(context: CommandContext) -> ProjectRegistry:
    return ProjectRegistry(context.paths.projects)


_LOCK_TIMEOUT_SECONDS = 30.0
_KIB = 1024


def remove_project(context: CommandContext, path: Path, *, purge: bool, dry_run: bool, yes: bool) -> None:
    """Take a project off the list, which may be gone from the disk, and forget it if that is wanted.

    Raises:
        UsageError: it is not registered, or there is no terminal to ask at.
        FileStillOpenError: it cannot be forgotten yet, since another program may still write; it was not removed.
    """
    projects = ProjectRegistry(context.paths.projects)
    root, registered = _find_registered(context, projects, path)
    data = _read_project_data(context, root) if purge else None
    if not registered and not data:
        no_data_text = ", and echod keeps nothing of it" if purge else ""
        raise UsageError(f"{short_path(str(root))} is not registered{no_data_text}; `echod projects` lists what is.")
    if dry_run or data is not None:
        context.print_plan("\n".join(_removal_lines(root, data, registered=registered)), always=dry_run or not yes)
    if dry_run:
        return
    if data and not yes:
        confirm("Forget all that? This cannot be undone.")
    if data is None:
        projects.remove(root)
        _withdraw_jobs(context, root)
    else:
        _purge_project(context, projects, root)
    notify_daemon(context)
    deleted_text = " and forgotten" if data is not None else ""
    context.print_info(
        wrap(f"{short_path(str(root))} is not maintained any more{deleted_text}. Its memory stays as it is.")
    )
    if root in expand_globs(context.settings.projects):
        context.print_info(wrap("But `projects` in the settings matches it, so it is maintained all the same."))


def _find_registered(context: CommandContext, projects: ProjectRegistry, path: Path) -> tuple[Path, bool]:
    """The registered project at or above `path`, and True; else `path` itself, and False."""
    start = Path(os.path.realpath(context.cwd / path.expanduser()))
    roots = projects.roots()
    found = next((place for place in (start, *start.parents) if place in roots), None)
    return (start, False) if found is None else (found, True)


def _read_project_data(context: CommandContext, root: Path) -> ProjectData:
    database = Database.open_readonly(context.paths.database)
    spool = Spool(context.paths.spool)
    if database is None:
        return find_project_data(root, context.paths.journal, None, spool, context.now)
    with database:
        return find_project_data(root, context.paths.journal, database, spool, context.now)


def _removal_lines(root: Path, data: ProjectData | None, *, registered: bool) -> Iterator[str]:
    yield short_path(str(root))
    if registered:
        yield "  goes off the list of projects"
    if data is not None and data.journal_bytes:
        size = f"{max(1, data.journal_bytes // _KIB)} KiB"
        changes = pluralize(data.commits, "change")
        yield f"  {changes} can be neither listed nor undone any more ({size} of journal go)"
    if data is not None and data.rows:
        yield f"  {pluralize(data.rows, 'row')} of the database go: jobs, references, ages, pins"
    if data is not None and data.event_names:
        yield f"  {pluralize(len(data.event_names), 'report')} of agents that wait are dropped"
    yield "  its memory, archives and settings stay where they are"


def _withdraw_jobs(context: CommandContext, root: Path) -> None:
    """Let nothing be done there that was queued before."""
    if not context.paths.database.exists():
        return
    with open_services(context.paths, context.settings, context.environ, context.now) as services:
        for store in possible_stores(root):
            services.queue.withdraw(store.key, context.now(), "the project is not maintained any more")


def _purge_project(context: CommandContext, projects: ProjectRegistry, root: Path) -> None:
    with (
        open_services(context.paths, context.settings, context.environ, context.now) as services,
        # As the one worker, so that the service begins nothing there meanwhile.
        worker_lock(context.paths.worker_lock, this_process(), _LOCK_TIMEOUT_SECONDS),
    ):
        close_commits(root, context.paths.journal, context.now)
        projects.remove(root)
        notify_daemon(context)
        delete_project_data(
            root, context.paths.journal, services.checked_database.database, services.read_context.spool
        )


@click.command(epilog=example("echod add ~/src/my-project"))
@options.project_path
@pass_command_context
def add(context: CommandContext, *, path: Path) -> None:
    """Register a project for maintenance."""
    add_project(context, path)


@click.command(epilog=example("echod remove ~/src/my-project --purge --dry-run"))
@click.argument("path", type=PATH, help="A registered project, which may be gone.")
@click.option("--purge", is_flag=True, help="Also forget what was done there and what is known.")
@options.dry_run
@options.yes
@pass_command_context
def remove(context: CommandContext, *, path: Path, purge: bool, dry_run: bool, yes: bool) -> None:
    """Unregister a project.

    With --purge nothing that was done there can be undone any more: the project's jobs, references and ages go from
    the database, and the texts of its changes from the journal. Memory and archives stay all the same.
    """
    remove_project(context, path, purge=purge, dry_run=dry_run, yes=yes)


@click.command(epilog=example("echod projects --json"))
@options.json
@pass_command_context
def projects(context: CommandContext, *, json: bool) -> None:
    """List the registered projects."""
    list_projects(context, as_json=json)


@click.command(epilog=example("echod pause ~/src/my-project"))
@options.optional_project_path
@pass_command_context
def pause(context: CommandContext, *, path: Path | None) -> None:
    """Stop writing to memory until `echod resume`."""
    pause_project(context, path)


@click.command(epilog=example("echod resume ~/src/my-project"))
@options.optional_project_path
@pass_command_context
def resume(context: CommandContext, *, path: Path | None) -> None:
    """Resume writing to memory."""
    resume_project(context, path)


@click.command(epilog=example("echod init ~/src/my-project --roles reviewer,workers,team"))
@click.argument("path", type=PATH, required=False, help="The project; default: the one we are in.")
@click.option("--roles", metavar="A,B,...", help="Only these roles.")
@click.option("--layout", metavar="rune|claude", help="Where: .rune/echoes or .claude/echoes.")
@click.option("--dry-run", is_flag=True, help="Only say what would be made.")
@pass_command_context
def init(context: CommandContext, *, path: Path | None, roles: str | None, layout: str | None, dry_run: bool) -> None:
    """Create a project's memory directory with its roles.

    Without --layout it is where the project has one; else .claude/echoes if only .claude is there, else .rune/echoes.
    """
    from echod.cli.commands.init import init_project

    init_project(context, path, roles, layout, dry_run=dry_run)
