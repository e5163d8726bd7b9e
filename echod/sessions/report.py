"""The state of a directory of archives: health, sizes, what waits, and what the host will delete soon. Read-only."""

from __future__ import annotations

import stat
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import NamedTuple

from echod.contract.sessions import (
    ArchivedSession,
    RecentSession,
    SessionReceipt,
    SessionReceiptSource,
    SessionRootInfo,
)
from echod.errors import os_reason
from echod.files import open_regular
from echod.memory.conversation.archive import EDGE_BYTES, parse_header, read_summary
from echod.memory.conversation.distill import MAX_LINES, MemoryAnalysis, analyse_memory, pressure_of
from echod.memory.conversation.index import read_entry, split_entries
from echod.sessions.needs import HostState
from echod.sessions.receipts import Receipt, SummaryKind, read_receipts
from echod.sessions.roots import CURATED, EPHEMERAL, SessionError, SessionRoot


class RootReport(NamedTuple):
    """The state of a directory, its last sessions, and the analysis of its MEMORY.md (None if it cannot be read)."""

    info: SessionRootInfo
    recent: tuple[RecentSession, ...]
    analysis: MemoryAnalysis | None


def report_root(root: SessionRoot, host: HostState | None, now: float, today: date, host_days: int) -> RootReport:
    """Return the state of a directory. Nothing that it may contain makes this fail."""
    problems: list[str] = []
    analysis = _analysis(root, today, problems)
    entries = _entries(root, problems)
    archives = _archives(root, problems)
    receipts = _receipts(root, problems)
    config = root.config()
    problems += [f"{config.problem}, so the default of {config.entries} is used."] if config.problem else []
    headers = [header for path in _ends(archives) if (header := _header_date(path)) is not None]
    health, reason = _health(root)
    pending = [receipt for receipt in receipts if receipt.summary is SummaryKind.PENDING]
    info = SessionRootInfo(
        root=str(root.entity),
        project=None if host is None else str(host.project),
        enabled=host is not None and host.enabled,
        health=health,
        reason=reason,
        memory_lines=None if analysis is None else analysis.lines,
        memory_line_limit=MAX_LINES,
        memory_characters=None if analysis is None else analysis.characters,
        memory_percent=None if analysis is None else int(analysis.share * 100),
        pressure="none" if analysis is None else pressure_of(analysis.share),
        ephemeral=len(entries),
        ephemeral_limit=config.entries,
        archives=len(archives),
        archive_bytes=sum(_size(path) for path in archives),
        newest=max(headers, default=None),
        oldest=min(headers, default=None),
        pending_summaries=len(pending),
        failed_summaries=sum(receipt.attempts > 0 for receipt in pending),
        waiting=None if host is None else len(host.waiting),
        expiring=None if host is None else host.expiring(now),
        host_days=host_days,
        problems=tuple(problems),
    )
    recent = tuple(RecentSession(*read_entry(entry)) for entry in reversed(entries))
    return RootReport(info, recent, analysis)


def _health(root: SessionRoot) -> tuple[str, str]:
    if not root.memory.is_dir():
        return "down", f"{root.memory} does not exist."
    missing = [path.name for path in (root.curated, root.conversations) if not path.exists()]
    if missing:
        return "degraded", f"{' and '.join(missing)} {'is' if len(missing) == 1 else 'are'} missing."
    return "healthy", ""


def _analysis(root: SessionRoot, today: date, problems: list[str]) -> MemoryAnalysis | None:
    if not root.curated.exists():
        return None
    try:
        return analyse_memory(root.read_text(CURATED), today)
    except SessionError as error:
        problems.append(str(error))
        return None


def _entries(root: SessionRoot, problems: list[str]) -> tuple[str, ...]:
    try:
        return split_entries(root.read_text(EPHEMERAL))
    except SessionError as error:
        problems.append(str(error))
        return ()


def _archives(root: SessionRoot, problems: list[str]) -> list[Path]:
    try:
        return list(root.archives().values())
    except SessionError as error:
        problems.append(str(error))
        return []


def _receipts(root: SessionRoot, problems: list[str]) -> tuple[Receipt, ...]:
    try:
        return read_receipts(root)
    except SessionError as error:
        problems.append(str(error))
        return ()


def _ends(paths: Sequence[Path]) -> Sequence[Path]:
    return paths if len(paths) < 2 else (paths[0], paths[-1])  # noqa: PLR2004


def _header_date(path: Path) -> str | None:
    try:
        header = parse_header(read_beginning(path))
    except SessionError:
        return None
    return None if header is None else header.date


def _size(path: Path) -> int:
    try:
        status = path.lstat()
    except OSError:
        return 0
    return status.st_size if stat.S_ISREG(status.st_mode) else 0


def read_beginning(path: Path) -> str:
    """Return the beginning of an archive, which has its front matter and its summary.

    Raises:
        SessionError: it cannot be read.
    """
    try:
        with open_regular(path, follow_symlinks=False) as file:
            return file.read(EDGE_BYTES).decode("utf-8", "replace")
    except OSError as error:
        raise SessionError(f"{path} cannot be read: {os_reason(error)}.") from error


def list_archive(root: SessionRoot, number: int) -> ArchivedSession:
    """Return what is known of an archive. Fields that its front matter lacks are empty.

    Raises:
        SessionError: it cannot be read.
    """
    path = root.archive_path(number)
    beginning = read_beginning(path)
    header, summary = parse_header(beginning), read_summary(beginning)
    if header is None:
        return ArchivedSession(number, "", "", 0, "", "", (), summary, str(path), _size(path))
    return ArchivedSession(
        number, header.date, header.session_id, header.message_count, header.duration, header.source, header.topics,
        summary, str(path), _size(path), header.continues, bool(header.reconstructed),
    )  # fmt: skip


def show_receipt(receipt: Receipt) -> SessionReceipt:
    """Return a receipt for JSON."""
    return SessionReceipt(
        job=receipt.job,
        agent=receipt.agent,
        sources=tuple(SessionReceiptSource(*part[:4]) for part in receipt.sources),
        bytes=receipt.source_bytes,
        records=receipt.records,
        messages_in=receipt.messages_in,
        messages_out=receipt.messages_out,
        prompts=receipt.prompts,
        skipped=dict(receipt.skipped),
        redactions=dict(receipt.redactions),
        summary=receipt.summary.value,
    )
