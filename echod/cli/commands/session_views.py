"""`echod sessions list`, `show`, `search`, `status` and `consume`: read archives of conversations."""

from __future__ import annotations

import json as json_module
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import click

from echod.app.context import ReadContext
from echod.cli.commands.search import print_found
from echod.cli.context import CommandContext
from echod.cli.output import format_duration, sanitize, short_path, wrap
from echod.cli.session_roots import select_root
from echod.clock import local_date
from echod.contract.codec import to_json
from echod.contract.sessions import (
    ArchivedSession,
    SessionExplained,
    SessionLine,
    SessionRootInfo,
    SessionSearchReport,
    SessionShown,
    SessionsList,
    SessionsStatus,
)
from echod.errors import ExitCode, UsageError
from echod.files import read_regular
from echod.memory.conversation.model import parse_timestamp
from echod.memory.text import pluralize
from echod.search.sources import ConversationSource
from echod.sessions.forget import find_session
from echod.sessions.receipts import Receipt, read_receipt
from echod.sessions.report import RootReport, list_archive, report_root, show_receipt
from echod.sessions.roots import EPHEMERAL, SessionError
from echod.sessions.text_search import FoundArchive, search_lines

_MAX_SHOWN_BYTES = 1 << 30
_BAR_CELLS = 4
_KIB = 1024
_SECTIONS_SHOWN = 3


def list_(context: CommandContext, *, root: Path | None, limit: int, json: bool) -> None:
    """Run `echod sessions list`."""
    with context.open_read_context() as read_context:
        selected = select_root(context, read_context, root).root
    numbers = list(islice(reversed(selected.archives()), limit))
    archives = tuple(list_archive(selected, number) for number in numbers)
    if json:
        click.echo(to_json(SessionsList(str(selected.entity), archives)))
        return
    for archive in archives:
        click.echo("\n".join(_archive_lines(archive)))
    if not archives:
        click.echo(f"There are no archives in {short_path(str(selected.conversations))}.")


def _archive_lines(archive: ArchivedSession) -> Iterator[str]:
    marks = [
        archive.source if archive.source != "session" else "",
        f"continues {archive.continues:03}" if archive.continues is not None else "",
        "prompts only" if archive.reconstructed else "",
    ]
    mark = "".join(f", {text}" for text in marks if text)
    facts = f"{pluralize(archive.messages, 'message')}, {archive.duration or 'unknown'}{mark}"
    yield f"{archive.number:03}  {archive.date[:16].replace('T', ' ')}  {sanitize(archive.session_id)}"
    yield wrap(sanitize(facts), indent="     ")
    if archive.summary:
        yield wrap(sanitize(archive.summary)[:240], indent="     ")


def show(context: CommandContext, *, session: str, root: Path | None, json: bool) -> None:
    """Run `echod sessions show`."""
    with context.open_read_context() as read_context:
        selected = select_root(context, read_context, root).root
    number = int(session) if session.isdecimal() else find_session(selected, session).archives[-1]
    path = selected.archives().get(number)
    if path is None:
        raise SessionError(
            f"There is no archive {number:03} in {selected.conversations}. List them: echod sessions list"
        )
    text = read_regular(path, _MAX_SHOWN_BYTES, follow_symlinks=False).decode("utf-8", "replace")
    receipt = read_receipt(selected, number)
    if json:
        shown = None if receipt is None else show_receipt(receipt)
        click.echo(to_json(SessionShown(list_archive(selected, number), shown, text)))
        return
    click.echo("".join(character for character in text if character.isprintable() or character in "\n\t"), nl=False)


def explain_archive(
    context: CommandContext, read_context: ReadContext, path: Path | None, number: int, *, as_json: bool
) -> None:
    """Print the origin of an archive of the project at `path`, or of the current one."""
    project = context.find_project(path or Path())
    root = read_context.session_projects.root(project)
    receipt = read_receipt(root, number)
    if receipt is None:
        raise SessionError(f"echod has no receipt of conversation-{number:03}.md in {root.conversations}.")
    if as_json:
        click.echo(to_json(SessionExplained(list_archive(root, number), show_receipt(receipt))))
        return
    click.echo("\n".join([f"conversation-{number:03}.md", *receipt_lines(receipt)]))


def receipt_lines(receipt: Receipt) -> Iterator[str]:
    """Format the origin of an archive."""
    yield f"  session    {sanitize(receipt.session_id)} ({receipt.agent}), job {receipt.job}"
    for part in receipt.sources:
        yield wrap(f"{part.path}, bytes {part.start} to {part.end}", indent="  source     ")
        yield f"             sha256 {part.sha256}"
    counts = f"{receipt.records} records, {receipt.messages_in} messages read, {receipt.messages_out} written"
    yield wrap(f"{counts}, {pluralize(receipt.prompts, 'typed prompt')}", indent="  contents   ")
    if receipt.skipped:
        skipped = ", ".join(f"{number} {reason}" for reason, number in sorted(receipt.skipped.items()))
        yield wrap(skipped, indent="  left out   ")
    redacted = ", ".join(f"{number} {kind}" for kind, number in sorted(receipt.redactions.items())) or "none"
    yield wrap(redacted, indent="  secrets    ")
    yield f"  summary    {receipt.summary.value}"


def search(
    context: CommandContext,
    *,
    query: tuple[str, ...],
    around: int,
    ranked: bool,
    root: Path | None,
    limit: int,
    json: bool,
) -> None:
    """Run `echod sessions search`."""
    text = " ".join(query).strip()
    if not text:
        raise UsageError("Type a text to search for.")
    with context.open_read_context() as read_context:
        chosen = select_root(context, read_context, root)
    selected = chosen.root
    selected.require()
    if ranked:
        source = ConversationSource(selected.memory, str(chosen.project or ""))
        print_found(context, text, [source], limit=limit, as_json=json)
        return
    found = list(search_lines(selected, text, around))
    total = sum(archive.matches for archive in found)
    if json:
        lines = (line for archive in found for line in _found_lines(archive))
        results = []
        for archive_number, number, line in islice(lines, limit):
            archive = list_archive(selected, archive_number)
            results.append(SessionLine(archive_number, archive.session_id, archive.date, archive.path, number, line))
        click.echo(to_json(SessionSearchReport(text, total, tuple(results))))
        return
    shown = 0
    for one in found:
        if shown >= limit:
            break
        archive = list_archive(selected, one.archive)
        click.echo(
            f"conversation-{one.archive:03}.md  {archive.date[:10]}  {pluralize(one.matches, 'match', 'matches')}"
        )
        for found_line in one.lines:
            shown += found_line.is_match
            if shown > limit:
                break
            mark = ":" if found_line.is_match else "-"
            click.echo(f"  {found_line.number:>5}{mark} {sanitize(found_line.text)}")
    if not found:
        click.echo(f'No matches found for "{sanitize(text)}" in {pluralize(len(selected.archives()), "archive")}.')
    elif total > limit:
        click.echo(f"... and {total - limit} more (--limit)")


def _found_lines(archive: FoundArchive) -> Iterator[tuple[int, int, str]]:
    return ((archive.archive, line.number, line.text) for line in archive.lines if line.is_match)


def consume(context: CommandContext, *, root: Path | None) -> None:
    """Run `echod sessions consume`."""
    with context.open_read_context() as read_context:
        selected = select_root(context, read_context, root).root
    text = selected.read_text(EPHEMERAL).strip()
    if text:
        click.echo("".join(character for character in text if character.isprintable() or character in "\n\t"))


def status(context: CommandContext, *, root: Path | None, json: bool) -> None:
    """Run `echod sessions status`."""
    now = context.now()
    with context.open_read_context() as read_context:
        selected = select_root(context, read_context, root)
        host = None if selected.project is None else read_context.host_state(selected.project, now)
        report = report_root(selected.root, host, now, local_date(now), read_context.host_days)
    sections = () if report.analysis is None else report.analysis.sections
    sizes = tuple((section.title, len(section.lines)) for section in sections)
    if json:
        click.echo(to_json(SessionsStatus(report.info, report.recent, sizes)))
    else:
        click.echo("\n".join(_status_lines(report, now)))
    if report.info.health != "healthy" or report.info.problems or report.info.expiring:
        raise click.exceptions.Exit(ExitCode.FAILED)


def _status_lines(report: RootReport, now: float) -> Iterator[str]:
    info = report.info
    yield f"echod sessions \u2014 {info.health}"
    yield wrap(short_path(info.root), indent="  ")
    yield ""
    if info.memory_lines is None:
        yield "  MEMORY.md       not found"
    else:
        percent = info.memory_percent or 0
        size = f"{info.memory_lines}/{info.memory_line_limit} lines ({percent}%)"
        yield f"  MEMORY.md       {size}  {bar(percent)}"
    yield f"  EPHEMERAL       {info.ephemeral}/{info.ephemeral_limit} sessions"
    yield f"  Archives        {pluralize(info.archives, 'conversation')} ({format_bytes(info.archive_bytes)})"
    if info.newest:
        yield f"  Last archived   {info.newest[:10]}{_age(info.newest, now)}"
        yield f"  Oldest archive  {(info.oldest or '')[:10]}"
    if info.pending_summaries:
        failed = f", {info.failed_summaries} after a failure" if info.failed_summaries else ""
        yield f"  Summaries       {info.pending_summaries} wait for the summary command{failed}"
    yield from _host_lines(info)
    yield ""
    issues = [*_issues(info)]
    for issue in issues:
        yield wrap(issue, indent="  ! ")
    if not issues:
        yield "  No issues detected."
    if report.recent:
        yield "\nRecent sessions"
        for entry in report.recent:
            facts = f"{entry.date[:16]:<16}  {entry.duration or '?':<7} {entry.messages or '?'} msgs"
            yield wrap(sanitize(f"{facts}  {entry.summary}")[:240], indent="  ", hang="    ")
    if report.analysis is not None and report.analysis.sections:
        yield "\nMemory sections"
        sections = sorted(report.analysis.sections, key=lambda section: -len(section.lines))
        largest = ", ".join(f"{sanitize(s.title)} ({len(s.lines)} lines)" for s in sections[:_SECTIONS_SHOWN])
        yield wrap(
            f"{len(sections)} sections \u00b7 {report.analysis.lines} lines \u00b7 largest: {largest}", indent="  "
        )


def _host_lines(info: SessionRootInfo) -> Iterator[str]:
    if info.waiting is None:
        return
    yield f"  Archiving       {'on' if info.enabled else 'off (echod init --sessions)'}"
    if info.enabled:
        yield f"  Waiting         {pluralize(info.waiting, 'session')}"
    yield f"  Host keeps      transcripts for {info.host_days} days"


def _issues(info: SessionRootInfo) -> Iterator[str]:
    if info.reason:
        yield f"{info.reason} Create it with: echod sessions init"
    if info.expiring:
        sessions = pluralize(info.expiring, "session")
        yield f"{sessions} not archived and within 3 days of deletion by the host. Run: echod sessions archive"
    if info.pressure != "none":
        words = {"notice": "approaching limit", "warning": "near its limit", "full": "over its limit"}
        text = f"MEMORY.md {words[info.pressure]} ({info.memory_percent}%)"
        yield f"{text}. The host loads {info.memory_line_limit} lines. See: echod sessions distill"
    yield from info.problems


def _age(date: str, now: float) -> str:
    at = parse_timestamp(date)
    return "" if at is None else f" ({format_duration(now - at)} ago)"


def bar(percent: int) -> str:
    """Format a share as four cells."""
    filled = min(_BAR_CELLS, percent * _BAR_CELLS // 100)
    return "\u2588" * filled + "\u2591" * (_BAR_CELLS - filled)


def format_bytes(size: int) -> str:
    """Format a size: `500 B`, `2.0 KB`, `5.0 MB`."""
    if size < _KIB:
        return f"{size} B"
    return f"{size / _KIB:.1f} KB" if size < _KIB * _KIB else f"{size / _KIB / _KIB:.1f} MB"


def parse_messages(data: bytes, path: Path) -> object:
    """Return the JSON in a file of messages. Raises SessionError if it is none."""
    try:
        return json_module.loads(data.decode("utf-8-sig", "replace"))
    except (ValueError, RecursionError) as error:
        raise SessionError(
            f"{path} is not JSON. --messages takes a list of messages, or an object with one."
        ) from error
