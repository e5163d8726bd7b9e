"""Commands about single entries."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

import click

from echod.cli.tree import options
from echod.cli.tree.base import app, example, with_shell

if TYPE_CHECKING:
    from echod.cli.shell import Shell


class OwnLayer(StrEnum):
    """The layers that a person gives and takes."""

    ETCHED = "etched"
    NOTES = "notes"
    INSCRIBED = "inscribed"


@app.command(epilog=example("echod explain 4f1c ~/src/my-project --as-of 2027-03-01"))
@options.entry
@options.where
@options.as_of
@options.json
@with_shell
def explain(shell: Shell, *, entry: str, path: Path | None, as_of: str | None, json: bool) -> None:
    """Why does an entry stay, or go? Its score, each rule, and when that would apply."""
    from echod.cli.entries import explain_entry

    explain_entry(shell, entry, path, as_of=as_of, as_json=json)


@app.command("record-access", epilog=example("echod record-access 4f1c 93ab --session $SESSION"))
@click.argument("entries", metavar="ENTRY...", nargs=-1, required=True, help="Ids of entries, or how they begin.")
@click.option("--session", metavar="KEY", help="Whatever names the session; it counts once.")
@options.in_project
@with_shell
def record_access(shell: Shell, *, entries: tuple[str, ...], session: str | None, project: Path | None) -> None:
    """Entries were of use: each counts as referenced, once for a session or workflow where that is known."""
    from echod.cli.entries import record_access

    record_access(shell, entries, project, session)


@app.command(epilog=example("echod pin 4f1c ~/src/my-project"))
@options.entry
@options.where
@with_shell
def pin(shell: Shell, *, entry: str, path: Path | None) -> None:
    """Keep an entry as it is for a while (`policy.pin_days`), whatever the rules say."""
    from echod.cli.entries import pin

    pin(shell, entry, path)


@app.command(epilog=example("echod unpin 4f1c ~/src/my-project"))
@options.entry
@options.where
@with_shell
def unpin(shell: Shell, *, entry: str, path: Path | None) -> None:
    """Let the rules hold again for an entry."""
    from echod.cli.entries import unpin

    unpin(shell, entry, path)


@app.command("raise", epilog=example("echod raise 4f1c etched"))
@options.entry
@click.argument("layer", type=click.Choice(OwnLayer, case_sensitive=False), help="The layer that it is to have.")
@options.where
@options.dry_run
@options.yes
@options.force
@with_shell
def raise_(
    shell: Shell, *, entry: str, layer: OwnLayer, path: Path | None, dry_run: bool, yes: bool, force: bool
) -> None:
    """Put an entry into another layer; nothing else of it changes.

    No rule touches what is etched or a note. Only a person gives these layers, and takes them away again.
    """
    from echod.cli.by_hand import Wish
    from echod.cli.one_entry import raise_entry
    from echod.memory.model import Layer

    raise_entry(shell, entry, Layer(layer.value), path, Wish(dry_run, yes, force))


@app.command(epilog=example("echod forget 4f1c ~/src/my-project"))
@options.entry
@options.where
@options.in_global
@options.dry_run
@options.yes
@options.force
@with_shell
def forget(
    shell: Shell, *, entry: str, path: Path | None, in_global: bool, dry_run: bool, yes: bool, force: bool
) -> None:
    """Take an entry out of the memory for good, whatever its layer. Its text stays in the archive."""
    from echod.cli.by_hand import Wish, place_meant
    from echod.cli.one_entry import forget

    forget(shell, entry, place_meant(path, in_global=in_global), Wish(dry_run, yes, force))


@app.command(epilog=example("echod restore 4f1c ~/src/my-project"))
@options.entry
@options.where
@options.in_global
@options.dry_run
@options.force
@with_shell
def restore(shell: Shell, *, entry: str, path: Path | None, in_global: bool, dry_run: bool, force: bool) -> None:
    """Bring an entry back from the archive, word for word. It is pinned then (`policy.pin_days`)."""
    from echod.cli.by_hand import Wish, place_meant
    from echod.cli.one_entry import restore

    restore(shell, entry, place_meant(path, in_global=in_global), Wish(dry_run, yes=True, force=force))
