"""`echod audit`: where everything in the global memory comes from."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import click

from echod.app.context import look_out
from echod.cli.packs import look
from echod.cli.shell import Shell
from echod.cli.text import count, fitted, paragraph, plain
from echod.contract.commands import AuditedEntry, AuditedPack, AuditReport
from echod.contract.status import to_json
from echod.memory.document import parse
from echod.memory.identity import entry_ids
from echod.memory.model import Block, Document
from echod.memory.packs.elevation import FromProject, belongs_to, domain_of, domains_in, provenance
from echod.packs.check import PackState
from echod.store.layout import Role

_NOTHING = Document("", ())


def audit(shell: Shell, *, as_json: bool) -> None:
    """Print it, pack by pack and entry by entry.

    Raises:
        EchodError: the global store cannot be read.
    """
    report = _report(shell)
    click.echo(to_json(report) if as_json else "\n".join(_lines(report)))


def _report(shell: Shell) -> AuditReport:
    inventory, _ = look(shell)
    with look_out(shell.paths, shell.settings, shell.environ, shell.now) as lookout:
        role = lookout.packs.memory
        data = lookout.reader.peek(role).memory.data if role.path.is_dir() else None
        texts = [(state, lookout.packs.role(state.stack), _document(state)) for state in inventory.installed]
    read = parse(data or b"")
    problems = inventory.store_problems
    if not isinstance(read, Document):
        problems = (*problems, f"{role.memory} cannot be read: {read.reason}")
    own = list(_entries(role, read if isinstance(read, Document) else _NOTHING))
    foreign = [
        entry
        for state, home, document in texts
        for entry, block in _entries(home, document)
        if not belongs_to(block.entry, state.stack)
    ]
    return AuditReport(
        packs=tuple(_pack(state, document) for state, _, document in texts),
        elevated=tuple(entry for entry, _ in own if entry.project is not None),
        unknown=(*(entry for entry, _ in own if entry.project is None), *foreign),
        problems=problems,
    )


def _document(state: PackState) -> Document:
    """The pack's file; that it cannot be read is among the problems already."""
    read = parse(state.installed.memory or b"")
    return read if isinstance(read, Document) else _NOTHING


def _pack(state: PackState, document: Document) -> AuditedPack:
    manifest = state.installed.manifest
    entries = [block.entry for block in document.blocks if block.entry]
    return AuditedPack(
        name=state.stack,
        version=manifest.version if manifest else None,
        installed_at=manifest.installed_at if manifest else None,
        domains=manifest.domains if manifest and manifest.domains else domains_in(document),
        entries=len(entries),
        added=sum(not belongs_to(entry, state.stack) for entry in entries),
    )


def _entries(role: Role, document: Document) -> Iterator[tuple[AuditedEntry, Block]]:
    for identity, block in zip(entry_ids(role.name, document), document.blocks, strict=True):
        entry = block.entry
        if entry is None or identity is None:
            continue
        found = provenance(entry)
        elevated = found if isinstance(found, FromProject) else None
        yield (
            AuditedEntry(
                id=identity,
                title=entry.title,
                domain=domain_of(entry),
                project=elevated.project if elevated else None,
                role=elevated.role if elevated else None,
                date=entry.heading_date.isoformat() if entry.heading_date else None,
                source=entry.source,
                file=str(role.memory),
            ),
            block,
        )


def _lines(report: AuditReport) -> Iterator[str]:
    yield "Global echo audit:"
    yield "  Doc packs:"
    for pack in report.packs:
        at = f"installed {plain(pack.installed_at[:10])}" if pack.installed_at else "no manifest"
        entries, domains = count(pack.entries, "entry", "entries"), plain(", ".join(pack.domains))
        yield f"    {pack.name:<15} {entries:<12} {domains:<24} {at}"
        if pack.added:
            yield f"      {pack.added} of them did not come with the pack"
    yield from [] if report.packs else ["    none"]
    yield "\n  Elevated echoes:"
    yield from (line for entry in report.elevated for line in _entry(entry))
    yield from [] if report.elevated else ["    none"]
    if report.unknown:
        yield "\n  Of unknown origin:"
        yield from (line for entry in report.unknown for line in _entry(entry))
    yield from _problems(report.problems)


def _entry(entry: AuditedEntry) -> Iterator[str]:
    yield paragraph(f'"{plain(entry.title)}"', indent=f"    {entry.id}  ")
    date = f" ({entry.date})" if entry.date else ""
    if entry.project is not None:
        yield f"      {plain(entry.domain):<13} from {plain(entry.project)}, role {plain(entry.role or '')}{date}"
    else:
        source = plain(entry.source) if entry.source else "no source"
        yield paragraph(f"{plain(entry.domain):<13} {source}{date}", indent="      ")
        yield f"      {fitted(entry.file, 74)}"


def _problems(problems: Sequence[str]) -> Iterator[str]:
    for problem in problems:
        yield paragraph(plain(problem), indent="! ")
