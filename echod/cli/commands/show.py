"""`echod show`: what is in memory. Of projects their roles, of a role its entries, of an entry its text and history."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from datetime import date
from pathlib import Path
from typing import NamedTuple

import click

from echod.app.context import ReadContext, open_read_context
from echod.cli.by_hand import EntryScope, GlobalScope, select_stores
from echod.cli.commands.prune import read_facts_if_recorded
from echod.cli.context import CommandContext
from echod.cli.show_text import entry_screen, global_memory_screen, role_entries_screen, roles_screen
from echod.cli.targets import ArchiveMatch, MemoryMatch, find_entry, list_archive_matches, list_global_roles
from echod.clock import local_date
from echod.contract.commands import ArchivedText, EntryHistory, EntryJobInfo, ShownEntry, ShownRole, ShowReport
from echod.contract.status import to_json
from echod.errors import EchodError, UsageError
from echod.memory.document import parse
from echod.memory.identity import entry_ids
from echod.memory.model import Block, Document
from echod.memory.policy import History
from echod.memory.policy.scoring import count_document_lines, count_entry_lines
from echod.store.layout import Role, Store, find_roles, global_root, list_findings_files


class _RoleContents(NamedTuple):
    """A role and the entries of its memory file."""

    info: ShownRole
    entries: tuple[ShownEntry, ...]


def show_memory(context: CommandContext, target: str | None, scope: EntryScope, *, as_json: bool) -> None:
    """Print what is in memory.

    Args:
        context: where the command was called.
        target: a project, a role, or an entry; None: the current directory's project, else all.
        scope: where the role or entry is meant.
        as_json: for scripts.

    Raises:
        UsageError: nothing of that name is there.
        EchodError: it cannot be read.
    """
    with open_read_context(context.paths, context.settings, context.environ, context.now) as read_context:
        if target is not None and not isinstance(scope, GlobalScope) and _is_project_path(context, target):
            if scope is not None:
                raise UsageError("Name one project: echod show PATH, or echod show ROLE|ENTRY PATH.")
            scope, target = Path(target), None
        roles_in_scope = _list_scope_roles(context, read_context, scope)
        if target is None:
            roles = [_read_role(read_context, role) for role in roles_in_scope]
            report = ShowReport(_all_entries(roles), tuple(role.info for role in roles))
            text = global_memory_screen(report) if isinstance(scope, GlobalScope) else roles_screen(report.roles)
        elif named := [role for role in roles_in_scope if role.name == target]:
            roles = [_read_role(read_context, role) for role in named]
            report = ShowReport(_all_entries(roles), tuple(role.info for role in roles))
            text = "\n\n".join(role_entries_screen(role.info, role.entries) for role in roles)
        else:
            report = _entry_report(context, read_context, find_entry(context, read_context, scope, target))
            text = entry_screen(report, context.now())
    click.echo(to_json(report) if as_json else text)


def _list_scope_roles(context: CommandContext, read_context: ReadContext, scope: EntryScope) -> tuple[Role, ...]:
    if isinstance(scope, GlobalScope):
        return list_global_roles(read_context)
    stores: Sequence[Store] = select_stores(context, scope) or read_context.discover_stores().stores
    return tuple(role for store in stores for role in find_roles(store))


def _is_project_path(context: CommandContext, target: str) -> bool:
    """Whether a project is meant. A bare name is a path only where it leads to a project, and no id is that long."""
    if target in (".", "..", "~") or os.sep in target:
        return True
    return any(context.list_stores(context.cwd / target))


def _all_entries(roles: Sequence[_RoleContents]) -> tuple[ShownEntry, ...]:
    return tuple(entry for role in roles for entry in role.entries)


def _read_role(read_context: ReadContext, role: Role) -> _RoleContents:
    limit = read_context.line_limit(role.store.project) if global_root(role.store) is None else None
    try:
        document = parse(read_context.reader.read_role(role).memory.text)
        archived, findings = sum(len(one.copies) for one in list_archive_matches(role)), len(list_findings_files(role))
    except (EchodError, OSError) as error:
        problem = str(error) if isinstance(error, EchodError) else f"It cannot be listed: {error.strerror}."
        return _RoleContents(ShownRole(role.store.key, role.name, None, limit, 0, {}, None, None, 0, 0, problem), ())
    if not isinstance(document, Document):
        reason = document.reason
        return _RoleContents(
            ShownRole(role.store.key, role.name, None, limit, 0, {}, None, None, findings, archived, reason), ()
        )
    entries = tuple(
        _shown_entry(role, own, block)
        for own, block in zip(entry_ids(role.name, document), document.blocks, strict=True)
        if own is not None
    )
    layers: dict[str, int] = {}
    for entry in entries:
        layers[entry.layer or "unknown"] = layers.get(entry.layer or "unknown", 0) + 1
    days = sorted(entry.date for entry in entries if entry.date)
    info = ShownRole(
        store=role.store.key,
        name=role.name,
        lines=count_document_lines(document),
        limit=limit,
        entries=len(entries),
        layers=layers,
        oldest=days[0] if days else None,
        newest=days[-1] if days else None,
        findings=findings,
        archived=archived,
    )
    return _RoleContents(info, entries)


def _shown_entry(role: Role, identity: str, block: Block) -> ShownEntry:
    entry = block.entry
    assert entry is not None  # noqa: S101  it has an id
    return ShownEntry(
        id=identity,
        role=role.name,
        layer=entry.layer and entry.layer.value,
        title=entry.title,
        date=_iso_date(entry.heading_date),
        confidence=entry.confidence,
        verified=_iso_date(entry.verified or entry.heading_date),
        lines=count_entry_lines(block.text),
        form=entry.form.value,
        store=role.store.key,
    )


def _entry_report(context: CommandContext, read_context: ReadContext, found: MemoryMatch | ArchiveMatch) -> ShowReport:
    role, maintenance = found.role, read_context.maintenance_policy(found.role.store.project)
    block = found.block if isinstance(found, MemoryMatch) else None
    memory = found.document if isinstance(found, MemoryMatch) else None
    facts = read_facts_if_recorded(read_context, role, maintenance, local_date(context.now()), memory)
    history = facts.histories.get(found.id, History())
    copies = next((one.copies for one in list_archive_matches(role) if one.id == found.id), ())
    entry_history = EntryHistory(
        id=found.id,
        store=role.store.key,
        role=role.name,
        text=None if block is None else block.text,
        first_seen=_iso_date(history.first_seen),
        references=history.references,
        last_reference=_iso_date(history.last_reference),
        pinned=_iso_date(facts.pinned.get(found.id)),
        jobs=tuple(_list_entry_jobs(read_context, role, found.id)),
        archived=tuple(
            ArchivedText(
                kept.file, kept.entry.day.isoformat(), kept.entry.rule, kept.entry.job, kept.entry.redacted,
                kept.entry.text,
            )
            for kept in copies
        ),
    )  # fmt: skip
    return ShowReport(() if block is None else (_shown_entry(role, found.id, block),), entry=entry_history)


def _list_entry_jobs(read_context: ReadContext, role: Role, identity: str) -> Iterator[EntryJobInfo]:
    """The commits that wrote this entry, oldest first, as far as the journal still has what they wrote."""
    for commit in read_context.reader.memory_commits(role):
        before, after = (_entry_text(role, identity, document) for document in (commit.before, commit.after))
        if before == after:
            continue
        action = "added" if before is None else "removed" if after is None else "changed"
        yield EntryJobInfo(commit.info.job, commit.info.kind, commit.info.at, action)


def _entry_text(role: Role, identity: str, document: Document) -> str | None:
    pairs = zip(entry_ids(role.name, document), document.blocks, strict=True)
    return next((block.text.rstrip() for own, block in pairs if own == identity), None)


def _iso_date(day: date | None) -> str | None:
    return None if day is None else day.isoformat()
