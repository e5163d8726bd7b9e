"""Commands about single entries: `explain`, `record-access`, `pin` and `unpin`."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from datetime import date, timedelta
from pathlib import Path

import click

from echod.app.context import open_read_context
from echod.app.services import open_services
from echod.cli.commands.prune import parse_as_of, read_facts_if_recorded
from echod.cli.context import CommandContext
from echod.cli.output import pluralize, sanitize, short_path, wrap
from echod.cli.targets import find_in_memory
from echod.clock import local_date
from echod.contract.commands import ExplainReport, RuleInfo, ScoreTermsInfo
from echod.contract.status import to_json
from echod.inspection.entry_facts import record_entries
from echod.memory.policy import Explanation, build_explanation
from echod.memory.redact import redact
from echod.state.entries import Reference
from echod.store.layout import Role


def explain_entry(context: CommandContext, entry: str, path: Path | None, *, as_of: str | None, as_json: bool) -> None:
    """Print why an entry stays or goes.

    Raises:
        UsageError: there is no such entry, or the day is no date.
    """
    with open_read_context(context.paths, context.settings, context.environ, context.now) as read_context:
        (found,) = find_in_memory(context, read_context, path, [entry])
        maintenance = read_context.maintenance_policy(found.role.store.project)
        today = parse_as_of(as_of, context.now())
        facts = read_facts_if_recorded(read_context, found.role, maintenance, today, found.document)
        explanation = build_explanation(found.role.name, found.document, found.id, facts, maintenance.policy, today)
    assert explanation is not None  # noqa: S101  it was just found in this very document
    report = _explain_report(found.role, explanation)
    click.echo(to_json(report) if as_json else "\n".join(_explain_lines(report)))


def record_references(context: CommandContext, entries: Sequence[str], path: Path | None, session: str | None) -> None:
    """Count a reference to each of these entries, one for a session.

    Raises:
        UsageError: there is no such entry; nothing was counted.
    """
    with open_services(context.paths, context.settings, context.environ, context.now) as services:
        now = context.now()
        new_references = 0
        for found in find_in_memory(context, services.read_context, path, entries):
            store = found.role.store
            record_entries(services.entries, found.role, found.document, local_date(now))
            workflow = services.entries.workflow_at(str(store.project), now)
            cause = (
                f"session:{_session_key(session)}"
                if session
                else f"workflow:{workflow}"
                if workflow
                else f"access:{now}"
            )
            new_references += services.entries.add_references(
                store.key, [Reference(found.id, cause, workflow)], local_date(now)
            )
    context.print_info(f"{pluralize(new_references, 'new reference')}.")


def _session_key(session: str) -> str:
    """What a session is called where it is counted: as it was said, unless that holds a secret."""
    return session if redact(session).text == session else hashlib.sha256(session.encode()).hexdigest()


def pin_entry(context: CommandContext, entry: str, path: Path | None) -> None:
    """Keep an entry from every rule for a while.

    Raises:
        UsageError: there is no such entry.
    """
    with open_services(context.paths, context.settings, context.environ, context.now) as services:
        (found,) = find_in_memory(context, services.read_context, path, [entry])
        today = local_date(context.now())
        until = today + timedelta(days=services.settings.policy.pin_days)
        record_entries(services.entries, found.role, found.document, today)
        services.entries.pin(found.role.store.key, [found.id], until)
    context.print_info(f"{found.id} in {found.role.name} is pinned until {until}: no rule touches it.")


def unpin_entry(context: CommandContext, entry: str, path: Path | None) -> None:
    """Let the rules hold again for an entry.

    Raises:
        UsageError: there is no such entry.
    """
    with open_services(context.paths, context.settings, context.environ, context.now) as services:
        (found,) = find_in_memory(context, services.read_context, path, [entry])
        record_entries(services.entries, found.role, found.document, local_date(context.now()))
        was_pinned = services.entries.unpin(found.role.store.key, found.id)
    context.print_info(
        f"{found.id} in {found.role.name} {'is not pinned any more' if was_pinned else 'was not pinned'}."
    )


def _explain_report(role: Role, explanation: Explanation) -> ExplainReport:
    terms = explanation.terms
    return ExplainReport(
        id=explanation.id,
        title=explanation.title,
        layer=explanation.layer and explanation.layer.value,
        protected=explanation.is_protected,
        pinned=_iso_date(explanation.pinned_until),
        score=explanation.score,
        terms=ScoreTermsInfo(terms.importance, terms.relevance, terms.recency) if terms else None,
        action=explanation.action.value,
        verified=explanation.verified.isoformat(),
        idle_days=explanation.idle_days,
        references=explanation.references,
        store=role.store.key,
        role=role.name,
        rules=tuple(
            RuleInfo(
                rule.name.value,
                rule.applies,
                _iso_date(rule.applies_on),
                rule.rank,
                rule.queue_length,
                rule.text,
            )
            for rule in explanation.rules
        ),
    )


def _iso_date(day: date | None) -> str | None:
    return None if day is None else day.isoformat()


def _explain_lines(report: ExplainReport) -> Iterator[str]:
    yield wrap(sanitize(report.title) or "(untitled)", indent=f"{report.id}  ")
    yield f"{report.layer or 'unknown layer'}, in {report.role}  {short_path(report.store)}"
    if report.terms is not None:
        yield (
            f"score {report.score:.3f}: importance {report.terms.importance:.2f}, relevance "
            f"{report.terms.relevance:.2f}, "
            f"recency {report.terms.recency:.2f}"
        )
    yield f"verified {report.verified}, {pluralize(report.references, 'reference')}"
    if report.pinned:
        yield f"pinned until {report.pinned}: no rule touches it"
    if report.protected:
        yield "Only a person changes or removes it; no rule does."
        return
    yield f"Prune would {report.action} it."
    for rule in report.rules:
        when = "now" if rule.applies else rule.applies_on or "-"
        yield wrap(rule.text, indent=f"  {rule.name:<16} {when:<10}  ")
