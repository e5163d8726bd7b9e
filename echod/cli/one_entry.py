"""`echod raise`, `echod forget` and `echod restore`: what a person decides about one entry."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from difflib import ndiff
from pathlib import Path

from echod.app.context import look_out
from echod.app.services import House, furnish
from echod.cli.asked import Asked, NotDoneError, carry_out, done
from echod.cli.by_hand import Place, Wish, agree, may_write
from echod.cli.find import Archived, Found, anywhere, archived_of, flag_of, in_memory
from echod.cli.pack_changes import patiently
from echod.cli.shell import Shell
from echod.cli.text import called, count, paragraph, plain, short_path
from echod.cli.wake import wake_daemon
from echod.clock import local_day
from echod.jobs import forget as forgetting
from echod.jobs import restore as restoring
from echod.jobs import set_layer
from echod.jobs.archives import Kept
from echod.jobs.base import Outcome
from echod.memory.model import Layer
from echod.memory.policy import Rule
from echod.memory.policy.manual import Impossible, raised, taken_out
from echod.memory.policy.scoring import entry_lines
from echod.memory.prompt_injection import speaks_to_agents
from echod.memory.redact import redact_entry
from echod.state.job import Job, JobKind
from echod.store.changes import Gate
from echod.store.layout import Role, commons_of
from echod.store.session import RoleSession

_OWN = (Layer.ETCHED, Layer.NOTES)
"""The layers that only a person gives and takes."""


def raise_entry(shell: Shell, entry: str, layer: Layer, path: Path | None, wish: Wish) -> None:
    """Put an entry into another layer.

    Raises:
        UsageError: there is no such entry, or a question cannot be asked.
        HeldError: a workflow is at work, or the settings forbid to write; nothing was changed.
        EchodError: it cannot be done, the sentence says why.
    """
    with look_out(shell.paths, shell.settings, shell.environ, shell.now) as lookout:
        (found,) = in_memory(shell, lookout, path, [entry])
    before = found.block.entry.layer if found.block.entry else None
    after = raised(found.role.name, found.document, found.id, layer)
    if isinstance(after, Impossible):
        raise NotDoneError(f"{found.id} stays as it is: {after.reason}.")
    shell.lay_out(_named(found.id, found.title, found.role), needed=wish.told)
    if after is found.document:
        shell.say(f"It is {layer.value} already; nothing was changed.")
        return
    position = found.document.blocks.index(found.block)
    shell.lay_out("\n".join(_difference(found.block.text, after.blocks[position].text)), needed=wish.told)
    if wish.dry_run:
        return
    may_write(shell)
    if not wish.yes:
        _doubts(found, before, layer)

    def run(_: House, session: RoleSession, job: Job, gate: Gate) -> Outcome:
        return set_layer.run(job.id, session, found.id, layer, gate, shell.now)

    _carry_out(shell, JobKind.RAISE, found.role, run, wish)


def forget(shell: Shell, entry: str, place: Place, wish: Wish) -> None:
    """Take an entry out of the memory, for the archive.

    Raises:
        UsageError, HeldError, EchodError: as `raise_entry`.
    """
    with look_out(shell.paths, shell.settings, shell.environ, shell.now) as lookout:
        (found,) = in_memory(shell, lookout, place, [entry])
    out = taken_out(found.role.name, found.document, [found.id], Rule.FORGOTTEN, local_day(shell.now()))
    if isinstance(out, Impossible):
        raise NotDoneError(f"{found.id} stays where it is: {out.reason}.")
    shell.lay_out(_named(found.id, found.title, found.role), needed=wish.told)
    layer = found.block.entry.layer if found.block.entry else None
    size = count(entry_lines(found.block.text), "line")
    what = f"  {layer.value if layer else 'unknown layer'}, {size}; its text goes to the archive of the role"
    shell.lay_out(what, needed=wish.told)
    if any(kept.redacted for kept in out.archived):
        said = "It holds a secret, which the archive will not have."
        shell.lay_out(paragraph(said, indent="  "), needed=wish.told)
    if wish.dry_run:
        return
    may_write(shell)
    if not wish.yes:
        agree("Forget it?")

    def run(_: House, session: RoleSession, job: Job, gate: Gate) -> Outcome:
        return forgetting.run(job.id, session, [found.id], gate, shell.now, rule=Rule.FORGOTTEN)

    _carry_out(shell, JobKind.FORGET, found.role, run, wish)


def restore(shell: Shell, entry: str, place: Place, wish: Wish) -> None:
    """Bring an entry back from the archive, the newest text of several.

    Raises:
        UsageError, HeldError, EchodError: as `raise_entry`.
    """
    with look_out(shell.paths, shell.settings, shell.environ, shell.now) as lookout:
        found = anywhere(shell, lookout, place, entry)
        kept = _newest(found)
        view = lookout.reader.peek(found.role)
        file = restoring.file_of(view, kept.entry)
        back = None if file is None else restoring.with_it(view, file, kept.entry)
    if isinstance(back, Impossible):
        raise NotDoneError(f"Nothing was changed: {back.reason}.")
    shell.lay_out(_named(found.id, found.title, found.role), needed=wish.told)
    told = _told(found, kept, short=back is not None and back.short is not None)
    shell.lay_out("\n".join(told), needed=wish.told)
    if wish.dry_run:
        return
    may_write(shell)

    def run(house: House, session: RoleSession, job: Job, gate: Gate) -> Outcome:
        pins = restoring.Pins(house.entries, house.settings.policy.pin_days)
        return restoring.run(job.id, session, kept.entry, pins, gate, shell.now)

    _carry_out(shell, JobKind.RESTORE, found.role, run, wish)


def _newest(found: Found | Archived) -> Kept:
    """The newest archived text of an entry.

    Raises:
        NotDoneError: there is none.
    """
    copies = archived_of(found.role) if isinstance(found, Found) else (found,)
    mine = next((one for one in copies if one.id == found.id), None)
    if mine is None:
        raise NotDoneError(f"{found.id} stands in {_memory_of(found.role)}; there is nothing to bring back.")
    return mine.copies[-1]


def _told(found: Found | Archived, kept: Kept, *, short: bool) -> Iterator[str]:
    entry = kept.entry
    job = f", by job {entry.job}" if entry.job is not None else ""
    yield paragraph(f"archived on {entry.day} ({entry.rule}{job}), in {kept.file}", indent="  ")
    if isinstance(found, Archived) and len(found.copies) > 1:
        every = f"echod show {found.id}{flag_of(found.role)}"
        yield paragraph(f"the newest of {len(found.copies)} archived texts; {every} prints them all", indent="  ")
    if short:
        yield "  it takes the place of its short form"
    if entry.redacted or redact_entry(entry.text).spans:
        yield paragraph("It held a secret; it comes back without it.", indent="  ")
    if entry.file != "MEMORY.md":
        yield f"  it goes back to {entry.file}, where it stood"


def _named(identity: str, title: str, role: Role) -> str:
    where = f"  in {called(role.name)}  {short_path(role.store.key)}"
    return "\n".join([paragraph(plain(title) or "(untitled)", indent=f"{identity}  "), where])


def _memory_of(role: Role) -> str:
    return f"the memory of {role.name}" if role.name else called("")


def _difference(before: str, after: str) -> Iterator[str]:
    for line in ndiff(before.splitlines(), after.splitlines()):
        if line.startswith(("- ", "+ ")):
            yield f"  {plain(line)}"


def _doubts(found: Found, before: Layer | None, after: Layer) -> None:
    """Ask where protection goes, or where what is protected could be meant to steer agents."""
    if after in _OWN and (phrase := speaks_to_agents(found.block.text)) is not None:
        agree(f"It reads like an instruction to agents ({phrase}). Make it {after.value} all the same?")
    elif after not in _OWN and (before is None or before in _OWN):
        agree("Then the rules may take it out one day. Go on?")


def _carry_out(
    shell: Shell,
    kind: JobKind,
    role: Role,
    run: Callable[[House, RoleSession, Job, Gate], Outcome],
    wish: Wish,
) -> None:
    """Do it, as a job of its own, and say what was done. No workflow holds the global store, but others write there."""
    is_global = commons_of(role.store) is not None
    with furnish(shell.paths, shell.settings, shell.environ, shell.now) as house:

        def attempt(job: Job, gate: Gate) -> str:
            with house.engine.open_role(role) as session:
                return done(run(house, session, job, gate))

        def work(job: Job, gate: Gate) -> str:
            return patiently(lambda: attempt(job, gate)) if is_global else attempt(job, gate)

        asked = Asked(kind, role, "a person asked for it")
        carried = carry_out(shell, house, asked, work, force=wish.force or is_global)
    wake_daemon(shell)
    shell.say(carried.told(called(role.name)))
