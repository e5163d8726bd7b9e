"""The solutions of a project as a source of the search index."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from echod.files import file_version
from echod.lazy import lazy_imports
from echod.search.documents import DocumentKind, DocumentScope, SearchDocument, SourceFile, UnreadableFileError
from echod.search.sources import read_whole
from echod.store.layout import ARCHIVE, SOLUTIONS, is_real_directory

with lazy_imports(__name__):
    from echod.memory.solutions import document as document_module
    from echod.remembrance import library

_MAX_DEPTH: Final = 4
_SUFFIX: Final = ".md"


class SolutionSource(NamedTuple):
    """The solutions of one project. Essays without front matter are no documents of it."""

    root: Path
    """The root of the project."""

    @property
    def key(self) -> str:
        """The unique name of the source."""
        return f"solutions:{self.root}"

    @property
    def kinds(self) -> frozenset[DocumentKind]:
        """The kinds of its documents."""
        return frozenset({DocumentKind.SOLUTION})

    @property
    def scope(self) -> DocumentScope:
        """The scope of its documents."""
        return DocumentScope.PROJECT

    @property
    def project(self) -> str:
        """The project."""
        return str(self.root)

    @property
    def store(self) -> str:
        """The directory that it reads."""
        return str(self.root / SOLUTIONS)

    def list_files(self) -> Sequence[SourceFile]:
        """List the files. Symbolic links are skipped."""
        return list(list_solution_files(self.root))

    def read_file(self, path: Path) -> bytes:
        """Return the content of a file."""
        return read_whole(path)

    def read_documents(self, file: Path, data: bytes) -> Sequence[SearchDocument]:
        """Return the solution in a file; none if it is an essay.

        Raises:
            UnreadableFileError: its front matter cannot be understood.
        """
        return list(_read(file, data))


def _read(file: Path, data: bytes) -> Iterator[SearchDocument]:
    document = library.read_document(file, data)
    if document is None:
        return
    if isinstance(document, document_module.UnreadableSolution):
        raise UnreadableFileError(f"{file.name} is not searched. {document.reason}")
    # The title too, because an excerpt may begin anywhere.
    notice = f"Superseded by {document.superseded_by}\n\n" if document.superseded_by else ""
    mark = "(superseded) " if document.superseded_by else ""
    yield SearchDocument(
        id=file.stem,
        kind=DocumentKind.SOLUTION,
        title=mark + document.title,
        body=notice + document.body,
        line=document.line,
        text="\n".join(
            (*document.tags, document.symptom, document.root_cause, document.solution_summary, document.body)
        ),
        category=document.category,
        date=document.date,
        source=document.echo_ref,
        citations=document.affected_files,
    )


def list_solution_files(project: Path) -> Iterator[SourceFile]:
    """Yield the files that may be solutions, in the order of their paths.

    Raises:
        OSError: a directory cannot be listed, which does not mean that it is empty.
    """
    root = project
    for part in SOLUTIONS.parts:
        root /= part
        if not is_real_directory(root):
            return
    yield from _list_directory(root, _MAX_DEPTH)


def _list_directory(directory: Path, depth: int) -> Iterator[SourceFile]:
    with os.scandir(directory) as entries:
        found = sorted(entries, key=lambda entry: entry.name)
    for entry in found:
        if entry.name.startswith("."):
            continue
        status = entry.stat(follow_symlinks=False)
        if stat.S_ISDIR(status.st_mode):
            if depth > 1 and entry.name != ARCHIVE:
                yield from _list_directory(Path(entry.path), depth - 1)
        elif stat.S_ISREG(status.st_mode) and is_solution_name(entry.name):
            yield SourceFile(Path(entry.path), file_version(status))


def is_solution_name(name: str) -> bool:
    """Return whether a file of this name may be a solution."""
    return name.endswith(_SUFFIX) and not name.lower().startswith("readme")
