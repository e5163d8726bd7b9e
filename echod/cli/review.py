"""`echod review`: what a person should look at. Nothing waits for an answer, save findings that were given back."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import typer

from echod.cli.by_hand import stores_meant
from echod.cli.shell import Shell
from echod.cli.text import moment, paragraph, plain, short_path
from echod.contract import ReviewItem, ReviewReport, to_json
from echod.daemon.wiring import Lookout, look_out
from echod.jobs.kept_back import kept_back
from echod.jobs.suspects import suspects
from echod.store.layout import Store


def show_review(shell: Shell, path: Path | None, *, as_json: bool) -> None:
    """Print what there is to look at, store by store, the oldest first."""
    named = stores_meant(shell, path)
    with look_out(shell.paths, shell.settings, shell.environ, shell.now) as lookout:
        stores = lookout.roster().stores if named is None else named
        items = tuple(item for store in stores for item in _items(lookout, store))
    if as_json:
        typer.echo(to_json(ReviewReport(items)))
    elif items:
        typer.echo("\n".join(line for item in items for line in _lines(item, shell.now())))
    else:
        typer.echo("There is nothing to look at.")


def _items(lookout: Lookout, store: Store) -> Iterator[ReviewItem]:
    for review in lookout.engine.reviews(store):
        yield ReviewItem(store.key, review.role, review.kind, review.at, review.text, review.titles)
    for kept in kept_back(lookout.engine, store):
        yield ReviewItem(store.key, kept.role.name, "undone", kept.since, f"{kept.reason} {kept.remedy}")
    for suspect in suspects(store):
        text = f"An entry reads like an instruction to agents ({suspect.phrase}); read it, and remove it if it is one."
        yield ReviewItem(store.key, suspect.role.name, "speaks-to-agents", suspect.at, text, (suspect.title,))


def _lines(item: ReviewItem, now: float) -> Iterator[str]:
    yield f"{moment(item.at, now):<17} {item.kind}  {item.role}  {short_path(item.store)}"
    yield paragraph(plain(item.text), indent="  ")
    for title in item.titles:
        yield paragraph(plain(title), indent="    - ")
