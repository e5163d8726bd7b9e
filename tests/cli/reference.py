"""Generate `docs/commands.md` from the commands: `python -m tests.cli.reference > docs/commands.md`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import click
from click.testing import CliRunner

from echod.cli.root import app

PAGE = Path(__file__).parents[2] / "docs" / "commands.md"

PAGE_HEADER = """\
# Commands

The help of every command, as printed by `echod COMMAND --help`. Exit codes of all commands: 0 done or healthy, 1 failed
or degraded, 2 wrong usage, 3 not running, 4 running but not answering, 78 invalid configuration.
"""


def command_paths(command: click.Command, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Yield the paths of all commands, those without subcommands first, in the order in which help lists them."""
    context = click.Context(command)
    names = command.list_commands(context) if isinstance(command, click.Group) else []
    if path and (not names or getattr(command, "invoke_without_command", False)):
        yield path
    subcommands = (
        [(name, command.get_command(context, name)) for name in names] if isinstance(command, click.Group) else []
    )
    for name, subcommand in sorted(subcommands, key=lambda item: isinstance(item[1], click.Group)):
        assert subcommand is not None
        yield from command_paths(subcommand, (*path, name))


def all_command_paths() -> tuple[tuple[str, ...], ...]:
    """Return the paths of all commands."""
    return tuple(command_paths(app))


def help_text(path: tuple[str, ...]) -> str:
    """Return the help of a command at 80 columns."""
    result = CliRunner().invoke(app, [*path, "--help"], prog_name="echod", env={"COLUMNS": "80"})
    assert result.exit_code == 0, result.output
    return result.output


def render_page() -> str:
    """Return the whole page."""
    parts = [PAGE_HEADER]
    for path in all_command_paths():
        text = "\n".join(line.rstrip() for line in help_text(path).strip().splitlines())
        parts.append(f"\n## echod {' '.join(path)}\n\n```text\n{text}\n```\n")
    return "".join(parts)


if __name__ == "__main__":
    sys.stdout.write(render_page())
