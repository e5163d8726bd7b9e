"""`echod sessions`: archive conversations, keep the archives consistent, and forget one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import click

from echod.app.context import ReadContext
from echod.app.services import Services
from echod.cli.commands import session_views
from echod.cli.context import CommandContext
from echod.cli.execute import Confirmation, JobRunner, ManualJob, ManualJobResult, confirm, require_write_mode
from echod.cli.output import sanitize, short_path, wrap
from echod.cli.session_roots import SelectedRoot, absolute_root, job_role, select_root
from echod.clock import local_date
from echod.contract.codec import to_json
from echod.contract.sessions import DistillReport
from echod.errors import ExitCode, UsageError, os_reason
from echod.files import read_regular
from echod.jobs.base import JobDone
from echod.memory.conversation.digest import ConversationDigest
from echod.memory.conversation.host import HostSession, parse_host_session
from echod.memory.conversation.index import rebuild_index
from echod.memory.conversation.model import ArchiveOrigin, NotATranscriptError, record_key
from echod.memory.text import pluralize
from echod.projects.discovery import main_worktree_path
from echod.search.finder import DocumentFinder
from echod.search.sources import ConversationSource
from echod.sessions.archive_writer import SessionOutcome
from echod.sessions.archiver import Archiver, SessionSource, content_session_id
from echod.sessions.forget import files_of_host, find_session, forget, read_archive_header
from echod.sessions.journal import RootRecord
from echod.sessions.roots import INDEX, SessionError, SessionRoot
from echod.sessions.text_search import analyse, apply_distillation, plan_distillation
from echod.sessions.transcripts import HISTORY, LostSession, list_transcript_files, read_history
from echod.state.jobs import JobKind

_MAX_MESSAGES_BYTES = 256 << 20


class ArchiveTask(NamedTuple):
    """One session to archive: its name for the user, and the function that archives it in a job."""

    name: str
    run: Callable[[Archiver, int], SessionOutcome]


def run_job(
    context: CommandContext, root: SessionRoot, reason: str, work: Callable[[Services, Archiver, int], str]
) -> ManualJobResult:
    """Run a manual job in a directory of archives. `work` returns its summary.

    Raises:
        EchodError: the work failed; it is recorded as given up.
    """
    require_write_mode(context)
    with context.open_services() as services:
        sessions_of = services.session_services
        archiver = Archiver(
            root, services.session_log, context.now, summarizer=sessions_of.summarizer, trace=sessions_of.trace
        )
        runner = JobRunner(context, services, force=True)
        manual_job = ManualJob(JobKind.SESSIONS, job_role(root), reason)
        result = runner.run_multi_role(
            manual_job, lambda resources: JobDone(work(services, archiver, resources.job_id), changed=True)
        )
    context.notify_daemon()
    return result


def init(context: CommandContext, *, root: Path | None) -> None:
    """Run `echod sessions init`."""
    with context.open_read_context() as read_context:
        selected = select_root(context, read_context, root)
        if root is not None and not selected.root.entity.is_dir():
            raise SessionError(f"{selected.root.entity} does not exist. Create it first.")
        if selected.project is None:
            _print_created(context, selected.root)
        else:
            switch_on(context, read_context, selected.project)


def switch_on(context: CommandContext, read_context: ReadContext, project: Path) -> None:
    """Archive the conversations of a project from now on."""
    context.paths.create_directories()
    projects = read_context.session_projects
    is_new = projects.switch_on(project)
    if projects.choice(project).enabled:
        _print_created(context, projects.root(project))
    if (choice := projects.choice(project)).enabled:
        context.print_info(
            wrap("Conversations are archived from now on." if is_new else "Conversations are archived already.")
        )
        context.print_info(wrap("Sessions end up there after they end. Those so far: echod sessions archive"))
    else:
        context.print_info(wrap(f"Conversations are not archived: {choice.reason}."))
    context.notify_daemon()


def _print_created(context: CommandContext, root: SessionRoot) -> None:
    made = root.create()
    text = f"created {', '.join(made)}" if made else "nothing was missing"
    context.print_info(wrap(f"{short_path(str(root.entity))}: {text}.", hang="  "))


def archive(
    context: CommandContext, *, words: tuple[str, ...], messages: Path | None, root: Path | None, dry_run: bool
) -> None:
    """Run `echod sessions archive`."""
    with context.open_read_context() as read_context:
        selected = select_root(context, read_context, root)
        tasks = list(_archive_tasks(context, read_context, selected, words, messages, ArchiveOrigin.SESSION))
    _run_tasks(context, selected, tasks, "archived conversations", dry_run=dry_run)


def checkpoint(context: CommandContext, *, words: tuple[str, ...], root: Path | None, dry_run: bool) -> None:
    """Run `echod sessions checkpoint`."""
    with context.open_read_context() as read_context:
        selected = select_root(context, read_context, root)
        tasks = list(_archive_tasks(context, read_context, selected, words, None, ArchiveOrigin.CHECKPOINT))
    _run_tasks(context, selected, tasks, "made checkpoints", dry_run=dry_run)


def _archive_tasks(
    context: CommandContext,
    read_context: ReadContext,
    selected: SelectedRoot,
    words: Sequence[str],
    messages: Path | None,
    kind: ArchiveOrigin,
) -> Iterator[ArchiveTask]:
    if messages is not None:
        yield _messages_task(absolute_root(context, messages))
    for word in words:
        for path in _find_transcripts(context, read_context, word):
            yield _transcript_task(SessionSource(path, str(selected.project or ""), requested=True), kind)
    if words or messages is not None:
        return
    if selected.project is None:
        raise UsageError("Name the transcripts to archive into that directory.")
    now = context.now()
    finder = read_context.session_need_finder
    for transcript in finder.transcripts(selected.project, now):
        is_idle = finder.is_idle(transcript, now)
        yield _transcript_task(SessionSource(transcript.path, str(selected.project), is_complete=is_idle), kind)


def _find_transcripts(context: CommandContext, read_context: ReadContext, word: str) -> list[Path]:
    path = absolute_root(context, Path(word))
    if path.exists() or "/" in word or word.endswith(".jsonl"):
        return [path]
    found = [file for file in list_transcript_files(read_context.claude_home) if file.stem.startswith(word)]
    if not found:
        raise UsageError(f"{sanitize(word)} is neither a file nor the id of a session in {read_context.claude_home}.")
    if len({file.stem for file in found}) > 1:
        raise UsageError(f"{len(found)} sessions begin with {sanitize(word)}. Type more of the id.")
    return found


def _transcript_task(source: SessionSource, kind: ArchiveOrigin) -> ArchiveTask:
    return ArchiveTask(source.path.name, lambda archiver, job: archiver.archive(source, kind, job))


def _messages_task(path: Path) -> ArchiveTask:
    def run(archiver: Archiver, job: int) -> SessionOutcome:
        session = _read_messages(path)
        session_id = session.session_id or content_session_id(session.messages)
        # The same words in another session are another record.
        messages = [one._replace(key=record_key(f"{session_id}\0{one.key}")) for one in session.messages]
        digest = ConversationDigest(started=session.started, ended=session.ended)
        return archiver.archive_messages(session_id, messages, digest, job)

    return ArchiveTask(path.name, run)


def _read_messages(path: Path) -> HostSession:
    try:
        data = read_regular(path, _MAX_MESSAGES_BYTES)
    except OSError as error:
        raise SessionError(f"{path} cannot be read: {os_reason(error)}.") from error
    try:
        return parse_host_session(session_views.parse_messages(data, path))
    except NotATranscriptError as error:
        raise SessionError(f"{path} is no message list: {error}.") from error


def _run_tasks(
    context: CommandContext, selected: SelectedRoot, tasks: Sequence[ArchiveTask], reason: str, *, dry_run: bool
) -> None:
    if not tasks:
        context.print_info("There is no session to archive.")
        return
    if dry_run:
        for task in tasks:
            click.echo(f"{task.name}: would be read into {short_path(str(selected.root.conversations))}")
        return
    if selected.project is not None:
        selected.root.create()
    selected.root.require()
    errors: list[str] = []
    lines: list[str] = []

    def work(services: Services, archiver: Archiver, job: int) -> str:
        del services
        written = 0
        with context.progress_line() as progress:
            for number, task in enumerate(tasks, start=1):
                progress.show(f"session {number} of {len(tasks)}")
                try:
                    outcome = task.run(archiver, job)
                except SessionError as error:
                    errors.append(str(error))
                    continue
                written += outcome.archive is not None
                verb = "" if outcome.archive is not None else "skipped: "
                lines.append(f"{task.name}: {verb}{outcome.text}")
            if archiver.summarise_pending(job):
                lines.append("The summaries are from your command.")
        return f"{reason}: {pluralize(written, 'session')} of {len(tasks)}"

    result = run_job(context, selected.root, "requested by the user", work)
    for line in lines:
        context.print_info(wrap(sanitize(line), hang="  "))
    if any(": archived" in line or ": continued" in line or ": checkpointed" in line for line in lines):
        context.print_info(result.undo_hint)
    for error in errors:
        click.echo(f"echod: {error}", err=True)
    if errors:
        raise click.exceptions.Exit(ExitCode.FAILED)


def rescue(context: CommandContext, *, root: Path | None, dry_run: bool) -> None:
    """Run `echod sessions rescue`."""
    with context.open_read_context() as read_context:
        selected = select_root(context, read_context, root)
        if selected.project is None:
            raise UsageError("The history has projects, not directories. Run this in a project, without --root.")
        lost = _lost_sessions(read_context, selected, selected.project, context.now())
    tasks = [_rescue_task(session, selected.project) for session in lost]
    if not tasks:
        context.print_info(f"{HISTORY} has no session of this project without an archive.")
        return
    _run_tasks(context, selected, tasks, "reconstructed conversations", dry_run=dry_run)


def _lost_sessions(
    read_context: ReadContext, selected: SelectedRoot, project: Path, now: float
) -> tuple[LostSession, ...]:
    archived = {
        header.session_id
        for number in selected.root.archives()
        if (header := read_archive_header(selected.root, number)) is not None
    }
    present = {one.session for one in read_context.session_need_finder.transcripts(project, now)}
    return tuple(
        session
        for session in read_history(read_context.claude_home)
        if session.session_id not in archived | present
        and main_worktree_path(session.directory).is_relative_to(project)
    )


def _rescue_task(session: LostSession, project: Path) -> ArchiveTask:
    return ArchiveTask(
        session.session_id,
        lambda archiver, job: archiver.archive_prompts(session.session_id, session.messages, project, HISTORY, job),
    )


def forget_(context: CommandContext, *, session: str, root: Path | None, dry_run: bool, yes: bool) -> None:
    """Run `echod sessions forget`."""
    with context.open_read_context() as read_context:
        selected = select_root(context, read_context, root)
        found = find_session(selected.root, session)
        names = ", ".join(f"conversation-{number:03}.md" for number in found.archives)
        paths = [file for file in list_transcript_files(read_context.claude_home) if file.stem == found.session_id]
        held = files_of_host(found.session_id, read_context.claude_home, paths)
    if dry_run or not (yes and context.quiet):
        click.echo(wrap(f"Session {sanitize(found.session_id)}: {names}", hang="  "))
    if dry_run:
        return
    if not yes:
        confirm(context, Confirmation("Delete that? This cannot be undone."))

    def work(services: Services, archiver: Archiver, job: int) -> str:
        with archiver.opened():
            forget(archiver.journal, services.session_log, found, job, context.now())
        return f"forgot {pluralize(len(found.archives), 'archive')} of a session"

    run_job(context, selected.root, "requested by the user", work)
    _forget_in_index(context, selected)
    context.print_info("It is forgotten: archives, rows, summaries, receipts and what an undo would need.")
    for text in held:
        context.print_info(wrap(f"The host still has {text}.", hang="  "))


def _forget_in_index(context: CommandContext, selected: SelectedRoot) -> None:
    """Remove the documents of deleted archives from the search index now, not at the next search."""
    if context.paths.search_index.exists():
        finder = DocumentFinder(context.paths.search_index)
        finder.refresh([ConversationSource(selected.root.memory, str(selected.project or ""))])
        finder.close()


def rebuild(context: CommandContext, *, root: Path | None, dry_run: bool) -> None:
    """Run `echod sessions rebuild`."""
    with context.open_read_context() as read_context:
        selected = select_root(context, read_context, root).root
    selected.require()
    before, after, unreadable = _rebuilt_index(selected)
    for name in unreadable:
        click.echo(wrap(f"{name} has no front matter, so it has no row.", indent="! "), err=True)
    if before == after or dry_run:
        text = "is as it should be" if before == after else "would change"
        context.print_info(f"{short_path(str(selected.memory / INDEX))} {text}.")
        return

    def work(services: Services, archiver: Archiver, job: int) -> str:
        del services
        with archiver.opened():
            staged = archiver.journal.stage_bytes(_rebuilt_index(selected)[1].encode())
            record = RootRecord(0, job, "rebuild", context.now(), f"wrote {INDEX} from the archives", ())
            archiver.journal.commit(record, {INDEX: staged})
        return f"wrote {INDEX} from the archives"

    result = run_job(context, selected, "requested by the user", work)
    context.print_info(result.describe(short_path(str(selected.memory / INDEX))))


def _rebuilt_index(root: SessionRoot) -> tuple[str, str, tuple[str, ...]]:
    headers, unreadable = [], []
    for number, path in root.archives().items():
        header = read_archive_header(root, number)
        if header is None:
            unreadable.append(path.name)
        else:
            headers.append(header._replace(log=number))
    before = root.read_text(INDEX)
    return before, rebuild_index(before, headers), tuple(unreadable)


def distill(context: CommandContext, *, root: Path | None, apply_: bool, dry_run: bool, json: bool) -> None:
    """Run `echod sessions distill`."""
    with context.open_read_context() as read_context:
        selected = select_root(context, read_context, root).root
    analysis = analyse(selected, local_date(context.now()))
    moved, _ = plan_distillation(selected)
    percent = int(analysis.share * 100)
    if json:
        report = DistillReport(analysis.lines, analysis.characters, percent, analysis.suggestions, moved.sections)
        click.echo(to_json(report))
    elif not context.quiet or not apply_:
        click.echo("\n".join(_distill_lines(analysis.lines, percent, analysis.suggestions)))
    if not apply_:
        return
    if not moved.sections:
        context.print_info("No section is long enough to be moved.")
        return
    if dry_run:
        for section, file in zip(moved.sections, moved.files, strict=False):
            click.echo(wrap(f"{sanitize(section)} would be moved to memory/{file}", indent="  "))
        return

    def work(services: Services, archiver: Archiver, job: int) -> str:
        del services
        with archiver.opened():
            done = apply_distillation(archiver.journal, selected, job, context.now())
        before, after = done.lines_before, done.lines_after
        return f"moved {pluralize(len(done.sections), 'section')} ({before} lines before, {after} after)"

    result = run_job(context, selected, "requested by the user", work)
    context.print_info(result.describe(short_path(str(selected.curated))))


def _distill_lines(lines: int, percent: int, suggestions: Sequence[str]) -> Iterator[str]:
    yield "echod sessions distill \u2014 MEMORY.md analysis\n"
    yield f"  Lines: {lines}/200 ({percent}%)\n"
    if not suggestions:
        yield "  MEMORY.md is healthy \u2014 no distillation needed."
        return
    yield "  Suggestions:\n"
    for number, text in enumerate(suggestions, start=1):
        yield wrap(sanitize(text), indent=f"  {number}. ", hang="     ")
