"""`echod completion`, and the answers to a shell that asks what could come next."""

from __future__ import annotations

from typing import Any, Final

from typer.completion import get_completion_inspect_parameters, shell_complete

VARIABLE: Final = "_ECHOD_COMPLETE"
"""A shell asks by setting this; the script that is printed does."""


def know_the_shells() -> None:
    """Make typer understand what shells ask; it does so by itself only for programs that install their scripts."""
    get_completion_inspect_parameters()


def print_script(root: Any, shell: str) -> None:
    """Print the script for `shell`; `root` is the command to be completed."""
    know_the_shells()
    shell_complete(root, {}, "echod", VARIABLE, f"source_{shell}")
