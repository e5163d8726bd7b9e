"""`docs/commands.md`, written from the commands themselves: `python -m tests.cli.reference > docs/commands.md`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from click.testing import CliRunner

from echod.cli.app import app

PAGE = Path(__file__).parents[2] / "docs" / "commands.md"

PAGE_HEADER = """\
# Commands

What every command takes, as `echod COMMAND --help` says it. Exit codes of all commands: 0 done or healthy, 1 failed
or degraded, 2 used wrongly, 3 not running, 4 running but not answering, 78 wrong configuration.
"""


def command_paths(command: object, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The paths of all commands: first those that have none below them, each in the order in which help shows them."""
    subcommands = getattr(command, "commands", None)
    if path and (not subcommands or getattr(command, "invoke_without_command", False)):
        yield path
    for name, subcommand in sorted((subcommands or {}).items(), key=lambda item: hasattr(item[1], "commands")):
        yield from command_paths(subcommand, (*path, name))


def all_command_paths() -> tuple[tuple[str, ...], ...]:
    """All commands of echod."""
    return tuple(command_paths(app))


def help_text(path: tuple[str, ...]) -> str:
    """What a command says with --help, at 80 columns."""
    result = CliRunner().invoke(app, [*path, "--help"], prog_name="echod", env={"COLUMNS": "80"})
    assert result.exit_code == 0, result.output
    return result.output


def render_page() -> str:
    """The whole page."""
    parts = [PAGE_HEADER]
    for path in all_command_paths():
        text = "\n".join(line.rstrip() for line in help_text(path).strip().splitlines())
        parts.append(f"\n## echod {' '.join(path)}\n\n```text\n{text}\n```\n")
    return "".join(parts)


if __name__ == "__main__":
    sys.stdout.write(render_page())
