"""`echod merge-driver` and `echod sync`: memory in more than one clone and on more than one machine."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Final

import click

from echod.cli import options
from echod.cli.context import CommandContext
from echod.cli.output import short_path, wrap
from echod.cli.root import CommandGroup, example, pass_command_context
from echod.contract.status import to_json
from echod.contract.sync import ResolvedFile, ResolveReport, SyncStatusReport
from echod.errors import ExitCode
from echod.installation import program_command
from echod.sync import driver
from echod.sync.registration import DriverState, find_driver_state, plan_setup, register
from echod.sync.resolve import ResolutionState, resolve_conflicts

_DRIVER_TEXTS: Final = {
    DriverState.BY_ENTRY: "git merges the memory by entry.",
    DriverState.BY_LINE: "git merges the memory by line: the registered command cannot run echod.",
    DriverState.NOT_CONFIGURED: "git merges the memory by line: this clone is not set up.",
    DriverState.NO_ATTRIBUTE: "git merges the memory by line: no attribute names the merge driver.",
    DriverState.ONE_SIDED: "the registered merge driver would lose the entries of one side.",
    DriverState.NO_GIT: "the project is in no git repository.",
}


@click.command("merge-driver", epilog=example("echod merge-driver %O %A %B %L %P"))
@click.argument("arguments", nargs=-1, required=True, metavar="BASE OURS THEIRS SIZE PATH")
def merge_driver(*, arguments: tuple[str, ...]) -> None:
    """Merge a memory file by entry, for git.

    Git calls this when it merges a file that was changed on both sides. It writes the result over OURS. Exits with 1 if
    one entry was rewritten on both sides, with conflict markers of SIZE characters around it. `echod sync setup`
    registers it.
    """
    raise click.exceptions.Exit(driver.main(list(arguments)))


@click.group(cls=CommandGroup)
def sync() -> None:
    """Keep the memory of several clones and machines together."""


@sync.command(epilog=example("echod sync setup"))
@options.project_path_or_cwd
@options.dry_run
@pass_command_context
def setup(context: CommandContext, *, path: Path, dry_run: bool) -> None:
    """Let git merge memory by entry.

    Adds lines to the project's .gitattributes, which travels with it, and a merge driver to the configuration of this
    clone, which does not. Run it once in each clone. Where echod is missing, git merges by line as before.
    """
    project = context.find_project(path)
    stores = context.list_stores(project)
    plan = plan_setup(project, stores, program_command(Path(sys.executable), os.environ), os.environ)
    if plan.is_done:
        context.print_info("This clone is set up already. Nothing was changed.")
        return
    for line in plan.lines:
        context.print_info(f"{short_path(str(plan.attributes))}: {line}")
    if plan.command is not None:
        context.print_info("git config merge.echod.driver: runs echod merge-driver, or merges by line without echod")
    if dry_run:
        context.print_info("Nothing was changed.")
        return
    register(project, plan, os.environ)
    text = "Git merges the memory by entry in this clone now."
    if plan.lines:
        text += " Commit .gitattributes, and run this command once in every other clone."
    context.print_info(wrap(text))


@sync.command(epilog=example("echod sync status"))
@options.project_path_or_cwd
@options.json
@pass_command_context
def status(context: CommandContext, *, path: Path, json: bool) -> None:
    """Show how memory is merged here.

    Runs the registered merge driver on made files. Exits with 1 if git would not merge by entry.
    """
    project = context.find_project(path)
    state = find_driver_state(project, context.list_stores(project), os.environ)
    if json:
        click.echo(to_json(SyncStatusReport(str(project), state.value)))
    else:
        click.echo(wrap(f"{short_path(str(project))}: {_DRIVER_TEXTS[state]}", hang="  "))
        if state not in (DriverState.BY_ENTRY, DriverState.NO_GIT):
            click.echo("> Set it up with: echod sync setup")
    good = state in (DriverState.BY_ENTRY, DriverState.NO_GIT)
    raise click.exceptions.Exit(ExitCode.OK if good else ExitCode.FAILED)


@sync.command(epilog=example("echod sync resolve"))
@options.project_path_or_cwd
@options.dry_run
@options.json
@pass_command_context
def resolve(context: CommandContext, *, path: Path, dry_run: bool, json: bool) -> None:
    """Merge memory files of a merge in conflict.

    For a merge that ran without the merge driver. Merges the versions in git's index by entry, and adds the files
    without a conflict. Git keeps a copy of each file as it was. Exits with 1 while a conflict is left.
    """
    project = context.find_project(path)
    resolutions = resolve_conflicts(project, context.list_stores(project), os.environ, write=not dry_run)
    if json:
        files = tuple(ResolvedFile(item.path, item.state.value, item.detail) for item in resolutions)
        click.echo(to_json(ResolveReport(str(project), files)))
    else:
        for item in resolutions:
            click.echo(wrap(f"{item.path} {item.state.value}: {item.detail}", hang="  "))
        if not resolutions:
            context.print_info("No memory file is in conflict.")
        elif dry_run:
            context.print_info("Nothing was changed.")
    is_done = all(item.state is ResolutionState.RESOLVED for item in resolutions)
    raise click.exceptions.Exit(ExitCode.OK if is_done else ExitCode.FAILED)
