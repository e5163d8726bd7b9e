"""Commands about single entries."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

import click

from echod.cli import options
from echod.cli.root import app, example, pass_command_context

if TYPE_CHECKING:
    from echod.cli.context import CommandContext


class SettableLayer(StrEnum):
    """The layers that a person gives and takes."""

    ETCHED = "etched"
    NOTES = "notes"
    INSCRIBED = "inscribed"


@app.command(epilog=example("echod explain 4f1c ~/src/my-project --as-of 2027-03-01"))
@options.entry
@options.project_path_or_all
@options.as_of
@options.json
@pass_command_context
def explain(context: CommandContext, *, entry: str, path: Path | None, as_of: str | None, json: bool) -> None:
    """Why does an entry stay, or go? Its score, each rule, and when that would apply."""
    from echod.cli.entries import explain_entry

    explain_entry(context, entry, path, as_of=as_of, as_json=json)


@app.command("record-access", epilog=example("echod record-access 4f1c 93ab --session $SESSION"))
@click.argument("entries", metavar="ENTRY...", nargs=-1, required=True, help="Ids of entries, or how they begin.")
@click.option("--session", metavar="KEY", help="Whatever names the session; it counts once.")
@options.project_option
@pass_command_context
def record_access(
    context: CommandContext, *, entries: tuple[str, ...], session: str | None, project: Path | None
) -> None:
    """Entries were of use: each counts as referenced, once for a session or workflow where that is known."""
    from echod.cli.entries import record_references

    record_references(context, entries, project, session)


@app.command(epilog=example("echod pin 4f1c ~/src/my-project"))
@options.entry
@options.project_path_or_all
@pass_command_context
def pin(context: CommandContext, *, entry: str, path: Path | None) -> None:
    """Keep an entry as it is for a while (`policy.pin_days`), whatever the rules say."""
    from echod.cli.entries import pin_entry

    pin_entry(context, entry, path)


@app.command(epilog=example("echod unpin 4f1c ~/src/my-project"))
@options.entry
@options.project_path_or_all
@pass_command_context
def unpin(context: CommandContext, *, entry: str, path: Path | None) -> None:
    """Let the rules hold again for an entry."""
    from echod.cli.entries import unpin_entry

    unpin_entry(context, entry, path)


@app.command("raise", epilog=example("echod raise 4f1c etched"))
@options.entry
@click.argument("layer", type=click.Choice(SettableLayer, case_sensitive=False), help="The layer that it is to have.")
@options.project_path_or_all
@options.dry_run
@options.yes
@options.force
@pass_command_context
def raise_(
    context: CommandContext,
    *,
    entry: str,
    layer: SettableLayer,
    path: Path | None,
    dry_run: bool,
    yes: bool,
    force: bool,
) -> None:
    """Put an entry into another layer; nothing else of it changes.

    No rule touches what is etched or a note. Only a person gives these layers, and takes them away again.
    """
    from echod.cli.by_hand import WriteOptions
    from echod.cli.commands.entries import raise_entry
    from echod.memory.model import Layer

    raise_entry(context, entry, Layer(layer.value), path, WriteOptions(dry_run, yes, force))


@app.command(epilog=example("echod forget 4f1c ~/src/my-project"))
@options.entry
@options.project_path_or_all
@options.in_global
@options.dry_run
@options.yes
@options.force
@pass_command_context
def forget(
    context: CommandContext, *, entry: str, path: Path | None, in_global: bool, dry_run: bool, yes: bool, force: bool
) -> None:
    """Take an entry out of the memory for good, whatever its layer. Its text stays in the archive."""
    from echod.cli.by_hand import WriteOptions, parse_scope
    from echod.cli.commands.entries import forget_entry

    forget_entry(context, entry, parse_scope(path, in_global=in_global), WriteOptions(dry_run, yes, force))


@app.command(epilog=example("echod restore 4f1c ~/src/my-project"))
@options.entry
@options.project_path_or_all
@options.in_global
@options.dry_run
@options.force
@pass_command_context
def restore(
    context: CommandContext, *, entry: str, path: Path | None, in_global: bool, dry_run: bool, force: bool
) -> None:
    """Bring an entry back from the archive, word for word. It is pinned then (`policy.pin_days`)."""
    from echod.cli.by_hand import WriteOptions, parse_scope
    from echod.cli.commands.entries import restore_archived_entry

    restore_archived_entry(
        context, entry, parse_scope(path, in_global=in_global), WriteOptions(dry_run, yes=True, force=force)
    )
