from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from echod.search.documents import DocumentKind, DocumentSource
from echod.search.finder import DEFAULT_KINDS, DocumentFinder, FoundDocument, SearchRequest
from echod.search.sources import ArchiveSource, MemorySource
from echod.store.layout import find_stores

ALL_KINDS = frozenset(DocumentKind)


class Library:
    """A project with a store, and its finder."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.store = root / "project/.rune/echoes"
        self.store.mkdir(parents=True)
        self.index = root / "state/search.db"
        self.finder = DocumentFinder(self.index)

    @property
    def sources(self) -> tuple[DocumentSource, ...]:
        (store,) = find_stores(self.root / "project")
        return MemorySource(store), ArchiveSource(store)

    def write(self, role: str, text: str, name: str = "MEMORY.md") -> Path:
        file = self.store / role / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        return file

    def find(self, query: str, kinds: frozenset[DocumentKind] = DEFAULT_KINDS) -> tuple[FoundDocument, ...]:
        answer = self.finder.search(self.sources, SearchRequest(query, kinds))
        assert answer.stale is None
        return answer.results

    def titles(self, query: str, kinds: frozenset[DocumentKind] = DEFAULT_KINDS) -> list[str]:
        return [found.title for found in self.find(query, kinds)]


def entry(title: str, text: str, *, layer: str = "Inscribed", date: str = "2026-10-01", source: str = "rune:r1") -> str:
    return f"## {layer} \u2014 {title} ({date})\n\n**Source**: `{source}`\n\n{text}\n\n"


@pytest.fixture
def library(tmp_path: Path) -> Iterator[Library]:
    made = Library(tmp_path)
    yield made
    made.finder.close()


@pytest.fixture
def in_another_process(library: Library) -> Callable[[str], list[str]]:
    """Search with a finder of its own, as another process would."""

    def search(query: str) -> list[str]:
        finder = DocumentFinder(library.index)
        try:
            return [found.title for found in finder.search(library.sources, SearchRequest(query)).results]
        finally:
            finder.close()

    return search
