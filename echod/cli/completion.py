"""`echod completion`, and the answers to a shell that asks what could come next."""

from __future__ import annotations

from typing import Final

import click

VARIABLE: Final = "_ECHOD_COMPLETE"
"""A shell asks by setting this; the script that is printed does."""


def print_script(root: click.Command, shell: str) -> None:
    """Print the script for `shell`; `root` is the command to be completed."""
    _converse(root, f"{shell}_source")


def answer(root: click.Command, question: str) -> int:
    """Print what could come next, as the script asked for it by `VARIABLE`; the exit code, 1 for an unknown shell."""
    return _converse(root, question)


def _converse(root: click.Command, instruction: str) -> int:
    from click.shell_completion import shell_complete

    return shell_complete(root, {}, "echod", VARIABLE, instruction)
