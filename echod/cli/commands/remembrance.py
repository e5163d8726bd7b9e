"""`echod remembrance`: list and search the solutions for people, and check them against their entries."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import click

from echod.cli import options
from echod.cli.context import CommandContext
from echod.cli.execute import JobRefusedError
from echod.cli.output import problem_line, sanitize, short_path, title_text, wrap
from echod.cli.root import ArgumentOrCommandGroup, command_context, example, pass_command_context
from echod.contract.search import FileProblem, RemembranceReport, SolutionInfo
from echod.contract.status import to_json
from echod.errors import ExitCode, os_reason
from echod.memory.solutions.document import SolutionCategory
from echod.memory.text import pluralize
from echod.remembrance.library import SolutionCheck, SolutionLibrary, SolutionState, check_library, read_library
from echod.remembrance.source import SolutionSource
from echod.search.documents import DocumentKind
from echod.search.finder import DocumentFinder, SearchRequest

_FIRST_RESULTS = 5
"""A solution that its own symptom does not find among so many results is not found when it is needed."""

_MAX_RESULTS = 100


class _CheckedProject(NamedTuple):
    library: SolutionLibrary
    checks: tuple[SolutionCheck, ...]


@click.group(
    cls=ArgumentOrCommandGroup, invoke_without_command=True, epilog=example("echod remembrance performance --json")
)
@click.argument("words", metavar="[CATEGORY|WORDS...]", nargs=-1, help="A category, or words to find.")
@options.project_option
@options.json
@click.pass_context
def remembrance(ctx: click.Context, *, project: Path | None, json: bool, words: tuple[str, ...] = ()) -> None:
    """List, search and check the solutions for people.

    They are in docs/solutions of a project. Outside of a project those of all projects are listed.
    """
    if ctx.invoked_subcommand is not None:
        return
    context = command_context(ctx)
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


@remembrance.command(epilog=example("echod remembrance check"))
@options.project_option
@options.json
@pass_command_context
def check(context: CommandContext, *, project: Path | None, json: bool) -> None:
    """Check hashes, front matter and links, and what its own symptom does not find.

    Nothing is repaired. The exit code is 1 if anything is stale or broken.
    """
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
