"""Commands about the service."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from echod.cli import options
from echod.cli.options import WholeNumber
from echod.cli.root import app, example, pass_command_context

if TYPE_CHECKING:
    from echod.cli.context import CommandContext

replace_option = click.option(
    "--force", is_flag=True, help="Also replace or remove a service file that echod did not write."
)


@app.group()
def service() -> None:
    """Hand the service to systemd or launchd, and take it back."""


@service.command(epilog=example("echod service install"))
@replace_option
@options.dry_run
@pass_command_context
def install(context: CommandContext, *, force: bool, dry_run: bool) -> None:
    """Install, enable and start the service for this user, and see that it answers."""
    from echod.cli.commands.service import install_service

    install_service(context, force=force, dry_run=dry_run)


@service.command(epilog=example("echod service uninstall"))
@replace_option
@options.dry_run
@pass_command_context
def uninstall(context: CommandContext, *, force: bool, dry_run: bool) -> None:
    """Stop the service and remove it. Memories, state and settings stay."""
    from echod.cli.commands.service import uninstall_service

    uninstall_service(context, force=force, dry_run=dry_run)


@service.command(epilog=example("echod service start"))
@pass_command_context
def start(context: CommandContext) -> None:
    """Start the installed service, and see that it answers."""
    from echod.cli.commands.service import start_service

    start_service(context)


@service.command(epilog=example("echod service stop"))
@pass_command_context
def stop(context: CommandContext) -> None:
    """Stop the service; it comes back with the next login."""
    from echod.cli.commands.service import stop_service

    stop_service(context)


@service.command(epilog=example("echod service restart"))
@pass_command_context
def restart(context: CommandContext) -> None:
    """Stop and start the service, and see that it answers."""
    from echod.cli.commands.service import restart_service

    restart_service(context)


@service.command(epilog=example("echod service logs --lines 50 --follow"))
@click.option("--lines", metavar="N", type=WholeNumber(min=1), default=100, show_default=True, help="How many.")
@click.option("--follow", is_flag=True, help="Go on showing new lines.")
@pass_command_context
def logs(context: CommandContext, *, lines: int, follow: bool) -> None:
    """Show what the service logged."""
    from echod.cli.commands.service import show_service_logs

    show_service_logs(context, lines, follow=follow)
