"""`echod merge-driver` and `echod sync`: memory in more than one clone and on more than one machine."""

from __future__ import annotations

import os
import sys
from functools import partial
from pathlib import Path
from typing import Final

import click

from echod.cli.context import CommandContext
from echod.cli.execute import JobRunner, ManualJob, require_write_mode
from echod.cli.output import short_path, wrap
from echod.contract.codec import to_json
from echod.contract.entries import RemoteInfo, ResolvedFile, ResolveReport, SyncStatusReport
from echod.errors import EchodError, ExitCode
from echod.installation import program_command
from echod.memory.text import pluralize
from echod.state.jobs import JobKind
from echod.store.create import ensure_directory
from echod.store.errors import as_store_error
from echod.store.layout import STORE_DIRS, Role
from echod.sync import driver
from echod.sync.exchange import describe, pending, remote_settings
from echod.sync.job import run_exchange
from echod.sync.registration import DriverState, find_driver_state, plan_setup, register
from echod.sync.repository import MemoryRepository, without_credentials
from echod.sync.resolve import ResolutionState, resolve_conflicts

_DRIVER_TEXTS: Final = {
    DriverState.BY_ENTRY: "git merges the memory by entry.",
    DriverState.BY_LINE: "git merges the memory by line: the registered command cannot run echod.",
    DriverState.NOT_CONFIGURED: "git merges the memory by line: this clone is not set up.",
    DriverState.NO_ATTRIBUTE: "git merges the memory by line: no attribute names the merge driver.",
    DriverState.ONE_SIDED: "the registered merge driver would lose the entries of one side.",
    DriverState.NO_GIT: "the project is in no git repository.",
}


def merge_driver(_context: CommandContext, *, arguments: tuple[str, ...]) -> None:
    """Run `echod merge-driver`."""
    raise click.exceptions.Exit(driver.main(list(arguments)))


def now(context: CommandContext, *, path: Path, force: bool) -> None:
    """Run `echod sync now`."""
    project = context.find_project(path)
    repository = MemoryRepository(context.paths.memory_repository(project), os.environ)
    settings = repository.settings
    if settings is None:
        raise EchodError("No remote is set up for this memory. Name one with: echod sync setup --remote URL")
    require_write_mode(context)
    with context.open_services() as services:
        runner = JobRunner(context, services, force)
        role = Role(context.list_stores(project)[0], "")
        manual_job = ManualJob(JobKind.SYNC, role, "requested")
        done = runner.run_multi_role(manual_job, partial(run_exchange, project, repository))
    context.print_info(done.describe(short_path(str(project))))
    context.notify_daemon()


def setup(context: CommandContext, *, path: Path, remote: str | None, dry_run: bool) -> None:
    """Run `echod sync setup`."""
    if remote is not None:
        _set_up_remote(context, path, remote, dry_run=dry_run)
        return
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


def _set_up_remote(context: CommandContext, path: Path, url: str, *, dry_run: bool) -> None:
    start = context.existing_path(path)
    project = context.locator.find_project(start)
    root = project or context.locator.find_init_root(start)
    settings = remote_settings(root, url, os.environ)
    repository = MemoryRepository(context.paths.memory_repository(root), os.environ)
    if dry_run:
        context.print_info(wrap(f"Would exchange the memory of {short_path(str(root))} with {describe(settings)}."))
        return
    repository.set_up(settings)
    if project is None:
        with as_store_error("create", root / STORE_DIRS[0]):
            ensure_directory(root, root / STORE_DIRS[0]).close()
    context.print_info(wrap(f"{short_path(str(root))} is exchanged with {describe(settings)}. Start with: echod sync"))


def status(context: CommandContext, *, path: Path, json: bool) -> None:
    """Run `echod sync status`."""
    project = context.find_project(path)
    state = find_driver_state(project, context.list_stores(project), os.environ)
    repository = MemoryRepository(context.paths.memory_repository(project), os.environ)
    remote = repository.settings
    waiting = () if remote is None else pending(project, repository)
    if json:
        info = None if remote is None else RemoteInfo(without_credentials(remote.url), remote.branch, waiting)
        click.echo(to_json(SyncStatusReport(str(project), state.value, info)))
    elif remote is not None:
        click.echo(wrap(f"{short_path(str(project))}: exchanged with {describe(remote)}.", hang="  "))
        if waiting:
            click.echo(f"> {pluralize(len(waiting), 'file')} changed since the last exchange. Exchange: echod sync")
    else:
        click.echo(wrap(f"{short_path(str(project))}: {_DRIVER_TEXTS[state]}", hang="  "))
        if state not in (DriverState.BY_ENTRY, DriverState.NO_GIT):
            click.echo("> Set it up with: echod sync setup")
    good = remote is not None or state in (DriverState.BY_ENTRY, DriverState.NO_GIT)
    raise click.exceptions.Exit(ExitCode.OK if good else ExitCode.FAILED)


def resolve(context: CommandContext, *, path: Path, dry_run: bool, json: bool) -> None:
    """Run `echod sync resolve`."""
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
