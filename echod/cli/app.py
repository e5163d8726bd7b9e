"""The whole command line: the tree's root with every branch on it, and how a command line is carried out."""

from __future__ import annotations

import os
from collections.abc import Sequence

import click

from echod.cli.completion import COMPLETE_VARIABLE, print_completions
from echod.cli.root import app
from echod.cli.tree import (
    claude,
    completion,
    config,
    entries,
    memory,
    packs,
    projects,
    review,
    running,
    service,
    upkeep,
    workflow,
)
from echod.errors import ExitCode

__all__ = [
    "app",
    "claude",
    "completion",
    "config",
    "entries",
    "memory",
    "packs",
    "projects",
    "review",
    "run_command_line",
    "running",
    "service",
    "upkeep",
    "workflow",
]


def run_command_line(arguments: Sequence[str]) -> int:
    """Do what a command line says, or tell how it is written; the exit code.

    Raises:
        EchodError: it was understood, and could not be done.
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
