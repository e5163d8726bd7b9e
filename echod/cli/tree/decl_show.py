"""Commands about a whole memory: look at it, add to it, empty it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from echod.cli import options
from echod.cli.options import PATH_OR_NAME
from echod.cli.root import app, example, pass_command_context

if TYPE_CHECKING:
    from echod.cli.context import CommandContext


@app.command(epilog=example("echod show reviewer"))
@click.argument(
    "target",
    metavar="[PATH|ROLE|ENTRY]",
    type=PATH_OR_NAME,
    required=False,
    help="A project, a role, or an entry's id or beginning.",
)
@options.project_path_or_all
@options.in_global
@options.json
@pass_command_context
def show(context: CommandContext, *, target: str | None, path: Path | None, in_global: bool, json: bool) -> None:
    """What is in memory? Of a project its roles, of a role its entries, of an entry its text and history."""
    from echod.cli.by_hand import parse_scope
    from echod.cli.commands.show import show_memory

    show_memory(context, target, parse_scope(path, in_global=in_global), as_json=json)
