"""Search for a command line, and show the answer: what `echod search` does without a library for command lines.

`search_quickly` serves the usual form of the command in a fraction of the time, since loading such a library and the
settings takes longer than the search. It leaves everything else to the command.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from echod.app.search import SearchLocations
from echod.cli.output import WIDTH, fit_path, problem_line, sanitize, short_path, title_text, wrap
from echod.contract.codec import to_json
from echod.contract.entries import EvidenceInfo, FileProblem, SearchReport, SearchResult
from echod.lazy import lazy_imports
from echod.memory.text import pluralize
from echod.paths import Paths, all_defaults, expand_home, insecure_directory_warnings, is_utf8, paths_from_environment
from echod.projects.discovery import ProjectLocator
from echod.search.documents import MAX_LIMIT, DocumentKind, DocumentSource, SearchScope
from echod.search.finder import DATA_NOTICE, DocumentFinder, FoundDocument, SearchAnswer, SearchRequest, excerpt
from echod.store.layout import Store, project_root

with lazy_imports(__name__):
    from echod.app import found_evidence

if TYPE_CHECKING:
    from echod.app.found_evidence import EvidenceReader  # loads the repository and the database


class SearchTarget(NamedTuple):
    """The query, and the stores that a command line names."""

    query: str
    stores: tuple[Store, ...]


def find_target(words: Sequence[str], locator: ProjectLocator, cwd: Path | None) -> SearchTarget:
    """Return what the words of a command line name. The last one may be a project."""
    stores = stores_at(words[-1], locator, cwd) if words else ()
    query = " ".join(words[:-1] if stores and len(words) > 1 else words)
    if not stores or len(words) == 1:
        stores = stores_at("", locator, cwd)
    return SearchTarget(query, stores)


def stores_at(word: str, locator: ProjectLocator, cwd: Path | None) -> tuple[Store, ...]:
    """Return the stores of the directory that a word names; those of the project around it for an empty word."""
    path = expand_home(word)
    if cwd is None and not path.is_absolute():
        return ()
    try:
        path = project_root((cwd or path) / path)
        if word:
            return locator.find_stores(path) if path.is_dir() else ()
        project = locator.find_project(path)
        return locator.find_stores(project) if project is not None and is_utf8(project) else ()
    except (OSError, ValueError):  # a long or odd text is no path
        return ()


def search_quickly(arguments: Sequence[str], environ: Mapping[str, str]) -> bool:
    """Run `echod search` with these arguments. Return False, and do nothing, if they need the command itself.

    That is so for options other than those of `_OPTIONS`, outside of a project, where settings have to be checked, and
    for a first search, which shows its progress.
    """
    command = _read_arguments(arguments)
    paths = paths_from_environment(environ)
    if command is None or not all_defaults(paths.config_file, environ) or not paths.search_index.exists():
        return False
    locations = SearchLocations.from_environment(paths, environ, ())
    target = find_target(command.words, locations.locator, _current_directory())
    if not target.stores or not target.query.strip():
        return False
    for warning in insecure_directory_warnings(paths, os.getuid()):
        sys.stderr.write(f"echod: {warning}\n")
    request = SearchRequest(target.query, roles=frozenset(command.roles), limit=command.limit)
    sources = locations.sources(SearchScope.PROJECT, target.stores, request.kinds)
    report = search_report(
        sources,
        request,
        paths,
        time.time(),
        conversations=lambda: (
            () if request.roles else locations.conversation_sources(SearchScope.PROJECT, target.stores)
        ),
    )
    print(to_json(report) if command.json else report_screen(report, request))
    return True


class _Arguments(NamedTuple):
    words: tuple[str, ...]
    json: bool
    limit: int
    roles: tuple[str, ...]


_OPTIONS: Final = {"--json": 0, "--limit": 1, "--role": 1}
"""The options that are understood here, with the number of their values."""


def _read_arguments(arguments: Sequence[str]) -> _Arguments | None:
    """Return the arguments; None if any of them is not of the usual form."""
    words: list[str] = []
    given: dict[str, list[str]] = {}
    position = 0
    while position < len(arguments):
        argument = arguments[position]
        position += 1
        if not argument.startswith("-"):
            words.append(argument)
            continue
        name, equals, value = argument.partition("=")
        count = _OPTIONS.get(name)
        if count is None or (equals and not count) or position + count - bool(equals) > len(arguments):
            return None
        if count and not equals:
            value = arguments[position]
            position += 1
            if value.startswith("-"):
                return None
        given.setdefault(name, []).append(value)
    limit = given.get("--limit", [str(SearchRequest("").limit)])[-1]
    if not words or not (limit.isascii() and limit.isdigit() and 1 <= int(limit[:9]) <= MAX_LIMIT):
        return None
    return _Arguments(tuple(words), "--json" in given, int(limit), tuple(given.get("--role", ())))


def _current_directory() -> Path | None:
    try:
        return Path.cwd()
    except OSError:
        return None


def search_report(
    sources: Sequence[DocumentSource],
    request: SearchRequest,
    paths: Paths,
    now: float,
    on_source: Callable[[DocumentSource], object] = lambda _: None,
    conversations: Callable[[], Sequence[DocumentSource]] = tuple,
) -> SearchReport:
    """Search, and check the evidence of what is found. `on_source` is called before each source is read.

    The sources that `conversations` returns fill the rest of a page that the others do not fill.
    """
    finder = DocumentFinder(paths.search_index)
    answer = finder.search(sources, request, on_source)
    if request.offset + request.limit > answer.total and (more := conversations()):
        request = request._replace(kinds=request.kinds | {DocumentKind.SESSION})
        sources = (*sources, *more)
        answer = _with_conversations(finder, more, request, answer)
    if not any(found.citations for found in answer.results):
        finder.close()
        return _report(request, sources, answer, [found_result(found, request.query) for found in answer.results])
    with closing(finder), found_evidence.EvidenceReader(paths, now, finder) as evidence:
        results = [found_result(found, request.query, evidence) for found in answer.results]
    return _report(request, sources, answer, results)


def _with_conversations(
    finder: DocumentFinder, sources: Sequence[DocumentSource], request: SearchRequest, answer: SearchAnswer
) -> SearchAnswer:
    """Return an answer with archived conversations below the other documents, up to the limit of the page."""
    rest = request._replace(
        kinds=frozenset({DocumentKind.SESSION}),
        offset=max(0, request.offset - answer.total),
        limit=request.limit - len(answer.results),
    )
    found = finder.search(sources, rest)
    return answer._replace(
        results=(*answer.results, *found.results),
        total=answer.total + found.total,
        stale=answer.stale or found.stale,
        problems=(*answer.problems, *found.problems),
        notice=answer.notice or found.notice,
    )


def _report(
    request: SearchRequest,
    sources: Sequence[DocumentSource],
    answer: SearchAnswer,
    results: Sequence[SearchResult],
) -> SearchReport:
    searched = dict.fromkeys(source.store for source in sources if source.kinds & request.kinds)
    return SearchReport(
        query=request.query,
        total=answer.total,
        stale=answer.stale is not None,
        results=tuple(results),
        problems=tuple(FileProblem(problem.path, problem.reason) for problem in answer.problems),
        notice=answer.stale or answer.notice,
        searched=tuple(searched),
    )


def found_result(found: FoundDocument, query: str, evidence: EvidenceReader | None = None) -> SearchResult:
    """Return a found document as JSON has it. Without a reader, it has no evidence."""
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
        evidence=evidence.check(found) if evidence is not None else (),
    )


def report_screen(report: SearchReport, request: SearchRequest) -> str:
    """Return the report of a search for people."""
    return "\n".join(_screen_lines(report, request))


def _screen_lines(report: SearchReport, request: SearchRequest) -> Iterator[str]:
    query = sanitize(report.query)
    if report.total == 0:
        places = ", ".join(short_path(place) for place in report.searched) or "no directory"
        kinds = ", ".join(sorted(kind.value for kind in request.kinds))
        yield wrap(f"Nothing matches {query!r}. Searched for {kinds} in {places}.")
    elif not report.results:
        yield f"{pluralize(report.total, 'document')} match, none of them after number {request.offset}."
    else:
        last = request.offset + len(report.results)
        part = "" if len(report.results) == report.total else f"; {request.offset + 1} to {last}"
        yield f"{pluralize(report.total, 'document')} found{part}:"
        yield wrap(DATA_NOTICE)
    is_mixed = DocumentKind.SESSION not in request.kinds
    for result in report.results:
        yield ""
        if is_mixed and result.kind == DocumentKind.SESSION:
            yield "In archived conversations:"
            is_mixed = False
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
