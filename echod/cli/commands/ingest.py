"""`echod ingest`: turn the reports that workflows left behind into memory."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

import click

from echod.cli.context import CommandContext
from echod.cli.execute import Change, JobRunner, ManualJob, Step, WriteOptions, make_change
from echod.cli.output import sanitize, short_path, title_text, wrap
from echod.clock import local_date
from echod.contract.codec import to_json
from echod.contract.sessions import IgnoredReportText, IngestedEntry, IngestedReport, IngestReport
from echod.errors import UsageError, os_reason
from echod.jobs.ingest import IngestPlan, IngestSources, plan_ingest, read_sources, run
from echod.memory.text import pluralize
from echod.state.jobs import JobKind
from echod.store.layout import ROLE_NAME, Role, Store
from echod.workflows.collect import ReportFile, find_reports_in, report_file


class _StorePlan(NamedTuple):
    """The learnings for a store, as planned."""

    store: Store
    sources: IngestSources
    plan: IngestPlan


def ingest(
    context: CommandContext, *, paths: tuple[Path, ...], role: str | None, dry_run: bool, json: bool, force: bool
) -> None:
    """Run `echod ingest`."""
    if role is not None and not ROLE_NAME.fullmatch(role):
        raise UsageError(f"Invalid role name {role!r}: use letters, digits, - and _.")
    today = local_date(context.now())
    plans = []
    for store, files in _files_by_store(context, paths).items():
        sources = read_sources(files, role)
        plans.append(_StorePlan(store, sources, plan_ingest(store, sources, today)))
    jobs: list[int] = []
    change = Change(
        preview="" if json else "\n".join(line for plan in plans for line in _plan_lines(plan)),
        steps=[
            Step(short_path(plan.store.key), partial(_run_job, plan, jobs, json))
            for plan in plans
            if not plan.plan.is_empty
        ],
    )
    make_change(context, change, WriteOptions(dry_run, force=force))
    if json:
        click.echo(to_json(_report(plans, jobs)))


def _files_by_store(context: CommandContext, paths: Sequence[Path]) -> dict[Store, list[ReportFile]]:
    """Return the named files by the store that learns from them: their project's, else the current project's."""
    found: defaultdict[Store, list[ReportFile]] = defaultdict(list)
    for path in paths:
        start = context.existing_path(path)
        project = context.locator.find_project(start) or context.current_project()
        if project is None:
            raise UsageError(f"{start} is in no project with a memory. Change to the project that is to learn from it.")
        store = context.list_stores(project)[0]
        try:
            files = find_reports_in(start) if start.is_dir() else (report_file(start),)
        except OSError as error:
            raise UsageError(f"{error.filename or start} cannot be read: {os_reason(error)}.") from error
        if not files:
            raise UsageError(f"There are no reports in {start}. Name the files, or another directory.")
        found[store] += [file for file in files if file not in found[store]]
    return found


def _run_job(plan: _StorePlan, jobs: list[int], as_json: bool, runner: JobRunner) -> str:  # noqa: FBT001  a partial
    """Run the job on a store. It plans again, from the history as it is then."""
    manual_job = ManualJob(JobKind.INGEST, Role(plan.store, ""))
    result = runner.run_multi_role(
        manual_job, lambda resources: run(resources, plan.store, plan.sources, runner.services.validator)
    )
    jobs.append(result.job.id)
    return "" if as_json else result.describe(short_path(plan.store.key))


def _plan_lines(plan: _StorePlan) -> Iterator[str]:
    yield short_path(plan.store.key)
    for report in plan.plan.reports:
        counts = [
            pluralize(report.findings, "new finding"),
            f"{report.known} known" if report.known else "",
            pluralize(report.resolutions, "resolution") if report.resolutions else "",
            f"{report.unmatched} about unknown findings" if report.unmatched else "",
        ]
        yield wrap(f"{sanitize(report.path)}: {', '.join(filter(None, counts))}", indent="  ", hang="    ")
        for rejection in report.rejections:
            place = f"line {rejection.line}: " if rejection.line else ""
            text = f"{place}{sanitize(rejection.name)} is ignored: {rejection.reason}"
            yield wrap(text, indent="    ", hang="      ")
    for unreadable in plan.plan.unreadable:
        yield wrap(f"{sanitize(str(unreadable.path))} is skipped: {unreadable.reason}", indent="  ", hang="    ")
    entries = list(_entries(plan))
    for entry in entries:
        times = f" ({pluralize(entry.runs, 'report')})" if entry.runs > 1 else ""
        yield wrap(f"{entry.role}: {title_text(entry.title)}{times}", indent=f"  {entry.cause:<14}", hang=" " * 18)
    if not entries:
        yield "  nothing new to learn"


def _entries(plan: _StorePlan) -> Iterator[IngestedEntry]:
    store = plan.store.key
    for role, learnings in plan.plan.learnings.items():
        for candidate in learnings.candidates:
            finding, runs = candidate.finding, len(candidate.flaw.runs)
            yield IngestedEntry(store, role, finding.layer.value, finding.title, candidate.cause, runs)
        for finding in (summary for summary in learnings.summaries if summary.text):
            yield IngestedEntry(store, role, finding.layer.value, finding.title, "summary", 0)


def _report(plans: Sequence[_StorePlan], jobs: Sequence[int]) -> IngestReport:
    reports = [
        IngestedReport(
            report.path,
            report.role,
            report.findings,
            report.known,
            report.resolutions,
            report.unmatched,
            tuple(IgnoredReportText(*rejection) for rejection in report.rejections),
        )
        for plan in plans
        for report in plan.plan.reports
    ]
    unreadable = [
        IngestedReport(str(each.path), "", 0, 0, 0, 0, problem=each.reason)
        for plan in plans
        for each in plan.plan.unreadable
    ]
    entries = tuple(entry for plan in plans for entry in _entries(plan))
    return IngestReport((*reports, *unreadable), entries, tuple(jobs))
