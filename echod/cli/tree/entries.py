"""Commands about single entries."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from echod.cli.tree.base import app, example, shell_of
from echod.cli.tree.options import AsOf, DryRun, EntryId, Force, Global, Json, Where, Yes


class OwnLayer(StrEnum):
    """The layers that a person gives and takes."""

    ETCHED = "etched"
    NOTES = "notes"
    INSCRIBED = "inscribed"


@app.command(epilog=example("echod explain 4f1c ~/src/my-project --as-of 2027-03-01"))
def explain(context: typer.Context, entry: EntryId, path: Where = None, as_of: AsOf = None, json: Json = False) -> None:
    """Why does an entry stay, or go? Its score, each rule, and when that would apply."""
    from echod.cli.entries import explain_entry

    explain_entry(shell_of(context), entry, path, as_of=as_of, as_json=json)


@app.command("record-access", epilog=example("echod record-access 4f1c 93ab --session $SESSION"))
def record_access(
    context: typer.Context,
    entries: Annotated[list[str], typer.Argument(metavar="ENTRY", help="Ids of entries, or how they begin.")],
    session: Annotated[
        str | None,
        typer.Option(
            "--session", metavar="KEY", help="Whatever names the session; it counts once.", show_default=False
        ),
    ] = None,
    project: Annotated[
        Path | None,
        typer.Option("--project", metavar="PATH", help="The project; default: the one we are in.", show_default=False),
    ] = None,
) -> None:
    """Entries were of use: each counts as referenced, once for a session or workflow where that is known."""
    from echod.cli.entries import record_access

    record_access(shell_of(context), entries, project, session)


@app.command(epilog=example("echod pin 4f1c ~/src/my-project"))
def pin(context: typer.Context, entry: EntryId, path: Where = None) -> None:
    """Keep an entry as it is for a while (`policy.pin_days`), whatever the rules say."""
    from echod.cli.entries import pin

    pin(shell_of(context), entry, path)


@app.command(epilog=example("echod unpin 4f1c ~/src/my-project"))
def unpin(context: typer.Context, entry: EntryId, path: Where = None) -> None:
    """Let the rules hold again for an entry."""
    from echod.cli.entries import unpin

    unpin(shell_of(context), entry, path)


@app.command("raise", epilog=example("echod raise 4f1c etched"))
def raise_(
    context: typer.Context,
    entry: EntryId,
    layer: Annotated[OwnLayer, typer.Argument(case_sensitive=False, help="The layer that it is to have.")],
    path: Where = None,
    dry_run: DryRun = False,
    yes: Yes = False,
    force: Force = False,
) -> None:
    """Put an entry into another layer; nothing else of it changes.

    No rule touches what is etched or a note. Only a person gives these layers, and takes them away again.
    """
    from echod.cli.by_hand import Wish
    from echod.cli.one_entry import raise_entry
    from echod.memory.model import Layer

    raise_entry(shell_of(context), entry, Layer(layer.value), path, Wish(dry_run, yes, force))


@app.command(epilog=example("echod forget 4f1c ~/src/my-project"))
def forget(
    context: typer.Context,
    entry: EntryId,
    path: Where = None,
    in_global: Global = False,
    dry_run: DryRun = False,
    yes: Yes = False,
    force: Force = False,
) -> None:
    """Take an entry out of the memory for good, whatever its layer. Its text stays in the archive."""
    from echod.cli.by_hand import Wish, place_meant
    from echod.cli.one_entry import forget

    forget(shell_of(context), entry, place_meant(path, in_global=in_global), Wish(dry_run, yes, force))


@app.command(epilog=example("echod restore 4f1c ~/src/my-project"))
def restore(
    context: typer.Context,
    entry: EntryId,
    path: Where = None,
    in_global: Global = False,
    dry_run: DryRun = False,
    force: Force = False,
) -> None:
    """Bring an entry back from the archive, word for word. It is pinned then (`policy.pin_days`)."""
    from echod.cli.by_hand import Wish, place_meant
    from echod.cli.one_entry import restore

    restore(shell_of(context), entry, place_meant(path, in_global=in_global), Wish(dry_run, yes=True, force=force))
