"""`echod prune` and `echod compress`: show what would leave the files, and do it as a job of its own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import date
from pathlib import Path
from typing import NamedTuple

import click

from echod.app.context import Lookout, look_out
from echod.app.services import House, furnish
from echod.cli.asked import Asked, carry_out, done
from echod.cli.by_hand import Wish, agree, may_write, stores_meant
from echod.cli.shell import Shell
from echod.cli.text import count, paragraph, plain, short_path
from echod.cli.wake import wake_daemon
from echod.clock import local_day
from echod.contract.commands import PlannedEntry, PlannedFile, PlanReport
from echod.contract.status import to_json
from echod.errors import UsageError
from echod.inspection.entry_facts import facts_of
from echod.jobs import compress, prune
from echod.memory.document import parse, parse_block
from echod.memory.model import Document, Unreadable
from echod.memory.policy import Action, Facts, Rule
from echod.projects.maintenance import Care
from echod.state.job import Job, JobKind
from echod.store.changes import Gate
from echod.store.layout import Role, Store, roles_of
from echod.store.session import RoleView


class Planned(NamedTuple):
    """What would become of one file."""

    role: Role
    changes: bool
    summary: str
    entries: tuple[PlannedEntry, ...]
    file: PlannedFile


def maintain(
    shell: Shell,
    kind: JobKind,
    path: Path | None,
    role: str | None,
    wish: Wish,
    *,
    as_of: str | None,
    as_json: bool,
) -> None:
    """Prune memory files or compress knowledge files, those of one role if it is named.

    Raises:
        UsageError: the options do not go together, there is no such role, or a question cannot be asked.
        HeldError: a workflow is at work, or the settings forbid to write; nothing was changed.
        EchodError: a file could not be changed, the sentence says why.
    """
    only_when_dry(dry_run=wish.dry_run, as_of=as_of, as_json=as_json)
    with look_out(shell.paths, shell.settings, shell.environ, shell.now) as lookout:
        today = day_of(as_of, shell.now())
        plans = list(_each(shell, lookout, kind, roles_meant(shell, lookout, path, role), today))
    if as_json:
        click.echo(to_json(_report(plans)))
        return
    todo = [plan for plan in plans if plan.changes]
    shown = "\n".join(line for plan in plans for line in _shown(plan, every=wish.dry_run))
    if wish.dry_run and todo:
        shown += "\n\nWhat the rules mean: docs/lifecycle.md. About one entry: echod explain ID"
    shell.lay_out(shown, needed=wish.told)
    if wish.dry_run or not todo:
        return
    may_write(shell)
    if not wish.yes:
        agree(f"{kind.value.capitalize()} {count(len(todo), 'file')}? `echod undo` takes it back.")
    with furnish(shell.paths, shell.settings, shell.environ, shell.now) as house, shell.progress() as progress:
        for number, plan in enumerate(todo, start=1):
            progress.show(f"file {number} of {len(todo)}: {plan.role.name}")
            said = _do(shell, house, kind, plan.role, force=wish.force)
            progress.clear()
            shell.say(said)
    wake_daemon(shell)


def only_when_dry(*, dry_run: bool, as_of: str | None, as_json: bool) -> None:
    """What is asked of a plan goes with no change.

    Raises:
        UsageError: it was asked of a command that is to change something.
    """
    if not dry_run and (as_of is not None or as_json):
        raise UsageError("--as-of and --json go with --dry-run; nothing was changed.")


def day_of(said: str | None, now: float) -> date:
    """The local day that `--as-of` names; today if it is not said.

    Raises:
        UsageError: it is no date.
    """
    if said is None:
        return local_day(now)
    try:
        return date.fromisoformat(said)
    except ValueError as error:
        raise UsageError(f"{plain(said)} is not a date; write it like 2026-11-20.") from error


def known_facts(lookout: Lookout, role: Role, care: Care, today: date, memory: Document | None = None) -> Facts:
    """What is known about a role's entries, as `facts_of` tells it; nothing where nothing was ever recorded."""
    return Facts() if lookout.entries is None else facts_of(role, lookout.entries, care.policy, today, memory)


def roles_meant(shell: Shell, lookout: Lookout, path: Path | None, name: str | None) -> list[Role]:
    """The roles of the project at `path` (None: as `stores_meant` says), or the one of that name in each store.

    Raises:
        UsageError: there is no project, no memory, or no such role.
    """
    stores: Sequence[Store] = stores_meant(shell, path) or lookout.roster().stores
    roles = [role for store in stores for role in roles_of(store)]
    if not roles:
        raise UsageError("There is no memory here; name a project, or add one with: echod add PATH")
    found = [role for role in roles if name in (None, role.name)]
    if not found:
        raise UsageError(
            f"There is no role {plain(name or '')}; there are {', '.join(sorted({r.name for r in roles}))}."
        )
    return found


def _each(shell: Shell, lookout: Lookout, kind: JobKind, roles: Sequence[Role], today: date) -> Iterator[Planned]:
    with shell.progress() as progress:
        for number, role in enumerate(roles, start=1):
            progress.show(f"looking at file {number} of {len(roles)}: {role.name}")
            yield planned(lookout, kind, role, today)


def planned(lookout: Lookout, kind: JobKind, role: Role, today: date) -> Planned:
    """What a prune or compress job would do to a role on the local day `today`; it writes nothing.

    Raises:
        EchodError: a file cannot be read.
    """
    care = lookout.care(role.store.project)
    if (unwanted := care.opted_out(kind)) is not None:
        return _left(role, unwanted)
    view = lookout.reader.peek(role)
    if kind is JobKind.COMPRESS:
        return _compress(view, known_facts(lookout, role, care, today), care, today)
    memory = parse(view.memory.text)
    if isinstance(memory, Unreadable):
        return _left(role, memory.reason)
    return _prune(view, memory, known_facts(lookout, role, care, today, memory), care, today)


def _left(role: Role, reason: str) -> Planned:
    note = f"It is left alone: {reason}"
    return Planned(
        role, changes=False, summary="", entries=(), file=PlannedFile(role.store.key, role.name, 0, 0, 0, note)
    )


def _prune(view: RoleView, memory: Document, facts: Facts, care: Care, today: date) -> Planned:
    role = view.role
    plan = prune.plan_for(role, memory, facts, care.policy, today)
    entries = tuple(
        PlannedEntry(
            id=action.id,
            title=action.title,
            layer=action.layer and action.layer.value,
            score=action.score,
            rule=action.rule and action.rule.value,
            action=action.action.value,
            store=role.store.key,
            role=role.name,
        )
        for action in plan.actions
    )
    notes = (plan.over_limit and plan.over_limit.sentence, prune.untold(view, plan))
    note = "; ".join(note for note in notes if note) or None
    limit = care.policy.memory_line_limit
    file = PlannedFile(role.store.key, role.name, plan.lines_before, plan.lines_after, limit, note)
    return Planned(role, plan.memory is not None, plan.summary, entries, file)


def _compress(view: RoleView, facts: Facts, care: Care, today: date) -> Planned:
    role = view.role
    if view.no_knowledge is not None:
        return _left(role, view.no_knowledge.reason)
    plan = compress.plan_for(view, facts, care.policy, today)
    if isinstance(plan, Unreadable):
        return _left(role, plan.reason)
    entries = tuple(
        PlannedEntry(
            id=entry.id,
            title=_title(entry.text),
            layer=entry.layer and entry.layer.value,
            score=None,
            rule=entry.rule,
            action=(Action.COMPRESS if entry.rule == Rule.TOPIC else Action.ARCHIVE).value,
            store=role.store.key,
            role=role.name,
        )
        for entry in plan.archived
    )
    file = PlannedFile(role.store.key, role.name, plan.lines_before, plan.lines_after, plan.limit)
    return Planned(role, plan.knowledge is not None, plan.summary, entries, file)


def _title(text: str) -> str:
    block = parse_block(text)
    return block.entry.title if block.entry else text.strip().partition("\n")[0]


def _report(plans: Sequence[Planned]) -> PlanReport:
    return PlanReport(tuple(entry for plan in plans for entry in plan.entries), tuple(plan.file for plan in plans))


def _shown(plan: Planned, *, every: bool) -> Iterator[str]:
    yield f"{plan.role.name}  {short_path(plan.role.store.key)}"
    if plan.summary:
        yield paragraph(plan.summary, indent="  ")
    if plan.file.note:
        yield paragraph(plan.file.note, indent="  ")
    for entry in plan.entries if every else ():
        if entry.rule is not None:
            what = f"  {entry.action:<8} {entry.rule:<16} {entry.id}  "
            yield paragraph(plain(entry.title) or "(untitled)", indent=what)


def _do(shell: Shell, house: House, kind: JobKind, role: Role, *, force: bool) -> str:
    """Do it, as a job of its own, and say what was done. The plan is made anew from the file as it is then."""
    run = prune.run if kind is JobKind.PRUNE else compress.run
    policy = house.lookout.care(role.store.project).policy

    def work(job: Job, gate: Gate) -> str:
        house.entries.let_go(role.store.key, [role.name])
        with house.engine.open_role(role) as session:
            return done(run(job.id, session, house.entries, policy, gate, shell.now, writes=True))

    return carry_out(shell, house, Asked(kind, role, "a person asked for it"), work, force=force).told(role.name)
