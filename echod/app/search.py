"""Compose searches: the sources of a project, the global store or everything, and the evidence of what was found.

This is the one list of sources. Separate from `context`, which loads much that a search does without.

For readers of memory: nothing is recorded. Separate from `context`, which loads much that a search does without.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from datetime import date
from enum import StrEnum
from pathlib import Path
from typing import Final, NamedTuple, Self

from echod.errors import StateError
from echod.evidence.verifier import CheckedCitation, EvidenceVerifier, StoredBases, read_bases
from echod.memory.evidence.compare import EvidenceState
from echod.paths import Paths, conversations_name
from echod.projects.discovery import ProjectLocator, discover_stores
from echod.projects.registry import ProjectRegistry, expand_globs
from echod.remembrance.source import SolutionSource
from echod.search.artifacts import ArtifactSource
from echod.search.documents import DocumentKind, DocumentSource
from echod.search.finder import FoundDocument
from echod.search.sources import ArchiveSource, ConversationSource, MemorySource
from echod.state.database import Database
from echod.state.fingerprints import FingerprintStore
from echod.store.layout import Store, global_store, packs_store


class SearchScope(StrEnum):
    """Where a search looks: in one project, in the global store, or in all projects and the global store."""

    PROJECT = "project"
    GLOBAL = "global"
    ALL = "all"


class SearchLocations(NamedTuple):
    """The places that sources are made of. `globs` are the projects of the settings."""

    paths: Paths
    locator: ProjectLocator
    globs: Sequence[str]
    conversations: Path
    """The directory with the conversations of each project."""

    @classmethod
    def from_environment(
        cls, paths: Paths, environ: Mapping[str, str], globs: Sequence[str], conversations: str = ""
    ) -> SearchLocations:
        """Return the locations of this user. `conversations` is the setting `sessions.root`."""
        base = Path(conversations).expanduser() if conversations else paths.sessions
        return cls(paths, ProjectLocator.from_environment(environ), globs, base)

    def project_sources(self, stores: Sequence[Store]) -> Iterator[DocumentSource]:
        """Yield the sources of one project, which has these stores."""
        projects: dict[Path, None] = {}
        for store in stores:
            yield MemorySource(store)
            yield ArchiveSource(store)
            projects[store.project] = None
        for project in projects:
            yield SolutionSource(project)
            for root in (self.conversations / conversations_name(project), project / ".rune"):
                yield ConversationSource(root / "memory", str(project))
        yield from self.artifact_sources(stores)

    def artifact_sources(self, stores: Iterable[Store]) -> Iterator[DocumentSource]:
        """Yield the source of what workflows left behind in the project with these stores."""
        yield from {store.project: ArtifactSource(store.project) for store in stores}.values()

    def global_sources(self) -> Iterator[DocumentSource]:
        """Yield the sources that belong to no project."""
        yield MemorySource(global_store(self.locator.agent_home))
        yield MemorySource(packs_store(self.locator.agent_home))

    def all_sources(self) -> Iterator[DocumentSource]:
        """Yield the sources of all projects that echod maintains, and the global ones.

        Raises:
            EchodError: the list of projects cannot be read.
        """
        projects = (*ProjectRegistry(self.paths.projects).roots(), *expand_globs(self.globs))
        yield from self.project_sources(discover_stores(projects, self.locator).stores)
        yield from self.global_sources()

    def sources(self, scope: SearchScope, stores: Sequence[Store]) -> tuple[DocumentSource, ...]:
        """Return the sources of a scope, for a user in the project with these stores. Each source appears once."""
        chosen: list[DocumentSource] = []
        if scope is not SearchScope.GLOBAL:
            chosen += self.project_sources(stores)
        if scope is SearchScope.ALL:
            chosen += self.all_sources()
        elif scope is SearchScope.GLOBAL:
            chosen += self.global_sources()
        return tuple({source.key: source for source in chosen}.values())


_VERIFIED: Final = re.compile(r"verified\W{1,6}(\d{4}-\d\d-\d\d)", re.IGNORECASE)


class EvidenceReader:
    """Checks the citations of found documents. Opens what it needs when it is needed, and closes it at the end."""

    def __init__(self, paths: Paths, now: float) -> None:
        self._paths = paths
        self._now = now
        self._stack = ExitStack()
        self._fingerprints: FingerprintStore | None = None
        self._is_open = False
        self._verifiers: dict[str, EvidenceVerifier] = {}
        self._bases: dict[tuple[str, str], StoredBases] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for verifier in self._verifiers.values():
            verifier.close()
        self._stack.close()

    def check(self, found: FoundDocument) -> tuple[CheckedCitation, ...]:
        """Return the states of a document's citations. All are unknown where they belong to no project."""
        if not found.citations:
            return ()
        if not found.project or found.kind is DocumentKind.ARCHIVE:
            return tuple(CheckedCitation(cite, EvidenceState.UNKNOWN) for cite in found.citations)
        verifier = self._verifiers.get(found.project)
        if verifier is None:
            verifier = self._verifiers[found.project] = EvidenceVerifier(Path(found.project), self._now)
        stored = (
            self._read_bases(found.store, found.role).get(found.id, {}) if found.kind is DocumentKind.MEMORY else {}
        )
        return verifier.check(found.citations, _day(found), stored).citations

    def _read_bases(self, store: str, role: str) -> StoredBases:
        if (store, role) not in self._bases:
            if not self._is_open:
                self._is_open = True
                try:
                    database = Database.open_readonly(self._paths.database)
                except StateError:
                    database = None  # the history of the project is enough for most entries
                if database is not None:
                    self._fingerprints = FingerprintStore(self._stack.enter_context(database))
            self._bases[store, role] = read_bases(self._fingerprints, store, role)
        return self._bases[store, role]


def _day(found: FoundDocument) -> date | None:
    days = [found.date, *_VERIFIED.findall(found.body)]
    try:
        return max((date.fromisoformat(day) for day in days if day), default=None)
    except ValueError:
        return None
