"""Commands about what waits for a person."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from echod.cli.tree.base import app, example, shell_of
from echod.cli.tree.options import DryRun, Force, Json, Where, Yes

if TYPE_CHECKING:
    from echod.state.answers import Answer

_BELOW = "echod.review.below"


class _PathOrCommand(TyperGroup):
    """A group whose own argument is a PATH, unless the first word is the name of a command below it."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        first = next((word for word in args if not word.startswith("-")), None)
        ctx.meta[_BELOW] = first in self.commands
        ctx.allow_interspersed_args = first not in self.commands
        return super().parse_args(ctx, args)

    def get_params(self, ctx: Any) -> list[Any]:
        params = super().get_params(ctx)
        return [p for p in params if p.param_type_name != "argument"] if ctx.meta.get(_BELOW) else params


review_app = typer.Typer(
    help="List what waits for you; accept or reject it.",
    cls=_PathOrCommand,
    invoke_without_command=True,
    rich_markup_mode=None,
)
app.add_typer(review_app, name="review", epilog=example("echod review --json"))

Ids = Annotated[list[str], typer.Argument(metavar="ID", help="What `echod review` shows first, or how it begins.")]
InProject = Annotated[
    Path | None,
    typer.Option("--project", metavar="PATH", help="Only what waits in this project.", show_default=False),
]


@review_app.callback()
def review(context: typer.Context, path: Where = None, json: Json = False) -> None:
    """List what waits for you, with what accepting and rejecting it would change."""
    if context.invoked_subcommand is None:
        from echod.cli.review import show_review

        show_review(shell_of(context), path, as_json=json)


@review_app.command(epilog=example("echod review accept 1f0c9a2b --dry-run"))
def accept(
    context: typer.Context,
    ids: Ids,
    project: InProject = None,
    dry_run: DryRun = False,
    yes: Yes = False,
    force: Force = False,
) -> None:
    """Do what an item proposes. `echod review` says what that changes."""
    from echod.state.answers import Answer

    _answer(context, ids, Answer.ACCEPTED, project, dry_run=dry_run, yes=yes, force=force)


@review_app.command(epilog=example("echod review reject 1f0c9a2b 77aa01de"))
def reject(
    context: typer.Context,
    ids: Ids,
    project: InProject = None,
    dry_run: DryRun = False,
    yes: Yes = False,
    force: Force = False,
) -> None:
    """Do not do what an item proposes, and do not list it again while it says the same."""
    from echod.state.answers import Answer

    _answer(context, ids, Answer.REJECTED, project, dry_run=dry_run, yes=yes, force=force)


def _answer(
    context: typer.Context,
    ids: list[str],
    answer: Answer,
    project: Path | None,
    *,
    dry_run: bool,
    yes: bool,
    force: bool,
) -> None:
    from echod.cli.by_hand import Wish
    from echod.cli.review import answer_items

    answer_items(shell_of(context), ids, answer, project, Wish(dry_run=dry_run, yes=yes, force=force))
