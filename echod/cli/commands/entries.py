"""`echod raise`, `echod forget` and `echod restore`: what a person decides about one entry.

Commands about single entries: `explain`, `record-access`, `pin` and `unpin`.

Commands about single entries.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from datetime import date, timedelta
from difflib import ndiff
from enum import StrEnum
from pathlib import Path

import click

from echod.app.context import open_read_context
from echod.app.services import open_services
from echod.cli import options
from echod.cli.commands.prune import parse_as_of, read_facts_if_recorded
from echod.cli.context import CommandContext, notify_daemon
from echod.cli.execute import JobRefusedError, ManualJob, run_manual_job
from echod.cli.output import pluralize, role_label, sanitize, short_path, wrap
from echod.cli.root import example, pass_command_context
from echod.cli.targets import (
    ArchiveMatch,
    EntryScope,
    MemoryMatch,
    WriteOptions,
    confirm,
    find_entry,
    find_in_memory,
    global_flag,
    list_archive_matches,
    require_write_mode,
)
from echod.clock import local_date
from echod.contract.commands import ExplainReport, RuleInfo, ScoreTermsInfo
from echod.contract.status import to_json
from echod.inspection.entry_facts import record_entries
from echod.jobs import forget as forget_job
from echod.jobs import restore as restore_job
from echod.jobs import set_layer
from echod.jobs.archives import ArchivedCopy
from echod.jobs.base import JobContext, JobOutcome
from echod.memory.model import Layer
from echod.memory.policy import Explanation, Rule, build_explanation
from echod.memory.policy.manual import EditRefusal, change_layer, remove_entries
from echod.memory.policy.scoring import count_entry_lines
from echod.memory.prompt_injection import find_injection
from echod.memory.redact import redact, redact_entry
from echod.state.entries import Reference
from echod.state.job import JobKind
from echod.store.layout import Role

_USER_LAYERS = (Layer.ETCHED, Layer.NOTES)
"""The layers that only a person gives and takes."""


def raise_entry(
    context: CommandContext, entry: str, layer: Layer, path: Path | None, write_options: WriteOptions
) -> None:
    """Put an entry into another layer.

    Raises:
        UsageError: there is no such entry, or a question cannot be asked.
        WriteNotAllowedError: a workflow is at work, or the settings forbid to write; nothing was changed.
        EchodError: it cannot be done, the sentence says why.
    """
    with open_read_context(context.paths, context.settings, context.environ, context.now) as read_context:
        (found,) = find_in_memory(context, read_context, path, [entry])
    before = found.block.entry.layer if found.block.entry else None
    changed = change_layer(found.role.name, found.document, found.id, layer)
    if isinstance(changed, EditRefusal):
        raise JobRefusedError(f"{found.id} stays as it is: {changed.reason}.")
    context.print_plan(_entry_heading(found.id, found.title, found.role), always=write_options.shows_plan)
    if changed is found.document:
        context.print_info(f"It is {layer.value} already; nothing was changed.")
        return
    position = found.document.blocks.index(found.block)
    context.print_plan(
        "\n".join(_diff_lines(found.block.text, changed.blocks[position].text)), always=write_options.shows_plan
    )
    if write_options.dry_run:
        return
    require_write_mode(context)
    if not write_options.yes:
        _confirm_layer_change(found, before, layer)

    def action(job: JobContext) -> JobOutcome:
        return set_layer.run(job, found.id, layer)

    _run_entry_job(context, JobKind.RAISE, found.role, action, write_options)


def forget_entry(context: CommandContext, entry: str, scope: EntryScope, write_options: WriteOptions) -> None:
    """Take an entry out of the memory, for the archive.

    Raises:
        UsageError, WriteNotAllowedError, EchodError: as `raise_entry`.
    """
    with open_read_context(context.paths, context.settings, context.environ, context.now) as read_context:
        (found,) = find_in_memory(context, read_context, scope, [entry])
    removal = remove_entries(found.role.name, found.document, [found.id], Rule.FORGOTTEN, local_date(context.now()))
    if isinstance(removal, EditRefusal):
        raise JobRefusedError(f"{found.id} stays where it is: {removal.reason}.")
    context.print_plan(_entry_heading(found.id, found.title, found.role), always=write_options.shows_plan)
    layer = found.block.entry.layer if found.block.entry else None
    size = pluralize(count_entry_lines(found.block.text), "line")
    details = f"  {layer.value if layer else 'unknown layer'}, {size}; its text goes to the archive of the role"
    context.print_plan(details, always=write_options.shows_plan)
    if any(kept.redacted for kept in removal.archived):
        message = "It holds a secret, which the archive will not have."
        context.print_plan(wrap(message, indent="  "), always=write_options.shows_plan)
    if write_options.dry_run:
        return
    require_write_mode(context)
    if not write_options.yes:
        confirm("Forget it?")

    def action(job: JobContext) -> JobOutcome:
        return forget_job.run(job, [found.id], rule=Rule.FORGOTTEN)

    _run_entry_job(context, JobKind.FORGET, found.role, action, write_options)


def restore_archived_entry(context: CommandContext, entry: str, scope: EntryScope, write_options: WriteOptions) -> None:
    """Bring an entry back from the archive, the newest text of several.

    Raises:
        UsageError, WriteNotAllowedError, EchodError: as `raise_entry`.
    """
    with open_read_context(context.paths, context.settings, context.environ, context.now) as read_context:
        found = find_entry(context, read_context, scope, entry)
        copy = _newest_copy(found)
        view = read_context.reader.read_role(found.role)
        file = restore_job.read_target_file(view, copy.entry)
        restoration = None if file is None else restore_job.plan_restoration(view, file, copy.entry)
    if isinstance(restoration, EditRefusal):
        raise JobRefusedError(f"Nothing was changed: {restoration.reason}.")
    context.print_plan(_entry_heading(found.id, found.title, found.role), always=write_options.shows_plan)
    lines = _restore_lines(found, copy, short=restoration is not None and restoration.condensed_text is not None)
    context.print_plan("\n".join(lines), always=write_options.shows_plan)
    if write_options.dry_run:
        return
    require_write_mode(context)

    def action(job: JobContext) -> JobOutcome:
        return restore_job.run(job, copy.entry)

    _run_entry_job(context, JobKind.RESTORE, found.role, action, write_options)


def _newest_copy(found: MemoryMatch | ArchiveMatch) -> ArchivedCopy:
    """The newest archived text of an entry.

    Raises:
        JobRefusedError: there is none.
    """
    copies = list_archive_matches(found.role) if isinstance(found, MemoryMatch) else (found,)
    match = next((one for one in copies if one.id == found.id), None)
    if match is None:
        raise JobRefusedError(f"{found.id} stands in {_memory_label(found.role)}; there is nothing to bring back.")
    return match.copies[-1]


def _restore_lines(found: MemoryMatch | ArchiveMatch, copy: ArchivedCopy, *, short: bool) -> Iterator[str]:
    entry = copy.entry
    job = f", by job {entry.job}" if entry.job is not None else ""
    yield wrap(f"archived on {entry.day} ({entry.rule}{job}), in {copy.file}", indent="  ")
    if isinstance(found, ArchiveMatch) and len(found.copies) > 1:
        command = f"echod show {found.id}{global_flag(found.role)}"
        yield wrap(f"the newest of {len(found.copies)} archived texts; {command} prints them all", indent="  ")
    if short:
        yield "  it takes the place of its short form"
    if entry.redacted or redact_entry(entry.text).spans:
        yield wrap("It held a secret; it comes back without it.", indent="  ")
    if entry.file != "MEMORY.md":
        yield f"  it goes back to {entry.file}, where it stood"


def _entry_heading(identity: str, title: str, role: Role) -> str:
    location = f"  in {role_label(role.name)}  {short_path(role.store.key)}"
    return "\n".join([wrap(sanitize(title) or "(untitled)", indent=f"{identity}  "), location])


def _memory_label(role: Role) -> str:
    return f"the memory of {role.name}" if role.name else role_label("")


def _diff_lines(before: str, after: str) -> Iterator[str]:
    for line in ndiff(before.splitlines(), after.splitlines()):
        if line.startswith(("- ", "+ ")):
            yield f"  {sanitize(line)}"


def _confirm_layer_change(found: MemoryMatch, before: Layer | None, after: Layer) -> None:
    """Ask where protection goes, or where what is protected could be meant to steer agents."""
    if after in _USER_LAYERS and (phrase := find_injection(found.block.text)) is not None:
        confirm(f"It reads like an instruction to agents ({phrase}). Make it {after.value} all the same?")
    elif after not in _USER_LAYERS and (before is None or before in _USER_LAYERS):
        confirm("Then the rules may take it out one day. Go on?")


def _run_entry_job(
    context: CommandContext,
    kind: JobKind,
    role: Role,
    action: Callable[[JobContext], JobOutcome],
    write_options: WriteOptions,
) -> None:
    """Do it, as a job of its own, and say what was done."""
    with open_services(context.paths, context.settings, context.environ, context.now) as services:
        manual_job = ManualJob(kind, role, "a person asked for it")
        result = run_manual_job(context, services, manual_job, action, force=write_options.force)
    notify_daemon(context)
    context.print_info(result.describe(role_label(role.name)))


def explain_entry(context: CommandContext, entry: str, path: Path | None, *, as_of: str | None, as_json: bool) -> None:
    """Print why an entry stays or goes.

    Raises:
        UsageError: there is no such entry, or the day is no date.
    """
    with open_read_context(context.paths, context.settings, context.environ, context.now) as read_context:
        (found,) = find_in_memory(context, read_context, path, [entry])
        maintenance = read_context.maintenance_policy(found.role.store.project)
        today = parse_as_of(as_of, context.now())
        facts = read_facts_if_recorded(read_context, found.role, maintenance, today, found.document)
        explanation = build_explanation(found.role.name, found.document, found.id, facts, maintenance.policy, today)
    assert explanation is not None  # noqa: S101  it was just found in this very document
    report = _explain_report(found.role, explanation)
    click.echo(to_json(report) if as_json else "\n".join(_explain_lines(report)))


def record_references(context: CommandContext, entries: Sequence[str], path: Path | None, session: str | None) -> None:
    """Count a reference to each of these entries, one for a session.

    Raises:
        UsageError: there is no such entry; nothing was counted.
    """
    with open_services(context.paths, context.settings, context.environ, context.now) as services:
        now = context.now()
        new_references = 0
        for found in find_in_memory(context, services.read_context, path, entries):
            store = found.role.store
            record_entries(services.entries, found.role, found.document, local_date(now))
            workflow = services.entries.workflow_at(str(store.project), now)
            cause = (
                f"session:{_session_key(session)}"
                if session
                else f"workflow:{workflow}"
                if workflow
                else f"access:{now}"
            )
            new_references += services.entries.add_references(
                store.key, [Reference(found.id, cause, workflow)], local_date(now)
            )
    context.print_info(f"{pluralize(new_references, 'new reference')}.")


def _session_key(session: str) -> str:
    """What a session is called where it is counted: as it was said, unless that holds a secret."""
    return session if redact(session).text == session else hashlib.sha256(session.encode()).hexdigest()


def pin_entry(context: CommandContext, entry: str, path: Path | None) -> None:
    """Keep an entry from every rule for a while.

    Raises:
        UsageError: there is no such entry.
    """
    with open_services(context.paths, context.settings, context.environ, context.now) as services:
        (found,) = find_in_memory(context, services.read_context, path, [entry])
        today = local_date(context.now())
        until = today + timedelta(days=services.settings.policy.pin_days)
        record_entries(services.entries, found.role, found.document, today)
        services.entries.pin(found.role.store.key, [found.id], until)
    context.print_info(f"{found.id} in {found.role.name} is pinned until {until}: no rule touches it.")


def unpin_entry(context: CommandContext, entry: str, path: Path | None) -> None:
    """Let the rules hold again for an entry.

    Raises:
        UsageError: there is no such entry.
    """
    with open_services(context.paths, context.settings, context.environ, context.now) as services:
        (found,) = find_in_memory(context, services.read_context, path, [entry])
        record_entries(services.entries, found.role, found.document, local_date(context.now()))
        was_pinned = services.entries.unpin(found.role.store.key, found.id)
    context.print_info(
        f"{found.id} in {found.role.name} {'is not pinned any more' if was_pinned else 'was not pinned'}."
    )


def _explain_report(role: Role, explanation: Explanation) -> ExplainReport:
    terms = explanation.terms
    return ExplainReport(
        id=explanation.id,
        title=explanation.title,
        layer=explanation.layer and explanation.layer.value,
        protected=explanation.is_protected,
        pinned=_iso_date(explanation.pinned_until),
        score=explanation.score,
        terms=ScoreTermsInfo(terms.importance, terms.relevance, terms.recency) if terms else None,
        action=explanation.action.value,
        verified=explanation.verified.isoformat(),
        idle_days=explanation.idle_days,
        references=explanation.references,
        store=role.store.key,
        role=role.name,
        rules=tuple(
            RuleInfo(
                rule.name.value,
                rule.applies,
                _iso_date(rule.applies_on),
                rule.rank,
                rule.queue_length,
                rule.text,
            )
            for rule in explanation.rules
        ),
    )


def _iso_date(day: date | None) -> str | None:
    return None if day is None else day.isoformat()


def _explain_lines(report: ExplainReport) -> Iterator[str]:
    yield wrap(sanitize(report.title) or "(untitled)", indent=f"{report.id}  ")
    yield f"{report.layer or 'unknown layer'}, in {report.role}  {short_path(report.store)}"
    if report.terms is not None:
        yield (
            f"score {report.score:.3f}: importance {report.terms.importance:.2f}, relevance "
            f"{report.terms.relevance:.2f}, "
            f"recency {report.terms.recency:.2f}"
        )
    yield f"verified {report.verified}, {pluralize(report.references, 'reference')}"
    if report.pinned:
        yield f"pinned until {report.pinned}: no rule touches it"
    if report.protected:
        yield "Only a person changes or removes it; no rule does."
        return
    yield f"Prune would {report.action} it."
    for rule in report.rules:
        when = "now" if rule.applies else rule.applies_on or "-"
        yield wrap(rule.text, indent=f"  {rule.name:<16} {when:<10}  ")


class SettableLayer(StrEnum):
    """The layers that a person gives and takes."""

    ETCHED = "etched"
    NOTES = "notes"
    INSCRIBED = "inscribed"


@click.command(epilog=example("echod explain 4f1c ~/src/my-project --as-of 2027-03-01"))
@options.entry
@options.project_path_or_all
@options.as_of
@options.json
@pass_command_context
def explain(context: CommandContext, *, entry: str, path: Path | None, as_of: str | None, json: bool) -> None:
    """Explain an entry's score and the rules that apply to it."""
    explain_entry(context, entry, path, as_of=as_of, as_json=json)


@click.command("record-access", epilog=example("echod record-access 4f1c 93ab --session $SESSION"))
@click.argument("entries", metavar="ENTRY...", nargs=-1, required=True, help="Ids of entries, or how they begin.")
@click.option("--session", metavar="KEY", help="Whatever names the session; it counts once.")
@options.project_option
@pass_command_context
def record_access(
    context: CommandContext, *, entries: tuple[str, ...], session: str | None, project: Path | None
) -> None:
    """Count a reference to entries."""
    record_references(context, entries, project, session)


@click.command(epilog=example("echod pin 4f1c ~/src/my-project"))
@options.entry
@options.project_path_or_all
@pass_command_context
def pin(context: CommandContext, *, entry: str, path: Path | None) -> None:
    """Protect an entry from all rules for some time."""
    pin_entry(context, entry, path)


@click.command(epilog=example("echod unpin 4f1c ~/src/my-project"))
@options.entry
@options.project_path_or_all
@pass_command_context
def unpin(context: CommandContext, *, entry: str, path: Path | None) -> None:
    """Remove the pin of an entry."""
    unpin_entry(context, entry, path)


@click.command("raise", epilog=example("echod raise 4f1c etched"))
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
    """Move an entry to another layer.

    No rule touches what is etched or a note. Only a person gives these layers, and takes them away again.
    """
    from echod.cli.targets import WriteOptions
    from echod.memory.model import Layer

    raise_entry(context, entry, Layer(layer.value), path, WriteOptions(dry_run, yes, force))


@click.command(epilog=example("echod forget 4f1c ~/src/my-project"))
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
    """Archive an entry for good."""
    from echod.cli.targets import WriteOptions, parse_scope

    forget_entry(context, entry, parse_scope(path, in_global=in_global), WriteOptions(dry_run, yes, force))


@click.command(epilog=example("echod restore 4f1c ~/src/my-project"))
@options.entry
@options.project_path_or_all
@options.in_global
@options.dry_run
@options.force
@pass_command_context
def restore(
    context: CommandContext, *, entry: str, path: Path | None, in_global: bool, dry_run: bool, force: bool
) -> None:
    """Restore an archived entry."""
    from echod.cli.targets import WriteOptions, parse_scope

    restore_archived_entry(
        context, entry, parse_scope(path, in_global=in_global), WriteOptions(dry_run, yes=True, force=force)
    )
