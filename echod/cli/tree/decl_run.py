"""Commands about what echod does: run, status, doctor, gate, jobs, log, undo."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from echod.cli.options import PATH, Number
from echod.cli.root import app, example, pass_command_context

if TYPE_CHECKING:
    from echod.cli.context import CommandContext


@app.command(epilog=example("echod run --once ~/src/my-project --wait 60"))
@click.argument("paths", metavar="[PATH]...", type=PATH, nargs=-1, help="With --once: only these projects.")
@click.option("--once", is_flag=True, help="Do what is due now, and end.")
@click.option(
    "--wait",
    metavar="SECONDS",
    type=Number(min=0),
    default=0.0,
    show_default=True,
    help="With --once: wait so long for what must wait.",
)
@pass_command_context
def run(context: CommandContext, *, paths: tuple[Path, ...], once: bool, wait: float) -> None:
    """Be the service, in the foreground; or do once what is due.

    With --once, a running service is handed the work and its outcome is shown. Ends with 1 only if a job failed.
    """
    if once:
        from echod.cli.commands.run import run_once

        run_once(context, list(paths), wait)
    elif paths or wait:
        raise click.UsageError("paths and --wait go with --once; the service maintains what `echod add` registered.")
    else:
        from echod.cli.serve import run_service

        run_service(context)
