"""`echod help` and `echod completion`: commands about the command line itself. Small, since `root` does the work."""

from __future__ import annotations

import click
from click.shell_completion import CompletionItem

from echod.cli.root import complete_command, example, print_completions, run_command_line


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
