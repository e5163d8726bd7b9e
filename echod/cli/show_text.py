"""What `echod show` prints for people: bars, lists, and texts of entries, fenced since they are data."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from textwrap import shorten

from echod.cli.output import WIDTH, fit_path, format_timestamp, pluralize, role_label, sanitize, wrap
from echod.contract.commands import ArchivedText, ShownEntry, ShownRole, ShowReport

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
