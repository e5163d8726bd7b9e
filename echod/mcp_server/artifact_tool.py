"""Answer `artifact_search`: what workflow runs left behind in the project.

A module of its own, because its answers have their own keys and come from other documents than those of memory.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Final

from echod.mcp_server import schemas
from echod.mcp_server.schemas import Arguments
from echod.mcp_server.session import ServerSession
from echod.search.artifacts import HISTORY, TITLE, read_run
from echod.search.documents import DocumentKind
from echod.search.excerpts import DATA_NOTICE
from echod.search.finder import FoundDocument, SearchRequest

_PREVIEW_LENGTH: Final = 300
_RUN: Final = re.compile(r"arc-[A-Za-z0-9_.-]{1,120}")
_KINDS: Final = frozenset({DocumentKind.ARTIFACT})


def search_artifacts(session: ServerSession, arguments: Arguments) -> dict[str, Any]:
    """Return the findings and sections that match.

    Raises:
        InvalidArgumentError: an argument is missing or wrong.
    """
    query = arguments.required_text("query")
    kind = arguments.choice("type", schemas.ARTIFACT_TYPES)
    limit = arguments.number("limit", schemas.DEFAULT_LIMIT, low=1, high=schemas.MAX_LIMIT)
    run = arguments.text("arc_id")
    stores = session.stores
    results: list[dict[str, Any]] = []
    if stores and (not run or _RUN.fullmatch(run)):
        history = stores[0].project / HISTORY
        request = SearchRequest(
            query=query,
            kinds=_KINDS,
            categories=frozenset({kind} if kind else ()),
            below=str(history / run) if run else "",
            limit=limit,
        )
        sources = tuple(session.locations.artifact_sources(stores))
        results = [_result(found) for found in session.finder.search(sources, request).results]
    return {"context_preamble": DATA_NOTICE, "results": results, "total": len(results)}


def _result(found: FoundDocument) -> dict[str, Any]:
    run = read_run(Path(found.path).parent)
    named = TITLE.fullmatch(found.title)
    severity = (named["severity"] or "") if named else ""
    words = [found.category, severity.lower(), named["id"].partition("-")[0].lower() if named else ""]
    return {
        "id": found.id,
        "arc_id": run.id,
        "artifact_type": found.category,
        "role": found.role,
        "layer": "inscribed",
        "date": run.date,
        "content_preview": f"{found.title}\n\n{found.body}"[:_PREVIEW_LENGTH],
        "tags": " ".join(word for word in words if word),
        "severity": severity,
        "finding_id": named["id"] if named else "",
        "file_path": found.citations[0] if found.citations else "",
        "plan_file": run.plan,
        "score": -round(found.score, 4),
    }
