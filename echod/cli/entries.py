"""Commands about single entries: `explain`, `record-access`, `pin` and `unpin`."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from datetime import date, timedelta
from pathlib import Path

import click

from echod.app.context import look_out
from echod.app.services import furnish
from echod.cli.find import in_memory
from echod.cli.shell import Shell
from echod.cli.text import count, paragraph, plain, short_path
from echod.cli.upkeep import day_of, known_facts
from echod.clock import local_day
from echod.contract.commands import ExplainReport, RuleInfo, TermsInfo
from echod.contract.status import to_json
from echod.inspection.entry_facts import note_entries
from echod.memory.policy import Explanation, explain
from echod.memory.redact import redact
from echod.state.entries import Reference
from echod.store.layout import Role


def explain_entry(shell: Shell, entry: str, path: Path | None, *, as_of: str | None, as_json: bool) -> None:
    """Print why an entry stays or goes.

    Raises:
        UsageError: there is no such entry, or the day is no date.
    """
    with look_out(shell.paths, shell.settings, shell.environ, shell.now) as lookout:
        (found,) = in_memory(shell, lookout, path, [entry])
        care = lookout.care(found.role.store.project)
        today = day_of(as_of, shell.now())
        facts = known_facts(lookout, found.role, care, today, found.document)
        explained = explain(found.role.name, found.document, found.id, facts, care.policy, today)
    assert explained is not None  # noqa: S101  it was just found in this very document
    report = _report(found.role, explained)
    click.echo(to_json(report) if as_json else "\n".join(_lines(report)))


def record_access(shell: Shell, entries: Sequence[str], path: Path | None, session: str | None) -> None:
    """Count a reference to each of these entries, one for a session.

    Raises:
        UsageError: there is no such entry; nothing was counted.
    """
    with furnish(shell.paths, shell.settings, shell.environ, shell.now) as house:
        now = shell.now()
        new = 0
        for found in in_memory(shell, house.lookout, path, entries):
            store = found.role.store
            note_entries(house.entries, found.role, found.document, local_day(now))
            workflow = house.entries.workflow_at(str(store.project), now)
            cause = f"session:{_name(session)}" if session else f"workflow:{workflow}" if workflow else f"access:{now}"
            new += house.entries.refer(store.key, [Reference(found.id, cause, workflow)], local_day(now))
    shell.say(f"{count(new, 'new reference')}.")


def _name(session: str) -> str:
    """What a session is called where it is counted: as it was said, unless that holds a secret."""
    return session if redact(session).text == session else hashlib.sha256(session.encode()).hexdigest()


def pin(shell: Shell, entry: str, path: Path | None) -> None:
    """Keep an entry from every rule for a while.

    Raises:
        UsageError: there is no such entry.
    """
    with furnish(shell.paths, shell.settings, shell.environ, shell.now) as house:
        (found,) = in_memory(shell, house.lookout, path, [entry])
        today = local_day(shell.now())
        until = today + timedelta(days=house.settings.policy.pin_days)
        note_entries(house.entries, found.role, found.document, today)
        house.entries.pin(found.role.store.key, [found.id], until)
    shell.say(f"{found.id} in {found.role.name} is pinned until {until}: no rule touches it.")


def unpin(shell: Shell, entry: str, path: Path | None) -> None:
    """Let the rules hold again for an entry.

    Raises:
        UsageError: there is no such entry.
    """
    with furnish(shell.paths, shell.settings, shell.environ, shell.now) as house:
        (found,) = in_memory(shell, house.lookout, path, [entry])
        note_entries(house.entries, found.role, found.document, local_day(shell.now()))
        was = house.entries.unpin(found.role.store.key, found.id)
    shell.say(f"{found.id} in {found.role.name} {'is not pinned any more' if was else 'was not pinned'}.")


def _report(role: Role, said: Explanation) -> ExplainReport:
    terms = said.terms
    return ExplainReport(
        id=said.id,
        title=said.title,
        layer=said.layer and said.layer.value,
        protected=said.protected,
        pinned=_date(said.pinned_until),
        score=said.score,
        terms=TermsInfo(terms.importance, terms.relevance, terms.recency) if terms else None,
        action=said.action.value,
        verified=said.verified.isoformat(),
        idle_days=said.idle_days,
        references=said.references,
        store=role.store.key,
        role=role.name,
        rules=tuple(
            RuleInfo(
                rule.name.value,
                rule.applies,
                _date(rule.applies_on),
                rule.rank,
                rule.of,
                rule.text,
            )
            for rule in said.rules
        ),
    )


def _date(day: date | None) -> str | None:
    return None if day is None else day.isoformat()


def _lines(said: ExplainReport) -> Iterator[str]:
    yield paragraph(plain(said.title) or "(untitled)", indent=f"{said.id}  ")
    yield f"{said.layer or 'unknown layer'}, in {said.role}  {short_path(said.store)}"
    if said.terms is not None:
        yield (
            f"score {said.score:.3f}: importance {said.terms.importance:.2f}, relevance {said.terms.relevance:.2f}, "
            f"recency {said.terms.recency:.2f}"
        )
    yield f"verified {said.verified}, {count(said.references, 'reference')}"
    if said.pinned:
        yield f"pinned until {said.pinned}: no rule touches it"
    if said.protected:
        yield "Only a person changes or removes it; no rule does."
        return
    yield f"Prune would {said.action} it."
    for rule in said.rules:
        when = "now" if rule.applies else rule.applies_on or "-"
        yield paragraph(rule.text, indent=f"  {rule.name:<16} {when:<10}  ")
