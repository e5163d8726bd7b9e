"""Commands about doc packs and the global memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from echod.cli import options
from echod.cli.root import app, example, pass_command_context

if TYPE_CHECKING:
    from echod.cli.context import CommandContext

pack_argument = click.argument("pack", help="The pack's name, as `echod packs list` shows it.")


@app.group()
def packs() -> None:
    """Curated memory about frameworks, for all your projects."""


@packs.command("list", epilog=example("echod packs list"))
@options.json
@pass_command_context
def list_(context: CommandContext, *, json: bool) -> None:
    """List the packs there are, and which of them are installed."""
    from echod.cli.packs import list_packs

    list_packs(context, as_json=json)


@packs.command(epilog=example("echod packs install fastapi"))
@pack_argument
@options.dry_run
@pass_command_context
def install(context: CommandContext, *, pack: str, dry_run: bool) -> None:
    """Install a pack for all projects. Doing it again changes nothing, and what you changed in it stays."""
    from echod.cli.commands.packs import install_pack

    install_pack(context, pack, dry_run=dry_run)


@packs.command(epilog=example("echod packs update fastapi"))
@click.argument("pack", required=False, help="Only this pack; default: all installed.")
@options.dry_run
@pass_command_context
def update(context: CommandContext, *, pack: str | None, dry_run: bool) -> None:
    """Bring an installed pack up to the newest version there is. What you changed in it stays."""
    from echod.cli.commands.packs import update_packs

    update_packs(context, pack, dry_run=dry_run)


@packs.command(epilog=example("echod packs remove fastapi"))
@pack_argument
@options.dry_run
@options.yes
@pass_command_context
def remove(context: CommandContext, *, pack: str, dry_run: bool, yes: bool) -> None:
    """Take an installed pack out of the global memory; its text goes to its archive."""
    from echod.cli.commands.packs import remove_installed_pack

    remove_installed_pack(context, pack, dry_run=dry_run, yes=yes)


@packs.command(epilog=example("echod packs status --json"))
@options.json
@pass_command_context
def status(context: CommandContext, *, json: bool) -> None:
    """How old are the installed packs, are they as they were installed, is there something newer?"""
    from echod.cli.packs import show_pack_status

    show_pack_status(context, as_json=json)
