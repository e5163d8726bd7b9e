"""`echod import-access`: import the access log of the workflow plugin's own search index."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click

from echod.app.import_access import (
    INDEX_NAME,
    ImportPlan,
    apply_import,
    list_current_entries,
    plan_import,
    read_access_log,
)
from echod.cli import options
from echod.cli.context import CommandContext
from echod.cli.output import short_path, title_text, wrap
from echod.cli.root import example, pass_command_context
from echod.clock import local_date
from echod.contract.search import AccessImportReport, ImportedAccess
from echod.contract.status import to_json
from echod.errors import UsageError
from echod.memory.text import pluralize
from echod.store.layout import Store


@click.command("import-access", epilog=example("echod import-access ~/src/my-project --dry-run"))
@options.project_path_or_cwd
@click.option(
    "--database", metavar="FILE", type=options.PATH, help="The plugin's database.  [default: the one in the memory]"
)
@options.dry_run
@options.json
@pass_command_context
def import_access(context: CommandContext, *, path: Path, database: Path | None, dry_run: bool, json: bool) -> None:
    """Import the access log of the workflow plugin's search index."""
    stores = context.list_stores(context.find_project(path))
    files = _databases(context, stores, database)
    plans = [(store, plan_import(read_access_log(file), store, list_current_entries(store))) for store, file in files]
    new = 0
    if not dry_run:
        with context.open_services() as services:
            today = local_date(context.now())
            new = sum(apply_import(plan, store, services.entries, today) for store, plan in plans)
    report = _report([str(file) for _, file in files], plans, new)
    click.echo(to_json(report) if json else "\n".join(_screen(report, dry_run=dry_run)))


def _databases(context: CommandContext, stores: tuple[Store, ...], database: Path | None) -> list[tuple[Store, Path]]:
    if database is not None:
        return [(stores[0], context.absolute_path(database))]
    files = [(store, store.root / INDEX_NAME) for store in stores if (store.root / INDEX_NAME).is_file()]
    if not files:
        places = " or ".join(short_path(str(store.root)) for store in stores)
        raise UsageError(f"There is no {INDEX_NAME} in {places}. Name the file with --database.")
    return files


def _report(files: list[str], plans: list[tuple[Store, ImportPlan]], new: int) -> AccessImportReport:
    return AccessImportReport(
        files=tuple(files),
        rows=sum(plan.rows for _, plan in plans),
        unmatched=sum(plan.unmatched for _, plan in plans),
        undated=sum(plan.undated for _, plan in plans),
        new=new,
        entries=tuple(
            ImportedAccess(
                imported.entry.id,
                store.key,
                imported.entry.role.name,
                imported.entry.title,
                tuple(day.isoformat() for day in imported.days),
            )
            for store, plan in plans
            for imported in plan.entries
        ),
    )


def _screen(report: AccessImportReport, *, dry_run: bool) -> Iterator[str]:
    for entry in report.entries:
        yield wrap(f"{title_text(entry.title)}: {pluralize(len(entry.days), 'day')}", indent=f"{entry.id}  ")
    yield wrap(
        f"{pluralize(report.rows, 'row')} read, {pluralize(len(report.entries), 'entry', 'entries')} matched; "
        f"{report.unmatched} rows belong to no entry, {report.undated} have no readable time."
    )
    references = sum(len(entry.days) for entry in report.entries)
    if dry_run:
        yield f"{pluralize(references, 'reference')} would be recorded, unless they are known."
    else:
        yield f"{pluralize(report.new, 'new reference')}."
