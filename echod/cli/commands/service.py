"""`echod service`: install the daemon as a service of systemd or launchd, and control it."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from pathlib import Path

import click

from echod import __version__
from echod.cli.context import CommandContext, check_liveness
from echod.cli.execute import settle_and_report
from echod.cli.output import short_path, shorten_paths, wrap
from echod.errors import EchodError
from echod.runtime import DaemonState
from echod.service.base import Service, ServiceConfig, ServiceError, build_service_config
from echod.service.factory import create_service


def install(context: CommandContext, *, force: bool, dry_run: bool) -> None:
    """Run `echod service install`."""
    config = _service_config(context)
    if not dry_run:
        _ = context.settings  # invalid settings are reported here, not by a service that does not start
        _print_sentences(context, _open_service(context).install(config, force=force))
        return
    state = _open_service(context).read_state(config)
    verb = "is up to date" if state.up_to_date else "would be replaced" if state.installed else "would be written"
    click.echo(f"{short_path(str(state.file))} {verb}; it would run: {' '.join(config.command)}")


def upgrade(context: CommandContext, *, dry_run: bool) -> None:
    """Run `echod service upgrade`."""
    config, installed = _service_config(context), _open_service(context)
    state = installed.read_state(config)
    if not state.installed:
        raise ServiceError("The service is not installed. Install it with: echod service install")
    if not dry_run:
        _ = context.settings
        _print_sentences(context, installed.install(config, force=False))
        return
    liveness = check_liveness(context)
    file = short_path(str(state.file))
    click.echo(f"{file} {'is up to date' if state.up_to_date else 'would be replaced'}.")
    restarts = not state.up_to_date or liveness.state is not DaemonState.RUNNING
    click.echo(f"The service would {'be restarted' if restarts else 'go on running'} ({liveness.text}).")


def uninstall(context: CommandContext, *, force: bool, dry_run: bool) -> None:
    """Run `echod service uninstall`."""
    if not dry_run:
        _print_sentences(context, _open_service(context).uninstall(force=force))
        _settle_all(context)
        return
    state = _open_service(context).read_state(_service_config(context))
    verb = "would be removed and the service stopped" if state.installed else "does not exist; nothing to do"
    click.echo(f"{short_path(str(state.file))} {verb}.")


def _settle_all(context: CommandContext) -> None:
    """Empty the private directories of all projects, which nothing would do later."""
    if not context.paths.journal.is_dir():
        return
    try:
        with context.open_read_context() as read_context:
            stores = read_context.discover_stores().stores
    except EchodError as error:
        click.echo(wrap(f"Replaced versions of files remain in .echod: {error}", indent="! "), err=True)
        return
    settle_and_report(context, stores)


def start(context: CommandContext) -> None:
    """Run `echod service start`."""
    _print_sentences(context, _open_service(context).start())


def stop(context: CommandContext) -> None:
    """Run `echod service stop`."""
    _print_sentences(context, _open_service(context).stop())


def restart(context: CommandContext) -> None:
    """Run `echod service restart`."""
    _print_sentences(context, _open_service(context).restart())


def logs(context: CommandContext, *, lines: int, follow: bool) -> None:
    """Run `echod service logs`."""
    command = _open_service(context).logs_command(lines=lines, follow=follow)
    sys.stdout.flush()
    os.execvp(command[0], command)  # noqa: S606  (a fixed command of the platform's supervisor)


def _open_service(context: CommandContext) -> Service:
    return create_service(sys.platform, context.paths, __version__, context.environ)


def _service_config(context: CommandContext) -> ServiceConfig:
    return build_service_config(Path(sys.executable), context.environ)


def _print_sentences(context: CommandContext, sentences: Iterable[str]) -> None:
    for sentence in sentences:
        context.print_info(wrap(shorten_paths(sentence)))
