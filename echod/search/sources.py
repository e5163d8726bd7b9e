"""The documents of a store and of a directory of conversations, read when a search or the index needs them.

Memory and archive are two sources, because most searches leave the archive out.

A conversation is one document. A very long one is several, so that a result leads to the right place in it.

A block without the form of an entry is a document too, as long as it has a text: users write sections of their own.
"""

from __future__ import annotations

import errno
import hashlib
import os
import re
import stat
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from echod.files import file_version, open_regular, read_regular
from echod.lazy import lazy_imports, lazy_pattern
from echod.memory import KNOWLEDGE_FILE, MAX_FILE_BYTES, MEMORY_FILE
from echod.search.documents import DocumentKind, DocumentScope, SearchDocument, SourceFile, UnreadableFileError
from echod.store.layout import ARCHIVE, MEMORY_BACKUP_PREFIX, Store, find_roles, global_root

with lazy_imports(__name__):
    from echod.evidence import entries
    from echod.memory import archive as memory_archive
    from echod.memory import document, identity, model
    from echod.memory.conversation import archive as archive_module

if TYPE_CHECKING:
    from echod.memory.model import Block, Document, Entry

_GLOBAL_ROLES_EXCLUDED: Final = frozenset({"doc-packs", "manifests"})
_SUFFIX: Final = ".md"
_MAX_PATHS: Final = 4096


def read_whole(path: Path) -> bytes:
    """Return the content of a file of a usual size. Raises OSError."""
    return read_regular(path, MAX_FILE_BYTES, follow_symlinks=False)


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

    def read_file(self, path: Path) -> bytes:
        """Return the content of a file."""
        return read_whole(path)

    def read_documents(self, file: Path, data: bytes) -> Sequence[SearchDocument]:
        """Return the entries and other sections of a file."""
        kind = DocumentKind.KNOWLEDGE if file.name == KNOWLEDGE_FILE else DocumentKind.MEMORY
        role = "" if file.parent == self.location.root else file.parent.name
        return memory_documents(role, kind, data)


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

    def read_file(self, path: Path) -> bytes:
        """Return the content of a file."""
        return read_whole(path)

    def read_documents(self, file: Path, data: bytes) -> Sequence[SearchDocument]:
        """Return the archived entries of a file. A backup of a memory file has the same entries as that file."""
        role = "" if file.parent.parent == self.location.root else file.parent.parent.name
        is_backup = file.name.startswith(MEMORY_BACKUP_PREFIX)
        return memory_documents(role, DocumentKind.ARCHIVE, data) if is_backup else archived_documents(role, data)


def _scope(store: Store) -> DocumentScope:
    return DocumentScope.GLOBAL if _is_global(store) else DocumentScope.PROJECT


def _project(store: Store) -> str:
    return "" if _is_global(store) else str(store.project)


@lru_cache(_MAX_PATHS)
def _is_global(store: Store) -> bool:
    """Return whether a store is below the global one. Every search asks, and comparing paths takes time."""
    return global_root(store) is not None


def _role_directories(store: Store) -> Iterator[str]:
    """Yield the directories that have memory files. A store that does not exist has none."""
    try:
        roles = find_roles(store)
    except (FileNotFoundError, NotADirectoryError):
        return
    root = store.key
    if _is_global(store) and store.root.name not in _GLOBAL_ROLES_EXCLUDED:
        yield root  # the memory of the global store has no role
        return
    yield from (f"{root}/{role.name}" for role in roles)


def _regular_file(path: str) -> SourceFile | None:
    try:
        status = os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    return SourceFile(_path(path), file_version(status)) if stat.S_ISREG(status.st_mode) else None


@lru_cache(_MAX_PATHS)
def _path(path: str) -> Path:
    """Return a path, which takes as long to make as the file's stamps to read. Every search lists the same files."""
    return Path(path)


_NAME: Final = lazy_pattern(r"conversation-\d{1,10}\.md")
_TOOL_OUTPUT: Final = lazy_pattern(r"<details><summary>(?:Result|Error)</summary>\n\n(`{3,})\n")
_OUTPUT_START: Final = lazy_pattern(rb"<details><summary>(?:Result|Error)</summary>\n")
_OUTPUT_FENCE: Final = lazy_pattern(rb"`{3,}\n")
_MAX_ARCHIVE_BYTES: Final = 64 << 20
"""An archive that has more than so many bytes without the output of tools has no documents."""
_PART_CHARACTERS: Final = 60_000
_TITLE_CHARACTERS: Final = 120
_TURN: Final = lazy_pattern(r"^---\n\n### ", re.MULTILINE)


class ConversationSource(NamedTuple):
    """The archives of one directory, which belong to a project, or to none ("")."""

    memory: Path
    owner: str

    @property
    def key(self) -> str:
        """The unique name of the source."""
        return f"session:{self.memory}"

    @property
    def kinds(self) -> frozenset[DocumentKind]:
        """The kinds of its documents."""
        return frozenset({DocumentKind.SESSION})

    @property
    def scope(self) -> DocumentScope:
        """The scope of its documents."""
        return DocumentScope.PROJECT

    @property
    def project(self) -> str:
        """The project that it belongs to."""
        return self.owner

    @property
    def store(self) -> str:
        """The directory."""
        return str(self.memory)

    def list_files(self) -> Sequence[SourceFile]:
        """List the archives. Symbolic links are skipped."""
        found: list[SourceFile] = []
        try:
            with os.scandir(self.memory / "conversations") as entries:
                for entry in entries:
                    if _NAME.fullmatch(entry.name):
                        status = entry.stat(follow_symlinks=False)
                        if stat.S_ISREG(status.st_mode):
                            found.append(SourceFile(Path(entry.path), file_version(status)))
        except FileNotFoundError:
            return ()
        return sorted(found)

    def read_file(self, path: Path) -> bytes:
        """Return an archive. Of a very large one, the output of tools is left out, line by line."""
        return _read_archive(path)

    def read_documents(self, file: Path, data: bytes) -> Sequence[SearchDocument]:
        """Return the conversation of an archive in one or more parts."""
        text = data.decode("utf-8", "replace")
        header, summary = archive_module.parse_header(text), " ".join(archive_module.read_summary(text).split())
        start = max(0, text.find("\n# Conversation "))
        documents = []
        for number, (line, part) in enumerate(_parts(text, start)):
            name = file.stem if number == 0 else f"{file.stem}#{number + 1}"
            lead = f"{summary}\n\n" if number == 0 and summary else ""
            documents.append(
                SearchDocument(
                    id=name,
                    kind=DocumentKind.SESSION,
                    title=summary[:_TITLE_CHARACTERS] or file.stem,
                    body=lead + _without_tool_output(part),
                    line=line,
                    date="" if header is None else header.date[:10],
                    source="" if header is None else header.session_id,
                )
            )
        return documents


def _read_archive(path: Path) -> bytes:
    """Return an archive, or one in which every line of a tool's output is empty. Lines keep their numbers."""
    with open_regular(path, follow_symlinks=False) as file:
        if os.fstat(file.fileno()).st_size <= MAX_FILE_BYTES:
            return file.read(MAX_FILE_BYTES)
        kept, size, fence, before = [], 0, b"", (b"", b"")
        for line in file:
            is_output = bool(fence) and line != fence
            kept.append(b"\n" if is_output else line)
            size += len(kept[-1])
            if size > _MAX_ARCHIVE_BYTES:
                raise OSError(errno.EFBIG, "too large", str(path))
            if line == fence:
                fence = b""
            elif not fence and _OUTPUT_START.match(before[0]) and before[1] == b"\n" and _OUTPUT_FENCE.fullmatch(line):
                fence = line
            before = (before[1], line)
        return b"".join(kept)


def _parts(text: str, start: int) -> Iterator[tuple[int, str]]:
    """Yield the line of each part and the part. A part ends before a turn."""
    begin = start
    for turn in _TURN.finditer(text, start):
        if turn.start() - begin > _PART_CHARACTERS:
            yield _line_of(text, begin), text[begin : turn.start()]
            begin = turn.start()
    yield _line_of(text, begin), text[begin:]


def _without_tool_output(text: str) -> str:
    """Return the text without the output of tools. An output without an end is kept."""
    kept: list[str] = []
    done = 0
    unclosed: set[str] = set()  # fences without an end from here on, so that none is looked for twice
    for opening in _TOOL_OUTPUT.finditer(text):
        closing = f"\n{opening[1]}\n\n</details>\n"
        if opening.start() < done or closing in unclosed:
            continue
        end = text.find(closing, opening.end())
        if end < 0:
            unclosed.add(closing)
            continue
        kept.append(text[done : opening.start()])
        done = end + len(closing)
    return "".join((*kept, text[done:]))


def _line_of(text: str, position: int) -> int:
    return text.count("\n", 0, position) + 1 + (text[position : position + 1] == "\n")


_HIDDEN_FIELDS: Final = frozenset({"source", "category", "domain", "layer", "date", "tags"})
"""The fields that a document has of its own, so that its text does not repeat them."""
_CATEGORIES: Final = frozenset({"pattern", "anti-pattern", "decision", "debugging"})
"""The categories that entries are filtered by. Any other one counts as none."""
_WORD: Final = lazy_pattern(r"[\w./@+-]+")
_HEADING: Final = lazy_pattern(r"^ {0,3}#{1,6}[ \t]*")


def memory_documents(role: str, kind: DocumentKind, data: bytes) -> tuple[SearchDocument, ...]:
    """Return the entries and other sections of a memory or knowledge file.

    Raises:
        UnreadableFileError: the file cannot be parsed.
    """
    return tuple(_iter_documents(role, kind, data))


def archived_documents(role: str, data: bytes) -> tuple[SearchDocument, ...]:
    """Return the entries of an archive file that echod wrote. Other text in it is not found."""
    return tuple(_iter_archived(role, data))


def _iter_documents(role: str, kind: DocumentKind, data: bytes) -> Iterator[SearchDocument]:
    parsed = _parse(data)
    line = 1 + parsed.preamble.count("\n")
    for entry_id, block in zip(identity.entry_ids(role, parsed), parsed.blocks, strict=True):
        found = _from_block(role, kind, entry_id, block, line)
        if found is not None:
            yield found
        line += document.count_lines(block.text)


def _parse(data: bytes) -> Document:
    parsed = document.parse(data)
    if isinstance(parsed, model.Unreadable):
        raise UnreadableFileError(parsed.reason)
    return parsed


def _iter_archived(role: str, data: bytes) -> Iterator[SearchDocument]:
    position, line = 0, 1
    for archived in memory_archive.read_archive(data).entries:
        block = document.parse_block(archived.text)
        start = data.find(archived.text.encode(), position)
        line += data.count(b"\n", position, max(start, position))
        position = max(start, position)
        found = _from_block(role, DocumentKind.ARCHIVE, archived.id, block, line)
        if found is not None:
            yield found


def _from_block(role: str, kind: DocumentKind, entry_id: str | None, block: Block, line: int) -> SearchDocument | None:
    text = block.text.replace("\r\n", "\n")
    if text is not block.text:
        block = document.parse_block(text)
    if block.entry is None:
        return _from_section(role, kind, text, line)
    entry = block.entry
    learning = block.body
    if not learning.strip():
        return None
    values = {field.name: field.value for field in reversed(entry.fields)}
    day = entry.heading_date
    return SearchDocument(
        id=entry_id or "",
        kind=kind,
        title=entry.full_title,
        body=_shown_text(block, entry),
        line=line,
        text=_searched_text(entry, learning, values.get("tags", "")),
        role=role,
        layer=entry.layer.value if entry.layer else "",
        category=category if (category := _first_name(values.get("category", ""))) in _CATEGORIES else "",
        domain=_first_name(values.get("domain", "")),
        date=day.isoformat() if day else "",
        source=entry.source or "",
        confidence=entry.confidence,
        citations=entries.entry_citations(entry, learning),
    )


def _from_section(role: str, kind: DocumentKind, text: str, line: int) -> SearchDocument | None:
    """Return the document of a block that is no entry. Its id, which only search uses, is made of its heading."""
    heading, _, body = text.strip().partition("\n")
    title = _HEADING.sub("", heading).strip(" #\t")
    if not body.strip():
        return None
    section_id = hashlib.sha256(f"section\n{role}\n{title}".encode()).hexdigest()[: identity.ID_LENGTH]
    return SearchDocument(section_id, kind, title, body.strip(), line, role=role)


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
    match = _WORD.search(value)
    return match[0].lower() if match else ""
