"""The root command: the table of all commands, which are imported on use, and the options of echod itself."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import update_wrapper
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Concatenate, Final, NamedTuple

import click
from click.shell_completion import CompletionItem, shell_complete

import echod
from echod.cli.options import PATH
from echod.errors import ExitCode
from echod.lazy import lazy_imports

with lazy_imports(__name__):
    import json
    from importlib import metadata

    from echod.cli import context as command_contexts
    from echod.cli import options, output, usage_errors
    from echod.store import git

if TYPE_CHECKING:
    from echod.cli.context import CommandContext  # loads modules that help does not need

COMPLETE_VARIABLE: Final = "_ECHOD_COMPLETE"
"""The environment variable by which a shell requests completions. The printed script sets it."""

_MAX_SUMMARY_LENGTH: Final = 80
_SHORT_COMMIT_DIGITS: Final = 10
_FIRST_WORD_KEY: Final = "echod.first_word"
_SUBCOMMAND_KEY: Final = "echod.subcommand"

OPTIONS_ANYWHERE: Final = frozenset({"-q", "--quiet", "--no-color"})
"""Options of echod itself that are also accepted after a command."""


class CommandEntry(NamedTuple):
    """A command: its name, `module:attribute` below `echod.cli.declarations`, and its help in one line."""

    name: str
    target: str
    summary: str


SECTIONS: Final[tuple[tuple[str, tuple[CommandEntry, ...]], ...]] = (
    (
        "Get started",
        (
            CommandEntry("demo", "starting:demo", "Watch echod work on a made-up project, in under a minute."),
            CommandEntry("init", "starting:init", "Create a project's memory directory with its roles."),
            CommandEntry("add", "starting:add", "Register a project for maintenance."),
            CommandEntry("service", "starting:service", "Install and control the background service."),
            CommandEntry("config", "starting:config", "Show, write and check the settings."),
            CommandEntry("doctor", "starting:doctor", "Check the installation and suggest fixes."),
            CommandEntry("completion", "starting:completion", "Print a shell completion script."),
            CommandEntry("help", "starting:help_", "Show the help of echod or of one command."),
        ),
    ),
    (
        "Inspect",
        (
            CommandEntry("status", "inspecting:status", "Show service health, queued work and warnings."),
            CommandEntry("search", "inspecting:search", "Find entries, learnings and solutions by words."),
            CommandEntry("brief", "inspecting:brief", "Summarize the memory that matters for a task."),
            CommandEntry("verify", "inspecting:verify", "Check the files and lines that entries cite."),
            CommandEntry("show", "inspecting:show", "Show roles, entries or one entry."),
            CommandEntry("explain", "inspecting:explain", "Explain why an entry stays or leaves."),
            CommandEntry("gate", "inspecting:gate", "Show whether a project's memory may be written now."),
            CommandEntry("jobs", "inspecting:jobs", "List jobs, or retry one."),
            CommandEntry("log", "inspecting:log", "List the changes that echod made, or show one as a diff."),
            CommandEntry("picture", "inspecting:picture", "Draw the memory over time."),
            CommandEntry("projects", "inspecting:projects", "List the registered projects."),
            CommandEntry("review", "inspecting:review", "List review items, or answer them."),
            CommandEntry("remembrance", "inspecting:remembrance", "List, search and check the solutions for people."),
            CommandEntry("audit", "inspecting:audit", "List the entries of the global store with their origin."),
        ),
    ),
    (
        "Curate",
        (
            CommandEntry("remember", "curating:remember", "Add a note to a project's memory."),
            CommandEntry("pin", "curating:pin", "Keep an entry from being removed for some time."),
            CommandEntry("unpin", "curating:unpin", "Remove the pin of an entry."),
            CommandEntry("raise", "curating:raise_", "Move an entry to another layer."),
            CommandEntry("forget", "curating:forget", "Move an entry to the archive."),
            CommandEntry("restore", "curating:restore", "Restore an archived entry."),
            CommandEntry("undo", "curating:undo", "Undo the changes of a job."),
            CommandEntry("reset", "curating:reset", "Archive all entries of a project or role and start over."),
            CommandEntry("elevate", "curating:elevate", "Copy an entry to the global store."),
            CommandEntry("promote", "curating:promote_", "Promote an entry to a solution in docs/solutions."),
            CommandEntry("packs", "curating:packs", "Install and update doc packs."),
        ),
    ),
    (
        "Maintain",
        (
            CommandEntry("run", "maintaining:run", "Run the service in the foreground, or once with --once."),
            CommandEntry("consolidate", "maintaining:consolidate", "Add the findings of agents to the memory now."),
            CommandEntry("ingest", "maintaining:ingest", "Turn the reports of workflows into memory now."),
            CommandEntry("prune", "maintaining:prune", "Archive entries from memory files over their limit."),
            CommandEntry("compress", "maintaining:compress", "Shorten knowledge files over their limit."),
            CommandEntry("migrate", "maintaining:migrate", "Bring names and layout of a memory up to date."),
            CommandEntry("scrub", "maintaining:scrub", "Find and remove secrets on disk."),
            CommandEntry("pause", "maintaining:pause", "Stop writing to memory until `echod resume`."),
            CommandEntry("resume", "maintaining:resume", "Resume writing to memory."),
            CommandEntry("sync", "maintaining:sync", "Keep the memory of several clones and machines together."),
            CommandEntry("move", "maintaining:move", "Tell echod that a project was moved or renamed."),
            CommandEntry("remove", "maintaining:remove", "Unregister a project."),
        ),
    ),
    (
        "Integrations",
        (
            CommandEntry("sessions", "integrating:sessions", "Archive the conversations of agents, and search them."),
            CommandEntry("claude", "integrating:claude", "Connect Claude Code through its plugin."),
            CommandEntry("mcp", "integrating:mcp", "Serve search to an agent through MCP."),
            CommandEntry("hook", "integrating:hook", "Record a hook event of an agent."),
            CommandEntry("record-access", "integrating:record_access", "Record that entries were referenced."),
            CommandEntry(
                "import-access",
                "integrating:import_access",
                "Import the access log of the workflow plugin's search index.",
            ),
            CommandEntry("workflow", "integrating:workflow", "Declare the begin or end of a workflow."),
            CommandEntry("merge-driver", "integrating:merge_driver", "Merge a memory file by entry, for git."),
        ),
    ),
)
"""Every command, in the order of help. Help prints the table without importing the commands."""

_NEXT_STEPS: Final = (
    ("echod help COMMAND", "Options and an example of a command."),
    ("echod status", "The service, your projects, and what needs you."),
    ("echod doctor", "A check of the installation, with fixes."),
)

_ENTRIES: Final = {entry.name: entry for _, entries in SECTIONS for entry in entries}


class CommandGroup(click.Group):
    """A command with subcommands. Help and completion list them in the order of their declaration."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002  the signature is click's
        """List the subcommands in the order of their declaration."""
        return list(self.commands)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Complete subcommands, with their whole summaries, and options."""
        return [
            *(
                CompletionItem(name, help=command.get_short_help_str(_MAX_SUMMARY_LENGTH))
                for name, command in self.commands.items()
                if name.startswith(incomplete)
            ),
            *click.Command.shell_complete(self, ctx, incomplete),
        ]


class ArgumentOrCommandGroup(CommandGroup):
    """A group with arguments of its own, unless the first word is the name of a subcommand."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Decide by the first word whether a subcommand is meant."""
        first = next((word for word in args if not word.startswith("-")), None)
        ctx.meta[_SUBCOMMAND_KEY] = first in self.commands
        ctx.allow_interspersed_args = first not in self.commands
        ctx.meta[_FIRST_WORD_KEY] = first
        return super().parse_args(ctx, args)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the subcommand. If a further word is none, the first word was meant as one."""
        if args[0] not in self.commands and ctx.meta[_FIRST_WORD_KEY] is not None:
            raise click.NoSuchCommand(ctx.meta[_FIRST_WORD_KEY], possibilities=self.commands, ctx=ctx)
        return super().resolve_command(ctx, args)

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Return the parameters, without arguments if a subcommand is meant."""
        params = super().get_params(ctx)
        return [p for p in params if not isinstance(p, click.Argument)] if ctx.meta.get(_SUBCOMMAND_KEY) else params


class LazyGroup(click.Group):
    """The root of the command line. A command's module is imported when the command is looked up."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002  the signature is click's
        """List all commands in the order of the table."""
        return list(_ENTRIES)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002  click's
        """Import a command. Return None if there is no command of that name."""
        entry = _ENTRIES.get(cmd_name)
        if entry is None:
            return None
        module, _, attribute = entry.target.partition(":")
        command = getattr(import_module(f"echod.cli.declarations.{module}"), attribute)
        assert isinstance(command, click.Command)  # noqa: S101  a test checks the table against the modules
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command that the first argument names. An error suggests similar names from the table."""
        try:
            return super().resolve_command(ctx, args)
        except click.NoSuchCommand as error:
            raise click.NoSuchCommand(error.command_name, possibilities=_ENTRIES, ctx=ctx) from None

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments. Options of echod itself are moved in front of the command."""
        end = args.index("--") if "--" in args else len(args)
        options, rest = args[:end], args[end:]
        moved = [word for word in options if word in OPTIONS_ANYWHERE]
        remaining = [word for word in options if word not in OPTIONS_ANYWHERE]
        return super().parse_args(ctx, [*moved, *remaining, *rest])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Complete commands from the table, without importing them, and the options of echod itself."""
        return [*complete_command(incomplete), *click.Command.shell_complete(self, ctx, incomplete)]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002  click's
        """Write the commands into the help, by section."""
        for title, entries in SECTIONS:
            with formatter.section(title):
                formatter.write_dl([(entry.name, entry.summary) for entry in entries])

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002  click's
        """Write the next steps at the end of the help."""
        with formatter.section("Learn more"):
            formatter.write_dl(_NEXT_STEPS)


def complete_command(incomplete: str) -> list[CompletionItem]:
    """Return the commands whose names begin with `incomplete`."""
    return [
        CompletionItem(entry.name, help=entry.summary)
        for entry in _ENTRIES.values()
        if entry.name.startswith(incomplete)
    ]


@click.group("echod", cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 80})
@click.option("--config", metavar="FILE", type=PATH, help="Read the settings from FILE.")
@click.option("-q", "--quiet", is_flag=True, help="Print only errors and requested output.")
@click.option("--no-color", is_flag=True, help="Print without colours, as NO_COLOR does.")
@click.option(
    "-V",
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=lambda ctx, _, asked: _print_version(ctx) if asked else None,
    help="Print the version and exit.",
)
@click.pass_context
def app(ctx: click.Context, *, config: Path | None, quiet: bool, no_color: bool) -> None:
    """Keep your coding agents' Markdown memory short, safe and explained."""

    def build_context() -> CommandContext:
        return command_contexts.CommandContext.from_process(config, quiet=quiet, no_color=no_color)

    ctx.obj = build_context


def _print_version(ctx: click.Context) -> None:
    """Print the version, and the commit if this is a checkout or was installed from one."""
    click.echo(f"{ctx.command_path} {version_text()}")
    ctx.exit()


def version_text() -> str:
    """Return the version, and the commit of the source if it is known: `0.1.0 (commit 4f2c9a1b0d)`."""
    commit = git.read_commit(Path(echod.__file__).parents[1]) or _installed_commit()
    return echod.__version__ if commit is None else f"{echod.__version__} (commit {commit[:_SHORT_COMMIT_DIGITS]})"


def _installed_commit() -> str | None:
    """Return the commit that an installer fetched, as recorded by PEP 610 in `direct_url.json`."""
    try:
        record = json.loads(metadata.distribution("echod-memory").read_text("direct_url.json") or "{}")
        commit = record.get("vcs_info", {}).get("commit_id")
    except (metadata.PackageNotFoundError, ValueError, AttributeError, OSError):
        return None
    return commit if isinstance(commit, str) else None


def run_command_line(arguments: Sequence[str]) -> int:
    """Run a command line, or answer a shell that requests completions. Return the exit code.

    Raises:
        EchodError: the command failed; its text is for the user.
    """
    if instruction := os.environ.get(COMPLETE_VARIABLE):
        return print_completions(instruction)
    try:
        with app.make_context("echod", list(arguments)) as ctx:
            app.invoke(ctx)
    except click.exceptions.Exit as end:
        return end.exit_code
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        return error.exit_code
    except click.ClickException as error:
        output.print_error(usage_errors.usage_sentence(error, _ENTRIES))
        return error.exit_code
    except click.Abort:
        click.echo("Cancelled. Nothing was changed.", err=True)
        return ExitCode.FAILED
    return ExitCode.OK


def print_completions(instruction: str) -> int:
    """Print the completions, or the script, that a shell requests through `COMPLETE_VARIABLE`.

    Returns:
        the exit code: 1 for an unknown instruction.
    """
    options.use_own_scripts()
    return shell_complete(app, {}, "echod", COMPLETE_VARIABLE, instruction)


def command_context(ctx: click.Context) -> CommandContext:
    """Build the context of the command. It is built here and not earlier, since help does not need it."""
    build_context: Callable[[], CommandContext] = ctx.obj
    return build_context()


def implemented_by(
    find_function: Callable[[], Callable[Concatenate[CommandContext, ...], None]],
) -> Callable[[Callable[[], None]], Callable[..., None]]:
    """Return the decorator of a declaration, which has the name, the options and the help of a command.

    `find_function` returns the function of the command, in a module of `cli/commands`. It is called when the command
    runs, and so loads what help does without. A group runs its function only without a subcommand.
    """

    def decorate(declaration: Callable[[], None]) -> Callable[..., None]:
        def run(**arguments: object) -> None:
            ctx = click.get_current_context()
            if ctx.invoked_subcommand is None:
                find_function()(command_context(ctx), **arguments)

        return update_wrapper(run, declaration)

    return decorate


def example(command: str) -> str:
    """Return the last line of a command's help."""
    return f"Example: {command}"
