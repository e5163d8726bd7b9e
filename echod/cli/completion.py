"""`echod completion`, and the answers to a shell that asks what could come next."""

from __future__ import annotations

from typing import Final

import click

COMPLETE_VARIABLE: Final = "_ECHOD_COMPLETE"
"""A shell asks by setting this; the script that is printed does."""


def print_completion_script(root: click.Command, shell: str) -> None:
    """Print the script for `shell`; `root` is the command to be completed."""
    _run_shell_complete(root, f"{shell}_source")


def print_completions(root: click.Command, instruction: str) -> int:
    """Print what could come next, as the script asked for it by `COMPLETE_VARIABLE`.

    The exit code, 1 for an unknown shell.
    """
    return _run_shell_complete(root, instruction)


def _run_shell_complete(root: click.Command, instruction: str) -> int:
    from click.shell_completion import shell_complete

    return shell_complete(root, {}, "echod", COMPLETE_VARIABLE, instruction)
