"""Commands about the list of projects: add, projects, pause, resume."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

import click

from echod.cli.shell import Shell
from echod.cli.text import count, paragraph, short_path
from echod.contract.commands import ProjectInfo, ProjectsReport
from echod.contract.status import to_json
from echod.projects.registry import Projects, expand


def add(shell: Shell, path: Path) -> None:
    """Register a project, and say what is in it and what its first maintenance will do."""
    from echod.app.context import look_out
    from echod.cli.preview import preview
    from echod.cli.status import daemon_liveness
    from echod.cli.status_text import findings_waiting
    from echod.cli.wake import wake_daemon
    from echod.clock import local_day
    from echod.service.paths import how_to_start
    from echod.store import layout
    from echod.store.layout import Role

    project = shell.project(path)
    shell.paths.create()
    new = _projects(shell).add(project)
    wake_daemon(shell)
    shown = short_path(str(project))
    shell.say(f"{shown} is maintained from now on." if new else f"{shown} was registered already.")
    with look_out(shell.paths, shell.settings, shell.environ, shell.now) as lookout:
        for store in shell.stores(project):
            info = lookout.survey.of(store, layout.list_roles(store), lookout.line_limit(project), None)
            if info.problem:
                click.echo(paragraph(f"{store.root.relative_to(project)}: {info.problem}", indent="  ! "))
                continue
            roles = count(len(info.roles), "role")
            shell.say(f"  {store.root.relative_to(project)}: {roles}, {findings_waiting(info.roles)}")
            for role in info.roles:
                for line in preview(lookout, Role(store, role.name), role, local_day(shell.now())):
                    shell.say(line)
        command = f"echod prune {shlex.quote(str(project))} --dry-run"
        shell.say(f"Every entry that is to leave, and why: {command}")
    if not daemon_liveness(shell).answers:
        once = f"echod run --once {shlex.quote(str(project))}"
        shell.say(f"No service runs. To start it: {how_to_start(sys.platform, shell.environ)}; or do it now: {once}")


def list_projects(shell: Shell, *, as_json: bool) -> None:
    """Print every project, registered or matched by the settings."""
    projects = _projects(shell)
    listing, pauses = projects.listed(), projects.pauses()
    registered = {project.root: project.missing for project in listing.projects}
    matched = {root: False for root in expand(shell.settings.projects) if root not in registered}
    infos = tuple(
        ProjectInfo(str(root), registered=root in registered, missing=missing, paused=pauses.hold(root))
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
        said = ", ".join(mark for mark in marks if mark)
        click.echo(f"{short_path(info.path)}{f'  ({said})' if said else ''}")
    for warning in listing.warnings:
        click.echo(f"! {warning}", err=True)
    if not infos:
        click.echo("No project is registered; add one with: echod add PATH")


def pause(shell: Shell, path: Path | None) -> None:
    """Hold the jobs of a project, or of all, and let the daemon say so."""
    from echod.cli.wake import wake_daemon

    root = None if path is None else shell.project(path)
    shell.paths.create()
    held = _projects(shell).pause(root)
    wake_daemon(shell)
    name = "Everything" if root is None else short_path(str(root))
    shell.say(f"{name} is paused until `echod resume`." if held else f"{name} was paused already.")


def resume(shell: Shell, path: Path | None) -> None:
    """End a pause, and let the daemon go on at once."""
    from echod.app.services import furnish
    from echod.cli.wake import wake_daemon

    root = None if path is None else shell.project(path)
    if not _projects(shell).resume(root):
        shell.say("Nothing was paused." if root is None else f"{short_path(str(root))} was not paused.")
        return
    with furnish(shell.paths, shell.settings, shell.environ, shell.now) as house:
        roster = house.lookout.roster()
        for store in roster.stores if root is None else roster.stores_in(root):
            house.queue.wake_deferred(store.key, shell.now())
    wake_daemon(shell)
    shell.say("Work goes on." if root is None else f"Work on {short_path(str(root))} goes on.")


def _projects(shell: Shell) -> Projects:
    return Projects(shell.paths.projects)
