"""Commands about doc packs and the global memory."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from echod.cli import options
from echod.cli.root import app, example, pass_command_context

if TYPE_CHECKING:
    from echod.cli.context import CommandContext


@app.command(epilog=example("echod audit --json"))
@options.json
@pass_command_context
def audit(context: CommandContext, *, json: bool) -> None:
    """Where does everything in the global memory come from?"""
    from echod.cli.commands.global_memory import show_audit

    show_audit(context, as_json=json)


@app.command(epilog=example("echod elevate 4f1c --domain backend"))
@options.entry
@options.project_path_or_all
@click.option("--domain", metavar="NAME", help="What it is about; asked if not said.")
@options.dry_run
@pass_command_context
def elevate(context: CommandContext, *, entry: str, path: Path | None, domain: str | None, dry_run: bool) -> None:
    """Copy an entry of a project into the global memory, for all your projects. Secrets are taken out.

    Domains: backend, frontend, devops, database, testing, architecture, design, general.
    """
    from echod.cli.elevate import elevate_to_global

    elevate_to_global(context, entry, path, domain, dry_run=dry_run)
