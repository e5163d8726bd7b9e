"""`echod log` and `echod jobs`: what was done, and what is to be done."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

import click

from echod.app.context import ReadContext, process_is_alive
from echod.auto_memory.changes import MemoryChanges
from echod.cli.context import CommandContext
from echod.cli.output import WIDTH, fit_path, format_timestamp, sanitize, short_path, title_text, wrap
from echod.cli.session_roots import list_changes, logged_changes, logged_memory_changes
from echod.cli.targets import block_title, is_job_id, select_stores
from echod.contract.codec import to_json
from echod.contract.commands import EntryDiff, FileDiff, JobDiffReport, JobInfo, JobsReport, LoggedJob, LogReport
from echod.contract.entries import OfferedEntry, RecallLog
from echod.errors import UsageError
from echod.inbox.spool import list_offers
from echod.memory.document import parse
from echod.memory.identity import block_content, entry_ids
from echod.memory.lineage import diff_lines
from echod.memory.model import Document
from echod.memory.text import pluralize
from echod.sessions.journal import FileStep, RootJournal
from echod.sessions.roots import PRIVATE
from echod.state.database import Database
from echod.state.jobs import Job, JobState, QueueView
from echod.store.layout import Store
from echod.store.reader import CommitInfo, FileCommit

_MAX_LINES = 12
"""Lines of one entry that a diff shows without -v."""

_MARKS = {"added": "+", "removed": "-", "changed": "~"}


def log(context: CommandContext, *, target: str | None, recall: bool, limit: int, verbose: bool, json: bool) -> None:
    """Run `echod log`."""
    if target is not None and is_job_id(target):
        report = _job_diff(context, int(target))
        text = (
            to_json(report) if json else "\n".join(_diff_screen(report, context.now(), None if verbose else _MAX_LINES))
        )
        click.echo(text)
        return
    stores = select_stores(context, None if target is None else Path(target))
    if recall:
        offers = _recall_log(context, stores, limit)
        click.echo(to_json(offers) if json else "\n".join(_recall_lines(offers, context.now())))
        return
    with context.open_read_context() as read_context:
        projects = None if stores is None else dict.fromkeys(store.project for store in stores)
        rows = [*_log_rows(read_context.reader.history(stores)), *logged_changes(read_context, projects)]
        rows += logged_memory_changes(context, projects)
        rows = sorted(rows, key=lambda row: row.at, reverse=True)[:limit]
    if json:
        click.echo(to_json(LogReport(tuple(rows))))
    elif rows:
        click.echo("\n".join(line for row in rows for line in _log_lines(row, context.now())))
        click.echo("\nThe changes of one job: echod log JOB. To undo it: echod undo JOB")
    else:
        click.echo("echod has not changed anything here yet.")


def _recall_log(context: CommandContext, stores: Sequence[Store] | None, limit: int) -> RecallLog:
    keys = None if stores is None else {store.key for store in stores}
    offers = [offer for offer in list_offers(context.paths.state) if keys is None or offer.store in keys]
    return RecallLog(
        tuple(OfferedEntry(o.at, o.id, o.title, o.project, o.session, o.event, o.reason) for o in offers[:limit])
    )


def _recall_lines(report: RecallLog, now: float) -> Iterator[str]:
    if not report.offers:
        yield "No hook has shown an entry to an agent here."
    for offer in report.offers:
        yield wrap(title_text(offer.title), indent=f"{format_timestamp(offer.at, now):<17} {offer.id}  ")
        place = f"{short_path(offer.project)}, session {sanitize(offer.session)[:8]}"
        yield wrap(f"{sanitize(offer.event)}: {sanitize(offer.reason)}; {place}", indent=" " * 18)


def _log_rows(history: Iterable[CommitInfo]) -> list[LoggedJob]:
    """Return a row for each job, newest first. Each merge of a late write, which no job made, has its own row."""
    commits_by_job = sorted(history, key=lambda commit: (commit.job is None, commit.job or 0))
    rows: list[LoggedJob] = []
    for job_id, group in groupby(commits_by_job, key=lambda commit: commit.job):
        commits = list(group)
        rows += [_log_row([commit]) for commit in commits] if job_id is None else [_log_row(commits)]
    return sorted(rows, key=lambda row: row.at, reverse=True)


def _log_row(commits: Sequence[CommitInfo]) -> LoggedJob:
    """Return the row of one job with its commits, newest first. It is undone when all of them are."""
    newest = commits[0]
    undone_by = [commit.undone_by for commit in commits]
    return LoggedJob(
        job=newest.job,
        kind=newest.kind,
        store=newest.store.key,
        role=newest.role.name,
        at=newest.at,
        summary="; ".join(dict.fromkeys(commit.summary for commit in commits)),
        undone_by=None if None in undone_by else undone_by[0],
    )


def _log_lines(row: LoggedJob, now: float) -> Iterator[str]:
    job_id = "" if row.job is None else row.job
    yield f"{job_id:>5}  {format_timestamp(row.at, now):<17} {row.kind} {row.role}  {short_path(row.store)}"
    yield wrap(sanitize(row.summary), indent=" " * 7)
    if row.undone_by is not None:
        yield f"       undone by job {row.undone_by}"


def _job_diff(context: CommandContext, job: int) -> JobDiffReport:
    """Return the changes of one job.

    Raises:
        UsageError: no such job changed a memory.
    """
    with context.open_read_context() as read_context:
        commits = [commit for commit in read_context.reader.history(None) if commit.job == job]
        if not commits:
            found = _session_diff(read_context, job) or _auto_memory_diff(context, job)
            if found is None:
                raise UsageError(
                    f"Job {job} changed no memory. `echod log` lists the jobs that did, `echod jobs` all jobs."
                )
            return found
        files: list[FileDiff] = []
        entries: list[EntryDiff] = []
        for commit in reversed(commits):
            for change in read_context.reader.file_commits(commit):
                files.append(_file_diff(commit, change))
                entries += _entry_diffs(commit.role.name, change)
    return JobDiffReport(_log_row(commits), tuple(files), tuple(entries))


def _session_diff(read_context: ReadContext, job: int) -> JobDiffReport | None:
    """Return the files of archived conversations that a job changed; None if it changed none."""
    changes = [change for change in list_changes(read_context, None) if change.record.job == job]
    row = next((row for row in logged_changes(read_context, None) if row.job == job), None)
    if row is None:
        return None
    journal = RootJournal(changes[0].root)
    steps: defaultdict[str, list[FileStep]] = defaultdict(list)
    for change in changes:
        for step in change.record.steps:
            if not step.path.startswith(PRIVATE):
                steps[step.path].append(step)
    files = []
    for path, own in steps.items():
        before, after = own[0].before, own[-1].after
        old = None if before is None else journal.count_lines(path, before)
        is_lost = before is not None and old is None
        new = None if is_lost else 0 if after is None else journal.count_lines(path, after)
        files.append(FileDiff(row.store, path, old, new))
    return JobDiffReport(row, tuple(files), ())


def _auto_memory_diff(context: CommandContext, job: int) -> JobDiffReport | None:
    """Return the lines of auto memory that a job changed; None if it changed none."""
    row = next((row for row in logged_memory_changes(context, None) if row.job == job), None)
    if row is None:
        return None
    changes = MemoryChanges(context.paths.auto_memory)
    record = next(record for record in changes.records() if record.job == job)
    files, entries = [], []
    for change in record.files:
        before, after = (changes.content(digest) for digest in (change.before, change.after))
        old, new = ((data or b"").decode("utf-8", "replace") for data in (before, after))
        count = None if before is None else len(old.splitlines())
        files.append(FileDiff(record.directory, change.name, count, len(new.splitlines())))
        action = "added" if before is None else "removed" if after is None else "changed"
        lines = tuple(_changed_lines(old, new))
        entries.append(EntryDiff(change.name, action, None, change.name, lines))
    return JobDiffReport(row, tuple(files), tuple(entries))


def _file_diff(commit: CommitInfo, change: FileCommit) -> FileDiff:
    before, after = (None if text is None else len(text.splitlines()) for text in (change.before, change.after))
    return FileDiff(commit.store.key, change.path, before, after, change.archive)


def _entry_diffs(role: str, change: FileCommit) -> Iterator[EntryDiff]:
    """Yield the differences of a file, block by block. A findings file is listed without its text."""
    if change.archive is not None or not change.is_known:
        return
    before, after = (parse(text or b"") for text in (change.before, change.after))
    if not isinstance(before, Document) or not isinstance(after, Document):
        return
    old, new = _blocks(role, before), _blocks(role, after)
    if before.preamble.strip() != after.preamble.strip():
        lines = tuple(_changed_lines(before.preamble, after.preamble))
        yield EntryDiff(change.path, "changed", None, "the text before the first entry", lines)
    for key in dict.fromkeys([*old, *new]):
        was, now = old.get(key), new.get(key)
        if was == now:
            continue
        action = "added" if was is None else "removed" if now is None else "changed"
        lines = tuple(_changed_lines(was.text if was else "", now.text if now else ""))
        block = now or was
        assert block is not None  # noqa: S101  one of the two has it
        if lines:
            yield EntryDiff(change.path, action, block.id, block.title, lines)


class _ComparedBlock(NamedTuple):
    """A block as it is compared: without the blank lines at its end."""

    id: str | None
    title: str
    text: str


def _blocks(role: str, document: Document) -> dict[tuple[str, int], _ComparedBlock]:
    """Return the blocks of a file by what identifies them: the id, else the content, and a count for repeats."""
    counts: Counter[str] = Counter()
    blocks = {}
    for identity, block in zip(entry_ids(role, document), document.blocks, strict=True):
        text = block_content(block)
        name = identity or text
        blocks[name, counts[name]] = _ComparedBlock(identity, block_title(block), text)
        counts[name] += 1
    return blocks


def _changed_lines(before: str, after: str) -> Iterator[str]:
    old, new = before.rstrip().splitlines(), after.rstrip().splitlines()
    for change in diff_lines(old, new):
        yield from (f"- {line}" for line in old[change.start : change.end])
        yield from (f"+ {line}" for line in new[change.new_start : change.new_end])


def _diff_screen(report: JobDiffReport, now: float, max_lines: int | None) -> Iterator[str]:
    job = report.job
    yield f"Job {job.job}: {job.kind} {job.role}".rstrip() + f"  {format_timestamp(job.at, now)}"
    yield f"  in {short_path(job.store)}"
    yield wrap(sanitize(job.summary), indent="  ")
    for file in report.files:
        yield ""
        entries = [entry for entry in report.entries if entry.file == file.file]
        counts = Counter(entry.action for entry in entries)
        numbers = "".join(f", {counts[action]} {action}" for action in _MARKS if counts[action])
        yield wrap(f"{sanitize(file.file)}  {_size_text(file)}{numbers}", hang="  ")
        for entry in entries:
            yield from _entry_lines(entry, max_lines)
    if job.undone_by is not None:
        yield f"\nUndone by job {job.undone_by}."
    elif job.job is not None:
        yield f"\nUndo: echod undo {job.job}"


def _size_text(file: FileDiff) -> str:
    if file.archive is not None:
        return f"consumed; its text is in {sanitize(file.archive)}"
    if file.lines_after is None:
        return "changed; its former content is not stored any more"
    before = "new" if file.lines_before is None else f"{file.lines_before}"
    return f"{before} -> {pluralize(file.lines_after, 'line')}"


def _entry_lines(entry: EntryDiff, max_lines: int | None) -> Iterator[str]:
    yield wrap(title_text(entry.title), indent=f"{_MARKS[entry.action]} {entry.id or 'other text'}  ")
    shown = entry.lines[:max_lines]
    yield from (f"    {sanitize(line)}".rstrip() for line in shown)
    if hidden := len(entry.lines) - len(shown):
        yield f"    ... {pluralize(hidden, 'more line')} (-v)"


_INTERRUPTED_STATE = "interrupted"
_MAX_RETRYABLE = 1_000


def jobs(context: CommandContext, *, limit: int, json: bool) -> None:
    """Run `echod jobs`."""
    rows = tuple(map(_job_row, _read_jobs(context, limit)))
    if json:
        click.echo(to_json(JobsReport(rows)))
    elif rows:
        click.echo("\n".join(line for row in rows for line in _job_lines(row, context.now())))
    else:
        click.echo("There are no jobs yet.")


def retry(context: CommandContext, *, job: int) -> None:
    """Run `echod jobs retry`."""
    with context.open_services() as services:
        new_id = services.queue.retry(job, context.now())
    context.notify_daemon()
    new_id_text = "" if new_id == job else f" as job {new_id}"
    context.print_info(f"Job {job} is queued again{new_id_text}.")


def _read_jobs(context: CommandContext, limit: int) -> tuple[Job, ...]:
    """Read the newest jobs, newest first."""
    database = Database.open_readonly(context.paths.database)
    if database is None:
        return ()
    with database:
        return QueueView(database).list_jobs(limit=limit)


def read_retryable_jobs(context: CommandContext) -> tuple[Job, ...]:
    """Return the jobs that `echod jobs retry` takes, newest first."""
    retryable = (JobState.DEAD, JobState.QUEUED)
    return tuple(job for job in _read_jobs(context, _MAX_RETRYABLE) if job.state in retryable)


def _job_row(job: Job) -> JobInfo:
    return JobInfo(
        job=job.id,
        kind=job.kind.value,
        store=job.store,
        role=job.role,
        state=_INTERRUPTED_STATE if _is_interrupted(job) else job.state.value,
        attempts=job.attempts,
        reason=job.reason,
        result=job.result,
        due=job.due,
        queued_at=job.queued_at,
        started_at=job.started_at,
        finished_at=job.finished_at,
    )


def _is_interrupted(job: Job) -> bool:
    """Return whether the process that ran the job died without recording a result."""
    return job.state is JobState.RUNNING and job.worker is not None and not process_is_alive(job.worker)


def _job_lines(row: JobInfo, now: float) -> Iterator[str]:
    at = format_timestamp(row.finished_at or row.started_at or row.queued_at, now)
    yield f"{row.job:>5}  {row.state:<12}{at:<17} {row.kind} {row.role}".rstrip()
    yield f"       {fit_path(row.store, WIDTH - 7)}"
    if text := row.result or row.reason:
        yield wrap(text, indent=" " * 7)
