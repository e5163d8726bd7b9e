"""`echod show`: the roles of projects, the entries of a role, or the text and history of an entry.

The texts of entries are printed between fences, since they are data and not instructions.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from textwrap import shorten
from typing import NamedTuple

import click

from echod.app.context import ReadContext
from echod.cli.commands.explain import evidence_lines, evidence_of
from echod.cli.context import CommandContext
from echod.cli.output import (
    block,
    fit_path,
    format_timestamp,
    iso_date,
    problem_line,
    role_label,
    sanitize,
    screen_width,
    title_text,
    wrap,
)
from echod.cli.status_screen import layer_noun
from echod.cli.targets import (
    ArchiveMatch,
    EntryNotFoundError,
    EntryScope,
    GlobalScope,
    MemoryMatch,
    block_title,
    find_entry,
    list_archive_matches,
    list_global_roles,
    list_roles_of,
    parse_scope,
    read_facts,
    select_stores,
)
from echod.clock import local_date
from echod.contract.codec import to_json
from echod.contract.commands import (
    ArchivedText,
    EntryHistory,
    EntryJobInfo,
    ShownEntry,
    ShownRole,
    ShowReport,
    UnmanagedText,
)
from echod.errors import EchodError, UsageError
from echod.lazy import lazy_pattern
from echod.memory.document import parse
from echod.memory.identity import entry_ids
from echod.memory.model import Block, Document
from echod.memory.policy import History
from echod.memory.policy.scoring import count_document_lines, count_entry_lines
from echod.memory.text import pluralize
from echod.store.layout import Role, Store, global_root, list_findings_files

_BAR_WIDTH = 20
_MAX_UNMANAGED = 8
_NAME_WIDTH = 14
_MIN_SIZES, _MAX_SIZES = 2, 24
"""The number of sizes that are drawn over time."""
_BACKTICK_RUN = lazy_pattern(r"`{3,}")


def show(context: CommandContext, *, target: str | None, path: Path | None, in_global: bool, json: bool) -> None:
    """Run `echod show`."""
    scope = parse_scope(path, in_global=in_global)
    if target is not None and not in_global and _is_project_path(context, target):
        if scope is not None:
            raise UsageError("Name one project: echod show PATH, or echod show ROLE|ENTRY PATH.")
        scope, target = Path(target), None
    with context.open_read_context() as read_context:
        roles = _list_scope_roles(context, read_context, scope)
        if target is None:
            report = _roles_report(read_context, roles)
            text = _global_memory_screen(report) if isinstance(scope, GlobalScope) else _roles_screen(report.roles)
        elif named := [role for role in roles if role.name == target]:
            report = _roles_report(read_context, named)
            growth = [_growth_line(read_context, role) for role in named]
            text = "\n\n".join(
                _role_entries_screen(role, report.entries, line)
                for role, line in zip(report.roles, growth, strict=True)
            )
        else:
            report = _entry_report(context, read_context, _find_entry(context, read_context, scope, target))
            text = "\n".join(_entry_details(report, context.now()))
    click.echo(to_json(report) if json else text)


def _find_entry(
    context: CommandContext, read_context: ReadContext, scope: EntryScope, target: str
) -> MemoryMatch | ArchiveMatch:
    try:
        return find_entry(context, read_context, scope, target)
    except EntryNotFoundError as error:
        names = f"There is no role {sanitize(target)!r}, and no entry whose id begins so."
        flag = " --global" if isinstance(scope, GlobalScope) else ""
        raise UsageError(f"{names} `echod show{flag}` lists the roles.") from error


def _is_project_path(context: CommandContext, target: str) -> bool:
    """Return whether `target` is a project. A bare name is one only if it is a directory with a store."""
    if target in (".", "..", "~") or os.sep in target:
        return True
    return context.cwd is not None and any(context.list_stores(context.cwd / target))


def _list_scope_roles(context: CommandContext, read_context: ReadContext, scope: EntryScope) -> tuple[Role, ...]:
    if isinstance(scope, GlobalScope):
        return list_global_roles(read_context)
    stores: Sequence[Store] = select_stores(context, scope) or read_context.discover_stores().stores
    return list_roles_of(stores)


class _RoleContents(NamedTuple):
    """A role and the entries of its memory file."""

    info: ShownRole
    entries: tuple[ShownEntry, ...]


def _roles_report(read_context: ReadContext, roles: Iterable[Role]) -> ShowReport:
    contents = [_read_role(read_context, role) for role in roles]
    return ShowReport(
        tuple(entry for role in contents for entry in role.entries), tuple(role.info for role in contents)
    )


def _read_role(read_context: ReadContext, role: Role) -> _RoleContents:
    limit = read_context.line_limit(role.store.project) if global_root(role.store) is None else None
    try:
        document = parse(read_context.reader.read_role(role).memory.text)
        archive = list_archive_matches(role)
        findings = len(list_findings_files(role))
    except (EchodError, OSError) as error:
        problem = str(error) if isinstance(error, EchodError) else f"It cannot be listed: {error.strerror}."
        return _RoleContents(ShownRole(role.store.key, role.name, None, limit, 0, {}, None, None, 0, 0, problem), ())
    if not isinstance(document, Document):
        return _RoleContents(
            ShownRole(
                role.store.key, role.name, None, limit, 0, {}, None, None, findings, len(archive), document.reason
            ),
            (),
        )
    ids = entry_ids(role.name, document)
    known = set(ids)
    entries = tuple(
        _shown_entry(role, identity, block)
        for identity, block in zip(ids, document.blocks, strict=True)
        if identity is not None
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
        # A restored or shortened entry is in the archive too, and not only there.
        archived=sum(match.id not in known for match in archive),
        unmanaged=tuple(
            UnmanagedText(block_title(block), count_entry_lines(block.text))
            for identity, block in zip(ids, document.blocks, strict=True)
            if identity is None and block.text.strip()
        ),
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
        date=iso_date(entry.heading_date),
        confidence=entry.confidence,
        verified=iso_date(entry.verified or entry.heading_date),
        lines=count_entry_lines(block.text),
        form=entry.form.value,
        store=role.store.key,
    )


def _entry_report(context: CommandContext, read_context: ReadContext, match: MemoryMatch | ArchiveMatch) -> ShowReport:
    role = match.role
    block = match.block if isinstance(match, MemoryMatch) else None
    memory = match.document if isinstance(match, MemoryMatch) else None
    facts = read_facts(read_context, role, local_date(context.now()), memory)
    history = facts.histories.get(match.id, History())
    copies = next((archived.copies for archived in list_archive_matches(role) if archived.id == match.id), ())
    entry_history = EntryHistory(
        id=match.id,
        store=role.store.key,
        role=role.name,
        text=None if block is None else block.text,
        first_seen=iso_date(history.first_seen),
        references=history.references,
        last_reference=iso_date(history.last_reference),
        pinned=iso_date(facts.pinned.get(match.id)),
        jobs=tuple(_list_entry_jobs(read_context, role, match.id)),
        archived=tuple(
            ArchivedText(
                copy.file, copy.entry.day.isoformat(), copy.entry.rule, copy.entry.job, copy.entry.redacted,
                copy.entry.text,
            )
            for copy in copies
        ),
        evidence=evidence_of(read_context, match, context.now()) if isinstance(match, MemoryMatch) else (),
    )  # fmt: skip
    return ShowReport(() if block is None else (_shown_entry(role, match.id, block),), entry=entry_history)


def _list_entry_jobs(read_context: ReadContext, role: Role, identity: str) -> Iterator[EntryJobInfo]:
    """Yield the commits that wrote this entry, oldest first, as far as the journal still has their contents."""
    for commit in read_context.reader.memory_commits(role):
        before, after = (_entry_text(role, identity, document) for document in (commit.before, commit.after))
        if before == after:
            continue
        action = "added" if before is None else "removed" if after is None else "changed"
        yield EntryJobInfo(commit.info.job, commit.info.kind, commit.info.at, action)


def _entry_text(role: Role, identity: str, document: Document) -> str | None:
    pairs = zip(entry_ids(role.name, document), document.blocks, strict=True)
    return next((block.text.rstrip() for own, block in pairs if own == identity), None)


def _roles_screen(roles: Sequence[ShownRole]) -> str:
    """Format roles, store by store."""
    if not roles:
        return "There is no memory here. Name a project, or add one with: echod add PATH"
    lines: list[str] = []
    for store in dict.fromkeys(role.store for role in roles):
        lines += [*([""] if lines else []), fit_path(store, screen_width())]
        own = [role for role in roles if role.store == store]
        empty = [role for role in own if _is_empty(role)]
        lines += [line for role in own if role not in empty for line in _role_lines(role)]
        if empty:
            names = ", ".join(role_label(role.name) for role in empty)
            lines.append(wrap(f"{pluralize(len(empty), 'empty role')}: {names}", indent="  "))
    return "\n".join(lines)


def _global_memory_screen(report: ShowReport) -> str:
    """Format the global memory with its entries, and the doc packs without theirs."""
    global_roles = [role for role in report.roles if not role.name]
    packs = [role for role in report.roles if role.name]
    screens = [_role_entries_screen(role, report.entries) for role in global_roles]
    if packs or not global_roles:
        screens.append(_roles_screen(packs))
    return "\n\n".join(screens)


def _growth_line(read_context: ReadContext, role: Role) -> str:
    """Return the lines of a memory file over time, as blocks: before and after each change of it that is known.

    Returns "" if nothing has changed, or if the output cannot show blocks.
    """
    sizes: list[int] = []
    since = 0.0
    for commit in read_context.reader.memory_commits(role):
        since = since or commit.info.at
        for document in (commit.before, commit.after):
            lines = count_document_lines(document)
            sizes += [lines] if not sizes or sizes[-1] != lines else []
    shown = sizes[-_MAX_SIZES:]
    if len(shown) < _MIN_SIZES:
        return ""
    blocks = "".join(block(size, max(shown)) for size in shown)
    try:
        blocks.encode(sys.stdout.encoding or "ascii")
    except UnicodeEncodeError:
        return ""
    return wrap(
        f"{blocks}  {shown[0]} to {shown[-1]} lines since {local_date(since)} (echod picture)",
        indent=f"  {'':<{_NAME_WIDTH}} ",
    )


def _role_entries_screen(role: ShownRole, entries: Iterable[ShownEntry], growth: str = "") -> str:
    """Format a role, its entries in file order, and the parts that no rule changes."""
    own = [entry for entry in entries if (entry.store, entry.role) == (role.store, role.name)]
    header = [f"\n{'id':<{len(own[0].id)}}  {'layer':<12} {'date':<10} lines  title"] if own else []
    return "\n".join(
        [
            fit_path(role.store, screen_width()),
            *_role_lines(role),
            *([growth] if growth else []),
            *header,
            *map(_entry_line, own),
            *_untouched(role),
        ]
    )


def _untouched(role: ShownRole) -> Iterator[str]:
    """Format which parts of a memory file no rule changes."""
    protected = [f"{role.layers[layer]} {layer}" for layer in ("etched", "notes", "unknown") if layer in role.layers]
    if not protected and not role.unmanaged:
        return
    yield "\nOnly you change:"
    if protected:
        yield f"  {', '.join(protected)} (by their layer)"
    if role.unmanaged:
        lines = sum(text.lines for text in role.unmanaged)
        noun = pluralize(len(role.unmanaged), "other section")
        yield f"  {noun} that echod does not manage, {pluralize(lines, 'line')}"
        for text in role.unmanaged[:_MAX_UNMANAGED]:
            head = f"    {text.lines:>4}  "
            yield head + shorten(title_text(text.title), screen_width() - len(head), placeholder="...")
        if (hidden := len(role.unmanaged) - _MAX_UNMANAGED) > 0:
            yield f"          ... and {hidden} more"


def _is_empty(role: ShownRole) -> bool:
    """Return whether a role was created and never used: no entry, finding, archive or text of others."""
    return role.problem is None and not (role.layers or role.findings or role.archived or role.unmanaged)


def _role_lines(role: ShownRole) -> Iterator[str]:
    name = role_label(role.name)
    if role.lines is None:
        yield f"  {name}"
        yield problem_line(role.problem or "", indent="    ")
        return
    yield f"  {name:<{_NAME_WIDTH}} {_size_bar(role.lines, role.limit)}" if len(name) <= _NAME_WIDTH else f"  {name}"
    if len(name) > _NAME_WIDTH:
        yield f"  {'':<{_NAME_WIDTH}} {_size_bar(role.lines, role.limit)}"
    layers = ", ".join(f"{number} {layer_noun(layer, number)}" for layer, number in role.layers.items())
    parts = [
        layers or "no entries",
        _date_span(role),
        f"{pluralize(role.findings, 'findings file')} waiting" if role.findings else "",
        f"{role.archived} in the archive" if role.archived else "",
        f"{pluralize(len(role.unmanaged), 'other section')}" if role.unmanaged else "",
    ]
    yield wrap("; ".join(part for part in parts if part), indent="    ")


def _date_span(role: ShownRole) -> str:
    if role.oldest is None:
        return ""
    return role.oldest if role.oldest == role.newest else f"{role.oldest} to {role.newest}"


def _size_bar(lines: int, limit: int | None) -> str:
    if limit is None:
        return pluralize(lines, "line")
    filled = min(_BAR_WIDTH, round(_BAR_WIDTH * lines / limit)) if limit else _BAR_WIDTH
    bar = "#" * filled + "-" * (_BAR_WIDTH - filled)
    return f"[{bar}] {lines}/{limit} lines{' OVER' if lines > limit else ''}"


def _entry_line(entry: ShownEntry) -> str:
    head = f"{entry.id}  {entry.layer or 'unknown':<12} {entry.date or '-':<10} {entry.lines:>5}  "
    return wrap(title_text(entry.title), indent=head)


def _entry_details(report: ShowReport, now: float) -> Iterator[str]:
    """Format the text of an entry and its history."""
    entry_history = report.entry
    assert entry_history is not None  # noqa: S101  the report is about one entry
    role = role_label(entry_history.role)
    if report.entries:
        entry = report.entries[0]
        yield wrap(title_text(entry.title), indent=f"{entry_history.id}  ")
        location = f"{entry.layer or 'unknown layer'}, {pluralize(entry.lines, 'line')}, in {role}  "
    else:
        location = f"{entry_history.id}  in the archive of {role}  "
    yield location + fit_path(entry_history.store, screen_width() - len(location))
    if entry_history.text is not None:
        yield from _fenced_lines(entry_history.text)
    if entry_history.evidence:
        yield "evidence:"
        yield from evidence_lines(entry_history.evidence)
    if entry_history.first_seen:
        yield f"known to echod since {entry_history.first_seen}"
    if entry_history.references:
        yield f"{pluralize(entry_history.references, 'reference')}, the last on {entry_history.last_reference}"
    if entry_history.pinned:
        yield f"pinned until {entry_history.pinned}: no rule removes it"
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
    """Format a text between fences that nothing in it can close."""
    longest = max(map(len, _BACKTICK_RUN.findall(text)), default=2)
    fence = "`" * max(3, longest + 1)
    yield f"{fence}text"
    yield from (sanitize(line).rstrip() for line in text.rstrip().splitlines())
    yield fence
