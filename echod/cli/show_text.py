"""What `echod show` prints for people: bars, lists, and texts of entries, fenced since they are data."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from textwrap import shorten

from echod.cli.text import WIDTH, called, count, fitted, moment, paragraph, plain
from echod.contract.commands import ArchivedText, ShownEntry, ShownRole, ShowReport

_BAR = 20
_TICKS = re.compile(r"`{3,}")


def glance_screen(roles: Sequence[ShownRole]) -> str:
    """Roles store by store."""
    if not roles:
        return "There is no memory here; name a project, or add one with: echod add PATH"
    lines: list[str] = []
    for store in dict.fromkeys(role.store for role in roles):
        lines += [*([""] if lines else []), fitted(store, WIDTH)]
        for role in roles:
            if role.store == store:
                lines += _role(role)
    return "\n".join(lines)


def memory_screen(report: ShowReport) -> str:
    """The global memory with its entries, and the doc packs at a glance."""
    own = [role for role in report.roles if not role.name]
    packs = [role for role in report.roles if role.name]
    screens = [role_screen(role, (entry for entry in report.entries if not entry.role)) for role in own]
    if packs or not own:
        screens.append(glance_screen(packs))
    return "\n\n".join(screens)


def role_screen(role: ShownRole, entries: Iterable[ShownEntry]) -> str:
    """A role and its entries, in file order."""
    lines = [fitted(role.store, WIDTH), *_role(role)]
    lines += [_entry(entry) for entry in entries]
    return "\n".join(lines)


def entry_screen(report: ShowReport, now: float) -> str:
    """The text of an entry and what is known of it."""
    return "\n".join(_entry_lines(report, now))


def _role(role: ShownRole) -> Iterator[str]:
    name = called(role.name)
    if role.lines is None:
        yield f"  {name}"
        yield paragraph(plain(role.problem or ""), indent="    ! ")
        return
    yield f"  {name:<14} {_size(role.lines, role.limit)}"
    layers = ", ".join(f"{number} {layer}" for layer, number in role.layers.items())
    span = (
        "" if role.oldest is None else role.oldest if role.oldest == role.newest else f"{role.oldest} to {role.newest}"
    )
    parts = [
        layers or "no entries",
        span,
        f"{count(role.findings, 'findings file')} waiting" if role.findings else "",
        f"{role.archived} in the archive" if role.archived else "",
    ]
    yield paragraph("; ".join(part for part in parts if part), indent="    ")


def _size(lines: int, limit: int | None) -> str:
    if limit is None:
        return count(lines, "line")
    filled = min(_BAR, round(_BAR * lines / limit)) if limit else _BAR
    bar = "#" * filled + "-" * (_BAR - filled)
    return f"[{bar}] {lines}/{limit} lines{' OVER' if lines > limit else ''}"


def _entry(entry: ShownEntry) -> str:
    head = f"{entry.id}  {entry.layer or 'unknown':<12} {entry.date or '-':<10} {entry.lines:>4}  "
    return head + shorten(plain(entry.title) or "(untitled)", WIDTH - len(head), placeholder="...")


def _entry_lines(report: ShowReport, now: float) -> Iterator[str]:
    told = report.entry
    assert told is not None  # noqa: S101  this screen is of one entry
    if report.entries:
        entry = report.entries[0]
        yield paragraph(plain(entry.title) or "(untitled)", indent=f"{told.id}  ")
        where = f"{entry.layer or 'unknown layer'}, {count(entry.lines, 'line')}, in {called(told.role)}  "
        yield where + fitted(told.store, WIDTH - len(where))
    else:
        where = f"{told.id}  in the archive of {called(told.role)}  "
        yield where + fitted(told.store, WIDTH - len(where))
    if told.text is not None:
        yield from _fenced(told.text)
    if told.first_seen:
        yield f"known to echod since {told.first_seen}"
    if told.references:
        yield f"{count(told.references, 'reference')}, the last on {told.last_reference}"
    if told.pinned:
        yield f"pinned until {told.pinned}: no rule touches it"
    for job in told.jobs:
        by = f"job {job.job}" if job.job is not None else "no job"
        yield f"{moment(job.at, now):<17} {job.did} by {by} ({job.kind})"
    for copy in told.archived:
        yield from _archived(copy, as_text=told.text)


def _archived(copy: ArchivedText, *, as_text: str | None) -> Iterator[str]:
    job = f", by job {copy.job}" if copy.job is not None else ""
    secrets = ", without its secrets" if copy.redacted else ""
    yield paragraph(f"archived on {copy.date} ({copy.rule}{job}{secrets}) in {copy.file}", hang="  ")
    if as_text is None or copy.text.rstrip() != as_text.rstrip():
        yield from _fenced(copy.text)


def _fenced(text: str) -> Iterator[str]:
    """The text between fences that nothing in it can close: what agents wrote is data."""
    longest = max(map(len, _TICKS.findall(text)), default=2)
    fence = "`" * max(3, longest + 1)
    yield f"{fence}text"
    yield from (plain(line).rstrip() for line in text.rstrip().splitlines())
    yield fence
