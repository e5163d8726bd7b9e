"""The values that `echod sessions ... --json` and `echod ingest --json` print. Times are ISO 8601 with zone."""

from __future__ import annotations

from typing import NamedTuple

from echod.contract.codec import SCHEMA


class ArchivedSession(NamedTuple):
    """An archive. `source` is `session` or `checkpoint`; `reconstructed` is true if only its prompts are known."""

    number: int
    date: str
    session_id: str
    messages: int
    duration: str
    source: str
    topics: tuple[str, ...]
    summary: str
    path: str
    bytes: int
    continues: int | None = None
    reconstructed: bool = False


class SessionReceipt(NamedTuple):
    """The origin of an archive: transcripts with the SHA-256 of what was read, and what became of their records."""

    job: int | None
    agent: str
    sources: tuple[SessionReceiptSource, ...]
    bytes: int
    records: int
    messages_in: int
    messages_out: int
    prompts: int
    skipped: dict[str, int]
    redactions: dict[str, int]
    summary: str


class SessionReceiptSource(NamedTuple):
    """The part of a transcript that an archive was made of, in bytes."""

    path: str
    start: int
    end: int
    sha256: str


class SessionsList(NamedTuple):
    """`echod sessions list`: the archives, the newest first."""

    root: str
    archives: tuple[ArchivedSession, ...] = ()
    schema: int = SCHEMA


class SessionShown(NamedTuple):
    """`echod sessions show`. `receipt` is None for an archive of another program."""

    archive: ArchivedSession
    receipt: SessionReceipt | None
    text: str
    schema: int = SCHEMA


class SessionExplained(NamedTuple):
    """`echod explain conversation-NNN`: the origin of an archive."""

    archive: ArchivedSession
    receipt: SessionReceipt
    schema: int = SCHEMA


class SessionLine(NamedTuple):
    """A line of an archive that matches a search. `path` and `line` locate it; lines count from 1."""

    archive: int
    session_id: str
    date: str
    path: str
    line: int
    text: str


class SessionSearchReport(NamedTuple):
    """`echod sessions search`: the matching lines, newest archive first. `total` counts those beyond the limit too."""

    query: str
    total: int
    results: tuple[SessionLine, ...] = ()
    schema: int = SCHEMA


class RecentSession(NamedTuple):
    """An entry of EPHEMERAL.md, as far as it can be read."""

    session_id: str
    date: str
    duration: str
    messages: str
    summary: str
    archive: str


class SessionRootInfo(NamedTuple):
    """The state of one directory of archives.

    `health` is `healthy`, `degraded` or `down`. `waiting` sessions have something that is not archived; `expiring` of
    them are within three days of the deletion by the host, which keeps transcripts for `host_days` days. Both are None
    if the directory is not that of a project.
    """

    root: str
    project: str | None
    enabled: bool
    health: str
    reason: str
    memory_lines: int | None
    memory_line_limit: int
    memory_characters: int | None
    memory_percent: int | None
    pressure: str
    ephemeral: int
    ephemeral_limit: int
    archives: int
    archive_bytes: int
    newest: str | None
    oldest: str | None
    pending_summaries: int
    failed_summaries: int
    waiting: int | None
    expiring: int | None
    host_days: int
    problems: tuple[str, ...] = ()


class SessionsStatus(NamedTuple):
    """`echod sessions status`: a directory of archives, its last sessions, and the sections of its MEMORY.md."""

    status: SessionRootInfo
    recent: tuple[RecentSession, ...] = ()
    sections: tuple[tuple[str, int], ...] = ()
    schema: int = SCHEMA


class DistillReport(NamedTuple):
    """`echod sessions distill`: the size of MEMORY.md, suggestions, and the sections that --apply would move."""

    lines: int
    characters: int
    percent: int
    suggestions: tuple[str, ...]
    movable: tuple[str, ...]
    schema: int = SCHEMA


class IgnoredReportText(NamedTuple):
    """A part of a report that is not taken. `injected`: it was not written by the run, or instructs agents."""

    line: int
    name: str
    reason: str
    injected: bool


class IngestedReport(NamedTuple):
    """A report: its new findings, those that were read before, and its statements about findings of other reports.

    `unmatched` counts statements about findings that no report contains. `problem` is why the file was not read.
    """

    path: str
    role: str
    findings: int
    known: int
    resolutions: int
    unmatched: int
    ignored: tuple[IgnoredReportText, ...] = ()
    problem: str | None = None


class IngestedEntry(NamedTuple):
    """A learning for the memory. `cause` is `recurring`, `confirmed`, `not a problem`, or `summary` (of the month)."""

    store: str
    role: str
    layer: str
    title: str
    cause: str
    runs: int


class IngestReport(NamedTuple):
    """`echod ingest`. `jobs` are the numbers of the jobs that did it; empty for a dry run."""

    reports: tuple[IngestedReport, ...] = ()
    entries: tuple[IngestedEntry, ...] = ()
    jobs: tuple[int, ...] = ()
    schema: int = SCHEMA
