"""`echod review`: list the questions and notices for the user; `accept` and `reject` answer them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path

import click

from echod.app.context import ReadContext
from echod.cli.context import CommandContext
from echod.cli.execute import Change, Confirmation, JobRunner, ManualJob, Step, WriteOptions, make_change, refusal
from echod.cli.output import format_timestamp, sanitize, short_path, wrap
from echod.cli.targets import select_stores
from echod.contract.codec import to_json
from echod.contract.commands import ReviewItem, ReviewReport
from echod.errors import UsageError
from echod.inspection import find_restored_findings
from echod.inspection.review import DISMISS_EFFECT, HeldFirstPrune, OpenReviewItem, RestoredFindingsFile
from echod.jobs import answer_review
from echod.memory.identity import AmbiguousEntryError, UnknownEntryError, resolve_id
from echod.memory.text import pluralize
from echod.state.decisions import ReviewAnswer
from echod.state.jobs import JobKind
from echod.store import layout
from echod.store.layout import Store


def review(context: CommandContext, *, json: bool, path: Path | None = None) -> None:
    """Run `echod review`."""
    selected = select_stores(context, path)
    with context.open_read_context() as read_context:
        stores = read_context.discover_stores().stores if selected is None else selected
        items = _collect_items(read_context, stores, context.now())
    if json:
        click.echo(to_json(ReviewReport(tuple(map(_review_row, items)))))
    elif items:
        click.echo("\n\n".join("\n".join(_item_lines(item, context.now())) for item in items))
        is_question = any(item.effects for item in items)
        click.echo(f"\nTo answer: echod review {'accept ID, reject ID, or ' if is_question else ''}dismiss ID")
    else:
        click.echo("There are no review items.")


def accept(
    context: CommandContext, *, ids: tuple[str, ...], project: Path | None, dry_run: bool, yes: bool, force: bool
) -> None:
    """Run `echod review accept`."""
    _answer_items(context, ids, ReviewAnswer.ACCEPTED, project, WriteOptions(dry_run, yes, force))


def reject(
    context: CommandContext, *, ids: tuple[str, ...], project: Path | None, dry_run: bool, yes: bool, force: bool
) -> None:
    """Run `echod review reject`."""
    _answer_items(context, ids, ReviewAnswer.REJECTED, project, WriteOptions(dry_run, yes, force))


def dismiss(context: CommandContext, *, ids: tuple[str, ...], project: Path | None, dry_run: bool) -> None:
    """Run `echod review dismiss`."""
    _answer_items(context, ids, ReviewAnswer.DISMISSED, project, WriteOptions(dry_run))


def _answer_items(
    context: CommandContext, ids: Sequence[str], answer: ReviewAnswer, path: Path | None, write_options: WriteOptions
) -> None:
    with context.open_read_context() as read_context:
        stores = _answerable_stores(context, read_context, path)
        items = _resolve_items(_collect_items(read_context, stores, context.now()), ids)
    if path is None:
        _check_named(context, items, ids)
    lines = (line for item in items for line in (*_item_heading(item, context.now()), _answer_line(item, answer)))
    changes_files = any(answer_review.changes_files(item, answer) for item in items)
    change = Change(
        preview="\n".join(lines),
        steps=[Step(item.id, partial(_answer_item, item, answer)) for item in items],
        question=Confirmation(f"Answer {pluralize(len(items), 'item')}?") if changes_files else None,
    )
    make_change(context, change, write_options)


def _check_named(context: CommandContext, items: Iterable[OpenReviewItem], ids: Sequence[str]) -> None:
    """Check that each item is one of the current project, or that its whole id was typed. Raises UsageError."""
    project = context.current_project()
    for item in items:
        if item.role.store.project != project and item.id not in ids:
            raise UsageError(
                f"{item.id} is in another project: {short_path(str(item.role.store.project))}. "
                "Type the whole id, or name that project with --project."
            )


def _answerable_stores(context: CommandContext, read_context: ReadContext, path: Path | None) -> tuple[Store, ...]:
    """Return the stores of the named project only, or those of the current directory's and of all projects."""
    current_stores = select_stores(context, path) or ()
    if path is not None:
        return current_stores
    return tuple(dict.fromkeys((*current_stores, *read_context.discover_stores().stores)))


def _collect_items(read_context: ReadContext, stores: Iterable[Store], now: float) -> list[OpenReviewItem]:
    """Collect the open items, store by store, oldest first."""
    return [item for store in stores for item in _store_items(read_context, store, now)]


def collect_open_items(context: CommandContext) -> list[OpenReviewItem]:
    """Collect the open items of all projects."""
    with context.open_read_context() as read_context:
        return _collect_items(read_context, _answerable_stores(context, read_context, None), context.now())


def _store_items(read_context: ReadContext, store: Store, now: float) -> tuple[OpenReviewItem, ...]:
    roles = layout.list_roles(store).roles
    notices = read_context.collect_notices(store, now)
    maintenance = read_context.maintenance_policy(store.project)
    restored = find_restored_findings(read_context.reader, notices)
    return read_context.review_collector.collect(store, roles, notices, maintenance, restored, now)


def _resolve_items(items: Sequence[OpenReviewItem], ids: Sequence[str]) -> list[OpenReviewItem]:
    by_id = {item.id: item for item in items}
    resolved: dict[str, OpenReviewItem] = {}
    for prefix in ids:
        try:
            identity = resolve_id(prefix, by_id)
        except UnknownEntryError:
            raise UsageError(f"No review item has the id {sanitize(prefix)}. `echod review` lists the items.") from None
        except AmbiguousEntryError as error:
            raise UsageError(str(error)) from None
        if sum(item.id == identity for item in items) > 1:  # a new project has the former path of a moved one
            raise UsageError(f"Several projects have the item {identity}. Name one of them with --project.")
        resolved[identity] = by_id[identity]
    return list(resolved.values())


def _answer_item(item: OpenReviewItem, answer: ReviewAnswer, runner: JobRunner) -> str:
    """Carry out an answer. If it changes files, it is a job."""
    if answer_review.changes_files(item, answer):
        return _run_answer_job(item, answer, runner)
    services, now = runner.services, runner.context.now()
    if isinstance(item.subject, HeldFirstPrune) and answer is ReviewAnswer.ACCEPTED:
        services.entries.release_first_prune(item.role.store.key, [item.role.name])
        services.queue.wake_deferred(item.role.store.key, now)
    if answer_review.must_record_answer(item, answer):
        services.entries.answers.record(item.role.store.key, [item.id], answer, now)
    return f"{item.id}: {(answer if item.effects else ReviewAnswer.DISMISSED).value}."


def _run_answer_job(item: OpenReviewItem, answer: ReviewAnswer, runner: JobRunner) -> str:
    consolidates = isinstance(item.subject, RestoredFindingsFile) and answer is ReviewAnswer.ACCEPTED
    if consolidates and not runner.services.read_context.need_settings(item.role.store.project).consolidate:
        raise refusal("the project's settings contain consolidate: false")
    manual_job = ManualJob(JobKind.REVIEW, item.role, f"the user {answer.value} {item.kind} {item.id}")
    return runner.run_multi_role(manual_job, lambda resources: answer_review.run(resources, item, answer)).describe(
        item.id
    )


def _review_row(item: OpenReviewItem) -> ReviewItem:
    return ReviewItem(
        id=item.id,
        store=item.role.store.key,
        role=item.role.name,
        kind=item.kind,
        at=item.since,
        text=item.text,
        titles=item.titles,
        accept=item.effects and item.effects.accept,
        reject=item.effects and item.effects.reject,
        dismiss=DISMISS_EFFECT,
    )


def _item_lines(item: OpenReviewItem, now: float) -> Iterator[str]:
    yield from _item_heading(item, now)
    answers = (ReviewAnswer.ACCEPTED, ReviewAnswer.REJECTED) if item.effects else (ReviewAnswer.DISMISSED,)
    yield from (_answer_line(item, answer) for answer in answers)


def _item_heading(item: OpenReviewItem, now: float) -> Iterator[str]:
    since = format_timestamp(item.since, now)
    yield f"{item.id}  {item.kind}  {item.role.name}  {since}  {short_path(item.role.store.key)}"
    yield wrap(sanitize(item.text), indent="  ")
    for title in item.titles:
        yield wrap(sanitize(title), indent="    - ")


def _answer_line(item: OpenReviewItem, answer: ReviewAnswer) -> str:
    if item.effects is None or answer is ReviewAnswer.DISMISSED:
        return wrap(DISMISS_EFFECT, indent="  dismiss: ")
    if answer is ReviewAnswer.ACCEPTED:
        return wrap(sanitize(item.effects.accept), indent="  accept: ")
    return wrap(sanitize(item.effects.reject), indent="  reject: ")
