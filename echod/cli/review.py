"""`echod review`: what waits for a person; `accept` and `reject` answer it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import click

from echod.app.context import ReadContext, open_read_context
from echod.app.services import Services, open_services
from echod.cli.asked import JobRefusedError, ManualJob, run_manual_job, summary_or_raise
from echod.cli.by_hand import WriteOptions, confirm, require_write_mode, select_stores
from echod.cli.shell import CommandContext
from echod.cli.text import format_timestamp, pluralize, sanitize, short_path, wrap
from echod.cli.wake import notify_daemon
from echod.contract.commands import ReviewItem, ReviewReport
from echod.contract.status import to_json
from echod.errors import UsageError
from echod.inspection import find_restored_findings
from echod.inspection.review_items import HeldFirstPrune, OpenReviewItem, RestoredFindingsFile
from echod.jobs import answer_review
from echod.jobs.consolidate import JobContext
from echod.memory.identity import AmbiguousEntryError, UnknownEntryError, resolve_id
from echod.state.job import Job, JobKind
from echod.state.review_answers import ReviewAnswer
from echod.store import layout
from echod.store.changes import CommitGate
from echod.store.layout import Store


def show_review(context: CommandContext, path: Path | None, *, as_json: bool) -> None:
    """Print what there is to look at, store by store, the oldest first."""
    selected = select_stores(context, path)
    with open_read_context(context.paths, context.settings, context.environ, context.now) as read_context:
        items = _collect_items(
            read_context, read_context.discover_stores().stores if selected is None else selected, context.now()
        )
    if as_json:
        click.echo(to_json(ReviewReport(tuple(map(_review_row, items)))))
    elif items:
        click.echo("\n\n".join("\n".join(_item_lines(item, context.now())) for item in items))
        click.echo("\nTo answer: echod review accept ID, or echod review reject ID")
    else:
        click.echo("There is nothing to look at.")


def answer_review_items(
    context: CommandContext, ids: Sequence[str], answer: ReviewAnswer, path: Path | None, write_options: WriteOptions
) -> None:
    """Carry out what a person answers to these items, one after the other.

    Raises:
        UsageError: there is no such item, or a question cannot be asked.
        WriteNotAllowedError: a workflow is at work, or the settings forbid to write; what was answered before stays so.
        EchodError: it cannot be done, the sentence says why.
    """
    with open_read_context(context.paths, context.settings, context.environ, context.now) as read_context:
        items = _resolve_items(
            _collect_items(read_context, _answerable_stores(context, read_context, path), context.now()), ids
        )
    needs_confirmation = not write_options.yes and any(answer_review.changes_files(item, answer) for item in items)
    lines = (line for item in items for line in (*_item_heading(item, context.now()), _answer_line(item, answer)))
    context.print_plan("\n".join(lines), always=write_options.dry_run or needs_confirmation)
    if write_options.dry_run:
        return
    require_write_mode(context)
    if needs_confirmation:
        confirm(f"Go on with {pluralize(len(items), 'answer')}?")
    with open_services(context.paths, context.settings, context.environ, context.now) as services:
        for item in items:
            _answer_item(context, services, item, answer, force=write_options.force)
    notify_daemon(context)


def _collect_items(read_context: ReadContext, stores: Iterable[Store], now: float) -> list[OpenReviewItem]:
    return [item for store in stores for item in _store_items(read_context, store, now)]


def _store_items(read_context: ReadContext, store: Store, now: float) -> tuple[OpenReviewItem, ...]:
    roles, notes, maintenance = (
        layout.list_roles(store).roles,
        read_context.reader.collect_notices(store),
        read_context.maintenance_policy(store.project),
    )
    return read_context.review_collector.collect(
        store, roles, notes, maintenance, find_restored_findings(read_context.reader, notes), now
    )


def _answerable_stores(context: CommandContext, read_context: ReadContext, path: Path | None) -> tuple[Store, ...]:
    """The stores of the named project alone; else of the current directory's, and of all projects."""
    current_stores = select_stores(context, path) or ()
    return (
        current_stores
        if path is not None
        else tuple(dict.fromkeys((*current_stores, *read_context.discover_stores().stores)))
    )


def _resolve_items(items: Sequence[OpenReviewItem], ids: Sequence[str]) -> list[OpenReviewItem]:
    by_id = {item.id: item for item in items}
    found: dict[str, OpenReviewItem] = {}
    for prefix in ids:
        try:
            identity = resolve_id(prefix, by_id)
        except UnknownEntryError:
            raise UsageError(f"Nothing that waits has the id {sanitize(prefix)}; see `echod review`.") from None
        except AmbiguousEntryError as error:
            raise UsageError(str(error)) from None
        found[identity] = by_id[identity]
    return list(found.values())


def _answer_item(
    context: CommandContext, services: Services, item: OpenReviewItem, answer: ReviewAnswer, *, force: bool
) -> None:
    if answer_review.changes_files(item, answer):
        _run_answer_job(context, services, item, answer, force=force)
        return
    if isinstance(item.subject, HeldFirstPrune) and answer is ReviewAnswer.ACCEPTED:
        services.entries.release_first_prune(item.role.store.key, [item.role.name])
        services.queue.wake_deferred(item.role.store.key, context.now())
    if answer_review.must_record_answer(item, answer):
        services.entries.answers.record(item.role.store.key, [item.id], answer, context.now())
    context.print_info(f"{item.id}: {answer.value}.")


def _run_answer_job(
    context: CommandContext, services: Services, item: OpenReviewItem, answer: ReviewAnswer, *, force: bool
) -> None:
    project = item.role.store.project
    if (
        isinstance(item.subject, RestoredFindingsFile)
        and answer is ReviewAnswer.ACCEPTED
        and not services.read_context.need_settings(project).consolidate
    ):
        raise JobRefusedError("The project's own settings say consolidate: false. Nothing was changed.")

    def work(job: Job, gate: CommitGate) -> str:
        job_context = JobContext(job.id, services.engine, services.entries, gate, context.now)
        return summary_or_raise(answer_review.run(item, answer, job_context))

    manual_job = ManualJob(JobKind.REVIEW, item.role, f"a person {answer.value} {item.kind} {item.id}")
    context.print_info(run_manual_job(context, services, manual_job, work, force=force).describe(item.id))


def _review_row(item: OpenReviewItem) -> ReviewItem:
    return ReviewItem(
        id=item.id,
        store=item.role.store.key,
        role=item.role.name,
        kind=item.kind,
        at=item.since,
        text=item.text,
        titles=item.titles,
        accept=item.accept_effect,
        reject=item.reject_effect,
    )


def _item_lines(item: OpenReviewItem, now: float) -> Iterator[str]:
    yield from _item_heading(item, now)
    yield _answer_line(item, ReviewAnswer.ACCEPTED)
    yield _answer_line(item, ReviewAnswer.REJECTED)


def _item_heading(item: OpenReviewItem, now: float) -> Iterator[str]:
    yield (
        f"{item.id}  {item.kind}  {item.role.name}  {format_timestamp(item.since, now)}  "
        f"{short_path(item.role.store.key)}"
    )
    yield wrap(sanitize(item.text), indent="  ")
    for title in item.titles:
        yield wrap(sanitize(title), indent="    - ")


def _answer_line(item: OpenReviewItem, answer: ReviewAnswer) -> str:
    verb, change = ("accept", item.accept_effect) if answer is ReviewAnswer.ACCEPTED else ("reject", item.reject_effect)
    return wrap(sanitize(change), indent=f"  {verb}: ")
