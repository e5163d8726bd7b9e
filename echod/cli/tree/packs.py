"""Commands about doc packs and the global memory."""

from __future__ import annotations

from typing import Annotated

import typer

from echod.cli.tree.base import app, example, shell_of
from echod.cli.tree.options import DryRun, EntryId, Json, Where, Yes

packs_app = typer.Typer(
    help="Curated memory about frameworks, for all your projects.", no_args_is_help=True, rich_markup_mode=None
)
app.add_typer(packs_app, name="packs")

Stack = Annotated[str, typer.Argument(metavar="PACK", help="The pack's name, as `echod packs list` shows it.")]


@packs_app.command("list", epilog=example("echod packs list"))
def list_(context: typer.Context, json: Json = False) -> None:
    """List the packs there are, and which of them are installed."""
    from echod.cli.packs import list_packs

    list_packs(shell_of(context), as_json=json)


@packs_app.command(epilog=example("echod packs install fastapi"))
def install(context: typer.Context, pack: Stack, dry_run: DryRun = False) -> None:
    """Install a pack for all projects. Doing it again changes nothing, and what you changed in it stays."""
    from echod.cli.pack_changes import install

    install(shell_of(context), pack, dry_run=dry_run)


@packs_app.command(epilog=example("echod packs update fastapi"))
def update(
    context: typer.Context,
    pack: Annotated[
        str | None, typer.Argument(metavar="PACK", help="Only this pack; default: all installed.", show_default=False)
    ] = None,
    dry_run: DryRun = False,
) -> None:
    """Bring an installed pack up to the newest version there is. What you changed in it stays."""
    from echod.cli.pack_changes import update

    update(shell_of(context), pack, dry_run=dry_run)


@packs_app.command(epilog=example("echod packs remove fastapi"))
def remove(context: typer.Context, pack: Stack, dry_run: DryRun = False, yes: Yes = False) -> None:
    """Take an installed pack out of the global memory; its text goes to its archive."""
    from echod.cli.pack_changes import remove

    remove(shell_of(context), pack, dry_run=dry_run, yes=yes)


@packs_app.command(epilog=example("echod packs status --json"))
def status(context: typer.Context, json: Json = False) -> None:
    """How old are the installed packs, are they as they were installed, is there something newer?"""
    from echod.cli.packs import show_status

    show_status(shell_of(context), as_json=json)


@app.command(epilog=example("echod audit --json"))
def audit(context: typer.Context, json: Json = False) -> None:
    """Where does everything in the global memory come from?"""
    from echod.cli.audit import audit

    audit(shell_of(context), as_json=json)


@app.command(epilog=example("echod elevate 4f1c --domain backend"))
def elevate(
    context: typer.Context,
    entry: EntryId,
    path: Where = None,
    domain: Annotated[
        str | None,
        typer.Option("--domain", metavar="NAME", help="What it is about; asked if not said.", show_default=False),
    ] = None,
    dry_run: DryRun = False,
) -> None:
    """Copy an entry of a project into the global memory, for all your projects. Secrets are taken out.

    Domains: backend, frontend, devops, database, testing, architecture, design, general.
    """
    from echod.cli.elevate import elevate

    elevate(shell_of(context), entry, path, domain, dry_run=dry_run)
