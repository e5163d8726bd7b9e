"""`echod remember`: what a person says becomes a note that every agent of the project reads, and no rule removes."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from echod.app.context import Lookout, look_out
from echod.app.services import furnish
from echod.cli.asked import Asked, NotDoneError, carry_out, done
from echod.cli.by_hand import Wish, may_write
from echod.cli.shell import Shell
from echod.cli.text import paragraph, plain, short_path
from echod.cli.wake import wake_daemon
from echod.clock import local_day
from echod.errors import UsageError
from echod.jobs import remember as remembering
from echod.memory.document import new_memory_file, parse
from echod.memory.model import Document
from echod.memory.notes import Note, Unwritable, note_of, with_note
from echod.state.job import Job, JobKind
from echod.store.changes import Gate
from echod.store.layout import Role

_MOST_CHARACTERS = 20_000
_FROM_INPUT = "-"


def remember(shell: Shell, text: str, title: str | None, path: Path | None, wish: Wish) -> None:
    """Write a note into the memory of a project.

    Raises:
        UsageError: there is no project, or nothing to remember.
        HeldError: a workflow is at work, or the settings forbid to write; nothing was changed.
        EchodError: it cannot be written, or is remembered already.
    """
    note = _note(_said(text), title)
    # Of two stores the first is the one that echod's own entries go to.
    role = Role(shell.stores(shell.project(path or Path()))[0], remembering.ROLE)
    with look_out(shell.paths, shell.settings, shell.environ, shell.now) as lookout:
        after = _planned(lookout, role, note, shell.now())
    if isinstance(after, Unwritable):
        raise NotDoneError(f"Nothing was changed: {after.reason}.")
    if note.redacted:
        shell.say(paragraph("A secret was taken out of it: memory is read by agents, and often shared."))
    if wish.dry_run:
        click.echo(f"It would be added to {short_path(str(role.memory))}:")
        click.echo("\n".join(f"  {plain(line)}".rstrip() for line in after.blocks[-1].text.splitlines()))
        return
    may_write(shell)
    with furnish(shell.paths, shell.settings, shell.environ, shell.now) as house:

        def work(job: Job, gate: Gate) -> str:
            house.engine.create_role(role)
            with house.engine.open_role(role) as session:
                return done(remembering.run(job.id, session, note, gate, shell.now))

        asked = Asked(JobKind.REMEMBER, role, "a person asked for it")
        carried = carry_out(shell, house, asked, work, force=wish.force)
    wake_daemon(shell)
    shell.say(paragraph(plain(note.title), indent=f"{carried.summary[:1].upper()}{carried.summary[1:]}: ", hang="  "))
    shell.say(f"It stands in {short_path(str(role.memory))}. {carried.way_back}")


def _said(text: str) -> str:
    if text != _FROM_INPUT:
        return text
    if sys.stdin.isatty():
        click.echo("What is to be remembered? End with Ctrl-D.", err=True)
    try:
        return sys.stdin.read(_MOST_CHARACTERS + 1)
    except UnicodeDecodeError as error:
        raise UsageError("What came in is not text (UTF-8), so nothing was remembered.") from error


def _note(text: str, title: str | None) -> Note:
    if len(text) > _MOST_CHARACTERS:
        raise UsageError(
            f"That is more than {_MOST_CHARACTERS:,} characters; a note is read by every agent. Shorten it."
        )
    note = note_of(text, title)
    if note is None:
        raise UsageError("There is nothing to remember; say it: echod remember 'Use uv, never pip'")
    return note


def _planned(lookout: Lookout, role: Role, note: Note, now: float) -> Document | Unwritable:
    today = local_day(now)
    if role.path.exists():
        return remembering.with_it(lookout.reader.peek(role), note, today)
    document = parse(new_memory_file(role.name))
    assert isinstance(document, Document)  # noqa: S101  our own text
    return with_note(document, note, today)
