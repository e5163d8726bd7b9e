"""Commands about the records of an entry: `explain`, `pin`, `unpin` and `record-access`. None changes a memory file."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import click

from echod.cli import options
from echod.cli.context import CommandContext
from echod.cli.output import iso_date, pluralize, short_path, title_text, wrap
from echod.cli.root import example, pass_command_context
from echod.cli.targets import find_in_memory, parse_as_of, read_facts
from echod.clock import local_date
from echod.contract.commands import ExplainReport, RuleInfo, ScoreTermsInfo
from echod.contract.status import to_json
from echod.inspection.entry_facts import record_entries
from echod.memory.policy import Explanation, build_explanation
from echod.memory.redact import redact
from echod.state.entries import Reference
from echod.store.layout import Role


@click.command(epilog=example("echod explain 4f1c ~/src/my-project --as-of 2027-03-01"))
@options.entry
@options.project_path_or_all
@options.as_of
@options.json
@pass_command_context
def explain(context: CommandContext, *, entry: str, path: Path | None, as_of: str | None, json: bool) -> None:
    """Explain an entry's score and the rules that apply to it."""
    with context.open_read_context() as read_context:
        (match,) = find_in_memory(context, read_context, path, [entry])
        policy = read_context.maintenance_policy(match.role.store.project).policy
        today = parse_as_of(as_of, context.now())
        facts = read_facts(read_context, match.role, today, match.document)
        explanation = build_explanation(match.role.name, match.document, match.id, facts, policy, today)
    assert explanation is not None  # noqa: S101  the entry was just found in this document
    report = _explain_report(match.role, explanation)
    click.echo(to_json(report) if json else "\n".join(_explain_lines(report)))


def _explain_report(role: Role, explanation: Explanation) -> ExplainReport:
    terms = explanation.terms
    return ExplainReport(
        id=explanation.id,
        title=explanation.title,
        layer=explanation.layer and explanation.layer.value,
        protected=explanation.is_protected,
        pinned=iso_date(explanation.pinned_until),
        score=explanation.score,
        terms=ScoreTermsInfo(terms.importance, terms.relevance, terms.recency) if terms else None,
        action=explanation.action.value,
        verified=explanation.verified.isoformat(),
        idle_days=explanation.idle_days,
        references=explanation.references,
        store=role.store.key,
        role=role.name,
        rules=tuple(
            RuleInfo(rule.name.value, rule.applies, iso_date(rule.applies_on), rule.rank, rule.queue_length, rule.text)
            for rule in explanation.rules
        ),
    )


def _explain_lines(report: ExplainReport) -> Iterator[str]:
    yield wrap(title_text(report.title), indent=f"{report.id}  ")
    yield f"{report.layer or 'unknown layer'}, in {report.role}  {short_path(report.store)}"
    if report.terms is not None:
        yield (
            f"score {report.score:.3f}: importance {report.terms.importance:.2f}, relevance "
            f"{report.terms.relevance:.2f}, recency {report.terms.recency:.2f}"
        )
    yield f"verified {report.verified}, {pluralize(report.references, 'reference')}"
    if report.pinned:
        yield f"pinned until {report.pinned}: no rule removes it"
    if report.protected:
        yield "It is protected: only you change or remove it."
        return
    yield f"Prune would {report.action} it."
    for rule in report.rules:
        when = "now" if rule.applies else rule.applies_on or "-"
        yield wrap(rule.text, indent=f"  {rule.name:<16} {when:<10}  ")


@click.command(epilog=example("echod pin 4f1c ~/src/my-project"))
@options.entry
@options.project_path_or_all
@pass_command_context
def pin(context: CommandContext, *, entry: str, path: Path | None) -> None:
    """Keep an entry from being removed for some time."""
    with context.open_services() as services:
        (match,) = find_in_memory(context, services.read_context, path, [entry])
        today = local_date(context.now())
        until = today + timedelta(days=services.settings.policy.pin_days)
        record_entries(services.entries, match.role, match.document, today)
        services.entries.pin(match.role.store.key, [match.id], until)
    context.print_info(f"{match.id} in {match.role.name} is pinned until {until}: no rule removes it.")


@click.command(epilog=example("echod unpin 4f1c ~/src/my-project"))
@options.entry
@options.project_path_or_all
@pass_command_context
def unpin(context: CommandContext, *, entry: str, path: Path | None) -> None:
    """Remove the pin of an entry."""
    with context.open_services() as services:
        (match,) = find_in_memory(context, services.read_context, path, [entry])
        record_entries(services.entries, match.role, match.document, local_date(context.now()))
        was_pinned = services.entries.unpin(match.role.store.key, match.id)
    context.print_info(
        f"{match.id} in {match.role.name} {'is not pinned any more' if was_pinned else 'was not pinned'}."
    )


@click.command("record-access", epilog=example("echod record-access 4f1c 93ab --session $SESSION"))
@click.argument("entries", metavar="ENTRY...", nargs=-1, required=True, help="Entry ids, or unique prefixes of them.")
@click.option("--session", metavar="KEY", help="Identifies the session. Each session counts once.")
@options.project_option
@pass_command_context
def record_access(
    context: CommandContext, *, entries: tuple[str, ...], session: str | None, project: Path | None
) -> None:
    """Record that entries were referenced."""
    with context.open_services() as services:
        now = context.now()
        new_references = 0
        for match in find_in_memory(context, services.read_context, project, entries):
            store = match.role.store
            record_entries(services.entries, match.role, match.document, local_date(now))
            workflow = services.entries.workflow_at(str(store.project), now)
            reference = Reference(match.id, _reference_cause(session, workflow, now), workflow)
            new_references += services.entries.add_references(store.key, [reference], local_date(now))
    context.print_info(f"{pluralize(new_references, 'new reference')}.")


def _reference_cause(session: str | None, workflow: str | None, now: float) -> str:
    """Return a key for the cause of a reference. Equal causes count once."""
    if session:
        return f"session:{_session_key(session)}"
    return f"workflow:{workflow}" if workflow else f"access:{now}"


def _session_key(session: str) -> str:
    """Return the session as given, or its hash if it contains a secret."""
    return session if redact(session).text == session else hashlib.sha256(session.encode()).hexdigest()
