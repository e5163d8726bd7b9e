"""The commands to begin with: their names, options and help. See `cli/declarations`."""

from __future__ import annotations

import click
from click.shell_completion import CompletionItem

from echod.cli import commands, options
from echod.cli.options import PATH, WholeNumber
from echod.cli.root import CommandGroup, complete_command, example, implemented_by, print_completions, run_command_line


@click.command(epilog=example("echod demo"))
@click.option("--keep", is_flag=True, help="Keep the temporary directory for a look around.")
@implemented_by(lambda: commands.demo.demo)
def demo() -> None:
    """Watch echod work on a made-up project, in under a minute.

    Runs the real service in a temporary directory: findings, a busy workflow, a prune, an undo and a search.
    """


@click.command(epilog=example("echod init ~/src/my-project --roles reviewer,workers,team"))
@click.argument("path", type=PATH, required=False, help="The project; default: the current one.")
@click.option("--roles", metavar="A,B,...", help="Create only these roles.")
@click.option("--layout", metavar="rune|claude", help="The directory: .rune/echoes or .claude/echoes.")
@click.option("--no-ignore", is_flag=True, help="Leave .gitignore as it is.")
@click.option("--sessions", is_flag=True, help="Also archive conversations about the project (docs/sessions.md).")
@click.option("--dry-run", is_flag=True, help="Only show what would be created.")
@implemented_by(lambda: commands.init.init)
def init() -> None:
    """Create a project's memory directory with its roles.

    It is created at the root of the git repository, else in the directory itself. An existing memory directory is kept.
    The default is .claude/echoes if there is only .claude, else .rune/echoes. In a repository, .gitignore gets a line.
    """


@click.command(epilog=example("echod add ~/src/my-project"))
@options.project_path
@implemented_by(lambda: commands.projects.add)
def add() -> None:
    """Register a project for maintenance."""


replace_option = click.option(
    "--force", is_flag=True, help="Also replace or remove a service file that echod did not write."
)


@click.group(cls=CommandGroup)
def service() -> None:
    """Install and control the background service.

    It is a user service of systemd. On macOS it is an agent of launchd, which is experimental: it was never run there.
    """


@service.command("install", epilog=example("echod service install"))
@replace_option
@options.dry_run
@implemented_by(lambda: commands.service.install)
def service_install() -> None:
    """Install and start the service for this user.

    Enables it at login, and waits until it answers.
    """


@service.command("upgrade", epilog=example("echod service upgrade"))
@options.dry_run
@implemented_by(lambda: commands.service.upgrade)
def service_upgrade() -> None:
    """Update the service after an upgrade of echod.

    Restarts it if anything changed.
    """


@service.command("uninstall", epilog=example("echod service uninstall"))
@replace_option
@options.dry_run
@implemented_by(lambda: commands.service.uninstall)
def service_uninstall() -> None:
    """Stop the service and remove it. Memories, state and settings stay.

    Replaced versions of files, which echod follows for a day, are merged and deleted now.
    """


@service.command("start", epilog=example("echod service start"))
@implemented_by(lambda: commands.service.start)
def service_start() -> None:
    """Start the installed service, and wait until it answers."""


@service.command("stop", epilog=example("echod service stop"))
@implemented_by(lambda: commands.service.stop)
def service_stop() -> None:
    """Stop the service until the next login."""


@service.command("restart", epilog=example("echod service restart"))
@implemented_by(lambda: commands.service.restart)
def service_restart() -> None:
    """Stop and start the service, and wait until it answers."""


@service.command("logs", epilog=example("echod service logs --lines 50 --follow"))
@click.option(
    "--lines", metavar="N", type=WholeNumber(min=1), default=100, show_default=True, help="The number of lines."
)
@click.option("--follow", is_flag=True, help="Keep printing new lines.")
@implemented_by(lambda: commands.service.logs)
def service_logs() -> None:
    """Show the log of the service."""


@click.group(cls=CommandGroup)
def config() -> None:
    """Show, write and check the settings."""


@config.command("show", epilog=example("echod config show --json"))
@options.json
@implemented_by(lambda: commands.config.show)
def config_show() -> None:
    """List the effective settings.

    Those that differ from the default come first, marked with *, each with its
    source: a file and line, or an environment variable.
    """


@config.command("path", epilog=example("echod config path"))
@implemented_by(lambda: commands.config.path)
def config_path() -> None:
    """Print the path of the settings file, even if it does not exist."""


@config.command("check", epilog=example("echod config check"))
@implemented_by(lambda: commands.config.check)
def config_check() -> None:
    """Check the settings.

    Exits with 78 if they are invalid, and prints every wrong key with file, line and the most likely correct key.
    To check another file: echod --config FILE config check
    """


@config.command("init", epilog=example("echod config init"))
@options.dry_run
@implemented_by(lambda: commands.config.init)
def config_init() -> None:
    """Write a settings file in which every setting is a comment.

    An existing file is never changed.
    """


@config.command("edit", epilog=example("echod config edit"))
@implemented_by(lambda: commands.config.edit)
def config_edit() -> None:
    """Open the settings file in your editor, and check it afterwards.

    The editor is $VISUAL or $EDITOR. The file is written first if there is none.
    """


@click.command(epilog=example("echod doctor ~/src/my-project"))
@click.argument("path", type=PATH, required=False, help="Check only this project.")
@click.option("--auto-memory", is_flag=True, help="Check Claude Code's own memory instead, of PATH or of all projects.")
@click.option(
    "--fix",
    is_flag=True,
    help="Delete leftovers of echod's own in projects, or repair the pointers of auto memory, after asking.",
)
@options.yes
@click.option("-v", "--verbose", is_flag=True, help="List every finding, and the checks that passed.")
@options.json
@implemented_by(lambda: commands.doctor.doctor)
def doctor() -> None:
    """Check the installation and suggest fixes.

    Exits with 1 if there is a problem. Without --fix no file of a project is written. --auto-memory reads the memory
    that Claude Code keeps itself, and that of its subagents.
    """


def _complete_command_name(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:  # noqa: ARG001  click's
    return complete_command(incomplete)


@click.command("help", epilog=example("echod help review accept"))
@click.argument(
    "words",
    metavar="[COMMAND]...",
    nargs=-1,
    shell_complete=_complete_command_name,
    help="A command and its subcommand; default: echod itself.",
)
@click.pass_context
def help_(ctx: click.Context, *, words: tuple[str, ...]) -> None:
    """Show the help of echod or of one command."""
    ctx.exit(run_command_line([*words, "--help"]))


@click.command(epilog=example("echod completion bash >> ~/.bashrc"))
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]), help="The shell that completes echod.")
def completion(*, shell: str) -> None:
    """Print a shell completion script.

    No file is changed. Redirect the output to your shell's startup file, or for fish to
    ~/.config/fish/completions/echod.fish
    """
    print_completions(f"{shell}_source")
