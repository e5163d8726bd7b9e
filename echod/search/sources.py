"""The documents of a store and of a directory of conversations.

Memory and archive are two sources, because most searches leave the archive out. `memory_documents` reads the files.

A conversation is one document. A very long one is several, so that a result leads to the right place in it.
"""

from __future__ import annotations

import errno
import os
import re
import stat
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from types import ModuleType
from typing import Final, NamedTuple

from echod.files import file_version, open_regular
from echod.lazy import lazy_imports, lazy_pattern
from echod.memory import KNOWLEDGE_FILE, MAX_FILE_BYTES, MEMORY_FILE
from echod.search.documents import DocumentKind, DocumentScope, SearchDocument, SourceFile, read_whole
from echod.store.layout import ARCHIVE, MEMORY_BACKUP_PREFIX, Store, find_roles, global_root

with lazy_imports(__name__):
    from echod.memory.conversation import archive as archive_module
    from echod.search import memory_documents

_GLOBAL_ROLES_EXCLUDED: Final = frozenset({"doc-packs", "manifests"})
_SUFFIX: Final = ".md"
_MAX_PATHS: Final = 4096


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
        found: Sequence[SearchDocument] = _reader().memory_documents(role, kind, data)
        return found


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
        reader = _reader()
        found: Sequence[SearchDocument] = (
            reader.memory_documents(role, DocumentKind.ARCHIVE, data)
            if is_backup
            else reader.archived_documents(role, data)
        )
        return found


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


def _reader() -> ModuleType:
    return memory_documents


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
