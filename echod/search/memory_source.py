"""The documents of a store: its memory and knowledge files, and its archive.

Memory and archive are two sources, because most searches leave the archive out. A block without the form of an entry
is a document too, as long as it has a text: users write sections of their own.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from echod.files import file_version
from echod.memory.model import KNOWLEDGE_FILE, MAX_FILE_BYTES, MEMORY_FILE
from echod.search.documents import DocumentKind, DocumentScope, SearchDocument, SourceFile, UnreadableFileError
from echod.store.layout import ARCHIVE, MEMORY_BACKUP_PREFIX, ROLE_NAME, Store, find_roles, global_root

if TYPE_CHECKING:
    from echod.memory.model import Block, Document, Entry  # the parser takes long to load, and is often not needed

_GLOBAL_ROLES_EXCLUDED: Final = frozenset({"doc-packs", "manifests"})
_HIDDEN_FIELDS: Final = frozenset({"source", "category", "domain", "layer", "date", "tags"})
_SUFFIX: Final = ".md"
ID_LENGTH: Final = 12
"""The length of the id of a section, as of an entry."""
_NAME: Final = re.compile(r"[\w./@+-]+")
_HEADING: Final = re.compile(r"^ {0,3}#{1,6}[ \t]*")


class MemorySource(NamedTuple):
    """The memory and knowledge files of a project's store, of the global store, or of the doc packs."""

    location: Store

    @property
    def key(self) -> str:
        """The unique name of the source."""
        return f"memory:{self.location.key}"

    @property
    def kinds(self) -> frozenset[DocumentKind]:
        """The kinds of its documents."""
        return frozenset({DocumentKind.MEMORY, DocumentKind.KNOWLEDGE})

    @property
    def scope(self) -> DocumentScope:
        """The scope of its documents."""
        return _scope(self.location)

    @property
    def project(self) -> str:
        """The project of the store; "" for the global store."""
        return _project(self.location)

    @property
    def store(self) -> str:
        """The store's directory."""
        return self.location.key

    def list_files(self) -> Sequence[SourceFile]:
        """List the files of all roles. Symbolic links are skipped."""
        found: list[SourceFile] = []
        for directory in _role_directories(self.location):
            for name in (MEMORY_FILE, KNOWLEDGE_FILE):
                path = f"{directory}/{name}"
                if (file := _regular_file(path)) is not None:
                    found.append(file)
        return found

    def read_documents(self, file: Path, data: bytes) -> Sequence[SearchDocument]:
        """Return the entries and other sections of a file."""
        kind = DocumentKind.KNOWLEDGE if file.name == KNOWLEDGE_FILE else DocumentKind.MEMORY
        role = "" if file.parent == self.location.root else file.parent.name
        return tuple(_memory_documents(role, kind, data))


class ArchiveSource(NamedTuple):
    """The archive of a project's store: removed entries and backups of memory files."""

    location: Store

    @property
    def key(self) -> str:
        """The unique name of the source."""
        return f"archive:{self.location.key}"

    @property
    def kinds(self) -> frozenset[DocumentKind]:
        """The kinds of its documents."""
        return frozenset({DocumentKind.ARCHIVE})

    @property
    def scope(self) -> DocumentScope:
        """The scope of its documents."""
        return _scope(self.location)

    @property
    def project(self) -> str:
        """The project of the store; "" for the global store."""
        return _project(self.location)

    @property
    def store(self) -> str:
        """The store's directory."""
        return self.location.key

    def list_files(self) -> Sequence[SourceFile]:
        """List the Markdown files in the archives of all roles."""
        found: list[SourceFile] = []
        for directory in _role_directories(self.location):
            archive = f"{directory}/{ARCHIVE}"
            try:
                is_directory = stat.S_ISDIR(os.lstat(archive).st_mode)
            except (FileNotFoundError, NotADirectoryError):
                continue
            if not is_directory:
                continue
            with os.scandir(archive) as entries:
                names = sorted(entry.name for entry in entries if entry.name.endswith(_SUFFIX))
            found += filter(None, (_regular_file(f"{archive}/{name}") for name in names))
        return found

    def read_documents(self, file: Path, data: bytes) -> Sequence[SearchDocument]:
        """Return the archived entries of a file. A backup of a memory file has the same entries as that file."""
        role = "" if file.parent.parent == self.location.root else file.parent.parent.name
        if file.name.startswith(MEMORY_BACKUP_PREFIX):
            return tuple(_memory_documents(role, DocumentKind.ARCHIVE, data))
        return tuple(_archived_documents(role, data))


def _scope(store: Store) -> DocumentScope:
    return DocumentScope.PROJECT if global_root(store) is None else DocumentScope.GLOBAL


def _project(store: Store) -> str:
    return str(store.project) if global_root(store) is None else ""


def _role_directories(store: Store) -> Iterator[str]:
    """Yield the directories that have memory files. A store that does not exist has none."""
    try:
        roles = find_roles(store)
    except (FileNotFoundError, NotADirectoryError):
        return
    root = store.key
    if global_root(store) is not None and store.root.name not in _GLOBAL_ROLES_EXCLUDED:
        yield root  # the memory of the global store has no role
        return
    yield from (f"{root}/{role.name}" for role in roles if ROLE_NAME.fullmatch(role.name))


def _regular_file(path: str) -> SourceFile | None:
    try:
        status = os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    return SourceFile(Path(path), file_version(status)) if stat.S_ISREG(status.st_mode) else None


def _memory_documents(role: str, kind: DocumentKind, data: bytes) -> Iterator[SearchDocument]:
    from echod.memory.document import count_lines  # noqa: PLC0415  see above
    from echod.memory.identity import entry_ids  # noqa: PLC0415

    document = _parse(data)
    line = 1 + document.preamble.count("\n")
    for identity, block in zip(entry_ids(role, document), document.blocks, strict=True):
        found = _from_block(role, kind, identity, block, line)
        if found is not None:
            yield found
        line += count_lines(block.text)


def _parse(data: bytes) -> Document:
    from echod.memory.document import parse  # noqa: PLC0415  see above
    from echod.memory.model import Unreadable  # noqa: PLC0415

    document = parse(data, max_bytes=MAX_FILE_BYTES)
    if isinstance(document, Unreadable):
        raise UnreadableFileError(document.reason)
    return document


def _archived_documents(role: str, data: bytes) -> Iterator[SearchDocument]:
    from echod.memory.document import parse_block  # noqa: PLC0415  see above
    from echod.memory.policy.archive import read_archive  # noqa: PLC0415

    position, line = 0, 1
    for archived in read_archive(data).entries:
        block = parse_block(archived.text)
        start = data.find(archived.text.encode(), position)
        line += data.count(b"\n", position, max(start, position))
        position = max(start, position)
        found = _from_block(role, DocumentKind.ARCHIVE, archived.id, block, line)
        if found is not None:
            yield found


def _from_block(role: str, kind: DocumentKind, identity: str | None, block: Block, line: int) -> SearchDocument | None:
    text = block.text.replace("\r\n", "\n")
    if text is not block.text:
        block = _reparse(text)
    if block.entry is None:
        return _from_section(role, kind, text, line)
    entry = block.entry
    learning = block.body
    if not learning.strip():
        return None
    values = {field.name: field.value for field in reversed(entry.fields)}
    day = entry.heading_date
    return SearchDocument(
        id=identity or "",
        kind=kind,
        title=entry.full_title,
        body=_shown_text(block, entry),
        line=line,
        text=_searched_text(entry, learning, values.get("tags", "")),
        role=role,
        layer=entry.layer.value if entry.layer else "",
        category=_first_name(values.get("category", "")),
        domain=_first_name(values.get("domain", "")),
        date=day.isoformat() if day else "",
        source=entry.source or "",
        confidence=entry.confidence,
        citations=_citations(entry, learning),
    )


def _reparse(text: str) -> Block:
    from echod.memory.document import parse_block  # noqa: PLC0415  see above

    return parse_block(text)


def _from_section(role: str, kind: DocumentKind, text: str, line: int) -> SearchDocument | None:
    """Return the document of a block that is no entry. Its id, which only search uses, is made of its heading."""
    heading, _, body = text.strip().partition("\n")
    title = _HEADING.sub("", heading).strip(" #\t")
    if not body.strip():
        return None
    identity = hashlib.sha256(f"section\n{role}\n{title}".encode()).hexdigest()[:ID_LENGTH]
    return SearchDocument(identity, kind, title, body.strip(), line, role=role)


def _shown_text(block: Block, entry: Entry) -> str:
    """Return the text of an entry without its heading and without the fields that a result has of its own."""
    text = block.text
    _, _, rest = text.partition("\n")
    offset = len(text) - len(rest)
    hidden: list[tuple[int, int]] = []
    for field in entry.fields:
        if field.name in _HIDDEN_FIELDS:
            start = text.rfind("\n", 0, field.span.start) + 1
            end = text.find("\n", field.span.end)
            hidden.append((start, len(text) if end < 0 else end + 1))
    parts, position = [], offset
    for start, end in sorted(hidden):
        parts.append(text[position : max(start, position)])
        position = max(position, end)
    parts.append(text[position:])
    return "".join(parts).strip()


def _searched_text(entry: Entry, learning: str, tags: str) -> str:
    """Return the learning without what every entry has: the subject of a task again, escaped line breaks."""
    kept = [
        line
        for line in learning.replace("\\n", "\n").split("\n")
        if not _repeats_title(line, entry.title) and not line.lstrip("-* ").lower().startswith("**confidence**: low")
    ]
    return "\n".join([*kept, tags]).strip()


def _repeats_title(line: str, title: str) -> bool:
    _, label, subject = line.partition("Task completed: ")
    return bool(label) and bool(subject.strip()) and subject.strip() in title


def _first_name(value: str) -> str:
    match = _NAME.search(value)
    return match[0].lower() if match else ""


def _citations(entry: Entry, learning: str) -> tuple[str, ...]:
    from echod.memory.knowledge.text import body_references, evidence_references  # noqa: PLC0415  see above
    from echod.memory.similarity import files_in  # noqa: PLC0415

    references = dict.fromkeys((*evidence_references(entry.evidence or ""), *body_references(learning)))
    return tuple(reference for reference in references if files_in(reference))
