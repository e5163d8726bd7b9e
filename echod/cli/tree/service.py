"""Commands about the service."""

from __future__ import annotations

from typing import Annotated

import typer

from echod.cli.tree.base import app, example, shell_of
from echod.cli.tree.options import DryRun

service_app = typer.Typer(
    help="Hand the service to systemd or launchd, and take it back.", no_args_is_help=True, rich_markup_mode=None
)
app.add_typer(service_app, name="service")

Replace = Annotated[
    bool, typer.Option("--force", help="Also replace or remove a service file that echod did not write.")
]


@service_app.command(epilog=example("echod service install"))
def install(context: typer.Context, force: Replace = False, dry_run: DryRun = False) -> None:
    """Install, enable and start the service for this user, and see that it answers."""
    from echod.cli.service import install

    install(shell_of(context), force=force, dry_run=dry_run)


@service_app.command(epilog=example("echod service uninstall"))
def uninstall(context: typer.Context, force: Replace = False, dry_run: DryRun = False) -> None:
    """Stop the service and remove it. Memories, state and settings stay."""
    from echod.cli.service import uninstall

    uninstall(shell_of(context), force=force, dry_run=dry_run)


@service_app.command(epilog=example("echod service start"))
def start(context: typer.Context) -> None:
    """Start the installed service, and see that it answers."""
    from echod.cli.service import start

    start(shell_of(context))


@service_app.command(epilog=example("echod service stop"))
def stop(context: typer.Context) -> None:
    """Stop the service; it comes back with the next login."""
    from echod.cli.service import stop

    stop(shell_of(context))


@service_app.command(epilog=example("echod service restart"))
def restart(context: typer.Context) -> None:
    """Stop and start the service, and see that it answers."""
    from echod.cli.service import restart

    restart(shell_of(context))


@service_app.command(epilog=example("echod service logs --lines 50 --follow"))
def logs(
    context: typer.Context,
    lines: Annotated[int, typer.Option("--lines", min=1, help="How many.")] = 100,
    follow: Annotated[bool, typer.Option("--follow", help="Go on showing new lines.")] = False,
) -> None:
    """Show what the service logged."""
    from echod.cli.service import logs

    logs(shell_of(context), lines, follow=follow)
