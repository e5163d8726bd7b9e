"""Commands about one entry. `raise`, `forget` and `restore` change it by a manual job, the others only its records."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from difflib import ndiff
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
from echod.cli import commands
from echod.cli.context import CommandContext
from echod.cli.execute import (
    Change,
    Confirmation,
    JobRefusedError,
    ManualJob,
    Step,
    WriteOptions,
    make_change,
    report_already_so,
)
from echod.cli.options import SettableLayer
from echod.cli.output import role_label, sanitize, short_path, title_text, wrap
from echod.cli.targets import (
    ArchiveMatch,
    MemoryMatch,
    check_named,
    entry_heading,
    find_entry,
    find_to_change,
    global_flag,
    list_archive_matches,
    parse_scope,
)
from echod.clock import local_date
from echod.contract.codec import to_json
from echod.contract.entries import AccessImportReport, ImportedAccess
from echod.errors import UsageError
from echod.inspection.inspect import record_entries
from echod.jobs import manual
from echod.jobs.base import ArchivedCopy, JobContext, JobOutcome
from echod.memory.model import Layer
from echod.memory.policy.manual import AlreadyRestored, EditRefusal, change_layer, remove_entries
from echod.memory.policy.scoring import count_entry_lines
from echod.memory.policy_model import SHORTENING_RULES, Rule
from echod.memory.prompt_injection import find_injection
from echod.memory.redact import redact, redact_entry
from echod.memory.shorten import without_list_marks
from echod.memory.text import pluralize
from echod.state.entries import Reference
from echod.state.jobs import JobKind
from echod.store.layout import MEMORY, Role, Store

_USER_LAYERS = (Layer.ETCHED, Layer.NOTES)
"""The layers that only the user gives and takes away."""


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
    """Run `echod raise`."""
    with context.open_read_context() as read_context:
        (match,) = find_to_change(context, read_context, path, [entry])
    new_layer = Layer(layer.value)
    changed = change_layer(match.role.name, match.document, match.id, new_layer)
    if isinstance(changed, EditRefusal):
        raise JobRefusedError(f"{match.id} was not changed: {changed.reason}.")
    if changed is match.document:
        preview = f"{entry_heading(match)}\nIt is {new_layer.value} already. Nothing was changed."
        make_change(context, Change(preview, steps=()), WriteOptions(dry_run, yes, force))
        return
    position = match.document.blocks.index(match.block)
    change = Change(
        preview="\n".join([entry_heading(match), *_diff_lines(match.block.text, changed.blocks[position].text)]),
        steps=[_job_step(JobKind.RAISE, match.role, lambda job: manual.set_layer(job, match.id, new_layer))],
        question=_layer_question(match, new_layer),
    )
    make_change(context, change, WriteOptions(dry_run, yes, force))


def _diff_lines(before: str, after: str) -> Iterator[str]:
    for line in ndiff(before.splitlines(), after.splitlines()):
        if line.startswith(("- ", "+ ")):
            yield f"  {sanitize(line)}"


def _layer_question(match: MemoryMatch, layer: Layer) -> Confirmation | None:
    """Return a question if the entry loses its protection, or if the protected text could steer agents."""
    before = match.block.entry.layer if match.block.entry else None
    if layer in _USER_LAYERS and (phrase := find_injection(match.block.text)) is not None:
        return Confirmation(f"It reads like an instruction to agents ({phrase}). Make it {layer.value} anyway?")
    if layer not in _USER_LAYERS and (before is None or before in _USER_LAYERS):
        return Confirmation("Rules may remove it later. Continue?")
    return None


def forget(
    context: CommandContext, *, entry: str, path: Path | None, in_global: bool, dry_run: bool, yes: bool, force: bool
) -> None:
    """Run `echod forget`."""
    with context.open_read_context() as read_context:
        (match,) = find_to_change(context, read_context, parse_scope(path, in_global=in_global), [entry])
    removal = remove_entries(match.role.name, match.document, [match.id], Rule.FORGOTTEN, local_date(context.now()))
    if isinstance(removal, EditRefusal):
        raise JobRefusedError(f"{match.id} was not removed: {removal.reason}.")
    layer = match.block.entry.layer if match.block.entry else None
    size = pluralize(count_entry_lines(match.block.text), "line")
    lines = [
        entry_heading(match),
        f"  {layer.value if layer else 'unknown layer'}, {size}; its text is moved to the archive of the role",
    ]
    if any(archived.redacted for archived in removal.archived):
        lines.append(wrap("It contains a secret, which is not archived.", indent="  "))
    change = Change(
        preview="\n".join(lines),
        steps=[_job_step(JobKind.FORGET, match.role, lambda job: manual.forget(job, [match.id], rule=Rule.FORGOTTEN))],
        question=Confirmation("Forget it?"),
    )
    make_change(context, change, WriteOptions(dry_run, yes, force))


def restore(
    context: CommandContext,
    *,
    entry: str | None,
    path: Path | None,
    in_global: bool,
    auto_memory: bool,
    copy: int | None,
    dry_run: bool,
    yes: bool,
    force: bool,
) -> None:
    """Run `echod restore`."""
    if auto_memory:
        if path is not None or in_global:
            raise UsageError("With --auto-memory name one directory, or none.")
        commands.auto_memory.restore(context, Path(entry) if entry else None, number=copy, dry_run=dry_run, yes=yes)
        return
    if entry is None or copy is not None:
        raise UsageError("Name an entry: echod restore ENTRY. `echod show` lists them.")
    _restore_entry(context, entry, path, in_global=in_global, write_options=WriteOptions(dry_run, force=force))


def _restore_entry(
    context: CommandContext, entry: str, path: Path | None, *, in_global: bool, write_options: WriteOptions
) -> None:
    with context.open_read_context() as read_context:
        scope = parse_scope(path, in_global=in_global)
        match = find_entry(context, read_context, scope, entry)
        check_named(context, scope, match, entry)
        copy = _newest_copy(context, match)
        view = read_context.reader.read_role(match.role)
        file = manual.read_target_file(view, copy.entry)
        restoration = None if file is None else manual.plan_restoration(view, file, copy.entry)
    if isinstance(restoration, AlreadyRestored):
        report_already_so(context, restoration.reason)
    if isinstance(restoration, EditRefusal):
        raise JobRefusedError(f"Nothing was changed: {restoration.reason}.")
    replaces_condensed = restoration is not None and restoration.condensed_text is not None
    lines = _restore_lines(match, copy, replaces_condensed=replaces_condensed)
    change = Change(
        preview="\n".join([entry_heading(match), *lines]),
        steps=[_job_step(JobKind.RESTORE, match.role, lambda job: manual.restore(job, [copy.entry]))],
    )
    make_change(context, change, write_options)


def _newest_copy(context: CommandContext, match: MemoryMatch | ArchiveMatch) -> ArchivedCopy:
    """Return the newest archived text of an entry. Ends the command if only the memory has the entry."""
    archived = list_archive_matches(match.role) if isinstance(match, MemoryMatch) else (match,)
    copies = next((candidate.copies for candidate in archived if candidate.id == match.id), None)
    if copies is None:
        memory = f"the memory of {match.role.name}" if match.role.name else role_label("")
        report_already_so(context, f"{match.id} is in {memory} already")
    return _before_shortening(copies)


def _before_shortening(copies: Sequence[ArchivedCopy]) -> ArchivedCopy:
    """Return the newest text, or the one from which it was shortened step by step without a change of its words."""
    newest, *earlier = reversed(copies)
    for copy in earlier:
        if not {newest.entry.rule, copy.entry.rule} <= SHORTENING_RULES or copy.entry.file != newest.entry.file:
            break
        if Counter(without_list_marks(newest.entry.text)) - Counter(without_list_marks(copy.entry.text)):
            break
        newest = copy
    return newest


def _restore_lines(match: MemoryMatch | ArchiveMatch, copy: ArchivedCopy, *, replaces_condensed: bool) -> Iterator[str]:
    entry = copy.entry
    job = f", by job {entry.job}" if entry.job is not None else ""
    yield wrap(f"archived on {entry.day} ({entry.rule}{job}), in {copy.file}", indent="  ")
    if isinstance(match, ArchiveMatch) and len(match.copies) > 1:
        command = f"echod show {match.id}{global_flag(match.role)}"
        yield wrap(f"the newest of {len(match.copies)} archived texts; {command} prints them all", indent="  ")
    if replaces_condensed:
        yield "  it replaces its shortened form"
    if entry.redacted or redact_entry(entry.text).spans:
        yield wrap("It contained a secret, which is not restored.", indent="  ")
    if entry.file != MEMORY:
        yield f"  it is restored to {entry.file}, where it was"


def _job_step(kind: JobKind, role: Role, action: Callable[[JobContext], JobOutcome]) -> Step:
    return Step(
        role_label(role.name), lambda runner: runner.run(ManualJob(kind, role), action).describe(role_label(role.name))
    )


def pin(context: CommandContext, *, entry: str, path: Path | None) -> None:
    """Run `echod pin`."""
    with context.open_services() as services:
        (match,) = find_to_change(context, services.read_context, path, [entry])
        today = local_date(context.now())
        until = today + timedelta(days=services.settings.policy.pin_days)
        record_entries(services.entries, match.role, match.document, today)
        services.entries.pin(match.role.store.key, [match.id], until)
    context.print_info(f"{match.id} in {match.role.name} is pinned until {until}: no rule removes it.")


def unpin(context: CommandContext, *, entry: str, path: Path | None) -> None:
    """Run `echod unpin`."""
    with context.open_services() as services:
        (match,) = find_to_change(context, services.read_context, path, [entry])
        record_entries(services.entries, match.role, match.document, local_date(context.now()))
        was_pinned = services.entries.unpin(match.role.store.key, match.id)
    context.print_info(
        f"{match.id} in {match.role.name} {'is not pinned any more' if was_pinned else 'was not pinned'}."
    )


def record_access(
    context: CommandContext, *, entries: tuple[str, ...], session: str | None, project: Path | None
) -> None:
    """Run `echod record-access`."""
    with context.open_services() as services:
        now = context.now()
        new_references = 0
        for match in find_to_change(context, services.read_context, project, entries):
            store = match.role.store
            record_entries(services.entries, match.role, match.document, local_date(now))
            workflow = services.entries.workflow_at(str(store.project), now)
            reference = Reference(match.id, _reference_cause(session, workflow, now), workflow)
            new_references += services.entries.add_references(store.key, [reference], local_date(now))
    context.print_info(f"{pluralize(new_references, 'new reference')}.")


def _reference_cause(session: str | None, workflow: str | None, now: float) -> str:
    """Return a key for the cause of a reference. Equal causes count once."""
    if session:
        return f"session:{_session_key(session)}"
    return f"workflow:{workflow}" if workflow else f"access:{now}"


def _session_key(session: str) -> str:
    """Return the session as given, or its hash if it contains a secret."""
    return session if redact(session).text == session else hashlib.sha256(session.encode()).hexdigest()


def import_access(context: CommandContext, *, path: Path, database: Path | None, dry_run: bool, json: bool) -> None:
    """Run `echod import-access`."""
    stores = context.list_stores(context.find_project(path))
    files = _databases(context, stores, database)
    plans = [(store, plan_import(read_access_log(file), store, list_current_entries(store))) for store, file in files]
    new = 0
    if not dry_run:
        with context.open_services() as services:
            today = local_date(context.now())
            new = sum(apply_import(plan, store, services.entries, today) for store, plan in plans)
    report = _access_report([str(file) for _, file in files], plans, new)
    click.echo(to_json(report) if json else "\n".join(_access_screen(report, dry_run=dry_run)))


def _databases(context: CommandContext, stores: tuple[Store, ...], database: Path | None) -> list[tuple[Store, Path]]:
    if database is not None:
        return [(stores[0], context.absolute_path(database))]
    files = [(store, store.root / INDEX_NAME) for store in stores if (store.root / INDEX_NAME).is_file()]
    if not files:
        places = " or ".join(short_path(str(store.root)) for store in stores)
        raise UsageError(f"There is no {INDEX_NAME} in {places}. Name the file with --database.")
    return files


def _access_report(files: list[str], plans: list[tuple[Store, ImportPlan]], new: int) -> AccessImportReport:
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


def _access_screen(report: AccessImportReport, *, dry_run: bool) -> Iterator[str]:
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
