"""Commands about the list of projects: add, projects, pause, resume."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

import click

from echod.cli.shell import CommandContext
from echod.cli.text import pluralize, short_path, wrap
from echod.contract.commands import ProjectInfo, ProjectsReport
from echod.contract.status import to_json
from echod.projects.registry import ProjectRegistry, expand_globs


def add_project(context: CommandContext, path: Path) -> None:
    """Register a project, and say what is in it and what its first maintenance will do."""
    from echod.app.context import open_read_context
    from echod.cli.preview import first_prune_lines
    from echod.cli.status import check_liveness
    from echod.cli.status_text import findings_count_text
    from echod.cli.wake import notify_daemon
    from echod.clock import local_date
    from echod.service.paths import start_hint
    from echod.status.collect import inspect_store
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
            limit = read_context.line_limit(project)
            info = inspect_store(read_context.inspections, store, layout.list_roles(store), limit, None)
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
    from echod.cli.wake import notify_daemon

    root = None if path is None else context.find_project(path)
    context.paths.create_directories()
    newly_paused = _project_registry(context).pause(root)
    notify_daemon(context)
    name = "Everything" if root is None else short_path(str(root))
    context.print_info(f"{name} is paused until `echod resume`." if newly_paused else f"{name} was paused already.")


def resume_project(context: CommandContext, path: Path | None) -> None:
    """End a pause, and let the daemon go on at once."""
    from echod.app.services import open_services
    from echod.cli.wake import notify_daemon

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
