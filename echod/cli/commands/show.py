"""`echod show`: what is in memory. Of projects their roles, of a role its entries, of an entry its text and history.

What `echod show` prints for people: bars, lists, and texts of entries, fenced since they are data.

Commands about a whole memory: look at it, add to it, empty it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import date
from pathlib import Path
from textwrap import shorten
from typing import NamedTuple

import click

from echod.app.context import ReadContext, open_read_context
from echod.cli import options
from echod.cli.commands.prune import read_facts_if_recorded
from echod.cli.context import CommandContext
from echod.cli.options import PATH_OR_NAME
from echod.cli.output import WIDTH, fit_path, format_timestamp, pluralize, role_label, sanitize, wrap
from echod.cli.root import example, pass_command_context
from echod.cli.targets import (
    ArchiveMatch,
    EntryScope,
    GlobalScope,
    MemoryMatch,
    find_entry,
    list_archive_matches,
    list_global_roles,
    select_stores,
)
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

_BAR_WIDTH = 20
_BACKTICK_RUN = re.compile(r"`{3,}")


def roles_screen(roles: Sequence[ShownRole]) -> str:
    """Roles store by store."""
    if not roles:
        return "There is no memory here; name a project, or add one with: echod add PATH"
    lines: list[str] = []
    for store in dict.fromkeys(role.store for role in roles):
        lines += [*([""] if lines else []), fit_path(store, WIDTH)]
        for role in roles:
            if role.store == store:
                lines += _role_lines(role)
    return "\n".join(lines)


def global_memory_screen(report: ShowReport) -> str:
    """The global memory with its entries, and the doc packs at a glance."""
    global_roles = [role for role in report.roles if not role.name]
    packs = [role for role in report.roles if role.name]
    screens = [
        role_entries_screen(role, (entry for entry in report.entries if not entry.role)) for role in global_roles
    ]
    if packs or not global_roles:
        screens.append(roles_screen(packs))
    return "\n\n".join(screens)


def role_entries_screen(role: ShownRole, entries: Iterable[ShownEntry]) -> str:
    """A role and its entries, in file order."""
    lines = [fit_path(role.store, WIDTH), *_role_lines(role)]
    lines += [_entry_line(entry) for entry in entries]
    return "\n".join(lines)


def entry_screen(report: ShowReport, now: float) -> str:
    """The text of an entry and what is known of it."""
    return "\n".join(_entry_details(report, now))


def _role_lines(role: ShownRole) -> Iterator[str]:
    name = role_label(role.name)
    if role.lines is None:
        yield f"  {name}"
        yield wrap(sanitize(role.problem or ""), indent="    ! ")
        return
    yield f"  {name:<14} {_size_bar(role.lines, role.limit)}"
    layers = ", ".join(f"{number} {layer}" for layer, number in role.layers.items())
    span = (
        "" if role.oldest is None else role.oldest if role.oldest == role.newest else f"{role.oldest} to {role.newest}"
    )
    parts = [
        layers or "no entries",
        span,
        f"{pluralize(role.findings, 'findings file')} waiting" if role.findings else "",
        f"{role.archived} in the archive" if role.archived else "",
    ]
    yield wrap("; ".join(part for part in parts if part), indent="    ")


def _size_bar(lines: int, limit: int | None) -> str:
    if limit is None:
        return pluralize(lines, "line")
    filled = min(_BAR_WIDTH, round(_BAR_WIDTH * lines / limit)) if limit else _BAR_WIDTH
    bar = "#" * filled + "-" * (_BAR_WIDTH - filled)
    return f"[{bar}] {lines}/{limit} lines{' OVER' if lines > limit else ''}"


def _entry_line(entry: ShownEntry) -> str:
    head = f"{entry.id}  {entry.layer or 'unknown':<12} {entry.date or '-':<10} {entry.lines:>4}  "
    return head + shorten(sanitize(entry.title) or "(untitled)", WIDTH - len(head), placeholder="...")


def _entry_details(report: ShowReport, now: float) -> Iterator[str]:
    entry_history = report.entry
    assert entry_history is not None  # noqa: S101  this screen is of one entry
    if report.entries:
        entry = report.entries[0]
        yield wrap(sanitize(entry.title) or "(untitled)", indent=f"{entry_history.id}  ")
        location = (
            f"{entry.layer or 'unknown layer'}, {pluralize(entry.lines, 'line')}, in {role_label(entry_history.role)}  "
        )
        yield location + fit_path(entry_history.store, WIDTH - len(location))
    else:
        location = f"{entry_history.id}  in the archive of {role_label(entry_history.role)}  "
        yield location + fit_path(entry_history.store, WIDTH - len(location))
    if entry_history.text is not None:
        yield from _fenced_lines(entry_history.text)
    if entry_history.first_seen:
        yield f"known to echod since {entry_history.first_seen}"
    if entry_history.references:
        yield f"{pluralize(entry_history.references, 'reference')}, the last on {entry_history.last_reference}"
    if entry_history.pinned:
        yield f"pinned until {entry_history.pinned}: no rule touches it"
    for job in entry_history.jobs:
        job_text = f"job {job.job}" if job.job is not None else "no job"
        yield f"{format_timestamp(job.at, now):<17} {job.action} by {job_text} ({job.kind})"
    for copy in entry_history.archived:
        yield from _archived_lines(copy, memory_text=entry_history.text)


def _archived_lines(copy: ArchivedText, *, memory_text: str | None) -> Iterator[str]:
    job = f", by job {copy.job}" if copy.job is not None else ""
    secrets = ", without its secrets" if copy.redacted else ""
    yield wrap(f"archived on {copy.date} ({copy.rule}{job}{secrets}) in {copy.file}", hang="  ")
    if memory_text is None or copy.text.rstrip() != memory_text.rstrip():
        yield from _fenced_lines(copy.text)


def _fenced_lines(text: str) -> Iterator[str]:
    """The text between fences that nothing in it can close: what agents wrote is data."""
    longest = max(map(len, _BACKTICK_RUN.findall(text)), default=2)
    fence = "`" * max(3, longest + 1)
    yield f"{fence}text"
    yield from (sanitize(line).rstrip() for line in text.rstrip().splitlines())
    yield fence


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


@click.command(epilog=example("echod show reviewer"))
@click.argument(
    "target",
    metavar="[PATH|ROLE|ENTRY]",
    type=PATH_OR_NAME,
    required=False,
    help="A project, a role, or an entry's id or beginning.",
)
@options.project_path_or_all
@options.in_global
@options.json
@pass_command_context
def show(context: CommandContext, *, target: str | None, path: Path | None, in_global: bool, json: bool) -> None:
    """Show roles, entries or one entry."""
    from echod.cli.targets import parse_scope

    show_memory(context, target, parse_scope(path, in_global=in_global), as_json=json)
