"""The root command: the table of all commands, which are imported on use, and the options of echod itself."""

from __future__ import annotations

from collections.abc import Callable
from functools import update_wrapper
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Concatenate, Final, NamedTuple, ParamSpec, TypeVar

import click

from echod import __version__
from echod.cli.options import PATH

if TYPE_CHECKING:
    from echod.cli.context import CommandContext  # loads what help does not need

P = ParamSpec("P")
R = TypeVar("R")


class CommandEntry(NamedTuple):
    """A command: its name, `module:attribute` below `echod.cli.commands`, and its help in one line."""

    name: str
    target: str
    summary: str


SECTIONS: Final[tuple[tuple[str, tuple[CommandEntry, ...]], ...]] = (
    (
        "Get started",
        (
            CommandEntry("init", "projects:init", "Create a project's memory directory with its roles."),
            CommandEntry("add", "projects:add", "Register a project for maintenance."),
            CommandEntry("service", "service:service", "Install and control the background service."),
            CommandEntry("config", "config:config", "Show and check the settings."),
            CommandEntry("doctor", "doctor:doctor", "Check the installation and suggest fixes."),
            CommandEntry("completion", "completion:completion", "Print a shell completion script."),
        ),
    ),
    (
        "Inspect",
        (
            CommandEntry("status", "status:status", "Show service health, queued work and open questions."),
            CommandEntry("show", "show:show", "Show roles, entries or one entry."),
            CommandEntry("explain", "entries:explain", "Explain an entry's score and the rules that apply to it."),
            CommandEntry("gate", "gate:gate", "Show whether a project's memory may be written now."),
            CommandEntry("jobs", "jobs:jobs", "List jobs, or retry one."),
            CommandEntry("log", "undo:log", "List the changes that echod made."),
            CommandEntry("projects", "projects:projects", "List the registered projects."),
            CommandEntry("review", "review:review", "List and answer open questions."),
            CommandEntry("audit", "global_memory:audit", "List the global memory's entries with their origin."),
        ),
    ),
    (
        "Curate",
        (
            CommandEntry("remember", "memory:remember", "Add a note to a project's memory."),
            CommandEntry("pin", "entries:pin", "Protect an entry from all rules for some time."),
            CommandEntry("unpin", "entries:unpin", "Remove the pin of an entry."),
            CommandEntry("raise", "entries:raise_", "Move an entry to another layer."),
            CommandEntry("forget", "entries:forget", "Archive an entry for good."),
            CommandEntry("restore", "entries:restore", "Restore an archived entry."),
            CommandEntry("undo", "undo:undo", "Undo the changes of a job."),
            CommandEntry("reset", "memory:reset", "Archive everything in a role and start over."),
            CommandEntry("elevate", "global_memory:elevate", "Copy an entry to the global memory."),
            CommandEntry("packs", "packs:packs", "Install and update doc packs."),
        ),
    ),
    (
        "Maintain",
        (
            CommandEntry("run", "run:run", "Run the service in the foreground, or once with --once."),
            CommandEntry("consolidate", "consolidate:consolidate", "Add agents' findings to the memory now."),
            CommandEntry("prune", "prune:prune", "Archive entries from memory files over their limit."),
            CommandEntry("compress", "prune:compress", "Shorten knowledge files over their limit."),
            CommandEntry("scrub", "scrub:scrub", "Find and remove secrets on disk."),
            CommandEntry("pause", "projects:pause", "Stop writing to memory until `echod resume`."),
            CommandEntry("resume", "projects:resume", "Resume writing to memory."),
            CommandEntry("remove", "projects:remove", "Unregister a project."),
        ),
    ),
    (
        "Integrations",
        (
            CommandEntry("claude", "claude:claude", "Connect Claude Code through its plugin."),
            CommandEntry("hook", "claude:hook", "Record an agent's hook event."),
            CommandEntry("record-access", "entries:record_access", "Count a reference to entries."),
            CommandEntry("workflow", "gate:workflow", "Declare that a workflow begins or ends."),
        ),
    ),
)
"""Every command, in the order in which a user meets them. Help prints the table without importing the commands."""

_ENTRIES: Final = {entry.name: entry for _, entries in SECTIONS for entry in entries}

OPTIONS_ANYWHERE: Final = frozenset({"--quiet", "--no-color"})
"""Options of echod itself that are also understood after a command."""


class CommandGroup(click.Group):
    """A command with subcommands, which help lists in the order in which they are declared."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002  the signature is click's
        """List the subcommands in the order of their declaration."""
        return list(self.commands)


class LazyGroup(click.Group):
    """The root of the command line. A command's module is imported when the command is looked up."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002  the signature is click's
        """List all commands in the order of the table."""
        return list(_ENTRIES)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002  click's
        """Import a command; None if there is no command of that name."""
        entry = _ENTRIES.get(cmd_name)
        if entry is None:
            return None
        module, _, attribute = entry.target.partition(":")
        command = getattr(import_module(f"echod.cli.commands.{module}"), attribute)
        assert isinstance(command, click.Command)  # noqa: S101  the table and the modules are checked by a test
        return command

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments. Options of echod itself that stand behind a command are moved before it."""
        end = args.index("--") if "--" in args else len(args)
        options, rest = args[:end], args[end:]
        moved = [word for word in options if word in OPTIONS_ANYWHERE]
        remaining = [word for word in options if word not in OPTIONS_ANYWHERE]
        return super().parse_args(ctx, [*moved, *remaining, *rest])

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002  click's
        """Write the commands into the help, by section."""
        for title, entries in SECTIONS:
            with formatter.section(title):
                formatter.write_dl([(entry.name, entry.summary) for entry in entries])


@click.group("echod", cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 80})
@click.option("--config", metavar="FILE", type=PATH, help="Read the settings from FILE.")
@click.option("--quiet", is_flag=True, help="Print only errors and requested output.")
@click.option("--no-color", is_flag=True, help="Print no colours, as with NO_COLOR.")
@click.version_option(
    __version__, "-V", "--version", message="%(prog)s %(version)s", help="Print the version and exit."
)
@click.pass_context
def app(ctx: click.Context, *, config: Path | None, quiet: bool, no_color: bool) -> None:
    """Keep the Markdown memory of coding agents healthy: nothing lost, nothing mysterious, nothing in the way."""

    def build_context() -> CommandContext:
        from echod.cli.context import CommandContext

        return CommandContext.from_process(config, quiet=quiet, no_color=no_color)

    ctx.obj = build_context


def command_context(ctx: click.Context) -> CommandContext:
    """Return the context of the command. It is built here and not earlier, since help does not need it."""
    build_context: Callable[[], CommandContext] = ctx.obj
    return build_context()


def pass_command_context(command: Callable[Concatenate[CommandContext, P], R]) -> Callable[P, R]:
    """Pass the command's context to it, before its own arguments."""

    def wrapper(*args: P.args, **kwargs: P.kwargs) -> R:
        return command(command_context(click.get_current_context()), *args, **kwargs)

    return update_wrapper(wrapper, command)


def example(command: str) -> str:
    """Return the last line of a command's help."""
    return f"Example: {command}"
