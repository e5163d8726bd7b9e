"""Commands about what waits for a person."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from echod.cli import options
from echod.cli.options import PATH
from echod.cli.root import app, command_context, example, pass_command_context
from echod.cli.tree.root import CommandGroup

if TYPE_CHECKING:
    from echod.cli.context import CommandContext

_SUBCOMMAND_KEY = "echod.review.subcommand"


class _PathOrCommandGroup(CommandGroup):
    """A group whose own argument is a PATH, unless the first word is the name of a command below it."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        first = next((word for word in args if not word.startswith("-")), None)
        ctx.meta[_SUBCOMMAND_KEY] = first in self.commands
        ctx.allow_interspersed_args = first not in self.commands
        return super().parse_args(ctx, args)

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        params = super().get_params(ctx)
        return [p for p in params if not isinstance(p, click.Argument)] if ctx.meta.get(_SUBCOMMAND_KEY) else params


@app.group(cls=_PathOrCommandGroup, invoke_without_command=True, epilog=example("echod review --json"))
@options.project_path_or_all
@options.json
@click.pass_context
def review(ctx: click.Context, *, json: bool, path: Path | None = None) -> None:
    """List what waits for you; accept or reject it."""
    if ctx.invoked_subcommand is None:
        from echod.cli.commands.review import show_review

        show_review(command_context(ctx), path, as_json=json)


ids_argument = click.argument(
    "ids", metavar="ID...", nargs=-1, required=True, help="What `echod review` shows first, or how it begins."
)
only_project_option = click.option("--project", metavar="PATH", type=PATH, help="Only what waits in this project.")


@review.command(epilog=example("echod review accept 1f0c9a2b --dry-run"))
@ids_argument
@only_project_option
@options.dry_run
@options.yes
@options.force
@pass_command_context
def accept(
    context: CommandContext, *, ids: tuple[str, ...], project: Path | None, dry_run: bool, yes: bool, force: bool
) -> None:
    """Do what an item proposes. `echod review` says what that changes."""
    from echod.cli.by_hand import WriteOptions
    from echod.cli.commands.review import answer_review_items
    from echod.state.review_answers import ReviewAnswer

    answer_review_items(
        context, ids, ReviewAnswer.ACCEPTED, project, WriteOptions(dry_run=dry_run, yes=yes, force=force)
    )


@review.command(epilog=example("echod review reject 1f0c9a2b 77aa01de"))
@ids_argument
@only_project_option
@options.dry_run
@options.yes
@options.force
@pass_command_context
def reject(
    context: CommandContext, *, ids: tuple[str, ...], project: Path | None, dry_run: bool, yes: bool, force: bool
) -> None:
    """Do not do what an item proposes, and do not list it again while it says the same."""
    from echod.cli.by_hand import WriteOptions
    from echod.cli.commands.review import answer_review_items
    from echod.state.review_answers import ReviewAnswer

    answer_review_items(
        context, ids, ReviewAnswer.REJECTED, project, WriteOptions(dry_run=dry_run, yes=yes, force=force)
    )
