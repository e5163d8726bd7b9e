"""Commands about what waits for a person."""

from __future__ import annotations

import typer

from echod.cli.tree.base import app, example, shell_of
from echod.cli.tree.options import Json, Where


@app.command(epilog=example("echod review --json"))
def review(context: typer.Context, path: Where = None, json: Json = False) -> None:
    """List what a person should look at: doubtful changes, findings that were given back."""
    from echod.cli.review import show_review

    show_review(shell_of(context), path, as_json=json)
