"""Read the documents of memory files, knowledge files and archives.

A block without the form of an entry is a document too, as long as it has a text: users write sections of their own.
Separate from `memory_source`, since this module loads the parser.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Final

from echod.evidence.entries import entry_citations
from echod.lazy import lazy_pattern
from echod.memory.archive import read_archive
from echod.memory.document import count_lines, parse, parse_block
from echod.memory.identity import ID_LENGTH, entry_ids
from echod.memory.model import Block, Document, Entry, Unreadable
from echod.search.documents import DocumentKind, SearchDocument, UnreadableFileError

_HIDDEN_FIELDS: Final = frozenset({"source", "category", "domain", "layer", "date", "tags"})
"""The fields that a document has of its own, so that its text does not repeat them."""
_CATEGORIES: Final = frozenset({"pattern", "anti-pattern", "decision", "debugging"})
"""The categories that entries are filtered by. Any other one counts as none."""
_NAME: Final = lazy_pattern(r"[\w./@+-]+")
_PATH_LIKE: Final = lazy_pattern(r"`[^`\n]+`|[^\s./]{0,400}+[./]\S+")
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
    document = _parse(data)
    line = 1 + document.preamble.count("\n")
    for identity, block in zip(entry_ids(role, document), document.blocks, strict=True):
        found = _from_block(role, kind, identity, block, line)
        if found is not None:
            yield found
        line += count_lines(block.text)


def _parse(data: bytes) -> Document:
    document = parse(data)
    if isinstance(document, Unreadable):
        raise UnreadableFileError(document.reason)
    return document


def _iter_archived(role: str, data: bytes) -> Iterator[SearchDocument]:
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
        block = parse_block(text)
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
        category=category if (category := _first_name(values.get("category", ""))) in _CATEGORIES else "",
        domain=_first_name(values.get("domain", "")),
        date=day.isoformat() if day else "",
        source=entry.source or "",
        confidence=entry.confidence,
        citations=entry_citations(entry, learning),
    )


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
