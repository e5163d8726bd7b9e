"""`echod packs install`, `update` and `remove`: each as a job of its own, which `echod undo` takes back."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import TypeVar

import click

from echod.app.context import Lookout, look_out
from echod.app.services import House, furnish
from echod.cli.asked import Asked, Carried, NotDoneError, carry_out, done
from echod.cli.by_hand import agree as ask
from echod.cli.by_hand import may_write
from echod.cli.pack_told import told
from echod.cli.packs import look
from echod.cli.shell import Shell
from echod.cli.text import count, paragraph, plain, short_path
from echod.cli.wake import wake_daemon
from echod.errors import UsageError
from echod.jobs import packs
from echod.jobs.base import Blocked, Outcome
from echod.jobs.packs import Planned
from echod.memory.packs.manifest import is_stack
from echod.packs.check import PackState, state_of
from echod.packs.installed import Installed, PackRoom
from echod.packs.manifests import agree
from echod.state.job import Job, JobKind
from echod.store.changes import Gate
from echod.store.create import make_global
from echod.store.errors import Busy
from echod.store.layout import Role
from echod.store.session import RoleSession

Said = TypeVar("Said")

_Work = Callable[[PackRoom, Job, RoleSession, Gate], Outcome]
"""What is done to a pack, whose role is held."""

_TRIES, _PAUSE_SECONDS = 20, 0.5
"""Other programs hold the lock of the global store for moments; a person who waits for it need not ask again."""


def install(shell: Shell, stack: str, *, dry_run: bool) -> None:
    """Install a pack.

    Raises:
        UsageError: there is no such pack.
        EchodError: it cannot be installed; the sentence says why.
    """
    state, days = _state(shell, stack)
    _refuse_unusable(state)
    if state.pack is None and state.installed.manifest is None:
        raise UsageError(f"No registry has a doc pack {plain(stack)}; echod packs list shows those there are.")
    _bring(shell, state, days, dry_run=dry_run, installs=True)


def update(shell: Shell, stack: str | None, *, dry_run: bool) -> None:
    """Update a pack, or all that are installed.

    Raises:
        UsageError: it has no pack's name.
        NotDoneError: it is not installed, or cannot be updated; the sentence says why.
    """
    if stack is not None:
        _update(shell, *_state(shell, stack), dry_run=dry_run)
        return
    inventory, days = look(shell)
    if not inventory.installed:
        shell.say("No doc pack is installed; echod packs list shows what there is.")
    failed = []
    for state in inventory.installed:
        try:
            _update(shell, state, days, dry_run=dry_run)
        except NotDoneError as error:
            click.echo(paragraph(str(error), indent="! "))
            failed.append(state.stack)
    if failed:
        raise NotDoneError(f"{count(len(failed), 'doc pack')} could not be updated: {', '.join(failed)}.")


def _update(shell: Shell, state: PackState, days: int, *, dry_run: bool) -> None:
    _refuse_unusable(state)
    if state.installed.manifest is None:
        fix = f"echod packs install {state.stack}"
        what = "has no manifest, so that its version is not known" if state.is_installed else "is not installed"
        raise NotDoneError(f"The doc pack {state.stack} {what}. Say: {fix}")
    _bring(shell, state, days, dry_run=dry_run, installs=False)


def remove(shell: Shell, stack: str, *, dry_run: bool, yes: bool) -> None:
    """Take a pack away.

    Raises:
        UsageError: it has no pack's name, or a question cannot be asked.
        NotDoneError: it is not installed.
    """
    state, _ = _state(shell, stack)
    _refuse_unusable(state)
    if not state.is_installed:
        raise NotDoneError(f"The doc pack {stack} is not installed; echod packs status lists those that are.")
    version = f" (v{plain(state.installed.manifest.version)})" if state.installed.manifest else ""
    edited = ", which you have changed," if state.edited else ""
    if dry_run:
        click.echo(paragraph(f"The doc pack {stack}{version}{edited} would be removed; its text would be archived."))
        return
    may_write(shell)
    if not yes:
        ask(f"Remove the doc pack {stack}{version}{edited.rstrip(',')}? Its text is archived.")

    def work(room: PackRoom, job: Job, session: RoleSession, gate: Gate) -> Outcome:
        return packs.take(job.id, session, room.installed().pack(stack).raw, gate, shell.now)

    carried = _carry_out(shell, stack, "a person removes it", work)
    shell.say(f"Removed the doc pack {stack}. Its text is in its archive:")
    shell.say(f"  {short_path(str(Path(carried.job.store) / carried.job.role / 'archive'))}")
    shell.say(carried.way_back)


def _bring(shell: Shell, state: PackState, days: int, *, dry_run: bool, installs: bool) -> None:
    """Install or update; says what was done, and what a person's edits became. After `days` days a pack is stale."""
    with look_out(shell.paths, shell.settings, shell.environ, shell.now) as lookout:
        planned = _planned(lookout, state, packs.moment(shell.now))
    if isinstance(planned, Blocked):
        raise NotDoneError(f"{planned.reason[:1].upper()}{planned.reason[1:].rstrip('.')}. Nothing was changed.")
    before = state.installed
    if dry_run or (planned.memory, planned.manifest) == (before.memory, before.manifest):
        said = "\n".join(told(state, planned, dry_run=dry_run, installs=installs))
        click.echo(said) if dry_run else shell.say(said)
        return
    may_write(shell)

    def work(room: PackRoom, job: Job, session: RoleSession, gate: Gate) -> Outcome:
        # What is installed may have changed until the role was ours; the registries were read a moment ago.
        now = state_of(room.installed().pack(state.stack), state.pack, packs.moment(shell.now), days)
        return packs.put(job.id, session, now, gate, shell.now)

    carried = _carry_out(shell, state.stack, "a person installs it" if installs else "a person updates it", work)
    shell.say("\n".join(told(state, planned, dry_run=False, installs=installs)))
    if planned.memory != before.memory or not planned.manifest.same_install(before.manifest):
        shell.say(carried.way_back)


def _planned(lookout: Lookout, state: PackState, now: datetime) -> Planned | Blocked:
    role = lookout.packs.role(state.stack)
    if state.installed.memory is None:
        return packs.plan_for(state, None, None, now)
    with lookout.reader.only_look(role) as session:
        return packs.plan_for(state, session.read().memory.data, packs.base_in(session, state), now)


def _carry_out(shell: Shell, stack: str, reason: str, work: _Work) -> Carried:
    """Do it in the pack's role, as a job of its own. No workflow holds the global store: it belongs to no project."""
    with furnish(shell.paths, shell.settings, shell.environ, shell.now) as house:
        room = house.lookout.packs
        role = room.role(stack)

        def do(job: Job, gate: Gate) -> str:
            agree(house.engine, room.home)
            make_global(role)
            return patiently(lambda: _in_role(house, role, lambda session: work(room, job, session, gate)))

        carried = carry_out(shell, house, Asked(JobKind.PACK, role, reason), do, force=True)
    wake_daemon(shell)
    return carried


def _in_role(house: House, role: Role, work: Callable[[RoleSession], Outcome]) -> str:
    with house.engine.open_role(role) as session:
        return done(work(session))


def patiently(action: Callable[[], Said]) -> Said:
    """Do it as soon as the other programs that write to the global store let us, within a few seconds.

    Raises:
        Busy: they did not.
    """
    for _ in range(_TRIES):
        try:
            return action()
        except Busy:
            time.sleep(_PAUSE_SECONDS)
    return action()


def _state(shell: Shell, stack: str) -> tuple[PackState, int]:
    """How a pack stands, and after how many days it is stale.

    Raises:
        UsageError: it has no pack's name.
    """
    if not is_stack(stack):
        raise UsageError(f"{plain(stack)!r} is no name of a doc pack: a letter, then 1 to 63 letters, digits, - and _.")
    inventory, days = look(shell)
    nothing = state_of(Installed(stack), None, packs.moment(shell.now), days)
    return next((state for state in inventory.packs if state.stack == stack), nothing), days


def _refuse_unusable(state: PackState) -> None:
    """What cannot be used stays as it is: it may say what a later version of echod needs to know."""
    if state.installed.barred:
        raise NotDoneError(f"{state.installed.problem} Nothing was changed; mend it, or delete it and install again.")
