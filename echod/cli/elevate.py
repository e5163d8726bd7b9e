"""`echod elevate`: an entry of a project becomes one of the global memory, for all projects of the user."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from echod.app.context import Lookout, look_out
from echod.app.services import House, furnish
from echod.cli.asked import Asked, Carried, NotDoneError, carry_out, done
from echod.cli.by_hand import may_write
from echod.cli.find import Found, in_memory
from echod.cli.pack_changes import patiently
from echod.cli.shell import Shell
from echod.cli.text import paragraph, plain, short_path
from echod.cli.wake import wake_daemon
from echod.clock import local_day
from echod.errors import UsageError
from echod.jobs import elevate as elevating
from echod.memory.packs.elevation import Elevated, Unfit, field_of, unfit
from echod.memory.packs.manifest import DOMAINS
from echod.memory.prompt_injection import speaks_to_agents
from echod.state.job import Job, JobKind
from echod.store.changes import Gate
from echod.store.create import make_global

_MANY = 50
"""With more entries than this the global memory costs every agent of every project more than it gives."""


def elevate(shell: Shell, entry: str, path: Path | None, domain: str | None, *, dry_run: bool) -> None:
    """Write an entry into the global memory.

    Raises:
        UsageError: there is no such entry or domain, or a question cannot be asked.
        EchodError: it cannot be elevated, the sentence says why.
    """
    _check(domain)
    with look_out(shell.paths, shell.settings, shell.environ, shell.now) as lookout:
        (found,) = in_memory(shell, lookout, path, [entry])
        if (reason := unfit(found.block)) is not None:
            raise _not_elevated(found, reason)
        meant = domain or _own_domain(found) or _asked()
        after = _planned(shell, lookout, found, meant)
    if isinstance(after, Unfit):
        raise _not_elevated(found, after)
    _say_what_is_odd(found, after)
    if dry_run:
        click.echo(f"It would be added to {short_path(str(lookout.packs.memory.memory))}:")
        click.echo("\n".join(f"  {plain(line)}".rstrip() for line in after.document.blocks[-1].text.splitlines()))
        return
    may_write(shell)
    with furnish(shell.paths, shell.settings, shell.environ, shell.now) as house:
        carried = _carry_out(shell, house, found, meant)
    wake_daemon(shell)
    shell.say(paragraph(f'Elevated "{plain(found.title)}" ({meant}) from {found.role.name} as {after.id}.', hang="  "))
    shell.say(carried.way_back)
    if (number := sum(block.entry is not None for block in after.document.blocks)) > _MANY:
        text = f"The global memory has {number} entries now; more than {_MANY} are a lot for every agent to read."
        click.echo(paragraph(text, indent="! "))


def _planned(shell: Shell, lookout: Lookout, found: Found, domain: str) -> Elevated | Unfit:
    role = lookout.packs.memory
    memory = lookout.reader.peek(role).memory.data if role.path.is_dir() else None
    return elevating.with_it(memory, found.block, found.role, domain, local_day(shell.now()))


def _carry_out(shell: Shell, house: House, found: Found, domain: str) -> Carried:
    """Do it, as a job of its own. No workflow holds the global memory: it belongs to no project."""
    role = house.lookout.packs.memory

    def work(job: Job, gate: Gate) -> str:
        make_global(role)
        return patiently(lambda: write(job, gate))

    def write(job: Job, gate: Gate) -> str:
        with house.engine.open_role(role) as session:
            return done(elevating.run(job.id, session, found.block, found.role, domain, gate, shell.now))

    reason = f"a person elevates {found.id} of {found.role.name}"
    return carry_out(shell, house, Asked(JobKind.ELEVATE, role, reason), work, force=True)


def _check(domain: str | None) -> None:
    if domain is not None and domain not in DOMAINS:
        raise UsageError(f"{plain(domain)!r} is no domain; there are {', '.join(DOMAINS)}.")


def _own_domain(found: Found) -> str | None:
    """The domain that the entry names itself, if it is one."""
    entry = found.block.entry
    named = field_of(entry, "domain").lower() if entry else ""
    return named if named in DOMAINS else None


def _asked() -> str:
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UsageError(f"What is it about? Say --domain with one of {', '.join(DOMAINS)}; nothing was changed.")
    click.echo("\n".join(f"{number:>3}  {domain}" for number, domain in enumerate(DOMAINS, 1)))
    while True:
        said: str = click.prompt("What is it about")
        if said in DOMAINS:
            return said
        if said.isascii() and said.isdigit() and 1 <= int(said) <= len(DOMAINS):
            return DOMAINS[int(said) - 1]


def _say_what_is_odd(found: Found, after: Elevated) -> None:
    if after.redacted:
        click.echo(paragraph("A secret was taken out of it: the global memory is read in every project."))
    if (phrase := speaks_to_agents(found.block.text)) is not None:
        click.echo(paragraph(f"It reads like an instruction to agents ({phrase}); every project's agents read it."))


def _not_elevated(found: Found, reason: Unfit) -> NotDoneError:
    return NotDoneError(f"{found.id} is not elevated: {reason.reason}. Nothing was changed.")
