"""Commands about what echod does: run, status, doctor, gate, jobs, log, undo."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from echod.cli import options
from echod.cli.options import PATH
from echod.cli.root import app, example, pass_command_context

if TYPE_CHECKING:
    from echod.cli.context import CommandContext


@app.command(epilog=example("echod doctor ~/src/my-project"))
@click.argument("path", type=PATH, required=False, help="Of the projects, only this one.")
@options.json
@pass_command_context
def doctor(context: CommandContext, *, path: Path | None, json: bool) -> None:
    """Is everything as it must be? Says what is wrong, and how to mend it.

    Ends with 1 if something is wrong. Writes into no project.
    """
    from echod.cli.commands.doctor import run_doctor

    run_doctor(context, path, as_json=json)
