"""`echod review`: what waits for a person; `accept` and `reject` answer it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import click

from echod.app.context import Lookout, look_out
from echod.app.services import House, furnish
from echod.cli.asked import Asked, NotDoneError, carry_out, done
from echod.cli.by_hand import Wish, agree, may_write, stores_meant
from echod.cli.shell import Shell
from echod.cli.text import count, moment, paragraph, plain, short_path
from echod.cli.wake import wake_daemon
from echod.contract.commands import ReviewItem, ReviewReport
from echod.contract.status import to_json
from echod.errors import UsageError
from echod.inspection.review import kept_back
from echod.inspection.review_items import FirstPrune, GivenBack, Item
from echod.jobs import answer_review
from echod.jobs.consolidate import Means
from echod.memory.identity import AmbiguousEntryError, UnknownEntryError, resolve
from echod.state.job import Job, JobKind
from echod.state.review_answers import Answer
from echod.store import layout
from echod.store.changes import Gate
from echod.store.layout import Store


def show_review(shell: Shell, path: Path | None, *, as_json: bool) -> None:
    """Print what there is to look at, store by store, the oldest first."""
    named = stores_meant(shell, path)
    with look_out(shell.paths, shell.settings, shell.environ, shell.now) as lookout:
        items = _items(lookout, lookout.roster().stores if named is None else named, shell.now())
    if as_json:
        click.echo(to_json(ReviewReport(tuple(map(_row, items)))))
    elif items:
        click.echo("\n\n".join("\n".join(_lines(item, shell.now())) for item in items))
        click.echo("\nTo answer: echod review accept ID, or echod review reject ID")
    else:
        click.echo("There is nothing to look at.")


def answer_items(shell: Shell, ids: Sequence[str], answer: Answer, path: Path | None, wish: Wish) -> None:
    """Carry out what a person answers to these items, one after the other.

    Raises:
        UsageError: there is no such item, or a question cannot be asked.
        HeldError: a workflow is at work, or the settings forbid to write; what was answered before stays so.
        EchodError: it cannot be done, the sentence says why.
    """
    with look_out(shell.paths, shell.settings, shell.environ, shell.now) as lookout:
        items = _named(_items(lookout, _near_and_far(shell, lookout, path), shell.now()), ids)
    asks = not wish.yes and any(answer_review.changes_files(item, answer) for item in items)
    shown = (line for item in items for line in (*_head(item, shell.now()), _change(item, answer)))
    shell.lay_out("\n".join(shown), needed=wish.dry_run or asks)
    if wish.dry_run:
        return
    may_write(shell)
    if asks:
        agree(f"Go on with {count(len(items), 'answer')}?")
    with furnish(shell.paths, shell.settings, shell.environ, shell.now) as house:
        for item in items:
            _answer(shell, house, item, answer, force=wish.force)
    wake_daemon(shell)


def _items(lookout: Lookout, stores: Iterable[Store], now: float) -> list[Item]:
    return [item for store in stores for item in _of_store(lookout, store, now)]


def _of_store(lookout: Lookout, store: Store, now: float) -> tuple[Item, ...]:
    roles, notes, care = layout.list_roles(store).found, lookout.reader.notes(store), lookout.care(store.project)
    return lookout.reviews.items(store, roles, notes, care, kept_back(lookout.reader, notes), now)


def _near_and_far(shell: Shell, lookout: Lookout, path: Path | None) -> tuple[Store, ...]:
    """The stores of the named project alone; else of the current directory's, and of all projects."""
    near = stores_meant(shell, path) or ()
    return near if path is not None else tuple(dict.fromkeys((*near, *lookout.roster().stores)))


def _named(items: Sequence[Item], ids: Sequence[str]) -> list[Item]:
    by_id = {item.id: item for item in items}
    found: dict[str, Item] = {}
    for wanted in ids:
        try:
            identity = resolve(wanted, by_id)
        except UnknownEntryError:
            raise UsageError(f"Nothing that waits has the id {plain(wanted)}; see `echod review`.") from None
        except AmbiguousEntryError as error:
            raise UsageError(str(error)) from None
        found[identity] = by_id[identity]
    return list(found.values())


def _answer(shell: Shell, house: House, item: Item, answer: Answer, *, force: bool) -> None:
    if answer_review.changes_files(item, answer):
        _do(shell, house, item, answer, force=force)
        return
    if isinstance(item.subject, FirstPrune) and answer is Answer.ACCEPTED:
        house.entries.let_go(item.role.store.key, [item.role.name])
        house.queue.wake_deferred(item.role.store.key, shell.now())
    if answer_review.is_remembered(item, answer):
        house.entries.answers.note(item.role.store.key, [item.id], answer, shell.now())
    shell.say(f"{item.id}: {answer.value}.")


def _do(shell: Shell, house: House, item: Item, answer: Answer, *, force: bool) -> None:
    project = item.role.store.project
    if (
        isinstance(item.subject, GivenBack)
        and answer is Answer.ACCEPTED
        and not house.lookout.rules(project).consolidate
    ):
        raise NotDoneError("The project's own settings say consolidate: false. Nothing was changed.")

    def work(job: Job, gate: Gate) -> str:
        means = Means(job.id, house.engine, house.entries, gate, shell.now)
        return done(answer_review.run(item, answer, means))

    asked = Asked(JobKind.REVIEW, item.role, f"a person {answer.value} {item.kind} {item.id}")
    shell.say(carry_out(shell, house, asked, work, force=force).told(item.id))


def _row(item: Item) -> ReviewItem:
    return ReviewItem(
        id=item.id,
        store=item.role.store.key,
        role=item.role.name,
        kind=item.kind,
        at=item.at,
        text=item.text,
        titles=item.titles,
        accept=item.accept,
        reject=item.reject,
    )


def _lines(item: Item, now: float) -> Iterator[str]:
    yield from _head(item, now)
    yield _change(item, Answer.ACCEPTED)
    yield _change(item, Answer.REJECTED)


def _head(item: Item, now: float) -> Iterator[str]:
    yield f"{item.id}  {item.kind}  {item.role.name}  {moment(item.at, now)}  {short_path(item.role.store.key)}"
    yield paragraph(plain(item.text), indent="  ")
    for title in item.titles:
        yield paragraph(plain(title), indent="    - ")


def _change(item: Item, answer: Answer) -> str:
    word, change = ("accept", item.accept) if answer is Answer.ACCEPTED else ("reject", item.reject)
    return paragraph(plain(change), indent=f"  {word}: ")
