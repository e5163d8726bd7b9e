"""`echod consolidate`: show what agents' findings would do to the memory, and fold them in as a job of its own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import date
from pathlib import Path
from typing import NamedTuple

import click

from echod.app.context import Lookout, look_out
from echod.app.services import House, furnish
from echod.cli.asked import Asked, carry_out, done
from echod.cli.by_hand import may_write
from echod.cli.shell import Shell
from echod.cli.text import paragraph, plain, short_path
from echod.cli.upkeep import day_of, only_when_dry, roles_meant
from echod.cli.wake import wake_daemon
from echod.contract.commands import ConsolidationReport, PlannedFinding, PlannedFindings
from echod.contract.status import to_json
from echod.jobs.consolidate import Means, fold_in, foresee
from echod.memory.consolidation.plan import Consolidation
from echod.memory.consolidation.supersede import Doubt
from echod.memory.document import parse
from echod.memory.identity import entry_ids
from echod.memory.model import Document, Unreadable
from echod.state.job import Job, JobKind
from echod.store.changes import Gate
from echod.store.layout import MEMORY, Role
from echod.store.session import RoleView

_DOUBTS = {
    Doubt.NONE: "no entry has that title",
    Doubt.SEVERAL: "several entries have that title",
    Doubt.NEWER: "that entry is newer",
    Doubt.PROTECTED: "only you take that entry out",
    Doubt.PINNED: "that entry is pinned",
    Doubt.STUCK: "a code block or comment above that entry is never closed",
}


class _Planned(NamedTuple):
    """What would become of a role's findings; `digests` names the files that are ready."""

    role: Role
    findings: tuple[PlannedFinding, ...]
    files: tuple[PlannedFindings, ...]
    digests: frozenset[str]


def consolidate(
    shell: Shell, path: Path | None, role: str | None, *, dry_run: bool, as_of: str | None, as_json: bool, force: bool
) -> None:
    """Fold the findings of a project's roles into their memory files, those of one role if it is named.

    Raises:
        UsageError: the options do not go together, or there is no such role.
        HeldError: a workflow is at work, or the settings forbid to write; nothing was changed.
        EchodError: a file could not be changed, the sentence says why.
    """
    only_when_dry(dry_run=dry_run, as_of=as_of, as_json=as_json)
    with look_out(shell.paths, shell.settings, shell.environ, shell.now) as lookout:
        today = day_of(as_of, shell.now())
        plans = [_planned(lookout, one, today) for one in roles_meant(shell, lookout, path, role)]
    if as_json:
        click.echo(to_json(_report(plans)))
        return
    shell.lay_out("\n".join(line for plan in plans for line in _shown(plan)), needed=dry_run)
    todo = [plan for plan in plans if plan.digests]
    if dry_run or not todo:
        return
    may_write(shell)
    with furnish(shell.paths, shell.settings, shell.environ, shell.now) as house:
        for plan in todo:
            _do(shell, house, plan, force=force)
    wake_daemon(shell)


def _planned(lookout: Lookout, role: Role, today: date) -> _Planned:
    if not lookout.rules(role.store.project).consolidate:
        return _left(role, "the project's own settings say consolidate: false")
    view = lookout.reader.peek(role)
    pinned = frozenset[str]() if lookout.entries is None else lookout.entries.pinned(role.store.key, today)
    digests = frozenset(found.digest for found in view.findings if found.digest)
    findings: list[PlannedFinding] = []
    files = [PlannedFindings("wait", busy.path.name, role.store.key, role.name, busy.reason) for busy in view.busy]
    for plan in foresee(view, digests, pinned, today):
        if isinstance(plan, Unreadable):
            return _left(role, plan.reason)
        findings += _findings(role, plan, view)
        files += _files(role, plan)
    return _Planned(role, tuple(findings), tuple(files), digests)


def _left(role: Role, why: str) -> _Planned:
    return _Planned(role, (), (PlannedFindings("left", MEMORY, role.store.key, role.name, why),), frozenset())


def _findings(role: Role, plan: Consolidation, view: RoleView) -> Iterator[PlannedFinding]:
    titles = {one.id: one.title for one in plan.added} | _titles(view)
    for one in plan.added:
        yield PlannedFinding("add", one.id, one.title, role.store.key, role.name)
    for again in plan.duplicates:
        yield PlannedFinding("duplicate", again.id, again.title, role.store.key, role.name)
    for gone in plan.superseded:
        note = f"gives way to {gone.by}"
        yield PlannedFinding("supersede", gone.archived.id, gone.title, role.store.key, role.name, note)
    for claim, layer in plan.claims:
        note = f"it claims to be {layer.value}"
        yield PlannedFinding("review", claim.id, claim.title, role.store.key, role.name, note)
    for doubtful in plan.undecided:
        note = f"it says that it replaces {doubtful.target!r}, but {_DOUBTS[doubtful.doubt]}"
        title = titles.get(doubtful.id, "")
        yield PlannedFinding("review", doubtful.id, title, role.store.key, role.name, note)


def _titles(view: RoleView) -> dict[str, str]:
    document = parse(view.memory.text)
    if not isinstance(document, Document):
        return {}
    pairs = zip(entry_ids(view.role.name, document), document.blocks, strict=True)
    return {identity: block.entry.title for identity, block in pairs if identity is not None and block.entry}


def _files(role: Role, plan: Consolidation) -> Iterator[PlannedFindings]:
    for file in plan.consumed:
        yield PlannedFindings("consume", file.name, role.store.key, role.name)
    for aside in plan.quarantined:
        yield PlannedFindings("set-aside", aside.name, role.store.key, role.name, aside.reason)


def _report(plans: Sequence[_Planned]) -> ConsolidationReport:
    return ConsolidationReport(
        findings=tuple(finding for plan in plans for finding in plan.findings),
        files=tuple(file for plan in plans for file in plan.files),
    )


def _shown(plan: _Planned) -> Iterator[str]:
    yield f"{plan.role.name}  {short_path(plan.role.store.key)}"
    if not plan.files:
        yield "  no findings"
    for finding in plan.findings:
        title = plain(finding.title) or "(untitled)"
        text = title if finding.note is None else f"{title} ({plain(finding.note)})"
        yield paragraph(text, indent=f"  {finding.action:<9} {finding.id}  ")
    for file in plan.files:
        if file.note is not None:
            yield paragraph(f"{file.name}: {plain(file.note)}", indent=f"  {file.action:<9} ")


def _do(shell: Shell, house: House, plan: _Planned, *, force: bool) -> None:
    """Do it, as a job of its own. The plan is made anew from the files as they are then."""

    def work(job: Job, gate: Gate) -> str:
        means = Means(job.id, house.engine, house.entries, gate, shell.now)
        return done(fold_in(plan.role, plan.digests, means))

    asked = Asked(JobKind.CONSOLIDATE, plan.role, "a person asked for it")
    shell.say(carry_out(shell, house, asked, work, force=force).told(plan.role.name))
