"""`echod raise`, `echod forget` and `echod restore`: what a person decides about one entry."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from difflib import ndiff
from pathlib import Path

from echod.app.context import open_read_context
from echod.app.services import Services, open_services
from echod.cli.by_hand import EntryScope, WriteOptions, confirm, require_write_mode
from echod.cli.commands.packs import retry_while_busy
from echod.cli.context import CommandContext
from echod.cli.execute import JobRefusedError, ManualJob, run_manual_job, summary_or_raise
from echod.cli.output import pluralize, role_label, sanitize, short_path, wrap
from echod.cli.targets import ArchiveMatch, MemoryMatch, find_entry, find_in_memory, global_flag, list_archive_matches
from echod.cli.wake import notify_daemon
from echod.clock import local_date
from echod.jobs import forget as forget_job
from echod.jobs import restore as restore_job
from echod.jobs import set_layer
from echod.jobs.archives import ArchivedCopy
from echod.jobs.base import JobOutcome
from echod.memory.model import Layer
from echod.memory.policy import Rule
from echod.memory.policy.manual import EditRefusal, change_layer, remove_entries
from echod.memory.policy.scoring import count_entry_lines
from echod.memory.prompt_injection import find_injection
from echod.memory.redact import redact_entry
from echod.state.job import Job, JobKind
from echod.store.changes import CommitGate
from echod.store.layout import Role, global_root
from echod.store.session import RoleSession

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

    def run(_: Services, session: RoleSession, job: Job, gate: CommitGate) -> JobOutcome:
        return set_layer.run(job.id, session, found.id, layer, gate, context.now)

    _run_entry_job(context, JobKind.RAISE, found.role, run, write_options)


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

    def run(_: Services, session: RoleSession, job: Job, gate: CommitGate) -> JobOutcome:
        return forget_job.run(job.id, session, [found.id], gate, context.now, rule=Rule.FORGOTTEN)

    _run_entry_job(context, JobKind.FORGET, found.role, run, write_options)


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

    def run(services: Services, session: RoleSession, job: Job, gate: CommitGate) -> JobOutcome:
        pins = restore_job.PinContext(services.entries, services.settings.policy.pin_days)
        return restore_job.run(job.id, session, copy.entry, pins, gate, context.now)

    _run_entry_job(context, JobKind.RESTORE, found.role, run, write_options)


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
    run: Callable[[Services, RoleSession, Job, CommitGate], JobOutcome],
    write_options: WriteOptions,
) -> None:
    """Do it, as a job of its own, and say what was done. No workflow holds the global store, but others write there."""
    is_global = global_root(role.store) is not None
    with open_services(context.paths, context.settings, context.environ, context.now) as services:

        def attempt(job: Job, gate: CommitGate) -> str:
            with services.engine.open_role(role) as session:
                return summary_or_raise(run(services, session, job, gate))

        def work(job: Job, gate: CommitGate) -> str:
            return retry_while_busy(lambda: attempt(job, gate)) if is_global else attempt(job, gate)

        manual_job = ManualJob(kind, role, "a person asked for it")
        result = run_manual_job(context, services, manual_job, work, force=write_options.force or is_global)
    notify_daemon(context)
    context.print_info(result.describe(role_label(role.name)))
