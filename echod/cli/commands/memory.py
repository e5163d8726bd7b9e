"""Commands about the memory of a project: `remember` adds a note, `reset` archives everything in it."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

import click

from echod.app.context import ReadContext
from echod.cli.context import CommandContext
from echod.cli.execute import (
    Change,
    Confirmation,
    JobRefusedError,
    JobRunner,
    ManualJob,
    Step,
    WriteOptions,
    done_or_raise,
    make_change,
    report_already_so,
)
from echod.cli.output import problem_line, sanitize, short_path, wrap
from echod.cli.targets import filter_roles, list_roles_of
from echod.clock import local_date
from echod.errors import EchodError, UsageError
from echod.jobs import manual
from echod.jobs.base import JobDeferred, JobDone, JobOutcome, JobResources
from echod.memory.compose import AlreadyNoted, Note, UnwritableNote, create_note, with_note
from echod.memory.document import new_memory_file, parse
from echod.memory.model import Document
from echod.memory.text import capitalize, pluralize
from echod.runtime.locks import WorkerBusyError
from echod.state.jobs import JobKind
from echod.store.errors import BusyError
from echod.store.layout import Role, Store
from echod.store.role import STALE_LOCK_SECONDS, is_locked

_MAX_CHARACTERS = 20_000
_BUSY_SECONDS, _RETRY_SECONDS = 3.0, 0.1
"""How long `remember` waits for other programs, and how often it tries, before it appends as agents do."""

_LOCKED_SECONDS = STALE_LOCK_SECONDS + _BUSY_SECONDS
"""The same while an agent holds the writers' lock, since that agent would overwrite what is appended meanwhile."""

_FORGET_HINT = "echod forget ID"
_STDIN = "-"


def remember(
    context: CommandContext, *, text: str, title: str | None, project: Path | None, dry_run: bool, force: bool
) -> None:
    """Run `echod remember`."""
    note = _build_note(_read_text(text), title)
    # Of two stores the first is the one to which echod adds its own entries.
    role = Role(context.list_stores(context.find_project(project or Path()))[0], manual.NOTES_ROLE)
    with context.open_read_context() as read_context:
        plan = _plan_note(read_context, role, note, context.now())
    if isinstance(plan, AlreadyNoted):
        report_already_so(context, plan.reason)
    if isinstance(plan, UnwritableNote):
        raise JobRefusedError(f"Nothing was changed: {plan.reason}.")
    if note.redacted:
        context.print_info(
            wrap("It contains a secret, which is not saved: agents read memory, and it is often shared.")
        )
    change = Change(
        preview=addition_preview(role, plan) if dry_run else "",
        steps=[Step(role.name, partial(_take_note, role, note))],
    )
    make_change(context, change, WriteOptions(dry_run, force=force))


def _read_text(text: str) -> str:
    if text != _STDIN:
        return text
    if sys.stdin.isatty():
        click.echo("Type the text of the note. End with Ctrl-D.", err=True)
    try:
        return sys.stdin.read(_MAX_CHARACTERS + 1)
    except UnicodeDecodeError as error:
        raise UsageError("The input is not valid UTF-8. Nothing was saved.") from error


def _build_note(text: str, title: str | None) -> Note:
    if len(text) > _MAX_CHARACTERS:
        raise UsageError(
            f"The text has more than {_MAX_CHARACTERS:,} characters. Shorten it: every agent reads a note."
        )
    note = create_note(text, title)
    if note is None:
        raise UsageError("The text is empty. Type a note: echod remember 'Use uv, never pip'")
    return note


def _plan_note(read_context: ReadContext, role: Role, note: Note, now: float) -> Document | UnwritableNote:
    today = local_date(now)
    if role.path.exists():
        with contextlib.suppress(BusyError):  # while it is being written, only the note itself can be shown
            return manual.plan_note(read_context.reader.read_role(role), note, today)
    document = parse(new_memory_file(role.name))
    assert isinstance(document, Document)  # noqa: S101  our own text
    return with_note(document, note, today)


def addition_preview(role: Role, document: Document) -> str:
    """Format the entry that is added at the end of a role's memory file."""
    lines = (f"  {sanitize(line)}".rstrip() for line in document.blocks[-1].text.splitlines())
    return "\n".join([f"It would be added to {short_path(str(role.memory))}:", *lines])


def _take_note(role: Role, note: Note, runner: JobRunner) -> str:
    """Add the note by a job, or as agents do if other programs do not let the job write. It is always taken."""
    try:
        result = runner._replace(lock_timeout=_BUSY_SECONDS).run_multi_role(
            ManualJob(JobKind.REMEMBER, role), lambda resources: _remember(role, note, resources)
        )
    except WorkerBusyError:
        today = local_date(runner.context.now())
        return _note_report(role, note, manual.append_note(role, note, today), f"To remove it: {_FORGET_HINT}")
    is_recorded = any(commit.job == result.job.id for commit in runner.services.engine.history([role.store]))
    hint = result.undo_hint if is_recorded else f"To remove it: {_FORGET_HINT}"
    return _note_report(role, note, result.summary, hint)


def _note_report(role: Role, note: Note, summary: str, hint: str) -> str:
    text = wrap(sanitize(note.title), indent=f"{capitalize(summary)}: ", hang="  ")
    return f"{text}\nIt is in {short_path(str(role.memory))}. {hint}"


def _remember(role: Role, note: Note, resources: JobResources) -> JobOutcome:
    """Commit the note, or append it if the file stays busy."""
    started = time.monotonic()
    while True:
        try:
            resources.engine.create_role(role)
            with resources.open_role(role) as job:
                outcome = manual.remember(job, note)
            if not isinstance(outcome, JobDeferred):
                return outcome
        except BusyError:
            pass
        limit = _LOCKED_SECONDS if is_locked(role) else _BUSY_SECONDS
        if time.monotonic() - started >= limit:
            return JobDone(manual.append_note(role, note, local_date(resources.clock())), changed=True)
        time.sleep(_RETRY_SECONDS)


def reset(context: CommandContext, *, path: Path, role: str | None, dry_run: bool, yes: bool, force: bool) -> None:
    """Run `echod reset`."""
    project = context.find_project(path)
    today = local_date(context.now())
    with context.open_read_context() as read_context:
        roles = filter_roles(list_roles_of(context.list_stores(project)), role)
        plans = {found: manual.plan_role_reset(read_context.reader.read_role(found), today) for found in roles}
    changed = [found for found, plan in plans.items() if plan.files]
    lines = [line for found, plan in plans.items() for line in _reset_lines(found, plan)]
    if changed:
        lines.append(wrap("Everything is archived in its role, with a copy of the memory file. Findings stay."))
    else:
        lines.append("There is nothing to archive.")
    stores = dict.fromkeys(found.store for found in changed)
    change = Change(
        preview="\n".join(lines),
        steps=[
            Step(short_path(store.key), partial(_run_reset_job, store, [r for r in changed if r.store == store]))
            for store in stores
        ],
        question=Confirmation(
            f"To archive all of that, type the name of the project ({sanitize(project.name)})", project.name
        ),
    )
    make_change(context, change, WriteOptions(dry_run, yes, force))


def _reset_lines(role: Role, plan: manual.RoleResetPlan) -> Iterator[str]:
    files = " and ".join(file.path.name for file, _ in plan.files)
    summary = f"{files}: {pluralize(plan.entries, 'entry', 'entries')}" if files else "empty"
    yield wrap(summary, indent=f"  {role.name:<14} ")
    for reason in plan.skipped:
        yield problem_line(reason, indent="    ")


def _run_reset_job(store: Store, roles: Sequence[Role], runner: JobRunner) -> str:
    """Empty the roles of one store by one job, so that one undo restores them."""
    emptied: list[str] = []

    def work(resources: JobResources) -> JobOutcome:
        for role in roles:
            try:
                with resources.open_role(role) as job:
                    done_or_raise(manual.reset(job))
            except EchodError as error:
                if not emptied:
                    raise
                raise JobRefusedError(
                    f"{role.name} was not emptied: {error} Emptied before it: {', '.join(emptied)}. "
                    f"To undo that: echod undo {resources.job_id}"
                ) from error
            emptied.append(role.name)
        return JobDone(f"emptied {', '.join(emptied)}", changed=True)

    job_role = Role(store, roles[0].name if len(roles) == 1 else "")
    result = runner.run_multi_role(ManualJob(JobKind.RESET, job_role), work)
    summary = wrap(f"Emptied {', '.join(emptied)} in {short_path(store.key)}.", hang="  ")
    return f"{summary}\n{result.undo_hint}"
