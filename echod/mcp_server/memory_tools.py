"""Answer the calls of tools about memory: from arguments to a JSON object. Knows nothing of the protocol.

The keys of answers are those that agents know. Every text of an entry is marked as data, and no answer contains a
secret, because the index has none.

A module of its own, because its answers have their own keys and come from other documents than those of memory.
"""

from __future__ import annotations

import hashlib
import json
import time
import uuid
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, TypeAlias

from echod.clock import local_date
from echod.lazy import lazy_pattern
from echod.mcp_server import schemas
from echod.mcp_server.schemas import Arguments, InvalidArgumentError
from echod.mcp_server.session import ServerSession
from echod.memory.packs.manifest import DOMAINS
from echod.memory.redact import redact, redact_entry
from echod.search.artifacts import HISTORY, TITLE, read_run
from echod.search.brief import DEFAULT_LINES, MIN_LINES, BriefRequest, changed_files, make_brief, render_brief
from echod.search.documents import DocumentKind
from echod.search.finder import DATA_NOTICE, DEFAULT_KINDS, PREVIEW_LENGTH, FoundDocument, SearchRequest, as_data
from echod.state.entry_ids import RelatedEntry
from echod.store import layout
from echod.store.layout import ROLE_NAME, Role, list_roles

Answer: TypeAlias = dict[str, Any]

PACK_PREFIX: Final = "doc-pack--"
GLOBAL_ROLE: Final = "global"
UNKNOWN_LAYER: Final = "unknown"
_IMPORTANCE: Final = {"etched": 1.0, "notes": 0.8, "inscribed": 0.6, "observations": 0.4, "traced": 0.3}
_ENTRY_KINDS: Final = frozenset({DocumentKind.MEMORY})
_DETAIL_KINDS: Final = frozenset(DocumentKind)
_UPSTREAM_ID_LENGTH: Final = 16
_MAX_RELATED: Final = 10
_MAX_LINES: Final = 1000
_MAX_TITLE, _MAX_LEARNING, _MAX_EVIDENCE = 200, 4000, 1000


class MemoryTools:
    """The tools about memory, for one client."""

    def __init__(self, session: ServerSession) -> None:
        self._session = session

    def call(self, name: str, arguments: Arguments) -> Answer | None:
        """Answer a call; None if there is no such tool here.

        Raises:
            InvalidArgumentError: an argument is missing or wrong.
            EchodError: the call cannot be answered.
        """
        handlers = {
            "echo_search": self._search,
            "echo_details": self._details,
            "echo_reindex": self._reindex,
            "echo_stats": self._stats,
            "echo_record_access": self._record_access,
            "echo_upsert_group": self._upsert_group,
            "echo_brief": self._brief,
            "echo_learn": self._learn,
        }
        handler = handlers.get(name)
        return None if handler is None else handler(arguments)

    def _search(self, arguments: Arguments) -> Answer:
        scope = arguments.choice("scope", schemas.SCOPES, "project")
        limit = arguments.number("limit", schemas.DEFAULT_LIMIT, low=1, high=schemas.MAX_LIMIT)
        offset = arguments.number("offset", 0, low=0, high=1_000_000)
        role = arguments.text("role")
        request = SearchRequest(
            query=arguments.required_text("query"),
            kinds=DEFAULT_KINDS,
            roles=frozenset({_stored_role(role)} if role else ()),
            layers=_one_of(arguments.choice("layer", schemas.LAYERS)),
            categories=_one_of(arguments.choice("category", schemas.CATEGORIES)),
            domains=_one_of(arguments.choice("domain", DOMAINS)),
            near=arguments.texts("context_files", schemas.MAX_FILES),
            limit=limit,
            offset=offset,
        )
        response_format = arguments.choice("response_format", schemas.FORMATS, "json")
        answer = self._session.finder.search(self._session.sources(scope), request)
        self._session.take_signals()
        related = self._related(answer.results)
        evidence = self._evidence(answer.results)
        highest = max((found.score for found in answer.results), default=1.0) or 1.0
        entries = [
            {
                **_summary(found),
                "content_preview": found.body[:PREVIEW_LENGTH],
                "score": -round(found.score, 4),
                "composite_score": round(found.score, 4),
                "score_factors": _score_factors(found, highest, request.near),
                "related_entries": related.get(found.id, []),
                "evidence": evidence[found.row],
                **({"suspicious": True} if found.suspicious else {}),
            }
            for found in answer.results
        ]
        shown = {"offset": offset, "limit": limit, "count": len(entries), "total_count": answer.total}
        has_more = offset + len(entries) < answer.total
        notices = {"stale": True, "notice": answer.stale} if answer.stale else {}
        if answer.notice:
            notices["notice"] = answer.notice
        if response_format == "markdown":
            text = _markdown(entries, answer.total, offset, has_more=has_more)
            return {"text": as_data(text), "context_preamble": DATA_NOTICE, **notices}
        problems = [{"path": problem.path, "reason": problem.reason} for problem in answer.problems]
        return {
            "entries": entries,
            **shown,
            "has_more": has_more,
            "context_preamble": DATA_NOTICE,
            **notices,
            **({"problems": problems} if problems else {}),
        }

    def _evidence(self, documents: Sequence[FoundDocument]) -> dict[int, list[Answer]]:
        """Return the states of each document's citations, by its row."""
        with self._session.evidence_reader() as reader:
            return {
                document.row: [{"cite": checked.cite, "state": checked.state} for checked in reader.check(document)]
                for document in documents
            }

    def _related(self, documents: Sequence[FoundDocument]) -> Mapping[str, list[Answer]]:
        related = self._session.related_to(documents)
        wanted = {identity for ids in related.values() for identity in ids[:_MAX_RELATED]}
        if not wanted:
            return {}
        listed = self._session.finder.list_documents(self._session.sources("all"), _ENTRY_KINDS, ids=wanted)
        by_id = {found.id: found for found in listed.results}
        return {
            identity: [
                {"id": other, "tags": by_id[other].title, "layer": _layer(by_id[other]), "role": _role(by_id[other])}
                for other in ids[:_MAX_RELATED]
                if other in by_id
            ]
            for identity, ids in related.items()
        }

    def _details(self, arguments: Arguments) -> Answer:
        ids = arguments.required_texts("ids", schemas.MAX_IDS)
        scope = arguments.choice("scope", schemas.SCOPES, "project")
        found = self._find(ids, scope)
        self._session.take_signals()
        self._session.record_access(_countable(found))
        evidence = self._evidence(found)
        return {
            "entries": [
                {
                    **_summary(document),
                    "full_content": document.body,
                    "file_path": document.path,
                    "evidence": evidence[document.row],
                    **({"suspicious": True} if document.suspicious else {}),
                }
                for document in found
            ],
            "context_preamble": DATA_NOTICE,
        }

    def _find(self, ids: Sequence[str], scope: str) -> list[FoundDocument]:
        """Return the documents with these ids, in this order. Ids of the plugin's own index are translated."""
        sources = self._session.sources(scope)
        listed = self._session.finder.list_documents(sources, _DETAIL_KINDS, ids=ids)
        by_id: dict[str, FoundDocument] = {}
        for found in listed.results:
            # An entry may also be in the archive. The first one is in the memory file.
            if found.id not in by_id or by_id[found.id].kind is DocumentKind.ARCHIVE:
                by_id[found.id] = found
        if any(len(identity) == _UPSTREAM_ID_LENGTH and identity not in by_id for identity in ids):
            everything = self._session.finder.list_documents(sources, _ENTRY_KINDS)
            for found in everything.results:
                by_id.setdefault(_upstream_id(found), found)
        return list({by_id[identity].row: by_id[identity] for identity in ids if identity in by_id}.values())

    def _reindex(self, arguments: Arguments) -> Answer:
        scope = arguments.choice("scope", schemas.SCOPES, "project")
        return self._by_scope(scope, self._reindex_scope)

    def _reindex_scope(self, scope: str) -> Answer:
        begin = time.monotonic()
        self._session.finder.rebuild(self._session.sources(scope))
        stats = self._stats_scope(scope)
        self._session.take_signals()
        return {
            "entries_indexed": stats["total_entries"],
            "time_ms": round((time.monotonic() - begin) * 1000),
            "roles": sorted(stats["by_role"]),
        }

    def _stats(self, arguments: Arguments) -> Answer:
        return self._by_scope(arguments.choice("scope", schemas.SCOPES, "project"), self._stats_scope)

    def _by_scope(self, scope: str, answer: Any) -> Answer:
        if scope == "all":
            return {part: answer(part) for part in ("project", "global")}
        result: Answer = answer(scope)
        return result

    def _stats_scope(self, scope: str) -> Answer:
        summary = self._session.finder.summarize(self._session.sources(scope))
        counts: dict[str, dict[str, int]] = {"layer": {}, "role": {}, "category": {}}
        archived = 0
        for count in summary.counts:
            if count.kind is DocumentKind.ARCHIVE:
                archived += count.documents
            if count.kind is not DocumentKind.MEMORY:
                continue
            values = {
                "layer": count.layer or UNKNOWN_LAYER,
                "role": _role_name(count.store, count.role),
                "category": count.category or schemas.CATEGORIES[0],
            }
            for name, value in values.items():
                counts[name][value] = counts[name].get(value, 0) + count.documents
        at = datetime.fromtimestamp(summary.indexed_at, UTC) if summary.indexed_at else None
        return {
            "total_entries": sum(counts["layer"].values()),
            "by_layer": counts["layer"],
            "by_role": counts["role"],
            "by_category": counts["category"],
            "archived_count": archived,
            "last_indexed": at.strftime("%Y-%m-%dT%H:%M:%SZ") if at else "",
        }

    def _record_access(self, arguments: Arguments) -> Answer:
        ids = arguments.required_texts("entry_ids", schemas.MAX_IDS)
        arguments.text("query")
        scope = arguments.choice("scope", schemas.SCOPES[:2], "project")
        recorded = self._session.record_access(_countable(self._find(ids, scope)))
        return {"recorded": recorded, "entry_ids": list(ids), "scope": scope}

    def _upsert_group(self, arguments: Arguments) -> Answer:
        ids = arguments.required_texts("entry_ids", schemas.MAX_IDS)
        group = arguments.text("group_id").strip() or uuid.uuid4().hex[:_UPSTREAM_ID_LENGTH]
        similarities = arguments.numbers("similarities")
        if similarities is not None and len(similarities) != len(ids):
            raise InvalidArgumentError(
                f"entry_ids ({len(ids)}) and similarities ({len(similarities)}) must have the same length."
            )
        weights = dict(zip(ids, similarities or [0.0] * len(ids), strict=True))
        known = self._find(ids, "all")
        by_id = {identity: found for found in known for identity in (found.id, _upstream_id(found))}
        members = [
            RelatedEntry(by_id[identity].store, by_id[identity].id, weights[identity])
            for identity in ids
            if identity in by_id
        ]
        self._session.add_group(redact(group[:100]).text, members)
        return {"group_id": group, "memberships": len(members), "entry_ids": list(ids)}

    def _brief(self, arguments: Arguments) -> Answer:
        stores = self._session.stores
        files = arguments.texts("context_files", schemas.MAX_FILES)
        if not files and stores:
            files = changed_files(stores[0].project)
        lines = arguments.number("lines", DEFAULT_LINES, low=MIN_LINES, high=_MAX_LINES)
        roles = frozenset(arguments.texts("roles", schemas.MAX_IDS))
        request = BriefRequest(arguments.text("text"), files, roles, lines)
        with self._session.evidence_reader() as reader:
            brief = make_brief(self._session.finder, self._session.sources("all"), request, reader.check)
        return {"text": render_brief(brief, request), "context_preamble": DATA_NOTICE, "omitted": brief.omitted}

    def _learn(self, arguments: Arguments) -> Answer:
        role = self._existing_role(arguments.required_text("role").strip())
        title = _bounded("title", " ".join(arguments.required_text("title").split()), _MAX_TITLE)
        learning = _bounded("learning", arguments.required_text("learning").strip(), _MAX_LEARNING)
        evidence = _bounded("evidence", " ".join(arguments.text("evidence").split()), _MAX_EVIDENCE)
        event = {
            "cwd": str(role.store.project),
            "store": role.store.key,
            "role": role.name,
            "title": redact(title).text,
            "learning": redact_entry(learning).text,
            "evidence": redact_entry(f"evidence: {evidence}").text.removeprefix("evidence: "),
            "confidence": arguments.fraction("confidence"),
            "session": self._session.key,
            "day": local_date(time.time()).isoformat(),
        }
        if not self._session.spool_learning(json.dumps(event).encode()):
            raise InvalidArgumentError("The learning was not recorded, because the spool is full. Start: echod run")
        return {
            "accepted": True,
            "role": role.name,
            "title": event["title"],
            "note": "It is not in the memory yet. echod turns it into a finding of the role, and consolidates it when "
            "no workflow runs. A duplicate of a known entry only confirms that entry.",
        }

    def _existing_role(self, name: str) -> Role:
        stores = self._session.stores
        if not stores:
            raise InvalidArgumentError("There is no memory in this project. The user creates one with: echod init")
        roles = [role for store in stores for role in list_roles(store).roles]
        if not ROLE_NAME.fullmatch(name):
            raise InvalidArgumentError("role must consist of letters, digits, - and _.")
        for role in roles:
            if role.name == name:
                return role
        known = ", ".join(dict.fromkeys(role.name for role in roles)) or "none"
        raise InvalidArgumentError(f"There is no role {name}. Roles: {known}.")


def _one_of(value: str) -> frozenset[str]:
    return frozenset({value} if value else ())


def _stored_role(role: str) -> str:
    """Return the role under which the index has a document, for one that an answer named."""
    return "" if role == GLOBAL_ROLE else role.removeprefix(PACK_PREFIX)


def _role(found: FoundDocument) -> str:
    return _role_name(found.store, found.role)


def _role_name(store: str, role: str) -> str:
    if Path(store).name == layout.DOC_PACKS:
        return f"{PACK_PREFIX}{role}"
    return role or GLOBAL_ROLE


def _layer(found: FoundDocument) -> str:
    return found.layer or UNKNOWN_LAYER


def _summary(found: FoundDocument) -> Answer:
    """Return what every answer has about an entry."""
    return {
        "id": found.id,
        "source": found.source,
        "layer": _layer(found),
        "role": _role(found),
        "date": found.date,
        "tags": found.title,
        "kind": found.kind.value,
        "line_number": found.line,
        "source_scope": found.scope,
    }


def _score_factors(found: FoundDocument, highest: float, near: Iterable[str]) -> Mapping[str, float]:
    """Return the parts of a score, each 0..1. Age and use do not rank: an old fact is no worse an answer."""
    cites = any(
        cite.partition(":")[0].strip("`").endswith(Path(file).name) for cite in found.citations for file in near
    )
    return {
        "relevance": round(min(1.0, max(0.0, found.score / highest)), 4),
        "importance": _IMPORTANCE.get(found.layer, _IMPORTANCE["traced"]),
        "recency": 0.0,
        "proximity": float(cites),
        "frequency": 0.0,
    }


def _countable(documents: Iterable[FoundDocument]) -> list[FoundDocument]:
    """Return the entries of projects, whose use is counted."""
    return [found for found in documents if found.kind is DocumentKind.MEMORY]


def _upstream_id(found: FoundDocument) -> str:
    """Return the id that the plugin's own index gives an entry: of its role, file and line."""
    text = f"{_role(found)}:{found.path}:{found.line}"
    return hashlib.sha256(text.encode()).hexdigest()[:_UPSTREAM_ID_LENGTH]


def _bounded(name: str, text: str, limit: int) -> str:
    if len(text) > limit:
        raise InvalidArgumentError(f"{name} must have at most {limit} characters; it has {len(text)}.")
    return text


def _markdown(entries: Sequence[Answer], total: int, offset: int, *, has_more: bool) -> str:
    lines = ["## Echo Search Results", "", f"**{total} results** (showing {offset + 1}-{offset + len(entries)})", ""]
    if not entries:
        lines = ["## Echo Search Results", "", "No entry matches."]
    for number, entry in enumerate(entries, start=offset + 1):
        lines += [
            f"### {number}. {entry['id']}",
            f"- **Layer**: {entry['layer']} | **Role**: {entry['role']} | **Date**: {entry['date'] or '-'}",
            f"- **Tags**: {entry['tags']}",
            f"- {' '.join(entry['content_preview'].split())}",
            "",
        ]
    if has_more:
        lines.append(f"*Use `offset: {offset + len(entries)}` for more.*")
    return "\n".join(lines)


_PREVIEW_LENGTH: Final = 300
_RUN: Final = lazy_pattern(r"arc-[A-Za-z0-9_.-]{1,120}")
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
