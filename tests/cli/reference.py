"""Generate `docs/commands.md` and the manual page from the commands.

Usage: python -m tests.cli.reference > docs/commands.md
       python -m tests.cli.reference manual > docs/echod.1
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import click
from click.testing import CliRunner

import echod
from echod.cli.root import SECTIONS, app

PAGE = Path(__file__).parents[2] / "docs" / "commands.md"
MANUAL = PAGE.with_name("echod.1")

PAGE_HEADER = """\
# Commands

The help of every command, as printed by `echod COMMAND --help`. Exit codes of all commands: 0 done or healthy, 1 failed
or degraded, 2 wrong usage, 3 not running, 4 running but not answering, 78 invalid configuration.

The same is a manual page: `man echod` after `pipx install`, which puts it where `man` looks, and otherwise
`man -l "$(uv tool dir)/echod-memory/share/man/man1/echod.1"`.
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


def find_command(path: tuple[str, ...]) -> click.Command:
    """Return the command at a path."""
    command: click.Command = app
    for name in path:
        assert isinstance(command, click.Group)
        found = command.get_command(click.Context(command), name)
        assert found is not None
        command = found
    return command


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


_MANUAL_END = """\
.SH EXIT STATUS
.TP
.B 0
Done, or healthy.
.TP
.B 1
Failed, or degraded.
.TP
.B 2
Wrong usage.
.TP
.B 3
The service is not running.
.TP
.B 4
The service is running but does not answer.
.TP
.B 78
The configuration is invalid.
.SH ENVIRONMENT
.TP
.B ECHOD_CONFIG
The settings file.
.TP
.B ECHOD_STATE_DIR
The directory of history, archives of conversations and the queue.
.TP
.B ECHOD_RUNTIME_DIR
The directory of the running service.
.TP
.B NO_COLOR
Print without colours, if it is set to any text.
.PP
Every setting has a variable of this kind.
.B echod config show
lists the settings and where each value comes from.
.SH FILES
.TP
.I .rune/echoes/, .claude/echoes/
The memory of a project. Its
.I archive/
directories contain what was removed, word for word.
.PP
.B echod config show
prints the files of echod itself.
.SH SEE ALSO
.BR git (1),
.BR systemctl (1)
"""


def render_manual() -> str:
    """Return the manual page, in the language of man."""
    app_help = (app.help or "").strip()
    parts = [
        f'.TH ECHOD 1 "" "echod {echod.__version__}" "User Commands"\n.SH NAME\n',
        f"echod \\- {_roff(app_help[0].lower() + app_help[1:].rstrip('.'))}\n",
        ".SH SYNOPSIS\n.B echod\n[\\fIOPTIONS\\fR] \\fICOMMAND\\fR [\\fIARGUMENTS\\fR]...\n",
        ".SH DESCRIPTION\n",
        _roff(
            "echod is a background service that keeps the memory files of coding agents within their limits. "
            "What leaves a file is archived word for word, and can be undone to the byte. "
            "Every job also runs without the service."
        ),
        "\n.SH OPTIONS\n",
        *_manual_parameters(app, ()),
        _manual_item("-h, --help", "Show the help of echod, or of a command, and exit."),
    ]
    paths = all_command_paths()
    for title, entries in SECTIONS:
        parts.append(f".SH {title.upper()}\n")
        parts += [_manual_command(path) for entry in entries for path in paths if path[0] == entry.name]
    return "".join([*parts, _MANUAL_END])


def _manual_command(path: tuple[str, ...]) -> str:
    command = find_command(path)
    paragraphs = (" ".join(part.split()) for part in (command.help or "").split("\n\n"))
    # A command keeps the help option that it makes here.
    context = click.Context(command, help_option_names=["-h", "--help"])
    usage = " ".join(command.collect_usage_pieces(context))
    return "".join(
        [
            f".SS echod {_roff(' '.join(path))} {_roff(usage)}\n",
            "\n.PP\n".join(map(_roff, paragraphs)),
            "\n",
            *_manual_parameters(command, path),
            f".PP\n{_roff(command.epilog)}\n" if command.epilog else "",
        ]
    )


def _manual_parameters(command: click.Command, path: tuple[str, ...]) -> Iterator[str]:
    """Describe the arguments and options, except `--help`, which every command has."""
    context = click.Context(command, info_name=" ".join(("echod", *path)))
    for parameter in command.params:
        if record := parameter.get_help_record(context):
            yield _manual_item(*record)


def _manual_item(name: str, text: str) -> str:
    return f".TP\n.B {_roff(name)}\n{_roff(' '.join(text.split()))}\n"


def _roff(text: str) -> str:
    """Return a text of one line that man shows as it is."""
    escaped = text.replace("\\", "\\e").replace("-", "\\-").replace("'", "\\(aq").replace("`", "\\(ga")
    return f"\\&{escaped}" if escaped.startswith(".") else escaped


if __name__ == "__main__":
    sys.stdout.write(render_manual() if sys.argv[1:] == ["manual"] else render_page())
