"""The project and the session that a server works for, the records that it writes, and the resources that it offers.

The project is the nearest one at or above the directory that the client names (`CLAUDE_PROJECT_DIR`) or starts the
server in. It is looked up again at each call, since a project may get its memory while the server runs.

A resource is a memory file or an entry in it:

    echo://memory/{role}      a memory file
    echo://entry/{id}         an entry

Texts are read from the index, so they contain no secrets, and they are fenced as data.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Mapping
from datetime import date
from pathlib import Path
from typing import Final, NamedTuple

from echod.app.found_evidence import EvidenceReader
from echod.app.search import SearchLocations
from echod.clock import local_date
from echod.errors import StateError
from echod.hooks import spool
from echod.inspection.inspect import read_document, record_entries
from echod.lazy import lazy_pattern
from echod.log import get_logger
from echod.memory.redact import redact
from echod.paths import Paths
from echod.projects.discovery import main_worktree_path
from echod.search.documents import DocumentKind, DocumentSource, SearchScope
from echod.search.finder import DocumentFinder, FoundDocument, as_data
from echod.state.database import Database
from echod.state.entries import EntryStore, Reference
from echod.state.entry_ids import RelatedEntries, RelatedEntry
from echod.store import layout
from echod.store.layout import Role, Store, store_at

SESSION_VARIABLE: Final = "CLAUDE_CODE_SESSION_ID"
PROJECT_VARIABLE: Final = "CLAUDE_PROJECT_DIR"
LEARN_EVENT: Final = "learn"
_UPSTREAM_INDEX: Final = ".search-index.db"
_SIGNALS: Final = Path("tmp/.rune-signals/.echo-dirty")

log = get_logger(__name__)


class ServerSession:
    """One client's session: its project, its searches and its records."""

    def __init__(self, paths: Paths, environ: Mapping[str, str], cwd: Path | None, clock: Callable[[], float]) -> None:
        self._paths = paths
        self._environ = environ
        self._cwd = cwd
        self._clock = clock
        self.locations = SearchLocations.from_environment(paths, environ, ())
        self.finder = DocumentFinder(paths.search_index)
        self.key = _session_key(environ)

    def close(self) -> None:
        """Close the index."""
        self.finder.close()

    @property
    def stores(self) -> tuple[Store, ...]:
        """The stores of the project as they are now; none if the client is in no project."""
        named = self._environ.get(PROJECT_VARIABLE)
        if named is None and self._cwd is None:
            return ()
        start = (self._cwd or Path("/")) / (named or "")
        locator = self.locations.locator
        try:
            project = locator.find_project(main_worktree_path(start))
            return () if project is None else locator.find_stores(project)
        except (OSError, ValueError):
            return ()

    def sources(self, scope: str) -> tuple[DocumentSource, ...]:
        """Return the sources of a scope. `all` is this project and the global store: agents see no other project."""
        stores = self.stores
        project = self.locations.sources(SearchScope.PROJECT, stores) if scope != SearchScope.GLOBAL else ()
        shared = self.locations.sources(SearchScope.GLOBAL, ()) if scope != SearchScope.PROJECT else ()
        return (*project, *shared)

    def evidence_reader(self) -> EvidenceReader:
        """Return a reader that checks citations as of now."""
        return EvidenceReader(self._paths, self._clock(), self.finder)

    def take_signals(self) -> None:
        """Remove the signals by which other programs announce changes, since every answer is up to date anyway.

        Where the plugin's own index exists, its server is the reader of the signals, and they are left for it.
        """
        for store in self.stores:
            if not (store.root / _UPSTREAM_INDEX).exists():
                _remove_signal(store.project, _SIGNALS)
        global_root = layout.global_store(self.locations.locator.agent_home).root
        if not (global_root / ".global-index.db").exists():
            _remove_signal(global_root, Path(layout.DIRTY_MARKER))

    # Records

    def record_access(self, documents: Iterable[FoundDocument]) -> int:
        """Record a use of entries, once per session and day. Return the number of entries.

        Raises:
            StateError: the state database cannot be written.
        """
        by_role: dict[tuple[str, str], list[FoundDocument]] = {}
        for document in documents:
            by_role.setdefault((document.store, document.role), []).append(document)
        if not by_role:
            return 0
        now = self._clock()
        today = local_date(now)
        with Database.open(self._paths.database) as database:
            entries = EntryStore(database)
            for (store_key, role_name), found in by_role.items():
                store = store_at(Path(store_key))
                memory = read_document(Role(store, role_name).memory)
                if memory is not None:
                    record_entries(entries, Role(store, role_name), memory, today)
                workflow = entries.workflow_at(str(store.project), now)
                references = [Reference(document.id, self._cause(today), workflow) for document in found]
                entries.add_references(store_key, references, today)
        return sum(map(len, by_role.values()))

    def _cause(self, today: date) -> str:
        return f"session:{self.key}:{today.isoformat()}"

    def add_group(self, group: str, members: Iterable[RelatedEntry]) -> None:
        """Add entries to a group.

        Raises:
            StateError: the state database cannot be written.
        """
        with Database.open(self._paths.database) as database:
            RelatedEntries(database).add(group, members)

    def related_to(self, documents: Iterable[FoundDocument]) -> Mapping[str, tuple[str, ...]]:
        """Return the ids of the entries that are related to these. None are known if the database cannot be read."""
        found = tuple(documents)
        try:
            database = Database.open_readonly(self._paths.database)
        except StateError as error:
            log.warning("groups_unreadable", error=str(error))
            return {}
        if database is None or not found:
            return {}
        with database:
            return RelatedEntries(database).related_to(
                {document.store for document in found}, [document.id for document in found]
            )

    def spool_learning(self, event: bytes) -> bool:
        """Leave a learning in the spool, as a hook leaves its event. Return False if it was dropped, and counted.

        Raises:
            OSError: the spool cannot be written.
        """
        now_ns = int(self._clock() * 1e9)
        return spool.write_event(str(self._paths.spool), LEARN_EVENT, event, now_ns, os.getpid())


def _session_key(environ: Mapping[str, str]) -> str:
    """Return the key of the client's session, or of this process. A key that is a secret is replaced by its hash."""
    session = environ.get(SESSION_VARIABLE, "")
    if not session:
        return f"process-{os.getpid()}-{os.urandom(4).hex()}"
    return session if redact(session).text == session else hashlib.sha256(session.encode()).hexdigest()


def _remove_signal(root: Path, below: Path) -> None:
    """Remove a signal below a directory. No symbolic link on the way is followed."""
    path = root / below
    if any((root / parent).is_symlink() for parent in below.parents):
        return
    try:
        path.unlink()
    except (FileNotFoundError, NotADirectoryError):
        return
    except OSError as error:
        log.info("signal_not_removed", path=str(path), error=error.strerror)


PAGE_SIZE: Final = 100
MIME_TYPE: Final = "text/markdown"
ENTRY_TEMPLATE: Final = "echo://entry/{id}"
MEMORY_TEMPLATE: Final = "echo://memory/{role}"
_URI: Final = lazy_pattern(r"echo://(?P<kind>entry|memory)/(?P<name>[A-Za-z0-9_-]{1,128})")
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
