"""Run a command line, or answer a shell that asks for completions."""

from __future__ import annotations

import os
from collections.abc import Sequence

import click

from echod.cli.commands.completion import COMPLETE_VARIABLE, print_completions
from echod.cli.root import app
from echod.errors import ExitCode


def run_command_line(arguments: Sequence[str]) -> int:
    """Run a command line and return its exit code.

    Raises:
        EchodError: the command could not be carried out.
    """
    if question := os.environ.get(COMPLETE_VARIABLE):
        return print_completions(app, question)
    try:
        with app.make_context("echod", list(arguments)) as ctx:
            app.invoke(ctx)
    except click.exceptions.Exit as end:
        return end.exit_code
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except click.Abort:
        click.echo("Aborted!", err=True)
        return ExitCode.FAILED
    return ExitCode.OK
