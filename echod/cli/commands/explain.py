"""`echod explain` and `echod verify`: why an entry stays or leaves, and whether what it cites is as it was.

Also the evidence of one entry, for the commands that show the entry.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import click

from echod.app.context import ReadContext
from echod.cli import commands
from echod.cli.context import CommandContext, ProgressLine
from echod.cli.execute import Change, ManualJob, Step, WriteOptions, make_change
from echod.cli.output import iso_date, role_label, sanitize, short_path, title_text, wrap
from echod.cli.targets import (
    MemoryMatch,
    entry_heading,
    find_in_memory,
    find_to_change,
    list_roles_of,
    parse_as_of,
    read_facts,
    select_stores,
)
from echod.clock import local_date
from echod.contract.codec import to_json
from echod.contract.commands import ExplainReport, RuleInfo, ScoreTermsInfo
from echod.contract.entries import ChangedEvidence, EvidenceInfo, VerifiedEntry, VerifyReport
from echod.errors import UsageError
from echod.evidence.entries import EntryEvidence, check_document, confirm_evidence, record_evidence
from echod.evidence.verifier import EvidenceVerifier
from echod.inspection.inspect import record_entries, with_confirmations
from echod.jobs import manual
from echod.lazy import lazy_pattern
from echod.memory.document import parse
from echod.memory.model import Document
from echod.memory.policy import Explanation, build_explanation
from echod.memory.policy_model import PolicySettings
from echod.memory.text import pluralize
from echod.state.fingerprints import FingerprintStore, read_bases
from echod.state.jobs import JobKind
from echod.store.layout import Role, global_root

if TYPE_CHECKING:
    from echod.app.services import Services  # loads the jobs and the commit engine


_CONVERSATION = lazy_pattern(r"conversation-(\d{1,10})(?:\.md)?")


def explain(
    context: CommandContext, *, entry: str, path: Path | None, as_of: str | None, verbose: bool, json: bool
) -> None:
    """Run `echod explain`."""
    with context.open_read_context() as read_context:
        if (name := _CONVERSATION.fullmatch(entry)) is not None:
            commands.session_views.explain_archive(context, read_context, path, int(name[1]), as_json=json)
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


_ORDER = ("gone", "changed", "moved", "unknown", "valid")


def verify(
    context: CommandContext, *, target: str | None, confirm: str | None, dry_run: bool, force: bool, json: bool
) -> None:
    """Run `echod verify`."""
    if confirm is not None:
        if json:
            raise UsageError("--json lists evidence. Leave it out with --confirm.")
        _confirm(context, confirm, target, WriteOptions(dry_run, force=force))
        return
    if dry_run or force:
        raise UsageError("--dry-run and --force belong to --confirm ENTRY. Without it nothing is changed.")
    with context.open_services() as services, context.progress_line(json=json) as progress:
        report = VerifyReport(tuple(_verify_target(context, services, target, progress)))
    click.echo(to_json(report) if json else "\n".join(_screen(report.entries)))


def _is_path(context: CommandContext, target: str) -> bool:
    if target in (".", "..", "~") or os.sep in target:
        return True
    return context.cwd is not None and any(context.list_stores(context.cwd / target))


def _verify_target(
    context: CommandContext, services: Services, target: str | None, progress: ProgressLine
) -> Iterator[VerifiedEntry]:
    read_context = services.read_context
    if target is not None and not _is_path(context, target):
        (match,) = find_in_memory(context, read_context, None, [target])
        (found,) = [
            entry for entry in _record(context, services, match.role, match.document) if entry.id == match.id
        ] or [_check_one(context, services, match)]
        yield _info(match.role, found)
        return
    stores = select_stores(context, None if target is None else Path(target))
    roles = list_roles_of(stores if stores is not None else read_context.discover_stores().stores)
    for number, role in enumerate(roles, start=1):
        progress.show(f"file {number} of {len(roles)}: {role_label(role.name)}")
        document = parse(read_context.reader.read_role(role).memory.text)
        if isinstance(document, Document):
            for found in _record(context, services, role, document):
                yield _info(role, found)


def _record(context: CommandContext, services: Services, role: Role, document: Document) -> tuple[EntryEvidence, ...]:
    """Check the entries of a role, after recording them: what is seen for the first time gets its base now."""
    record_entries(services.entries, role, document, local_date(context.now()))
    with closing(EvidenceVerifier(role.store.project, context.now())) as verifier:
        return record_evidence(services.entries.fingerprints, verifier, role.store.key, role.name, document)


def _check_one(context: CommandContext, services: Services, match: MemoryMatch) -> EntryEvidence:
    with closing(EvidenceVerifier(match.role.store.project, context.now())) as verifier:
        return _check_entry(services.entries.fingerprints, verifier, match)


def _info(role: Role, found: EntryEvidence) -> VerifiedEntry:
    return VerifiedEntry(found.id, found.title, evidence_infos(found), role.store.key, role.name)


def _screen(entries: Sequence[VerifiedEntry]) -> Iterator[str]:
    if not entries:
        yield "No entry here cites a file."
        return
    counts = {state: sum(info.state == state for entry in entries for info in entry.evidence) for state in _ORDER}
    for entry in sorted(entries, key=_worst):
        if _worst(entry) == len(_ORDER) - 1 and len(entries) > 1:
            continue
        yield wrap(title_text(entry.title), indent=f"{entry.id}  ")
        yield f"  in {role_label(entry.role)}  {short_path(entry.store)}"
        yield from evidence_lines(entry.evidence)
    summary = ", ".join(f"{number} {state}" for state, number in counts.items() if number) or "none"
    yield wrap(f"{pluralize(len(entries), 'entry', 'entries')} with evidence. Citations: {summary}.")


def _worst(entry: VerifiedEntry) -> int:
    return min((_ORDER.index(info.state) for info in entry.evidence), default=len(_ORDER) - 1)


def _confirm(context: CommandContext, entry: str, target: str | None, write: WriteOptions) -> None:
    """Set the day of verification of an entry, and take its present evidence as the base."""
    path = None if target is None else Path(target)
    with context.open_services() as services:
        (match,) = find_to_change(context, services.read_context, path, [entry])
        found = _check_one(context, services, match)
    states = list(evidence_lines(_info(match.role, found).evidence)) or ["  It cites no file."]
    change = Change(
        preview="\n".join([entry_heading(match), *states, "  its day of verification becomes today"]),
        steps=[
            Step(
                match.id,
                lambda runner: runner.run(
                    ManualJob(JobKind.VERIFY, match.role), lambda job: manual.verify(job, match.id)
                ).describe(role_label(match.role.name)),
            )
        ],
    )
    make_change(context, change, write)
    if write.dry_run:
        return
    verifier = EvidenceVerifier(match.role.store.project, context.now())
    with context.open_services() as services, closing(verifier):
        confirm_evidence(services.entries.fingerprints, verifier, match.role.store.key, match.role.name, found)


def evidence_infos(found: EntryEvidence) -> tuple[EvidenceInfo, ...]:
    """Return the evidence of an entry as JSON has it."""
    return tuple(EvidenceInfo(checked.cite, checked.state.value, checked.at) for checked in found.citations)


def evidence_of(read_context: ReadContext, match: MemoryMatch, now: float) -> tuple[EvidenceInfo, ...]:
    """Return the states of an entry's citations. Nothing is recorded; an entry of no project has none."""
    if global_root(match.role.store) is not None:
        return ()
    with closing(EvidenceVerifier(match.role.store.project, now)) as verifier:
        return evidence_infos(_check_entry(read_context.fingerprints, verifier, match))


def changed_evidence_of(read_context: ReadContext, match: MemoryMatch, now: float) -> tuple[ChangedEvidence, ...]:
    """Return the states of an entry's citations, each with the commit that changed the cited lines."""
    if global_root(match.role.store) is not None:
        return ()
    with closing(EvidenceVerifier(match.role.store.project, now)) as verifier:
        found = _check_entry(read_context.fingerprints, verifier, match)
        listed = []
        for checked in found.citations:
            base = found.bases.get(checked.cite)
            change = base and base.fingerprint and verifier.find_change(base.fingerprint, checked.state)
            listed.append(
                ChangedEvidence(
                    checked.cite, checked.state.value, checked.at, *((change.commit, change.at) if change else ())
                )
            )
        return tuple(listed)


def _check_entry(
    fingerprints: FingerprintStore | None, verifier: EvidenceVerifier, match: MemoryMatch
) -> EntryEvidence:
    role = match.role
    bases = read_bases(fingerprints, role.store.key, role.name)
    return check_document(verifier, role.name, match.document, bases, only=match.id)[0]


def evidence_lines(evidence: Sequence[EvidenceInfo | ChangedEvidence]) -> Iterator[str]:
    """Format citations with their states, and where those that moved or changed are now."""
    for info in evidence:
        now = f", now {sanitize(info.at)}" if info.at and info.state in ("moved", "changed") else ""
        commit = f", by commit {info.commit[:12]}" if isinstance(info, ChangedEvidence) and info.commit else ""
        yield wrap(f"{sanitize(info.cite)}{now}{commit}", indent=f"  {info.state:<8} ")
