"""`echod audit`: where everything in the global memory comes from."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import click

from echod.app.context import open_read_context
from echod.cli.context import CommandContext
from echod.cli.output import fit_path, pluralize, sanitize, wrap
from echod.cli.packs import read_pack_inventory
from echod.contract.commands import AuditedEntry, AuditedPack, AuditReport
from echod.contract.status import to_json
from echod.memory.document import parse
from echod.memory.identity import entry_ids
from echod.memory.model import Block, Document
from echod.memory.packs.elevation import (
    ProjectProvenance,
    domains_by_frequency,
    entry_domain,
    is_from_pack,
    read_provenance,
)
from echod.packs.check import PackState
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
