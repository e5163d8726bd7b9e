"""`echod verify`: whether the files and lines that entries cite still are what they were."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from echod.cli.context import CommandContext, ProgressLine
from echod.cli.evidence import evidence_infos, evidence_lines
from echod.cli.execute import Change, ManualJob, Step, WriteOptions, make_change
from echod.cli.output import role_label, short_path, title_text, wrap
from echod.cli.targets import MemoryMatch, entry_heading, find_in_memory, find_to_change, list_roles_of, select_stores
from echod.clock import local_date
from echod.contract.codec import to_json
from echod.contract.entries import VerifiedEntry, VerifyReport
from echod.errors import UsageError
from echod.evidence.entries import EntryEvidence, check_document, confirm_evidence, record_evidence
from echod.evidence.verifier import EvidenceVerifier
from echod.inspection.entry_facts import record_entries
from echod.jobs import manual
from echod.memory.document import parse
from echod.memory.model import Document
from echod.memory.text import pluralize
from echod.state.fingerprints import read_bases
from echod.state.job import JobKind
from echod.store.layout import Role

if TYPE_CHECKING:
    from echod.app.services import Services  # loads the jobs and the commit engine

_ORDER = ("gone", "changed", "moved", "unknown", "valid")


def verify(
    context: CommandContext, *, target: str | None, confirm: str | None, dry_run: bool, force: bool, json: bool
) -> None:
    """Run `echod verify`."""
    if confirm is not None:
        if json:
            raise UsageError("--json lists evidence. Leave it out with --confirm.")
        _confirm(context, confirm, target, WriteOptions(dry_run, force=force))
        return
    if dry_run or force:
        raise UsageError("--dry-run and --force belong to --confirm ENTRY. Without it nothing is changed.")
    with context.open_services() as services, context.progress_line(json=json) as progress:
        report = VerifyReport(tuple(_verify_target(context, services, target, progress)))
    click.echo(to_json(report) if json else "\n".join(_screen(report.entries)))


def _is_path(context: CommandContext, target: str) -> bool:
    if target in (".", "..", "~") or os.sep in target:
        return True
    return context.cwd is not None and any(context.list_stores(context.cwd / target))


def _verify_target(
    context: CommandContext, services: Services, target: str | None, progress: ProgressLine
) -> Iterator[VerifiedEntry]:
    read_context = services.read_context
    if target is not None and not _is_path(context, target):
        (match,) = find_in_memory(context, read_context, None, [target])
        (found,) = [
            entry for entry in _record(context, services, match.role, match.document) if entry.id == match.id
        ] or [_check_one(context, services, match)]
        yield _info(match.role, found)
        return
    stores = select_stores(context, None if target is None else Path(target))
    roles = list_roles_of(stores if stores is not None else read_context.discover_stores().stores)
    for number, role in enumerate(roles, start=1):
        progress.show(f"file {number} of {len(roles)}: {role_label(role.name)}")
        document = parse(read_context.reader.read_role(role).memory.text)
        if isinstance(document, Document):
            for found in _record(context, services, role, document):
                yield _info(role, found)


def _record(context: CommandContext, services: Services, role: Role, document: Document) -> tuple[EntryEvidence, ...]:
    """Check the entries of a role, after recording them: what is seen for the first time gets its base now."""
    record_entries(services.entries, role, document, local_date(context.now()))
    verifier = EvidenceVerifier(role.store.project, context.now())
    try:
        return record_evidence(services.entries.fingerprints, verifier, role.store.key, role.name, document)
    finally:
        verifier.close()


def _check_one(context: CommandContext, services: Services, match: MemoryMatch) -> EntryEvidence:
    role = match.role
    bases = read_bases(services.entries.fingerprints, role.store.key, role.name)
    verifier = EvidenceVerifier(role.store.project, context.now())
    try:
        return check_document(verifier, role.name, match.document, bases, only=match.id)[0]
    finally:
        verifier.close()


def _info(role: Role, found: EntryEvidence) -> VerifiedEntry:
    return VerifiedEntry(found.id, found.title, evidence_infos(found), role.store.key, role.name)


def _screen(entries: Sequence[VerifiedEntry]) -> Iterator[str]:
    if not entries:
        yield "No entry here cites a file."
        return
    counts = {state: sum(info.state == state for entry in entries for info in entry.evidence) for state in _ORDER}
    for entry in sorted(entries, key=_worst):
        if _worst(entry) == len(_ORDER) - 1 and len(entries) > 1:
            continue
        yield wrap(title_text(entry.title), indent=f"{entry.id}  ")
        yield f"  in {role_label(entry.role)}  {short_path(entry.store)}"
        yield from evidence_lines(entry.evidence)
    summary = ", ".join(f"{number} {state}" for state, number in counts.items() if number) or "none"
    yield wrap(f"{pluralize(len(entries), 'entry', 'entries')} with evidence. Citations: {summary}.")


def _worst(entry: VerifiedEntry) -> int:
    return min((_ORDER.index(info.state) for info in entry.evidence), default=len(_ORDER) - 1)


def _confirm(context: CommandContext, entry: str, target: str | None, write: WriteOptions) -> None:
    """Set the day of verification of an entry, and take its present evidence as the base."""
    path = None if target is None else Path(target)
    with context.open_services() as services:
        (match,) = find_to_change(context, services.read_context, path, [entry])
        found = _check_one(context, services, match)
    states = list(evidence_lines(_info(match.role, found).evidence)) or ["  It cites no file."]
    change = Change(
        preview="\n".join([entry_heading(match), *states, "  its day of verification becomes today"]),
        steps=[
            Step(
                match.id,
                lambda runner: runner.run(
                    ManualJob(JobKind.VERIFY, match.role), lambda job: manual.verify(job, match.id)
                ).describe(role_label(match.role.name)),
            )
        ],
    )
    make_change(context, change, write)
    if write.dry_run:
        return
    with context.open_services() as services:
        verifier = EvidenceVerifier(match.role.store.project, context.now())
        try:
            confirm_evidence(services.entries.fingerprints, verifier, match.role.store.key, match.role.name, found)
        finally:
            verifier.close()
