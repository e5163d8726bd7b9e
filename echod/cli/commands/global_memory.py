"""Commands about the global memory: `elevate` copies a project's entry there, `audit` lists where entries are from."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click

from echod.app.context import ReadContext
from echod.cli.commands.memory import addition_preview
from echod.cli.commands.packs import read_pack_inventory
from echod.cli.context import CommandContext
from echod.cli.execute import (
    Change,
    JobRefusedError,
    JobRunner,
    ManualJob,
    Step,
    WriteOptions,
    make_change,
    report_already_so,
)
from echod.cli.output import fit_path, problem_line, sanitize, wrap
from echod.cli.targets import MemoryMatch, ask_choice, find_in_memory
from echod.clock import local_date
from echod.contract.codec import to_json
from echod.contract.commands import AuditedEntry, AuditedPack, AuditReport
from echod.errors import UsageError
from echod.jobs import manual
from echod.memory.document import parse
from echod.memory.identity import entry_ids
from echod.memory.model import Block, Document
from echod.memory.packs.elevation import (
    AlreadyElevated,
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
from echod.memory.text import pluralize
from echod.packs.installed import PackState
from echod.state.jobs import JobKind
from echod.store.create import create_global_role
from echod.store.layout import Role

_ENTRY_COUNT_WARNING = 50
"""With more entries the global memory costs every agent of every project more than it gives."""

_EMPTY_DOCUMENT = Document("", ())


def elevate(context: CommandContext, *, entry: str, path: Path | None, domain: str | None, dry_run: bool) -> None:
    """Run `echod elevate`."""
    _check_domain(domain)
    with context.open_read_context() as read_context:
        role = read_context.pack_locations.memory_role
        (match,) = find_in_memory(context, read_context, path, [entry])
        if (reason := check_eligibility(match.block)) is not None:
            raise _elevation_refused_error(match, reason)
        chosen_domain = domain or _own_domain(match) or _ask_domain(context)
        plan = _plan_elevation(context, read_context, match, chosen_domain)
    if isinstance(plan, AlreadyElevated):
        report_already_so(context, f"{match.id} is not copied: {plan.reason}")
    if isinstance(plan, NotEligible):
        raise _elevation_refused_error(match, plan)
    _print_warnings(match, plan)

    def step(runner: JobRunner) -> str:
        manual_job = ManualJob(JobKind.ELEVATE, role, f"the user elevates {match.id} of {match.role.name}")
        result = runner.run(
            manual_job,
            lambda job: manual.elevate(job, match.block, match.role, chosen_domain),
            prepare=lambda: create_global_role(role),
        )
        text = f'Elevated "{sanitize(match.title)}" ({chosen_domain}) from {match.role.name} as {plan.id}.'
        return f"{wrap(text, hang='  ')}\n{result.undo_hint}"

    change = Change(preview=addition_preview(role, plan.document) if dry_run else "", steps=[Step(match.id, step)])
    make_change(context, change, WriteOptions(dry_run))
    entries = sum(block.entry is not None for block in plan.document.blocks)
    if entries > _ENTRY_COUNT_WARNING and not dry_run:
        text = (
            f"The global memory has {entries} entries now. More than {_ENTRY_COUNT_WARNING} are "
            "a lot for every agent to read."
        )
        click.echo(problem_line(text))


def _check_domain(domain: str | None) -> None:
    if domain is not None and domain not in DOMAINS:
        raise UsageError(f"{sanitize(domain)!r} is not a domain. Domains: {', '.join(DOMAINS)}.")


def _own_domain(match: MemoryMatch) -> str | None:
    """Return the domain in the entry's own metadata, if it is valid."""
    entry = match.block.entry
    domain = metadata_value(entry, "domain").lower() if entry else ""
    return domain if domain in DOMAINS else None


def _ask_domain(context: CommandContext) -> str:
    if not context.is_interactive:
        raise UsageError(
            f"The entry has no domain. Use --domain with one of {', '.join(DOMAINS)}. Nothing was changed."
        )
    return DOMAINS[ask_choice("Domain", DOMAINS)]


def _plan_elevation(
    context: CommandContext, read_context: ReadContext, match: MemoryMatch, domain: str
) -> ElevationResult | NotEligible:
    role = read_context.pack_locations.memory_role
    memory = read_context.reader.read_role(role).memory.data if role.path.is_dir() else None
    return manual.plan_elevation(memory, match.block, match.role, domain, local_date(context.now()))


def _print_warnings(match: MemoryMatch, plan: ElevationResult) -> None:
    if plan.redacted:
        click.echo(wrap("It contains a secret, which is not copied: the global memory is read in every project."))
    if (phrase := find_injection(match.block.text)) is not None:
        click.echo(wrap(f"It reads like an instruction to agents ({phrase}). The agents of every project read it."))


def _elevation_refused_error(match: MemoryMatch, reason: NotEligible) -> JobRefusedError:
    return JobRefusedError(f"{match.id} is not elevated: {reason.reason}. Nothing was changed.")


def audit(context: CommandContext, *, json: bool) -> None:
    """Run `echod audit`."""
    report = _audit_report(context)
    click.echo(to_json(report) if json else "\n".join(_audit_lines(report)))


def _audit_report(context: CommandContext) -> AuditReport:
    inventory = read_pack_inventory(context).packs
    with context.open_read_context() as read_context:
        locations = read_context.pack_locations
        role = locations.memory_role
        data = read_context.reader.read_role(role).memory.data if role.path.is_dir() else None
        packs = [(state, locations.pack_role(state.stack), _pack_document(state)) for state in inventory.installed]
    memory, problems = parse(data or b""), inventory.store_problems
    if not isinstance(memory, Document):
        problems = (*problems, f"{role.memory} cannot be read: {memory.reason}")
        memory = _EMPTY_DOCUMENT
    elevated = [entry for entry, _ in _audited_entries(role, memory)]
    foreign = [
        entry
        for state, pack_role, document in packs
        for entry, block in _audited_entries(pack_role, document)
        if not is_from_pack(block.entry, state.stack)
    ]
    return AuditReport(
        packs=tuple(_audited_pack(state, document) for state, _, document in packs),
        elevated=tuple(entry for entry in elevated if entry.project is not None),
        unknown=(*(entry for entry in elevated if entry.project is None), *foreign),
        problems=problems,
    )


def _pack_document(state: PackState) -> Document:
    """Parse the file of a pack. That it cannot be parsed is among the problems already."""
    document = parse(state.installed.memory or b"")
    return document if isinstance(document, Document) else _EMPTY_DOCUMENT


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
        provenance = read_provenance(entry)
        origin = provenance if isinstance(provenance, ProjectProvenance) else None
        audited = AuditedEntry(
            id=identity,
            title=entry.title,
            domain=entry_domain(entry),
            project=origin.project if origin else None,
            role=origin.role if origin else None,
            date=entry.heading_date.isoformat() if entry.heading_date else None,
            source=entry.source,
            file=str(role.memory),
        )
        yield audited, block


def _audit_lines(report: AuditReport) -> Iterator[str]:
    yield "Global echo audit:"
    yield "  Doc packs:"
    for pack in report.packs:
        install_text = f"installed {sanitize(pack.installed_at[:10])}" if pack.installed_at else "no manifest"
        entries, domains = pluralize(pack.entries, "entry", "entries"), sanitize(", ".join(pack.domains))
        yield f"    {pack.name:<15} {entries:<12} {domains:<24} {install_text}"
        if pack.added:
            yield f"      {pack.added} of them not from the pack"
    yield from [] if report.packs else ["    none"]
    yield "\n  Elevated echoes:"
    yield from (line for entry in report.elevated for line in _audited_entry_lines(entry))
    yield from [] if report.elevated else ["    none"]
    if report.unknown:
        yield "\n  Of unknown origin:"
        yield from (line for entry in report.unknown for line in _audited_entry_lines(entry))
    yield from map(problem_line, report.problems)


def _audited_entry_lines(entry: AuditedEntry) -> Iterator[str]:
    yield wrap(f'"{sanitize(entry.title)}"', indent=f"    {entry.id}  ")
    date = f" ({entry.date})" if entry.date else ""
    domain = f"{sanitize(entry.domain):<13}"
    if entry.project is not None:
        yield f"      {domain} from {sanitize(entry.project)}, role {sanitize(entry.role or '')}{date}"
    else:
        source = sanitize(entry.source) if entry.source else "no source"
        yield wrap(f"{domain} {source}{date}", indent="      ")
        yield f"      {fit_path(entry.file, 74)}"
