"""Commands about the service."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from echod.cli.tree import options
from echod.cli.tree.base import app, example, with_shell
from echod.cli.tree.options import WholeNumber

if TYPE_CHECKING:
    from echod.cli.shell import Shell

replace = click.option("--force", is_flag=True, help="Also replace or remove a service file that echod did not write.")


@app.group()
def service() -> None:
    """Hand the service to systemd or launchd, and take it back."""


@service.command(epilog=example("echod service install"))
@replace
@options.dry_run
@with_shell
def install(shell: Shell, *, force: bool, dry_run: bool) -> None:
    """Install, enable and start the service for this user, and see that it answers."""
    from echod.cli.service import install

    install(shell, force=force, dry_run=dry_run)


@service.command(epilog=example("echod service uninstall"))
@replace
@options.dry_run
@with_shell
def uninstall(shell: Shell, *, force: bool, dry_run: bool) -> None:
    """Stop the service and remove it. Memories, state and settings stay."""
    from echod.cli.service import uninstall

    uninstall(shell, force=force, dry_run=dry_run)


@service.command(epilog=example("echod service start"))
@with_shell
def start(shell: Shell) -> None:
    """Start the installed service, and see that it answers."""
    from echod.cli.service import start

    start(shell)


@service.command(epilog=example("echod service stop"))
@with_shell
def stop(shell: Shell) -> None:
    """Stop the service; it comes back with the next login."""
    from echod.cli.service import stop

    stop(shell)


@service.command(epilog=example("echod service restart"))
@with_shell
def restart(shell: Shell) -> None:
    """Stop and start the service, and see that it answers."""
    from echod.cli.service import restart

    restart(shell)


@service.command(epilog=example("echod service logs --lines 50 --follow"))
@click.option("--lines", metavar="N", type=WholeNumber(min=1), default=100, show_default=True, help="How many.")
@click.option("--follow", is_flag=True, help="Go on showing new lines.")
@with_shell
def logs(shell: Shell, *, lines: int, follow: bool) -> None:
    """Show what the service logged."""
    from echod.cli.service import logs

    logs(shell, lines, follow=follow)
