"""`echod search`, `echod brief` and `echod mcp`: search for people and for agents.

The first two are quick enough to be typed often, so this module loads nothing that only other commands need.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import click

from echod.app.found_evidence import EvidenceReader
from echod.app.search import SearchLocations
from echod.cli.context import CommandContext
from echod.cli.output import sanitize, short_path
from echod.cli.search_screen import find_target, found_result, report_screen, search_report, stores_at
from echod.contract.codec import to_json
from echod.contract.entries import BriefReport, ConflictInfo, MissingEvidence
from echod.errors import EchodError, UsageError
from echod.lazy import lazy_imports
from echod.search.documents import DocumentKind, DocumentSource, SearchScope
from echod.search.finder import DEFAULT_KINDS, DocumentFinder, SearchRequest

with lazy_imports(__name__):
    from echod.search import brief as search_brief

if TYPE_CHECKING:
    from echod.search.brief import Brief, BriefRequest  # loads the comparison of learnings

with lazy_imports(__name__):
    from echod.mcp_server import server
    from echod.mcp_server import session as server_session


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
    """Run `echod search`."""
    target = find_target(words, context.locator, context.cwd)
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
    chosen = SearchScope.PROJECT if target.stores else SearchScope.ALL
    if scope is not None:
        chosen = SearchScope(scope)
    stores = target.stores
    if chosen is SearchScope.PROJECT and not stores:
        stores = context.list_stores(context.find_project(Path()))  # raises with the reason
    globs = context.settings.projects if chosen is SearchScope.ALL else ()
    locations = SearchLocations.from_environment(context.paths, context.environ, globs, context.settings.sessions.root)
    sources = locations.sources(chosen, stores, request.kinds)

    def conversations() -> Sequence[DocumentSource]:
        is_filtered = kinds or roles or layers
        return () if is_filtered else locations.conversation_sources(chosen, stores)

    _print_answer(context, request, sources, conversations, as_json=json)


def print_found(
    context: CommandContext, query: str, sources: Sequence[DocumentSource], *, limit: int, as_json: bool
) -> None:
    """Search these sources for all kinds of documents, and print the results."""
    request = SearchRequest(query, frozenset(kind for source in sources for kind in source.kinds), limit=limit)
    _print_answer(context, request, sources, tuple, as_json=as_json)


def _print_answer(
    context: CommandContext,
    request: SearchRequest,
    sources: Sequence[DocumentSource],
    conversations: Callable[[], Sequence[DocumentSource]],
    *,
    as_json: bool,
) -> None:
    with context.progress_line(json=as_json) as progress:
        report = search_report(
            sources,
            request,
            context.paths,
            context.now(),
            lambda source: progress.show(f"reading {short_path(source.store)}"),
            conversations,
        )
    click.echo(to_json(report) if as_json else report_screen(report, request))


def brief(context: CommandContext, *, text: tuple[str, ...], roles: tuple[str, ...], lines: int, json: bool) -> None:
    """Run `echod brief`."""
    stores = stores_at(text[-1], context.locator, context.cwd) if text and text[-1] else ()
    words = text[:-1] if stores else text
    stores = stores or context.list_stores(context.find_project(Path()))
    project = stores[0].project
    locations = SearchLocations.from_environment(context.paths, context.environ, ())
    sources = (*locations.sources(SearchScope.PROJECT, stores), *locations.sources(SearchScope.GLOBAL, ()))
    request = search_brief.BriefRequest(" ".join(words), search_brief.changed_files(project), frozenset(roles), lines)
    finder = DocumentFinder(context.paths.search_index)
    with closing(finder), EvidenceReader(context.paths, context.now(), finder) as evidence:
        made = search_brief.make_brief(finder, sources, request, evidence.check)
        _print_brief(made, request, evidence, json=json)


def _print_brief(made: Brief, request: BriefRequest, evidence: EvidenceReader, *, json: bool) -> None:
    if not json:
        click.echo("\n".join(sanitize(line) for line in search_brief.render_brief(made, request).splitlines()))
        return
    report = BriefReport(
        query=made.query,
        files=request.files,
        always=tuple(found_result(found, made.query, evidence) for found in made.always),
        matching=tuple(found_result(found, made.query, evidence) for found in made.matching),
        conflicts=tuple(ConflictInfo(found.first.id, found.second.id, found.difference) for found in made.conflicts),
        missing=tuple(
            MissingEvidence(found.document.id, found.checked.cite) for found in made.stale if found.checked.at is None
        ),
        omitted=made.omitted,
        notice=made.notice,
    )
    click.echo(to_json(report))


class ExtraMissingError(EchodError):
    """The official SDK is not installed."""


def mcp(context: CommandContext) -> None:
    """Run `echod mcp`."""
    if importlib.util.find_spec("mcp") is None or importlib.util.find_spec("mcp_types") is None:
        raise ExtraMissingError(
            "The MCP server needs echod with its extra `mcp`. In a checkout: uv tool install --force '.[mcp]' "
            "(or pipx install --force '.[mcp]', or pip install '.[mcp]')"
        )
    context.configure_log_file()
    # Before the SDK is loaded, which takes long enough for a client to end.
    server.end_with_signals()
    server.end_with_parent(server.end_process)
    session = server_session.ServerSession(context.paths, context.environ, context.cwd, context.now)
    try:
        server.serve(session)
    finally:
        session.close()
