"""Commands about what echod does: run, status, doctor, gate, jobs, log, undo."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import click

from echod.cli import options
from echod.cli.options import WholeNumber
from echod.cli.root import app, command_context, example, pass_command_context

if TYPE_CHECKING:
    from echod.cli.context import CommandContext

MAX_JOB_ID: Final = 2**63 - 1
"""The largest number that the database can give a job."""


@app.group(invoke_without_command=True, epilog=example("echod jobs --json"))
@options.limit
@options.json
@click.pass_context
def jobs(ctx: click.Context, *, limit: int, json: bool) -> None:
    """List jobs; try one again."""
    if ctx.invoked_subcommand is None:
        from echod.cli.commands.jobs import list_jobs

        list_jobs(command_context(ctx), limit, as_json=json)


@jobs.command(epilog=example("echod jobs retry 17"))
@click.argument("job", metavar="ID", type=WholeNumber(1, MAX_JOB_ID), help="The job's number.")
@pass_command_context
def retry(context: CommandContext, *, job: int) -> None:
    """Try a job again that failed or was given up."""
    from echod.cli.commands.jobs import retry_job

    retry_job(context, job)
