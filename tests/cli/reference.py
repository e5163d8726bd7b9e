"""`docs/commands.md`, written from the commands themselves: `python -m tests.cli.reference > docs/commands.md`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from click.testing import CliRunner

from echod.cli.app import app

PAGE = Path(__file__).parents[2] / "docs" / "commands.md"

HEAD = """\
# Commands

What every command takes, as `echod COMMAND --help` says it. Exit codes of all commands: 0 done or healthy, 1 failed
or degraded, 2 used wrongly, 3 not running, 4 running but not answering, 78 wrong configuration.
"""


def commands(command: object, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The paths of all commands: first those that have none below them, each in the order in which help shows them."""
    below = getattr(command, "commands", None)
    if path and (not below or getattr(command, "invoke_without_command", False)):
        yield path
    for name, inner in sorted((below or {}).items(), key=lambda item: hasattr(item[1], "commands")):
        yield from commands(inner, (*path, name))


def every_command() -> tuple[tuple[str, ...], ...]:
    """All commands of echod."""
    return tuple(commands(app))


def help_of(path: tuple[str, ...]) -> str:
    """What a command says with --help, at 80 columns."""
    result = CliRunner().invoke(app, [*path, "--help"], prog_name="echod", env={"COLUMNS": "80"})
    assert result.exit_code == 0, result.output
    return result.output


def page() -> str:
    """The whole page."""
    parts = [HEAD]
    for path in every_command():
        text = "\n".join(line.rstrip() for line in help_of(path).strip().splitlines())
        parts.append(f"\n## echod {' '.join(path)}\n\n```text\n{text}\n```\n")
    return "".join(parts)


if __name__ == "__main__":
    sys.stdout.write(page())
