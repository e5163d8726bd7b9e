"""The ingest job: turn the reports that workflows left behind into memory.

`echod.memory.reports` decides what is learned. This module reads the reports and the history of what was read, and
commits one change set for each role. The history is in the archive of each role, in the same commit as the entries.
Archives only grow, so neither a crash nor an undo makes a report new again.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import date
from pathlib import Path, PurePosixPath
from typing import Final, NamedTuple

from echod.clock import local_date
from echod.files import read_regular
from echod.inspection.inspect import record_entries
from echod.jobs.base import (
    JobBlocked,
    JobContext,
    JobDone,
    JobOutcome,
    JobResources,
    Proposal,
    append_pruned,
    change_set,
    plan_and_commit,
    report_only,
    write_memory,
)
from echod.log import get_logger
from echod.memory import MAX_FILE_BYTES
from echod.memory.archive import to_archived_entry
from echod.memory.compose import ComposeError
from echod.memory.document import new_memory_file, parse
from echod.memory.identity import entry_ids
from echod.memory.model import Document, Unreadable
from echod.memory.policy_model import Rule
from echod.memory.reports.history import ReportHistory, learned_line
from echod.memory.reports.intake import (
    SourceReport,
    TakenReport,
    ValidationAnswerError,
    parse_verdict,
    take_reports,
    validation_prompt,
)
from echod.memory.reports.learnings import Candidate, RoleLearnings, find_learnings, with_learnings
from echod.memory.reports.model import REPORT_ROLES, ReportKind
from echod.memory.text import pluralize
from echod.runtime.system import UserCommandError
from echod.state.jobs import JobKind
from echod.store import layout
from echod.store.changes import Append
from echod.store.engine import RoleView
from echod.store.errors import as_store_error
from echod.store.layout import Role, Store
from echod.workflows.collect import ReadReport, ReportFile, UnreadableReport, find_reports, read_report_file

log = get_logger(__name__)

_HISTORY_STEM: Final = "reports-"
_HISTORY_FILES: Final = 6
"""The months whose findings are compared. A flaw that did not come back for half a year is not recurring."""

_MAX_FAILURES: Final = 2
"""After so many failures of the validation command, a job does not ask it again."""

Validator = Callable[[str], str]
"""Returns the answer of the user's command to a prompt. Raises `UserCommandError`."""


class IngestSources(NamedTuple):
    """The reports to read. `role` receives all learnings; None decides by the kind of each report."""

    reports: tuple[ReadReport, ...]
    unreadable: tuple[UnreadableReport, ...] = ()
    role: str | None = None


class IngestPlan(NamedTuple):
    """The effect of an ingest, by role: the new lines of the history, and what is learned."""

    reports: tuple[TakenReport, ...]
    unreadable: tuple[UnreadableReport, ...]
    lines: Mapping[str, str]
    learnings: Mapping[str, RoleLearnings]

    @property
    def roles(self) -> tuple[str, ...]:
        """The roles with something to do.

        Those of resolutions come last: with their lines the report counts as read, and it has lines of other roles too.
        """
        last = {report.role for report in self.reports if report.resolutions}
        roles = {*self.lines, *(role for role, each in self.learnings.items() if any(each))}
        return tuple(sorted(roles, key=lambda role: (role in last, role)))

    @property
    def is_empty(self) -> bool:
        """True if nothing is new."""
        return not self.roles

    @property
    def injected(self) -> int:
        """How many parts of reports were injected text."""
        return sum(rejection.is_injected for report in self.reports for rejection in report.rejections)


def read_sources(files: Iterable[ReportFile], role: str | None = None) -> IngestSources:
    """Read report files."""
    results = [read_report_file(file) for file in files]
    return IngestSources(
        tuple(result for result in results if isinstance(result, ReadReport)),
        tuple(result for result in results if isinstance(result, UnreadableReport)),
        role,
    )


def plan_ingest(store: Store, sources: IngestSources, today: date) -> IngestPlan:
    """Plan what a store learns from reports.

    Raises:
        StoreError: the history cannot be read.
    """
    history = read_history(store)
    reports = [_source_report(store.project, each, sources.role) for each in sources.reports]
    intake = take_reports(history, reports, today)
    learnings = find_learnings(intake.history, today)
    if not intake.lines:
        # What was made of earlier reports stays as the user left it, for example after an undo. Only entries that a
        # crash prevented are still missing.
        learnings = {role: RoleLearnings(each.candidates) for role, each in learnings.items() if each.candidates}
    return IngestPlan(intake.reports, sources.unreadable, intake.lines, learnings)


def read_history(store: Store) -> ReportHistory:
    """Return everything that was read in the last months, by all roles of a store.

    Raises:
        StoreError: a file of it cannot be read.
    """
    history = ReportHistory()
    for role in layout.find_roles(store):
        for data in _history_of(role):
            history.add_lines(data)
    return history


def _history_of(role: Role) -> Iterator[bytes]:
    """Yield the contents of the history files of a role."""
    directory = role.path / layout.ARCHIVE
    with as_store_error("read the archive of", role.path):
        if directory.is_symlink() or not directory.is_dir():
            return
        names = sorted(path.name for path in directory.glob(f"{_HISTORY_STEM}*.jsonl"))
        for name in names[-_HISTORY_FILES:]:
            yield read_regular(directory / name, MAX_FILE_BYTES, follow_symlinks=False)


def run_for_project(resources: JobResources, store: Store, validator: Validator | None) -> JobOutcome:
    """Ingest the reports that lie in the project of a store. The job of the service."""
    return run(resources, store, read_sources(find_reports(store.project)), validator)


def run(resources: JobResources, store: Store, sources: IngestSources, validator: Validator | None) -> JobOutcome:
    """Ingest reports into the roles of a store. Roles that are missing are created."""
    today = local_date(resources.clock())
    if resources.allow_writes:
        # The history of a commit that a kill interrupted may be there without its entries.
        resources.engine.recover([store])
    plan = plan_ingest(store, sources, today)
    if not resources.allow_writes:
        return report_only(describe_plan(plan))
    for report in plan.reports:
        for rejection in report.rejections:
            if rejection.is_injected:
                log.warning("injected_report_text_ignored", report=report.path, line=rejection.line)
    is_specific = _ask(validator, plan.learnings)
    summaries: list[str] = []
    skipped: list[str] = []
    changed = False
    for name in plan.roles:
        role = Role(store, name)
        if not role.memory.exists() and not _adds_anything(plan, name):
            continue
        resources.engine.create_role(role)
        with resources.open_role(role) as context:
            outcome = _run_role(context, plan, is_specific)
        if not isinstance(outcome, JobDone):
            return outcome
        changed = changed or outcome.changed
        skipped += outcome.skipped
        if outcome.changed and outcome.summary:
            summaries.append(f"{name}: {outcome.summary}")
    if plan.injected:
        summaries.append(f"{pluralize(plan.injected, 'injected text')} ignored")
    unreadable = tuple(f"{each.path}: {each.reason}" for each in plan.unreadable)
    text = "; ".join(summaries) or "nothing new in the reports"
    return JobDone(text, changed=changed, skipped=(*skipped, *unreadable))


def describe_plan(plan: IngestPlan) -> str:
    """Return a plan in one line."""
    findings = sum(report.findings for report in plan.reports)
    entries = sum(len(each.candidates) for each in plan.learnings.values())
    return f"{pluralize(findings, 'new finding')}, {pluralize(entries, 'new entry', 'new entries')}"


def _adds_anything(plan: IngestPlan, name: str) -> bool:
    learnings = plan.learnings.get(name, RoleLearnings())
    has_summary = any(summary.text for summary in learnings.summaries)
    return bool(plan.lines.get(name) or learnings.candidates or has_summary)


def _source_report(project: Path, read: ReadReport, role: str | None) -> SourceReport:
    path, report = read.file.path, read.report
    relative = path.relative_to(project) if path.is_relative_to(project) else path
    day = report.day or local_date(read.file.modified)
    reviewer = REPORT_ROLES[ReportKind.REVIEW]
    return SourceReport(relative.as_posix(), read.digest, report, day, role or REPORT_ROLES.get(report.kind, reviewer))


def _run_role(context: JobContext, plan: IngestPlan, is_specific: Callable[[Candidate], bool]) -> JobOutcome:
    role = context.session.role

    def planner(view: RoleView, today: date) -> Proposal | JobOutcome:
        document = parse(new_memory_file(role.name) if view.memory.data is None else view.memory.text)
        if isinstance(document, Unreadable):
            return JobBlocked(f"{layout.MEMORY} is left alone: {document.reason}")
        ids = entry_ids(role.name, document)
        pinned = context.entries.pinned_ids(role.store.key, today)
        learnings = plan.learnings.get(role.name, RoleLearnings())
        try:
            memory = with_learnings(
                role.name,
                document,
                learnings,
                today,
                is_specific=is_specific,
                is_pinned=lambda index: ids[index] in pinned,
            )
        except ComposeError as error:
            return JobBlocked(f"{layout.MEMORY} is left alone: {error}")
        if isinstance(memory, Unreadable):
            return JobBlocked(f"{layout.MEMORY} is left alone: {memory.reason}")
        lines = plan.lines.get(role.name, "") + "".join(learned_line(learned) for learned in memory.learned)
        # The commit of a killed process may have been completed since the plan was made.
        known = {line for data in _history_of(role) for line in data.split(b"\n")}
        lines = "".join(f"{line}\n" for line in lines.split("\n") if line.encode() not in known and line)
        if memory.data is None and not lines:
            return JobDone("nothing new", changed=False)
        by_block = dict(zip(document.blocks, ids, strict=True))
        archived = [
            to_archived_entry(block, by_block.get(block) or "", role.name, Rule.ROLLED_UP, today)
            for block in memory.replaced
        ]
        history = PurePosixPath(role.name) / layout.ARCHIVE / f"{_HISTORY_STEM}{today:%Y-%m}.jsonl"
        appends = [*append_pruned(role, today, archived, context.job_id)]
        if lines:
            appends.append(Append(history, lines.encode()))
        findings = sum(report.findings for report in plan.reports if report.role == role.name)
        parts = [
            f"{pluralize(findings, 'finding')} read" if findings else "",
            f"{pluralize(len(memory.added), 'entry', 'entries')} added" if memory.added else "",
            f"{len(memory.replaced) + memory.refreshed} updated" if memory.replaced or memory.refreshed else "",
        ]
        summary = ", ".join(part for part in parts if part) or "read the reports"
        data = memory.data

        def record() -> None:
            after = None if data is None else parse(data)
            if isinstance(after, Document):
                record_entries(context.entries, role, after, today)

        writes = [] if data is None else [write_memory(view, data)]
        changes = change_set(view, JobKind.INGEST, summary, writes, appends=appends)
        return Proposal(changes, after_commit=record)

    return plan_and_commit(context, planner)


def _ask(validator: Validator | None, learnings: Mapping[str, RoleLearnings]) -> Callable[[Candidate], bool]:
    """Ask the user's command about every new learning, before any role is locked. A failure changes nothing."""
    verdicts: dict[str, bool] = {}
    failures = 0
    candidates = [candidate for each in learnings.values() for candidate in each.candidates]
    for candidate in candidates if validator is not None else ():
        if failures >= _MAX_FAILURES:
            break
        try:
            verdicts[candidate.key] = _verdict(validator, candidate)
        except (UserCommandError, ValidationAnswerError) as error:
            failures += 1
            log.warning("validation_failed", reason=str(error))
    return lambda candidate: verdicts.get(candidate.key, False)


def _verdict(validator: Validator | None, candidate: Candidate) -> bool:
    if validator is None:
        return False
    text = f"{candidate.finding.title}\n{candidate.finding.text}"
    return parse_verdict(validator(validation_prompt(text, secrets.token_hex(16))))
