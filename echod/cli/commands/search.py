"""`echod search`, `echod brief`, and the records of what was read.

Both are quick enough to be typed often, so this module loads nothing that only other commands need.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from echod.app.import_access import (
    INDEX_NAME,
    ImportPlan,
    apply_import,
    list_current_entries,
    plan_import,
    read_access_log,
)
from echod.app.search import EvidenceReader, SearchLocations, SearchScope
from echod.cli import options
from echod.cli.context import CommandContext
from echod.cli.options import PATH_OR_NAME, WholeNumber
from echod.cli.output import WIDTH, fit_path, problem_line, sanitize, short_path, title_text, wrap
from echod.cli.root import example, pass_command_context
from echod.clock import local_date
from echod.contract.search import (
    AccessImportReport,
    BriefReport,
    ConflictInfo,
    EvidenceInfo,
    FileProblem,
    ImportedAccess,
    MissingEvidence,
    SearchReport,
    SearchResult,
)
from echod.contract.status import to_json
from echod.errors import UsageError
from echod.memory.text import pluralize
from echod.search.documents import DocumentKind, DocumentSource
from echod.search.finder import (
    DATA_NOTICE,
    DEFAULT_KINDS,
    DEFAULT_LIMIT,
    DocumentFinder,
    FoundDocument,
    SearchAnswer,
    SearchRequest,
    excerpt,
)
from echod.store.layout import Store

if TYPE_CHECKING:
    from echod.search.brief import Brief, BriefRequest  # loads the comparison of learnings


_MAX_LIMIT = 1000
_LAYERS = ("etched", "notes", "inscribed", "observations", "traced")


class SearchTarget(NamedTuple):
    """The query, the scope and the stores that a command line names."""

    query: str
    scope: SearchScope
    stores: tuple[Store, ...]


class QueryCommand(click.Command):
    """A command whose words may look like options: a text with a space is never one."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments."""
        end = args.index("--") if "--" in args else len(args)
        texts = [
            text for text in args[:end] if text.startswith("-") and " " in text.strip() and "=" not in text.split()[0]
        ]
        others = [argument for argument in args[:end] if argument not in texts]
        return super().parse_args(ctx, [*others, "--", *texts, *args[end + 1 :]] if texts else args)


@click.command(cls=QueryCommand, epilog=example("echod search flaky database tests --role reviewer"))
@click.argument(
    "words", metavar="WORDS... [PATH]", type=PATH_OR_NAME, nargs=-1, required=True, help="Words to find, and a project."
)
@click.option(
    "--scope",
    type=click.Choice([scope.value for scope in SearchScope]),
    help="Where to search.  [default: project; all outside of a project]",
)
@click.option(
    "--kind",
    "kinds",
    type=click.Choice([kind.value for kind in DocumentKind]),
    multiple=True,
    help="Only this kind of text.  [default: memory, knowledge, solution]",
)
@click.option("--role", "roles", metavar="NAME", multiple=True, help="Only entries of this role.")
@click.option(
    "--layer", "layers", type=click.Choice(_LAYERS, case_sensitive=False), multiple=True, help="Only this layer."
)
@click.option("--near", metavar="FILE", type=PATH_OR_NAME, multiple=True, help="Prefer entries that cite this file.")
@click.option(
    "--limit", metavar="N", type=WholeNumber(1, _MAX_LIMIT), default=DEFAULT_LIMIT, show_default=True, help="Results."
)
@click.option("--offset", metavar="N", type=WholeNumber(0), default=0, help="Skip this number of results.")
@options.json
@pass_command_context
def search(
    context: CommandContext,
    *,
    words: tuple[str, ...],
    scope: str | None,
    kinds: tuple[str, ...],
    roles: tuple[str, ...],
    layers: tuple[str, ...],
    near: tuple[str, ...],
    limit: int,
    offset: int,
    json: bool,
) -> None:
    """Find entries, learnings and solutions by words."""
    target = parse_target(context, words, None if scope is None else SearchScope(scope))
    if not target.query.strip():
        raise UsageError("There is nothing to search for. Type a word.")
    request = SearchRequest(
        query=target.query,
        kinds=frozenset(map(DocumentKind, kinds)) or DEFAULT_KINDS,
        roles=frozenset(roles),
        layers=frozenset(layers),
        near=tuple(str(context.absolute_path(Path(file))) for file in near),
        limit=limit,
        offset=offset,
    )
    sources = list_sources(context, target)
    finder = DocumentFinder(context.paths.search_index)
    answer = finder.search(sources, request)
    finder.close()
    with EvidenceReader(context.paths, context.now()) as evidence:
        report = _report(request, sources, answer, evidence)
    click.echo(to_json(report) if json else "\n".join(_screen(report, request)))


def print_found(
    context: CommandContext, query: str, sources: Sequence[DocumentSource], *, limit: int, as_json: bool
) -> None:
    """Search these sources for all kinds of documents, and print the results."""
    request = SearchRequest(query, frozenset(kind for source in sources for kind in source.kinds), limit=limit)
    finder = DocumentFinder(context.paths.search_index)
    answer = finder.search(sources, request)
    finder.close()
    with EvidenceReader(context.paths, context.now()) as evidence:
        report = _report(request, sources, answer, evidence)
    click.echo(to_json(report) if as_json else "\n".join(_screen(report, request)))


def parse_target(context: CommandContext, words: Sequence[str], scope: SearchScope | None) -> SearchTarget:
    """Return what the words of a command line name. The last one may be a project.

    Raises:
        UsageError: there is no project.
    """
    stores = _stores_at(context, words[-1]) if words else ()
    query = " ".join(words[:-1] if stores and len(words) > 1 else words)
    if not stores or len(words) == 1:
        stores = _stores_here(context)
    if scope is None:
        scope = SearchScope.PROJECT if stores else SearchScope.ALL
    elif scope is SearchScope.PROJECT and not stores:
        stores = context.list_stores(context.find_project(Path()))  # raises with the reason
    return SearchTarget(query, scope, stores)


def _stores_at(context: CommandContext, word: str) -> tuple[Store, ...]:
    try:
        path = context.absolute_path(Path(word))
        return context.list_stores(path) if path.is_dir() else ()
    except (OSError, ValueError, UsageError):  # a long or odd text is no path
        return ()


def _stores_here(context: CommandContext) -> tuple[Store, ...]:
    project = context.current_project()
    return () if project is None else context.list_stores(project)


def list_sources(context: CommandContext, target: SearchTarget) -> tuple[DocumentSource, ...]:
    """Return the sources to search."""
    globs = context.settings.projects if target.scope is SearchScope.ALL else ()
    conversations = context.settings.sessions.root
    locations = SearchLocations.from_environment(context.paths, context.environ, globs, conversations)
    return locations.sources(target.scope, target.stores)


def _report(
    request: SearchRequest, sources: Sequence[DocumentSource], answer: SearchAnswer, evidence: EvidenceReader
) -> SearchReport:
    searched = dict.fromkeys(source.store for source in sources if source.kinds & request.kinds)
    return SearchReport(
        query=request.query,
        total=answer.total,
        stale=answer.stale is not None,
        results=tuple(_result(found, request.query, evidence) for found in answer.results),
        problems=tuple(FileProblem(problem.path, problem.reason) for problem in answer.problems),
        notice=answer.stale or answer.notice,
        searched=tuple(searched),
    )


def _result(found: FoundDocument, query: str, evidence: EvidenceReader) -> SearchResult:
    return SearchResult(
        id=found.id,
        kind=found.kind.value,
        scope=found.scope,
        project=found.project or None,
        store=found.store,
        role=found.role,
        layer=found.layer or None,
        title=found.title,
        date=found.date or None,
        path=found.path,
        line=found.line,
        preview=excerpt(found.body, query),
        score=round(found.score, 4),
        suspicious=found.suspicious,
        evidence=tuple(
            EvidenceInfo(checked.cite, checked.state.value, checked.at) for checked in evidence.check(found)
        ),
    )


def _screen(report: SearchReport, request: SearchRequest) -> Iterator[str]:
    query = sanitize(report.query)
    if report.total == 0:
        places = ", ".join(short_path(place) for place in report.searched) or "no directory"
        kinds = ", ".join(sorted(kind.value for kind in request.kinds))
        yield wrap(f"Nothing matches {query!r}. Searched for {kinds} in {places}.")
    elif not report.results:
        yield f"{pluralize(report.total, 'document')} match, none of them after number {request.offset}."
    else:
        first = request.offset + 1
        yield f"{pluralize(report.total, 'document')} found; {first} to {request.offset + len(report.results)}:"
        yield wrap(DATA_NOTICE)
    for result in report.results:
        yield ""
        yield from _result_lines(result)
    for problem in report.problems:
        yield problem_line(f"{short_path(problem.path)}: {problem.reason}")
    if report.notice:
        yield problem_line(report.notice)


def _result_lines(result: SearchResult) -> Iterator[str]:
    yield wrap(title_text(result.title), indent=f"{result.id}  ")
    parts = [result.layer or result.kind, result.date or "", result.role]
    place = "  ".join(part for part in parts if part)
    yield f"  {place}  {fit_path(f'{result.path}:{result.line}', max(20, WIDTH - len(place) - 4))}"
    if result.suspicious:
        yield problem_line("It reads like an instruction to agents.", indent="  ")
    yield wrap(sanitize(result.preview), indent="  | ", hang="  | ")
    yield from stale_evidence_lines(result.evidence)


def stale_evidence_lines(evidence: Sequence[EvidenceInfo]) -> Iterator[str]:
    """Name the citations that are not as they were when the entry was written."""
    for info in evidence:
        if info.state in ("moved", "changed", "gone"):
            now = f", now {sanitize(info.at)}" if info.at else ""
            yield wrap(f"{sanitize(info.cite)} ({info.state}{now})", indent="  evidence: ", hang="    ")


@click.command(epilog=example("echod brief add retries to the upload client --role workers"))
@click.argument(
    "text", metavar="[TEXT]... [PATH]", type=PATH_OR_NAME, nargs=-1, help="The task in words, and a project."
)
@click.option("--role", "roles", metavar="NAME", multiple=True, help="Only entries of this role.")
@click.option(
    "--lines", metavar="N", type=WholeNumber(10, _MAX_LIMIT), default=100, show_default=True, help="Lines at most."
)
@options.json
@pass_command_context
def brief(context: CommandContext, *, text: tuple[str, ...], roles: tuple[str, ...], lines: int, json: bool) -> None:
    """Summarize the memory that matters for a task."""
    from echod.search.brief import BriefRequest, changed_files, make_brief  # loads the comparison of learnings

    stores = _stores_at(context, text[-1]) if text else ()
    words = text[:-1] if stores else text
    stores = stores or context.list_stores(context.find_project(Path()))
    project = stores[0].project
    locations = SearchLocations.from_environment(context.paths, context.environ, ())
    sources = (*locations.sources(SearchScope.PROJECT, stores), *locations.sources(SearchScope.GLOBAL, ()))
    request = BriefRequest(" ".join(words), changed_files(project), frozenset(roles), lines)
    finder = DocumentFinder(context.paths.search_index)
    with EvidenceReader(context.paths, context.now()) as evidence:
        made = make_brief(finder, sources, request, evidence.check)
        finder.close()
        _print_brief(made, request, evidence, json=json)


def _print_brief(made: Brief, request: BriefRequest, evidence: EvidenceReader, *, json: bool) -> None:
    from echod.search.brief import render_brief  # loads the comparison of learnings

    if not json:
        click.echo("\n".join(sanitize(line) for line in render_brief(made, request).splitlines()))
        return
    report = BriefReport(
        query=made.query,
        files=request.files,
        always=tuple(_result(found, made.query, evidence) for found in made.always),
        matching=tuple(_result(found, made.query, evidence) for found in made.matching),
        conflicts=tuple(ConflictInfo(found.first.id, found.second.id, found.difference) for found in made.conflicts),
        missing=tuple(
            MissingEvidence(found.document.id, found.checked.cite) for found in made.stale if found.checked.at is None
        ),
        omitted=made.omitted,
        notice=made.notice,
    )
    click.echo(to_json(report))


@click.command("import-access", epilog=example("echod import-access ~/src/my-project --dry-run"))
@options.project_path_or_cwd
@click.option(
    "--database", metavar="FILE", type=options.PATH, help="The plugin's database.  [default: the one in the memory]"
)
@options.dry_run
@options.json
@pass_command_context
def import_access(context: CommandContext, *, path: Path, database: Path | None, dry_run: bool, json: bool) -> None:
    """Import the access log of the workflow plugin's search index."""
    stores = context.list_stores(context.find_project(path))
    files = _databases(context, stores, database)
    plans = [(store, plan_import(read_access_log(file), store, list_current_entries(store))) for store, file in files]
    new = 0
    if not dry_run:
        with context.open_services() as services:
            today = local_date(context.now())
            new = sum(apply_import(plan, store, services.entries, today) for store, plan in plans)
    report = _access_report([str(file) for _, file in files], plans, new)
    click.echo(to_json(report) if json else "\n".join(_access_screen(report, dry_run=dry_run)))


def _databases(context: CommandContext, stores: tuple[Store, ...], database: Path | None) -> list[tuple[Store, Path]]:
    if database is not None:
        return [(stores[0], context.absolute_path(database))]
    files = [(store, store.root / INDEX_NAME) for store in stores if (store.root / INDEX_NAME).is_file()]
    if not files:
        places = " or ".join(short_path(str(store.root)) for store in stores)
        raise UsageError(f"There is no {INDEX_NAME} in {places}. Name the file with --database.")
    return files


def _access_report(files: list[str], plans: list[tuple[Store, ImportPlan]], new: int) -> AccessImportReport:
    return AccessImportReport(
        files=tuple(files),
        rows=sum(plan.rows for _, plan in plans),
        unmatched=sum(plan.unmatched for _, plan in plans),
        undated=sum(plan.undated for _, plan in plans),
        new=new,
        entries=tuple(
            ImportedAccess(
                imported.entry.id,
                store.key,
                imported.entry.role.name,
                imported.entry.title,
                tuple(day.isoformat() for day in imported.days),
            )
            for store, plan in plans
            for imported in plan.entries
        ),
    )


def _access_screen(report: AccessImportReport, *, dry_run: bool) -> Iterator[str]:
    for entry in report.entries:
        yield wrap(f"{title_text(entry.title)}: {pluralize(len(entry.days), 'day')}", indent=f"{entry.id}  ")
    yield wrap(
        f"{pluralize(report.rows, 'row')} read, {pluralize(len(report.entries), 'entry', 'entries')} matched; "
        f"{report.unmatched} rows belong to no entry, {report.undated} have no readable time."
    )
    references = sum(len(entry.days) for entry in report.entries)
    if dry_run:
        yield f"{pluralize(references, 'reference')} would be recorded, unless they are known."
    else:
        yield f"{pluralize(report.new, 'new reference')}."
