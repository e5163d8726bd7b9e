"""`echod promote` and `echod remembrance`: make solutions of entries, list them, search them and check them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import click

from echod.cli.context import CommandContext
from echod.cli.execute import (
    Change,
    Confirmation,
    JobRefusedError,
    JobRunner,
    ManualJob,
    Step,
    WriteOptions,
    make_change,
    report_already_so,
    require_write_mode,
)
from echod.cli.output import problem_line, sanitize, short_path, title_text, wrap
from echod.cli.targets import MemoryMatch, entry_heading, find_to_change, read_facts
from echod.clock import local_date
from echod.contract.codec import to_json
from echod.contract.entries import FileProblem, RemembranceReport, SolutionInfo
from echod.errors import ExitCode, os_reason
from echod.jobs.base import JobOutcome, JobResources
from echod.jobs.solutions import SolutionPlan, plan_solution, promote
from echod.memory.model import SolutionCategory
from echod.memory.policy.scoring import History
from echod.memory.prompt_injection import find_injection
from echod.memory.solutions.document import SolutionParts, VerifiedBy, extract_parts, extract_parts_of_text
from echod.memory.solutions.promotion import PromotionRequest, PromotionRule, RuleFailure, parse_reference
from echod.memory.text import pluralize
from echod.remembrance.library import SolutionCheck, SolutionLibrary, SolutionState, check_library, read_library
from echod.remembrance.source import SolutionSource
from echod.search.documents import DocumentKind
from echod.search.finder import DocumentFinder, SearchRequest
from echod.state.jobs import JobKind

_FIRST_RESULTS = 5
"""A solution that its own symptom does not find among so many results is not found when it is needed."""

_MAX_RESULTS = 100


class _CheckedProject(NamedTuple):
    library: SolutionLibrary
    checks: tuple[SolutionCheck, ...]


def remembrance(context: CommandContext, *, project: Path | None, json: bool, words: tuple[str, ...] = ()) -> None:
    """Run `echod remembrance`."""
    checked = _check_projects(context, project)
    if len(words) == 1 and words[0].lower() in _categories(checked):
        category = words[0].lower()
        checked = [
            _only(one, {c.solution.path for c in one.checks if category in _categories_of(c)}) for one in checked
        ]
    elif words:
        checked = [_only(one, _find(context, one, " ".join(words))) for one in checked]
    report = _report(checked, with_files=not words)
    click.echo(to_json(report) if json else "\n".join(_screen(report)))


def check(context: CommandContext, *, project: Path | None, json: bool) -> None:
    """Run `echod remembrance check`."""
    checked = [_with_findability(context, one) for one in _check_projects(context, project)]
    report = _report(checked, with_files=True)
    click.echo(to_json(report) if json else "\n".join(_check_screen(report)))
    bad = any(solution.state in (SolutionState.STALE, SolutionState.BROKEN) for solution in report.solutions)
    if bad or report.problems:
        raise click.exceptions.Exit(ExitCode.FAILED)


def _check_projects(context: CommandContext, path: Path | None) -> list[_CheckedProject]:
    found = context.current_project() if path is None else context.find_project(path)
    if found is not None:
        projects: Sequence[Path] = [found]
    else:
        with context.open_read_context() as read_context:
            projects = list(dict.fromkeys(store.project for store in read_context.discover_stores().stores))
    try:
        libraries = [read_library(project) for project in projects]
    except OSError as error:
        raise JobRefusedError(f"{error.filename} cannot be listed: {os_reason(error)}.") from error
    return [_CheckedProject(library, check_library(library)) for library in libraries]


def _categories(checked: Sequence[_CheckedProject]) -> set[str]:
    return {*SolutionCategory, *(name for one in checked for check_ in one.checks for name in _categories_of(check_))}


def _categories_of(checked: SolutionCheck) -> tuple[str, str]:
    return checked.solution.document.category, Path(checked.solution.path).parent.name


def _only(one: _CheckedProject, paths: Sequence[str] | set[str]) -> _CheckedProject:
    order = {path: number for number, path in enumerate(paths)}
    checks = [found for found in one.checks if found.solution.path in order]
    if not isinstance(paths, set):
        checks.sort(key=lambda found: order[found.solution.path])
    return one._replace(checks=tuple(checks))


def _find(context: CommandContext, one: _CheckedProject, query: str, limit: int = _MAX_RESULTS) -> list[str]:
    """Return the paths of the solutions that a search finds, best first."""
    finder = DocumentFinder(context.paths.search_index)
    request = SearchRequest(query, frozenset({DocumentKind.SOLUTION}), limit=limit)
    answer = finder.search([SolutionSource(one.library.project)], request)
    finder.close()
    return [str(Path(found.path).relative_to(one.library.project)) for found in answer.results]


def _with_findability(context: CommandContext, one: _CheckedProject) -> _CheckedProject:
    checks = []
    for checked in one.checks:
        symptom = checked.solution.document.symptom
        if (
            symptom
            and checked.state is not SolutionState.SUPERSEDED
            and checked.solution.path not in _find(context, one, symptom, _FIRST_RESULTS)
        ):
            finding = f"a search for its own symptom does not find it among the first {_FIRST_RESULTS}"
            checks.append(checked._replace(state=SolutionState.BROKEN, findings=(*checked.findings, finding)))
        else:
            checks.append(checked)
    return one._replace(checks=tuple(checks))


def _report(checked: Sequence[_CheckedProject], *, with_files: bool) -> RemembranceReport:
    rows = [
        SolutionInfo(
            project=str(one.library.project),
            path=found.solution.path,
            title=found.solution.document.title,
            category=found.solution.document.category,
            tags=found.solution.document.tags,
            date=found.solution.document.date,
            confidence=found.solution.document.confidence,
            verified_by=found.solution.document.verified_by,
            state=found.state.value,
            findings=found.findings,
        )
        for one in checked
        for found in one.checks
    ]
    if not with_files:
        return RemembranceReport(tuple(rows))
    return RemembranceReport(
        tuple(rows),
        tuple(str(one.library.project / path) for one in checked for path in one.library.essays),
        tuple(
            FileProblem(str(one.library.project / path), problem)
            for one in checked
            for path, problem in one.library.problems
        ),
    )


def _screen(report: RemembranceReport) -> Iterator[str]:
    if not report.solutions:
        yield "There are no solutions. To make one of an entry: echod promote ENTRY --category CATEGORY"
    for solution in report.solutions:
        yield from _solution_lines(solution)
    yield from _other_file_lines(report)


def _solution_lines(solution: SolutionInfo) -> Iterator[str]:
    state = "" if solution.state == SolutionState.CURRENT else f"{solution.state}: "
    yield wrap(f"{state.capitalize()}{title_text(solution.title)}")
    tags = f"  {sanitize(', '.join(solution.tags))}" if solution.tags else ""
    yield wrap(f"{sanitize(solution.category)}  {sanitize(solution.date)}{tags}", indent="  ")
    yield f"  {short_path(f'{solution.project}/{solution.path}')}"
    for finding in solution.findings:
        yield problem_line(sanitize(finding), indent="  ")


def _check_screen(report: RemembranceReport) -> Iterator[str]:
    for solution in report.solutions:
        if solution.state != SolutionState.CURRENT:
            yield from _solution_lines(solution)
    yield from _other_file_lines(report)
    bad = sum(solution.state in (SolutionState.STALE, SolutionState.BROKEN) for solution in report.solutions)
    bad += len(report.problems)
    yield f"{pluralize(len(report.solutions), 'solution')}, {bad} stale or broken."


def _other_file_lines(report: RemembranceReport) -> Iterator[str]:
    for problem in report.problems:
        yield problem_line(f"{short_path(problem.path)}: {problem.reason}")
    if report.essays:
        yield f"{pluralize(len(report.essays), 'document')} without front matter, left alone:"
        yield from (f"  {short_path(path)}" for path in report.essays)


_CONFIRMATION = "verified"
"""The word that the user types to confirm a solution about security."""

_EDITOR_TEMPLATE = """\
# Describe the problem for a reader who uses no agents. Lines above "Symptom:" are ignored.
# {title}

Symptom: {symptom}

Root cause: {root_cause}

Solution: {solution}
"""


def promote_(
    context: CommandContext,
    *,
    entry: str,
    path: Path | None,
    category: str,
    symptom: str | None,
    root_cause: str | None,
    solution: str | None,
    tags: str | None,
    title: str | None,
    raises: bool,
    dry_run: bool,
    yes: bool,
    force: bool,
) -> None:
    """Run `echod promote`."""
    if (reference := parse_reference(entry)) is not None:
        entry = reference.entry_id
    request = PromotionRequest(
        category=SolutionCategory(category),
        symptom=symptom,
        root_cause=root_cause,
        solution=solution,
        tags=None if tags is None else tuple(tags.split(",")),
        title=title,
        raises=raises,
    )
    with context.open_read_context() as read_context:
        (match,) = find_to_change(context, read_context, path, [entry])
        facts = read_facts(read_context, match.role, local_date(context.now()), match.document)
    sessions = facts.histories.get(match.id, History()).references
    request = _ask_missing_parts(context, match, request)
    planned = _plan(context, match, request, sessions)
    preview = "\n".join([entry_heading(match), *_plan_lines(planned)])
    others = [failure for failure in planned.failures if failure.rule is not PromotionRule.SECURITY]
    if others:
        raise _refused_error(match, planned.failures)
    if planned.failures:
        if not context.is_interactive or dry_run:
            raise _refused_error(match, planned.failures)
        require_write_mode(context)
        click.echo(preview)
        preview = ""
        _confirm_security(context)
        request = request._replace(verified_by=VerifiedBy.HUMAN)
        planned = _plan(context, match, request, sessions)
    if _is_up_to_date(match, planned):
        report_already_so(context, f"{match.id} is in {planned.path} already")

    def work(resources: JobResources) -> JobOutcome:
        return promote(resources, match.role, match.id, request, sessions)

    def step(runner: JobRunner) -> str:
        job = ManualJob(JobKind.SOLUTION, match.role, f"the user promotes {match.id} of {match.role.name}")
        return runner.run_multi_role(job, work).describe(match.role.name)

    change = Change(preview, [Step(match.id, step)], _question(match, planned))
    make_change(context, change, WriteOptions(dry_run, yes, force))


def _plan(context: CommandContext, match: MemoryMatch, request: PromotionRequest, sessions: int) -> SolutionPlan:
    today = local_date(context.now())
    try:
        return plan_solution(match.role, match.id, match.block, request, sessions, today)
    except OSError as error:
        raise JobRefusedError(f"docs/solutions cannot be read: {os_reason(error)}. Nothing was changed.") from error


def _ask_missing_parts(context: CommandContext, match: MemoryMatch, request: PromotionRequest) -> PromotionRequest:
    """Open the user's editor for the parts that neither the options nor the entry have, at a terminal."""
    own = extract_parts(match.block)
    parts = SolutionParts(
        own.symptom if request.symptom is None else request.symptom,
        own.root_cause if request.root_cause is None else request.root_cause,
        own.solution if request.solution is None else request.solution,
    )
    if not context.is_interactive or all((parts.symptom, parts.root_cause, parts.solution)):
        return request
    template = _EDITOR_TEMPLATE.format(
        title=sanitize(match.title),
        symptom=parts.symptom,
        root_cause=parts.root_cause,
        solution=parts.solution or match.block.body,
    )
    edited = click.edit(template, extension=".md")
    if edited is None:  # closed without saving
        return request
    written = extract_parts_of_text(edited)
    return request._replace(symptom=written.symptom, root_cause=written.root_cause, solution=written.solution)


def _confirm_security(context: CommandContext) -> None:
    """Let the user type that the solution is right. `--yes` does not answer this.

    Raises:
        click.exceptions.Exit: the user typed something else.
    """
    context.print_info("It is about security. Agents and people will rely on it.")
    answer: str = click.prompt(f"Type {_CONFIRMATION} if you have verified it yourself", default="", show_default=False)
    if answer.strip() != _CONFIRMATION:
        click.echo("Nothing was changed.")
        raise click.exceptions.Exit(1)


def _plan_lines(planned: SolutionPlan) -> Iterator[str]:
    solution = planned.solution
    yield f"  {'update' if planned.duplicates.update else 'write'} {planned.path}"
    for name, text in (
        ("title", solution.title),
        ("symptom", solution.symptom),
        ("cause", solution.root_cause),
        ("solution", solution.solution),
        ("tags", ", ".join(solution.tags)),
    ):
        yield wrap(sanitize(text) or "-", indent=f"    {name:<9} ")
    for path in planned.duplicates.related:
        yield wrap(f"{path} has a similar cause, and is linked", indent="  ")
    for shared in planned.duplicates.shared_tags:
        tags = ", ".join(shared.tags)
        yield wrap(f"{shared.path} has {pluralize(len(shared.tags), 'tag')} in common: {tags}", indent="  ")
    yield "  The entry gets the line promoted_to."


def _question(match: MemoryMatch, planned: SolutionPlan) -> Confirmation | None:
    if (phrase := find_injection(match.block.text)) is not None:
        return Confirmation(f"It reads like an instruction to agents ({phrase}). Promote it anyway?")
    if planned.duplicates.update:
        return Confirmation(f"Replace {planned.path}? Its present text is archived.")
    if planned.duplicates.shared_tags:
        return Confirmation("A solution with these tags exists. Write another one?")
    return None


def _is_up_to_date(match: MemoryMatch, planned: SolutionPlan) -> bool:
    entry = match.block.entry
    names_it = entry is not None and any(f.name == "promoted_to" and f.value == planned.path for f in entry.fields)
    file = match.role.store.project / planned.path
    return names_it and file.is_file() and file.read_bytes() == planned.data


def _refused_error(match: MemoryMatch, failures: tuple[RuleFailure, ...]) -> JobRefusedError:
    lines = [f"{match.id} was not promoted. Nothing was changed."]
    lines += [f"  {failure.rule}: {failure.reason} {failure.remedy}" for failure in failures]
    return JobRefusedError("\n".join(lines))
