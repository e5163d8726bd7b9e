"""`echod explain`: why an entry stays or leaves. One sentence first, then the score, then the rules."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import click

from echod.cli import options
from echod.cli.context import CommandContext
from echod.cli.evidence import changed_evidence_of, evidence_lines
from echod.cli.output import iso_date, role_label, short_path, title_text, wrap
from echod.cli.root import example, pass_command_context
from echod.cli.targets import find_in_memory, parse_as_of, read_facts
from echod.contract.codec import to_json
from echod.contract.commands import ExplainReport, RuleInfo, ScoreTermsInfo
from echod.contract.entries import ChangedEvidence
from echod.inspection.entry_facts import with_confirmations
from echod.memory.policy import Explanation, PolicySettings, build_explanation
from echod.memory.text import pluralize
from echod.store.layout import Role

_CONVERSATION = re.compile(r"conversation-(\d{1,10})(?:\.md)?")


@click.command(epilog=example("echod explain 4f1c ~/src/my-project --as-of 2027-03-01"))
@options.entry
@options.project_path_or_all
@options.as_of
@click.option("-v", "--verbose", is_flag=True, help="List every rule, also those that do not apply.")
@options.json
@pass_command_context
def explain(
    context: CommandContext, *, entry: str, path: Path | None, as_of: str | None, verbose: bool, json: bool
) -> None:
    """Explain why an entry stays or leaves.

    Begins with one sentence. Then come the score with its weights, and the rules.
    For an archived conversation (conversation-012), list its sources and what was left out.
    """
    with context.open_read_context() as read_context:
        if (name := _CONVERSATION.fullmatch(entry)) is not None:
            from echod.cli.commands.session_views import explain_archive

            explain_archive(context, read_context, path, int(name[1]), as_json=json)
            return
        (match,) = find_in_memory(context, read_context, path, [entry])
        policy = read_context.maintenance_policy(match.role.store.project).policy
        today = parse_as_of(as_of, context.now())
        facts = read_facts(read_context, match.role, today, match.document)
        facts = with_confirmations(match.role, facts, match.document, 0)
        explanation = build_explanation(match.role.name, match.document, match.id, facts, policy, today)
        evidence = changed_evidence_of(read_context, match, context.now())
    assert explanation is not None  # noqa: S101  the entry was just found in this document
    report = _explain_report(match.role, explanation, policy, evidence)
    if json:
        click.echo(to_json(report))
        return
    hidden = () if verbose else tuple(rule for rule in report.rules if not (rule.applies or rule.applies_on))
    click.echo("\n".join(_explain_lines(report, hidden)))


def _explain_report(
    role: Role, explanation: Explanation, policy: PolicySettings, evidence: tuple[ChangedEvidence, ...]
) -> ExplainReport:
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
        confirmed_by=explanation.confirmed_by,
        confidence=round(explanation.confidence, 3),
        evidence=evidence,
        verdict=explanation.verdict,
        weights=ScoreTermsInfo(policy.importance_weight, policy.relevance_weight, policy.recency_weight),
    )


def _explain_lines(report: ExplainReport, hidden: tuple[RuleInfo, ...]) -> Iterator[str]:
    yield wrap(report.verdict)
    yield ""
    yield wrap(title_text(report.title), indent=f"{report.id}  ")
    yield f"{report.layer or 'unknown layer'}, in {role_label(report.role)}  {short_path(report.store)}"
    yield f"verified {report.verified}, {pluralize(report.references, 'reference')}"
    if report.confirmed_by:
        roles = ", ".join(report.confirmed_by)
        yield wrap(
            f"the same lesson was learned in {roles}, which protects it and raises its confidence to "
            f"{report.confidence:.2f}"
        )
    if report.pinned:
        yield f"pinned until {report.pinned}: no rule removes it"
    if report.evidence:
        yield "Evidence:"
        yield from evidence_lines(report.evidence)
    if report.terms is not None and report.weights is not None:
        yield ""
        yield f"score {report.score:.3f} = sum of"
        for name, weight, term in zip(report.terms._fields, report.weights, report.terms, strict=True):
            yield f"  {name:<10}  {term:.2f} x weight {weight:.2f} = {term * weight:.3f}"
    shown = [rule for rule in report.rules if rule not in hidden]
    if report.rules:
        yield ""
    for rule in shown:
        when = "now" if rule.applies else rule.applies_on or "-"
        yield wrap(rule.text, indent=f"  {rule.name:<16} {when:<10}  ")
    if hidden:
        subject = "more rules do" if shown else "rules do"
        yield f"{len(hidden)} {subject} not apply now (-v lists them)."
