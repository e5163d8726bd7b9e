"""Define what is searched: documents, the files that they come from, and the protocol of a source of documents.

A *source* is one place on the disk, such as one store, the solutions of one project, or the conversations of one root.
The index knows nothing else about it. To make another kind of text searchable, implement `DocumentSource` and add the
source to `echod.app.search`.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import Final, NamedTuple, Protocol

from echod.files import FileVersion

DEFAULT_LIMIT: Final = 10
"""The number of results without a limit of the caller."""

MAX_LIMIT: Final = 1000
"""The largest number of results that a command line may ask for."""


class SearchScope(StrEnum):
    """Where a search looks: in one project, in the global store, or in all projects and the global store."""

    PROJECT = "project"
    GLOBAL = "global"
    ALL = "all"


class DocumentKind(StrEnum):
    """The kind of a document, as `echod search --kind` names it."""

    MEMORY = "memory"
    KNOWLEDGE = "knowledge"
    ARCHIVE = "archive"
    SESSION = "session"
    SOLUTION = "solution"
    ARTIFACT = "artifact"


class DocumentScope(StrEnum):
    """Whether a document belongs to one project, or to all projects of the user."""

    PROJECT = "project"
    GLOBAL = "global"


class SourceFile(NamedTuple):
    """A file of a source as it is on the disk now. Files of equal versions have equal documents."""

    path: Path
    version: FileVersion


class SearchDocument(NamedTuple):
    """One text that a search can find: an entry, a learning, a solution, a conversation.

    The texts are as the file has them. The index removes secrets from every text before it stores it, and decides
    whether a text reads like an instruction to agents. A document must not depend on any file but its own.
    """

    id: str
    """Identifies the document in its source. For an entry it is the entry's id."""
    kind: DocumentKind
    title: str
    body: str
    """The text that is shown."""
    line: int
    """The line of the heading in the file, from 1."""
    text: str | None = None
    """The text that is searched beside title, source and citations; None means the body."""
    role: str = ""
    layer: str = ""
    """The layer of an entry; "" if it has none or an unknown one."""
    category: str = ""
    domain: str = ""
    date: str = ""
    """The date in ISO 8601, or as the file has it; "" if there is none."""
    source: str = ""
    """Where the learning comes from, for example a review."""
    confidence: float | None = None
    citations: tuple[str, ...] = ()
    """The evidence: paths, each perhaps with lines (`src/a.py:3-9`)."""


class DocumentSource(Protocol):
    """All documents of one place on the disk. Both methods are called often, so listing must not read the files."""

    @property
    def key(self) -> str:
        """The unique name of the source, for example `memory:/home/me/app/.rune/echoes`."""

    @property
    def kinds(self) -> frozenset[DocumentKind]:
        """The kinds of its documents. A search for other kinds does not look at the source."""

    @property
    def scope(self) -> DocumentScope:
        """The scope of its documents."""

    @property
    def project(self) -> str:
        """The absolute path of the project that it belongs to; "" for none."""

    @property
    def store(self) -> str:
        """The absolute path of the directory that it reads."""

    def list_files(self) -> Sequence[SourceFile]:
        """List all its files, without reading them. A place that does not exist has no files.

        Raises:
            OSError: the place cannot be listed, which does not mean that it is empty.
        """

    def read_file(self, path: Path) -> bytes:
        """Return the content of a file, without what has no document.

        Raises:
            OSError: it cannot be read, or is too large.
        """

    def read_documents(self, file: Path, data: bytes) -> Sequence[SearchDocument]:
        """Return the documents in a file with this content, in file order.

        Raises:
            UnreadableFileError: the content cannot be understood; no document of the file is found then.
        """


class UnreadableFileError(Exception):
    """The content of a file cannot be understood. The text is a sentence for the user."""
