"""The resources of the server: memory files, and the entries in them.

    echo://memory/{role}      a memory file
    echo://entry/{id}         an entry

Texts are read from the index, so they contain no secrets, and they are fenced as data.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from echod.mcp_server.session import ServerSession
from echod.search.documents import DocumentKind
from echod.search.finder import FoundDocument, as_data

PAGE_SIZE: Final = 100
MIME_TYPE: Final = "text/markdown"
ENTRY_TEMPLATE: Final = "echo://entry/{id}"
MEMORY_TEMPLATE: Final = "echo://memory/{role}"
_URI: Final = re.compile(r"echo://(?P<kind>entry|memory)/(?P<name>[A-Za-z0-9_-]{1,128})")
_KINDS: Final = frozenset({DocumentKind.MEMORY})


class EchoResource(NamedTuple):
    """A resource: its address, its name, and a description."""

    uri: str
    name: str
    description: str


class ResourcePage(NamedTuple):
    """A part of the list. `next_cursor` is None on the last page."""

    resources: tuple[EchoResource, ...]
    next_cursor: str | None


def list_resources(session: ServerSession, cursor: str | None) -> ResourcePage:
    """List memory files, then entries, from a cursor that an earlier page returned. An unknown cursor is the start."""
    documents = session.finder.list_documents(session.sources("project"), _KINDS).results
    roles = dict.fromkeys(document.role for document in documents)
    files = [EchoResource(f"echo://memory/{role}", f"{role}/MEMORY.md", f"The memory of {role}.") for role in roles]
    entries = [
        EchoResource(f"echo://entry/{document.id}", document.title or document.id, _description(document))
        for document in documents
    ]
    everything = [*files, *entries]
    start = int(cursor) if cursor is not None and cursor.isascii() and cursor.isdigit() else 0
    page = everything[start : start + PAGE_SIZE]
    end = start + len(page)
    return ResourcePage(tuple(page), str(end) if end < len(everything) else None)


def read_resource(session: ServerSession, uri: str) -> str | None:
    """Return the text of a resource; None if there is none at this address."""
    address = _URI.fullmatch(uri)
    if address is None:
        return None
    sources = session.sources("project")
    if address["kind"] == "entry":
        found = session.finder.list_documents(sources, frozenset(DocumentKind), ids=[address["name"]]).results
        return as_data(_entry_text(found[0])) if found else None
    documents = session.finder.list_documents(sources, _KINDS).results
    own = [document for document in documents if document.role == address["name"]]
    return as_data("\n\n".join(map(_entry_text, own))) if own else None


def _description(document: FoundDocument) -> str:
    parts = (document.layer or "no layer", document.role, document.date)
    return ", ".join(part for part in parts if part)


def _entry_text(document: FoundDocument) -> str:
    date = f" ({document.date})" if document.date else ""
    source = f"**Source**: `{document.source}`\n" if document.source else ""
    layer = f"{document.layer.capitalize()} \u2014 " if document.layer else ""
    return f"## {layer}{document.title}{date}\n{source}\n{document.body}"
