"""Settle the files that echod keeps beside memory, and delete leftovers, for commands that remove or check things."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import click

from echod.app.moved_projects import settle_stores
from echod.cli.context import CommandContext
from echod.cli.execute import Confirmation, confirm
from echod.cli.output import short_path, wrap
from echod.errors import EchodError
from echod.memory.text import pluralize
from echod.store.layout import Store
from echod.store.leftovers import Leftover, delete_leftover, find_leftovers, list_exposed_files


def settle_and_report(context: CommandContext, stores: Sequence[Store]) -> None:
    """Empty the private directories of these stores as far as possible, and name the files that remain in them."""
    if not context.paths.journal.is_dir():
        return
    try:
        remaining = settle_stores(context.paths, stores, context.now)
    except EchodError as error:
        click.echo(wrap(f"Replaced versions of files remain in .echod: {error}", indent="! "), err=True)
        return
    for path in remaining:
        text = "is a replaced version that another program has open, or that no change knows."
        click.echo(wrap(f"{short_path(str(path))} {text}", indent="! "), err=True)
    if remaining or any(True for store in stores for _ in list_exposed_files(store)):
        click.echo(wrap("To delete such files once no program uses them: echod doctor --fix", indent="> "), err=True)


def delete_leftovers(context: CommandContext, stores: Iterable[Store], *, yes: bool) -> None:
    """List the leftovers of these stores, ask, and delete those whose text is known elsewhere.

    Raises:
        UsageError: there is no terminal to ask at.
        StoreError: one cannot be deleted.
    """
    leftovers = [leftover for store in stores for leftover in find_leftovers(store, context.paths.journal)]
    known = [leftover for leftover in leftovers if leftover.known]
    _print_leftovers(leftovers)
    if not known:
        return
    if not yes:
        confirm(context, Confirmation(f"Delete {pluralize(len(known), 'file')}?"))
    for leftover in known:
        delete_leftover(leftover)
    context.print_info(f"{pluralize(len(known), 'file')} deleted.")


def _print_leftovers(leftovers: Iterable[Leftover]) -> None:
    for leftover in leftovers:
        reason = "" if leftover.known else "  (kept: its text is nowhere else)"
        click.echo(f"{short_path(str(leftover.path))}{reason}")
