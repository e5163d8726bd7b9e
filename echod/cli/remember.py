"""`echod remember`: what a person says becomes a note that every agent of the project reads, and no rule removes."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from echod.app.context import ReadContext, open_read_context
from echod.app.services import open_services
from echod.cli.by_hand import WriteOptions, require_write_mode
from echod.cli.context import CommandContext
from echod.cli.execute import JobRefusedError, ManualJob, run_manual_job, summary_or_raise
from echod.cli.output import sanitize, short_path, wrap
from echod.cli.wake import notify_daemon
from echod.clock import local_date
from echod.errors import UsageError
from echod.jobs import remember as remember_job
from echod.memory.document import new_memory_file, parse
from echod.memory.model import Document
from echod.memory.notes import Note, UnwritableNote, create_note, with_note
from echod.state.job import Job, JobKind
from echod.store.changes import CommitGate
from echod.store.layout import Role

_MAX_CHARACTERS = 20_000
_STDIN = "-"


def remember_note(
    context: CommandContext, text: str, title: str | None, path: Path | None, write_options: WriteOptions
) -> None:
    """Write a note into the memory of a project.

    Raises:
        UsageError: there is no project, or nothing to remember.
        WriteNotAllowedError: a workflow is at work, or the settings forbid to write; nothing was changed.
        EchodError: it cannot be written, or is remembered already.
    """
    note = _build_note(_read_text(text), title)
    # Of two stores the first is the one that echod's own entries go to.
    role = Role(context.list_stores(context.find_project(path or Path()))[0], remember_job.NOTES_ROLE)
    with open_read_context(context.paths, context.settings, context.environ, context.now) as read_context:
        plan = _plan_note(read_context, role, note, context.now())
    if isinstance(plan, UnwritableNote):
        raise JobRefusedError(f"Nothing was changed: {plan.reason}.")
    if note.redacted:
        context.print_info(wrap("A secret was taken out of it: memory is read by agents, and often shared."))
    if write_options.dry_run:
        click.echo(f"It would be added to {short_path(str(role.memory))}:")
        click.echo("\n".join(f"  {sanitize(line)}".rstrip() for line in plan.blocks[-1].text.splitlines()))
        return
    require_write_mode(context)
    with open_services(context.paths, context.settings, context.environ, context.now) as services:

        def work(job: Job, gate: CommitGate) -> str:
            services.engine.create_role(role)
            with services.engine.open_role(role) as session:
                return summary_or_raise(remember_job.run(job.id, session, note, gate, context.now))

        manual_job = ManualJob(JobKind.REMEMBER, role, "a person asked for it")
        result = run_manual_job(context, services, manual_job, work, force=write_options.force)
    notify_daemon(context)
    context.print_info(
        wrap(sanitize(note.title), indent=f"{result.summary[:1].upper()}{result.summary[1:]}: ", hang="  ")
    )
    context.print_info(f"It stands in {short_path(str(role.memory))}. {result.undo_hint}")


def _read_text(text: str) -> str:
    if text != _STDIN:
        return text
    if sys.stdin.isatty():
        click.echo("What is to be remembered? End with Ctrl-D.", err=True)
    try:
        return sys.stdin.read(_MAX_CHARACTERS + 1)
    except UnicodeDecodeError as error:
        raise UsageError("What came in is not text (UTF-8), so nothing was remembered.") from error


def _build_note(text: str, title: str | None) -> Note:
    if len(text) > _MAX_CHARACTERS:
        raise UsageError(
            f"That is more than {_MAX_CHARACTERS:,} characters; a note is read by every agent. Shorten it."
        )
    note = create_note(text, title)
    if note is None:
        raise UsageError("There is nothing to remember; say it: echod remember 'Use uv, never pip'")
    return note


def _plan_note(read_context: ReadContext, role: Role, note: Note, now: float) -> Document | UnwritableNote:
    today = local_date(now)
    if role.path.exists():
        return remember_job.plan_note(read_context.reader.read_role(role), note, today)
    document = parse(new_memory_file(role.name))
    assert isinstance(document, Document)  # noqa: S101  our own text
    return with_note(document, note, today)
