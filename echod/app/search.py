"""List the sources of a search: those of a project, of the global store, or everything.

This is the one list of sources. Separate from `context`, which loads much that a search does without.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from echod.paths import Paths, conversations_name
from echod.projects.discovery import ProjectLocator, discover_stores
from echod.projects.registry import ProjectRegistry, expand_globs
from echod.remembrance.source import SolutionSource
from echod.search.artifacts import ArtifactSource
from echod.search.documents import DocumentKind, DocumentSource, SearchScope
from echod.search.sources import ArchiveSource, ConversationSource, MemorySource
from echod.store.layout import Store, global_store, packs_store

ALL_KINDS: Final = frozenset(DocumentKind)


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

    def project_sources(self, stores: Sequence[Store], kinds: Container[DocumentKind]) -> Iterator[DocumentSource]:
        """Yield the sources of one project, which has these stores."""
        projects = {store.project: None for store in stores}
        for store in stores:
            if DocumentKind.MEMORY in kinds or DocumentKind.KNOWLEDGE in kinds:
                yield MemorySource(store)
            if DocumentKind.ARCHIVE in kinds:
                yield ArchiveSource(store)
        for project in projects:
            if DocumentKind.SOLUTION in kinds:
                yield SolutionSource(project)
            if DocumentKind.SESSION in kinds:
                for root in (self.conversations / conversations_name(project), project / ".rune"):
                    yield ConversationSource(root / "memory", str(project))
        if DocumentKind.ARTIFACT in kinds:
            yield from self.artifact_sources(stores)

    def artifact_sources(self, stores: Iterable[Store]) -> Iterator[DocumentSource]:
        """Yield the source of what workflows left behind in the project with these stores."""
        yield from {store.project: ArtifactSource(store.project) for store in stores}.values()

    def global_sources(self, kinds: Container[DocumentKind]) -> Iterator[DocumentSource]:
        """Yield the sources that belong to no project."""
        if DocumentKind.MEMORY in kinds or DocumentKind.KNOWLEDGE in kinds:
            yield MemorySource(global_store(self.locator.agent_home))
            yield MemorySource(packs_store(self.locator.agent_home))

    def all_sources(self, kinds: Container[DocumentKind] = ALL_KINDS) -> Iterator[DocumentSource]:
        """Yield the sources of all projects that echod maintains, and the global ones.

        Raises:
            EchodError: the list of projects cannot be read.
        """
        projects = (*ProjectRegistry(self.paths.projects).roots(), *expand_globs(self.globs))
        yield from self.project_sources(discover_stores(projects, self.locator).stores, kinds)
        yield from self.global_sources(kinds)

    def sources(
        self, scope: SearchScope, stores: Sequence[Store], kinds: Container[DocumentKind] = ALL_KINDS
    ) -> tuple[DocumentSource, ...]:
        """Return the sources of a scope that have documents of these kinds, each once.

        `stores` are those of the project in which the user is.
        """
        chosen: list[DocumentSource] = []
        if scope is not SearchScope.GLOBAL:
            chosen += self.project_sources(stores, kinds)
        if scope is SearchScope.ALL:
            chosen += self.all_sources(kinds)
        elif scope is SearchScope.GLOBAL:
            chosen += self.global_sources(kinds)
        return tuple({source.key: source for source in chosen}.values())

    def conversation_sources(self, scope: SearchScope, stores: Sequence[Store]) -> tuple[DocumentSource, ...]:
        """Return the sources of a scope that have archived conversations."""
        found = self.sources(scope, stores, {DocumentKind.SESSION})
        return tuple(source for source in found if (Path(source.store) / "conversations").is_dir())
