"""`echod audit`: where everything in the global memory comes from.

`echod elevate`: an entry of a project becomes one of the global memory, for all projects of the user.

Commands about doc packs and the global memory.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import click

from echod.app.context import ReadContext, open_read_context
from echod.app.services import Services, open_services
from echod.cli import options
from echod.cli.commands.packs import read_pack_inventory
from echod.cli.context import CommandContext, notify_daemon
from echod.cli.execute import JobRefusedError, ManualJob, ManualJobResult, run_manual_job
from echod.cli.output import fit_path, pluralize, sanitize, short_path, wrap
from echod.cli.root import example, pass_command_context
from echod.cli.targets import MemoryMatch, find_in_memory, require_write_mode
from echod.clock import local_date
from echod.contract.commands import AuditedEntry, AuditedPack, AuditReport
from echod.contract.status import to_json
from echod.errors import UsageError
from echod.jobs import elevate as elevate_job
from echod.jobs.base import JobContext, JobOutcome
from echod.memory.document import parse
from echod.memory.identity import entry_ids
from echod.memory.model import Block, Document
from echod.memory.packs.elevation import (
    ElevationResult,
    NotEligible,
    ProjectProvenance,
    check_eligibility,
    domains_by_frequency,
    entry_domain,
    is_from_pack,
    metadata_value,
    read_provenance,
)
from echod.memory.packs.manifest import DOMAINS
from echod.memory.prompt_injection import find_injection
from echod.packs.check import PackState
from echod.state.job import JobKind
from echod.store.create import create_global_role
from echod.store.layout import Role

_EMPTY_DOCUMENT = Document("", ())


def show_audit(context: CommandContext, *, as_json: bool) -> None:
    """Print it, pack by pack and entry by entry.

    Raises:
        EchodError: the global store cannot be read.
    """
    report = _audit_report(context)
    click.echo(to_json(report) if as_json else "\n".join(_audit_lines(report)))


def _audit_report(context: CommandContext) -> AuditReport:
    inventory, _ = read_pack_inventory(context)
    with open_read_context(context.paths, context.settings, context.environ, context.now) as read_context:
        role = read_context.pack_locations.memory_role
        data = read_context.reader.read_role(role).memory.data if role.path.is_dir() else None
        texts = [
            (state, read_context.pack_locations.pack_role(state.stack), _pack_document(state))
            for state in inventory.installed
        ]
    parsed = parse(data or b"")
    problems = inventory.store_problems
    if not isinstance(parsed, Document):
        problems = (*problems, f"{role.memory} cannot be read: {parsed.reason}")
    elevated = list(_audited_entries(role, parsed if isinstance(parsed, Document) else _EMPTY_DOCUMENT))
    foreign = [
        entry
        for state, home, document in texts
        for entry, block in _audited_entries(home, document)
        if not is_from_pack(block.entry, state.stack)
    ]
    return AuditReport(
        packs=tuple(_audited_pack(state, document) for state, _, document in texts),
        elevated=tuple(entry for entry, _ in elevated if entry.project is not None),
        unknown=(*(entry for entry, _ in elevated if entry.project is None), *foreign),
        problems=problems,
    )


def _pack_document(state: PackState) -> Document:
    """The pack's file; that it cannot be read is among the problems already."""
    parsed = parse(state.installed.memory or b"")
    return parsed if isinstance(parsed, Document) else _EMPTY_DOCUMENT


def _audited_pack(state: PackState, document: Document) -> AuditedPack:
    manifest = state.installed.manifest
    entries = [block.entry for block in document.blocks if block.entry]
    return AuditedPack(
        name=state.stack,
        version=manifest.version if manifest else None,
        installed_at=manifest.installed_at if manifest else None,
        domains=manifest.domains if manifest and manifest.domains else domains_by_frequency(document),
        entries=len(entries),
        added=sum(not is_from_pack(entry, state.stack) for entry in entries),
    )


def _audited_entries(role: Role, document: Document) -> Iterator[tuple[AuditedEntry, Block]]:
    for identity, block in zip(entry_ids(role.name, document), document.blocks, strict=True):
        entry = block.entry
        if entry is None or identity is None:
            continue
        found = read_provenance(entry)
        elevated = found if isinstance(found, ProjectProvenance) else None
        yield (
            AuditedEntry(
                id=identity,
                title=entry.title,
                domain=entry_domain(entry),
                project=elevated.project if elevated else None,
                role=elevated.role if elevated else None,
                date=entry.heading_date.isoformat() if entry.heading_date else None,
                source=entry.source,
                file=str(role.memory),
            ),
            block,
        )


def _audit_lines(report: AuditReport) -> Iterator[str]:
    yield "Global echo audit:"
    yield "  Doc packs:"
    for pack in report.packs:
        install_text = f"installed {sanitize(pack.installed_at[:10])}" if pack.installed_at else "no manifest"
        entries, domains = pluralize(pack.entries, "entry", "entries"), sanitize(", ".join(pack.domains))
        yield f"    {pack.name:<15} {entries:<12} {domains:<24} {install_text}"
        if pack.added:
            yield f"      {pack.added} of them did not come with the pack"
    yield from [] if report.packs else ["    none"]
    yield "\n  Elevated echoes:"
    yield from (line for entry in report.elevated for line in _audited_entry_lines(entry))
    yield from [] if report.elevated else ["    none"]
    if report.unknown:
        yield "\n  Of unknown origin:"
        yield from (line for entry in report.unknown for line in _audited_entry_lines(entry))
    yield from _problem_lines(report.problems)


def _audited_entry_lines(entry: AuditedEntry) -> Iterator[str]:
    yield wrap(f'"{sanitize(entry.title)}"', indent=f"    {entry.id}  ")
    date = f" ({entry.date})" if entry.date else ""
    if entry.project is not None:
        yield (
            f"      {sanitize(entry.domain):<13} from {sanitize(entry.project)}, role "
            f"{sanitize(entry.role or '')}{date}"
        )
    else:
        source = sanitize(entry.source) if entry.source else "no source"
        yield wrap(f"{sanitize(entry.domain):<13} {source}{date}", indent="      ")
        yield f"      {fit_path(entry.file, 74)}"


def _problem_lines(problems: Sequence[str]) -> Iterator[str]:
    for problem in problems:
        yield wrap(sanitize(problem), indent="! ")


_ENTRY_COUNT_WARNING = 50
"""With more entries than this the global memory costs every agent of every project more than it gives."""


def elevate_to_global(
    context: CommandContext, entry: str, path: Path | None, domain: str | None, *, dry_run: bool
) -> None:
    """Write an entry into the global memory.

    Raises:
        UsageError: there is no such entry or domain, or a question cannot be asked.
        EchodError: it cannot be elevated, the sentence says why.
    """
    _check_domain(domain)
    with open_read_context(context.paths, context.settings, context.environ, context.now) as read_context:
        (found,) = find_in_memory(context, read_context, path, [entry])
        if (reason := check_eligibility(found.block)) is not None:
            raise _elevation_refused_error(found, reason)
        chosen_domain = domain or _entry_domain(found) or _ask_domain()
        plan = _plan_elevation(context, read_context, found, chosen_domain)
    if isinstance(plan, NotEligible):
        raise _elevation_refused_error(found, plan)
    _print_elevation_warnings(found, plan)
    if dry_run:
        click.echo(f"It would be added to {short_path(str(read_context.pack_locations.memory_role.memory))}:")
        click.echo("\n".join(f"  {sanitize(line)}".rstrip() for line in plan.document.blocks[-1].text.splitlines()))
        return
    require_write_mode(context)
    with open_services(context.paths, context.settings, context.environ, context.now) as services:
        result = _run_elevate_job(context, services, found, chosen_domain)
    notify_daemon(context)
    context.print_info(
        wrap(f'Elevated "{sanitize(found.title)}" ({chosen_domain}) from {found.role.name} as {plan.id}.', hang="  ")
    )
    context.print_info(result.undo_hint)
    if (number := sum(block.entry is not None for block in plan.document.blocks)) > _ENTRY_COUNT_WARNING:
        text = (
            f"The global memory has {number} entries now; more than {_ENTRY_COUNT_WARNING} are "
            f"a lot for every agent to read."
        )
        click.echo(wrap(text, indent="! "))


def _plan_elevation(
    context: CommandContext, read_context: ReadContext, found: MemoryMatch, domain: str
) -> ElevationResult | NotEligible:
    role = read_context.pack_locations.memory_role
    memory = read_context.reader.read_role(role).memory.data if role.path.is_dir() else None
    return elevate_job.plan_elevation(memory, found.block, found.role, domain, local_date(context.now()))


def _run_elevate_job(context: CommandContext, services: Services, found: MemoryMatch, domain: str) -> ManualJobResult:
    """Do it, as a job of its own. No workflow holds the global memory: it belongs to no project."""
    role = services.read_context.pack_locations.memory_role

    def action(job: JobContext) -> JobOutcome:
        return elevate_job.run(job, found.block, found.role, domain)

    reason = f"a person elevates {found.id} of {found.role.name}"
    manual_job = ManualJob(JobKind.ELEVATE, role, reason)
    return run_manual_job(context, services, manual_job, action, prepare=lambda: create_global_role(role))


def _check_domain(domain: str | None) -> None:
    if domain is not None and domain not in DOMAINS:
        raise UsageError(f"{sanitize(domain)!r} is no domain; there are {', '.join(DOMAINS)}.")


def _entry_domain(found: MemoryMatch) -> str | None:
    """The domain that the entry names itself, if it is one."""
    entry = found.block.entry
    domain = metadata_value(entry, "domain").lower() if entry else ""
    return domain if domain in DOMAINS else None


def _ask_domain() -> str:
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UsageError(f"What is it about? Say --domain with one of {', '.join(DOMAINS)}; nothing was changed.")
    click.echo("\n".join(f"{number:>3}  {domain}" for number, domain in enumerate(DOMAINS, 1)))
    while True:
        answer: str = click.prompt("What is it about")
        if answer in DOMAINS:
            return answer
        if answer.isascii() and answer.isdigit() and 1 <= int(answer) <= len(DOMAINS):
            return DOMAINS[int(answer) - 1]


def _print_elevation_warnings(found: MemoryMatch, plan: ElevationResult) -> None:
    if plan.redacted:
        click.echo(wrap("A secret was taken out of it: the global memory is read in every project."))
    if (phrase := find_injection(found.block.text)) is not None:
        click.echo(wrap(f"It reads like an instruction to agents ({phrase}); every project's agents read it."))


def _elevation_refused_error(found: MemoryMatch, reason: NotEligible) -> JobRefusedError:
    return JobRefusedError(f"{found.id} is not elevated: {reason.reason}. Nothing was changed.")


@click.command(epilog=example("echod audit --json"))
@options.json
@pass_command_context
def audit(context: CommandContext, *, json: bool) -> None:
    """List the global memory's entries with their origin."""
    show_audit(context, as_json=json)


@click.command(epilog=example("echod elevate 4f1c --domain backend"))
@options.entry
@options.project_path_or_all
@click.option("--domain", metavar="NAME", help="What it is about; asked if not said.")
@options.dry_run
@pass_command_context
def elevate(context: CommandContext, *, entry: str, path: Path | None, domain: str | None, dry_run: bool) -> None:
    """Copy an entry to the global memory.

    Domains: backend, frontend, devops, database, testing, architecture, design, general.
    """
    elevate_to_global(context, entry, path, domain, dry_run=dry_run)
