"""`echod undo`: take back what a job did to the memory, after saying exactly what that would change."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from datetime import timedelta
from pathlib import Path
from typing import NamedTuple

import click

from echod.app.context import look_out
from echod.app.services import House, furnish
from echod.cli.asked import Asked, carry_out
from echod.cli.by_hand import agree, gate_of, held, may_write, stores_meant
from echod.cli.shell import Shell
from echod.cli.text import moment, paragraph, plain, short_path
from echod.cli.wake import wake_daemon
from echod.clock import local_day
from echod.errors import UsageError
from echod.inspection.entry_facts import pin_what_came_back
from echod.memory.model import Block
from echod.packs.manifests import agree as agree_manifests
from echod.state.job import Job, JobKind
from echod.store.changes import Gate
from echod.store.layout import commons_of, packs_store
from echod.store.reader import Done
from echod.store.undo import Preview

_SHOWN_CHANGES = 12
_DIGITS = 18
"""A number that has more is no job's: the database cannot count so far."""

_MANIFEST = "  change no memory file; the pack's manifest becomes what it was"


class _Plan(NamedTuple):
    """What is to be taken back: the newest of the job's commits stands for the job."""

    job: int
    newest: Done
    previews: tuple[Preview, ...]

    @property
    def project(self) -> Path:
        return self.newest.store.project

    @property
    def is_global(self) -> bool:
        """Whether it is about the global store, which belongs to no project, so that no workflow holds it."""
        return commons_of(self.newest.store) is not None

    @property
    def is_of_a_pack(self) -> bool:
        """Whether it is about a doc pack, whose manifest follows what is done to it."""
        return self.is_global and self.newest.store == packs_store(self.project)


def job_and_path(words: Sequence[str], *, last: bool) -> tuple[int | None, Path | None]:
    """What was typed after `echod undo`: a job (None with `last`) and a project (None: not named).

    Raises:
        UsageError: it makes no sense.
    """
    rest = list(words)
    job = None
    if not last:
        if not rest:
            raise UsageError("Which job? Name its number (`echod log` lists them), or say --last.")
        number = rest.pop(0)
        if not (number.isascii() and number.isdigit() and len(number) <= _DIGITS):
            raise UsageError(f"{plain(number)} is not a job's number; `echod log` lists them, --last is the newest.")
        job = int(number)
    if len(rest) > 1 or (last and rest and rest[0].isdigit() and not Path(rest[0]).exists()):
        raise UsageError("Name one job and one project: echod undo JOB [PATH], or echod undo --last [PATH].")
    return job, Path(rest[0]) if rest else None


def undo(shell: Shell, job: int | None, path: Path | None, *, dry_run: bool, yes: bool, force: bool) -> None:
    """Take back job `job`, or the newest one that stands.

    Raises:
        UsageError: no such job was done there, or a question cannot be asked.
        HeldError: a workflow is at work, or the settings forbid to write; nothing was changed.
        EchodError: it cannot be undone, the sentence says why.
    """
    plan, reason = _prepare(shell, job, path, force=force)
    shown = "\n".join(_shown(plan, shell.now(), most=sys.maxsize if dry_run else _SHOWN_CHANGES))
    shell.lay_out(shown, needed=dry_run or not yes)
    if dry_run:
        if reason is not None:
            click.echo(paragraph(f"It would have to wait, since a workflow is at work: {reason}", hang="  "))
        return
    may_write(shell)
    if reason is not None:
        raise held(plan.project, reason)
    if not yes:
        agree(f"Undo job {plan.job}?")
    with furnish(shell.paths, shell.settings, shell.environ, shell.now) as house:
        number = _take_back(shell, house, plan, force=force)
    wake_daemon(shell)
    shell.say(f"Undone, as job {number}. To do it again: echod undo {number}")


def _prepare(shell: Shell, job: int | None, path: Path | None, *, force: bool) -> tuple[_Plan, str | None]:
    """What is to be done, and why it would have to wait; changes nothing."""
    # A job may be named from anywhere; only where a project is named it must be one of that project's.
    stores = stores_meant(shell, path) if job is None or path is not None else None
    with look_out(shell.paths, shell.settings, shell.environ, shell.now) as lookout:
        known = lookout.reader.history(stores)
        number = _newest(known) if job is None else job
        done = next((commit for commit in known if commit.job == number), None)
        if done is None:
            if path is None:
                lookout.reader.preview_undo(number)  # refuses with the reason
            raise UsageError(f"Job {number} changed nothing in {short_path(str(path))}; `echod log` lists what did.")
        plan = _Plan(number, done, lookout.reader.preview_undo(number))
        reason = None if force or plan.is_global else gate_of(shell, lookout.gatekeeper, plan.project)()
        return plan, reason


def _newest(known: Iterable[Done]) -> int:
    """The newest job that stands; what an undo did is no job to be undone unnamed."""
    for done in known:
        if done.job is not None and done.undone_by is None and done.kind != JobKind.UNDO:
            return done.job
    raise UsageError("There is no job that could be undone here; `echod log` lists what was done.")


def _take_back(shell: Shell, house: House, plan: _Plan, *, force: bool) -> int:
    """Do it, as a job of its own; its number."""

    def work(job: Job, gate: Gate) -> str:
        undone = house.engine.undo(plan.job, by=job.id, gate=gate)
        today = local_day(shell.now())
        until = today + timedelta(days=house.settings.policy.pin_days)
        pin_what_came_back(house.entries, plan.newest.store, plan.newest.kind, undone, today, until)
        if plan.is_global:
            agree_manifests(house.engine, plan.project)
        return f"took back job {plan.job}: {plan.newest.summary}"

    asked = Asked(JobKind.UNDO, plan.newest.role, f"a person takes back job {plan.job}")
    return carry_out(shell, house, asked, work, force=force or plan.is_global).job.id


def _shown(plan: _Plan, now: float, *, most: int) -> Iterator[str]:
    done = plan.newest
    role = f"{done.kind} {done.role.name}".strip()
    yield f"Job {plan.job}: {role}  {short_path(done.store.key)}  {moment(done.at, now)}"
    yield paragraph(plain(done.summary), indent="  ")
    yield "To undo it means to"
    lines = [line for preview in plan.previews for line in _changes(preview)]
    yield from lines[:most] or [_MANIFEST if plan.is_of_a_pack else "  change nothing: others have done so already"]
    if len(lines) > most:
        yield f"  ... and {len(lines) - most} more (all with --dry-run)"
    if any(preview.leaving or preview.goes for preview in plan.previews):
        yield "What is taken out is kept in the role's archive."
    if not all(preview.exact for preview in plan.previews):
        yield "The memory was changed since; what others wrote stays."
    if any(preview.redacted for preview in plan.previews):
        yield paragraph("The secrets that were removed are no longer kept; the text comes back without them.")


def _changes(preview: Preview) -> Iterator[str]:
    for path in preview.returns:
        yield paragraph(plain(path), indent="  bring back the file   ")
    for path in preview.goes:
        yield paragraph(plain(path), indent="  take away the file    ")
    for block in preview.restored:
        yield paragraph(_title(block), indent="  bring back the entry  ")
    for block in preview.leaving:
        yield paragraph(_title(block), indent="  take out the entry    ")


def _title(block: Block) -> str:
    return plain(block.entry.title if block.entry else block.text.strip().partition("\n")[0]) or "(untitled)"
