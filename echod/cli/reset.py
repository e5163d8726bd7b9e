"""`echod reset`: a project's memory as on its first day, after a backup, and after the person typed its name."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from echod.app.context import look_out
from echod.app.services import House, furnish
from echod.cli.asked import Asked, NotDoneError, carry_out, done
from echod.cli.by_hand import Wish, agree_by_typing, may_write
from echod.cli.shell import Shell
from echod.cli.text import count, paragraph, plain, short_path
from echod.cli.wake import wake_daemon
from echod.clock import local_day
from echod.errors import EchodError, UsageError
from echod.jobs import reset as resetting
from echod.state.job import Job, JobKind
from echod.store.changes import Gate
from echod.store.layout import Role, Store, roles_of


class _Planned(NamedTuple):
    """What would become of a role."""

    role: Role
    emptied: resetting.Emptied


def reset(shell: Shell, path: Path, role: str | None, wish: Wish) -> None:
    """Empty the memory and knowledge files of a project, those of one role if it is named.

    Raises:
        UsageError: there is no such project or role, or a question cannot be asked.
        HeldError: a workflow is at work, or the settings forbid to write; nothing was changed.
        EchodError: a role could not be emptied, the sentence says why and what was done.
    """
    project = shell.project(path)
    today = local_day(shell.now())
    with look_out(shell.paths, shell.settings, shell.environ, shell.now) as lookout:
        views = [lookout.reader.peek(found) for found in _roles(shell, project, role)]
        plans = [_Planned(view.role, resetting.plan_for(view, today)) for view in views]
    todo = [plan for plan in plans if plan.emptied.files]
    for plan in plans:
        shell.lay_out("\n".join(_shown(plan)), needed=wish.told)
    if not todo:
        shell.say("There is nothing to empty.")
        return
    said = "Everything goes to the archive of its role, with a copy of the memory file; findings stay."
    shell.lay_out(paragraph(said), needed=wish.told)
    if wish.dry_run:
        return
    may_write(shell)
    if not wish.yes:
        agree_by_typing(project.name, f"To empty all of that, type the name of the project ({plain(project.name)})")
    with furnish(shell.paths, shell.settings, shell.environ, shell.now) as house:
        for store in dict.fromkeys(plan.role.store for plan in todo):
            _do(shell, house, store, [plan.role for plan in todo if plan.role.store == store], force=wish.force)
    wake_daemon(shell)


def _roles(shell: Shell, project: Path, name: str | None) -> list[Role]:
    roles = [role for store in shell.stores(project) for role in roles_of(store)]
    found = [role for role in roles if name in (None, role.name)]
    if name is not None and not found:
        there = ", ".join(sorted({role.name for role in roles})) or "none"
        raise UsageError(f"There is no role {plain(name)}; there are: {there}.")
    return found


def _shown(plan: _Planned) -> Iterator[str]:
    files = " and ".join(file.path.name for file, _ in plan.emptied.files)
    said = f"{files}: {count(plan.emptied.entries, 'entry', 'entries')}" if files else "nothing in it"
    yield paragraph(said, indent=f"  {plan.role.name:<14} ")
    for reason in plan.emptied.left:
        yield paragraph(plain(reason), indent="    ! ")


def _do(shell: Shell, house: House, store: Store, roles: Sequence[Role], *, force: bool) -> None:
    """Empty the roles of one store as one job, so that one undo takes it back."""
    emptied: list[str] = []

    def work(job: Job, gate: Gate) -> str:
        for role in roles:
            try:
                with house.engine.open_role(role) as session:
                    done(resetting.run(job.id, session, gate, shell.now))
            except EchodError as error:
                if not emptied:
                    raise
                raise NotDoneError(
                    f"{role.name} was not emptied: {error} Before it {' and '.join(emptied)} were; "
                    f"to take that back: echod undo {job.id}"
                ) from error
            emptied.append(role.name)
        return f"emptied {', '.join(emptied)}"

    whole = Role(store, roles[0].name if len(roles) == 1 else "")
    carried = carry_out(shell, house, Asked(JobKind.RESET, whole, "a person asked for it"), work, force=force)
    shell.say(paragraph(f"Emptied {', '.join(emptied)} in {short_path(store.key)}.", hang="  "))
    shell.say(carried.way_back)
