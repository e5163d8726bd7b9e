"""Compose searches: which sources a search looks at, for a project, the global store, or everything.

This is the one list of sources. Separate from `context`, which loads much that a search does without.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

from echod.paths import Paths, conversations_name
from echod.projects.discovery import discover_stores
from echod.projects.location import ProjectLocator
from echod.projects.registry import ProjectRegistry, expand_globs
from echod.remembrance.source import SolutionSource
from echod.search.artifacts import ArtifactSource
from echod.search.conversation_source import ConversationSource
from echod.search.documents import DocumentSource
from echod.search.memory_source import ArchiveSource, MemorySource
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
