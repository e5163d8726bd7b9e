"""Read memory files: a preamble and blocks, each with its exact source text.

`parse(data).render() == data` for every input. An *entry* is a block in a recognised form. Every other block is
*opaque* and is never pruned, merged or moved. A file that must not be changed is `Unreadable`, never empty.

A block begins at a heading of level 2, or at a heading of level 3 in the bullet form. Everything before the first block
is the preamble: a byte order mark, the schema comment, the file's title, a placeholder.

`round_trips` and `appended_blocks` are the last check of every plan: the file that it would write must read as the
blocks that it was made of. A code block or comment that is never closed ends before the next entry, so removing an
entry can change the meaning of the text around it. Such a plan is not carried out.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final, NamedTuple
from weakref import WeakValueDictionary

from echod.lazy import lazy_pattern
from echod.memory import MAX_FILE_BYTES, forms, markdown
from echod.memory.markdown import HEADING, find_conflict_line
from echod.memory.model import Block, Document, Entry, Unreadable, UnreadableKind
from echod.memory.text import capitalize

SCHEMA_VERSION = 1
"""The only version of the file format so far (`<!-- echo-schema: v1 -->`)."""

_MAX_CACHED_BYTES, _MAX_CACHED_DOCUMENTS = 64 << 10, 8
"""A job parses the same few contents repeatedly: to plan, to verify the plan, to record the present entries.

This is the number and maximal size in bytes of the contents whose documents are cached, which take a few MiB at most.
Documents of larger files are shared while they are in use.
"""
MAX_PARSED_BYTES = 104 * 1024 * 1024
"""The memory that reading one file may take, by estimate. A job holds a few versions of it, and the service may use
512 MiB (`MemoryMax` of its unit)."""

_BYTES_PER_BYTE, _BYTES_PER_HEADING, _BYTES_PER_MARK = 3, 1500, 140
_HEADING_LINE = lazy_pattern(rb"^[ ]{0,3}##", re.MULTILINE)
_live_documents: WeakValueDictionary[bytes, Document] = WeakValueDictionary()
_SCHEMA_COMMENT = lazy_pattern(
    r"^[ \ufeff]{0,3}<!--[ \t]*echo-schema:[ \t]*v?(\w[\w.]*)?", re.MULTILINE | re.IGNORECASE
)


def parse(data: bytes, *, max_bytes: int = MAX_FILE_BYTES) -> Document | Unreadable:
    """Read a memory file of at most `max_bytes`. Never raises, never drops a byte, takes linear time."""
    if (unreadable := _find_excess(data, max_bytes)) is not None:
        return unreadable
    return _parse_cached(data) if len(data) <= _MAX_CACHED_BYTES else _live_documents.get(data) or _parse_shared(data)


def _find_excess(data: bytes, max_bytes: int) -> Unreadable | None:
    if len(data) <= max_bytes:
        return None
    size, allowed = (f"{count / 1024 / 1024:.1f} MiB" for count in (len(data), max_bytes))
    reason = f"The file has {size}, more than the limit of {allowed}. Move a part of it elsewhere."
    return Unreadable(UnreadableKind.OVER_SIZE, reason, data)


def estimate_parsed_bytes(data: bytes) -> int:
    """Return an upper bound of the memory in bytes that reading a file takes, much faster than reading it."""
    text_bytes = len(data) * _BYTES_PER_BYTE + data.count(b"**") * _BYTES_PER_MARK
    # Marks inside of a line are counted only if they matter.
    estimate = text_bytes + data.count(b"##") * _BYTES_PER_HEADING
    if estimate <= MAX_PARSED_BYTES:
        return estimate
    return text_bytes + sum(1 for _ in _HEADING_LINE.finditer(data)) * _BYTES_PER_HEADING


def _parse_shared(data: bytes) -> Document | Unreadable:
    document = _parse_uncached(data)
    if isinstance(document, Document):
        _live_documents[data] = document
    return document


class VersionBlock:
    """A block of a version, like `Block`, except that its entry is read when it is first needed."""

    __slots__ = ("_block", "text")

    def __init__(self, text: str) -> None:
        self.text: Final = text
        self._block: Block | None = None

    @property
    def entry(self) -> Entry | None:
        """The entry of the block, or None."""
        return self._read().entry

    @property
    def body(self) -> str:
        """The learning of the block's entry as written; empty for an opaque block."""
        return self._read().body

    def _read(self) -> Block:
        if self._block is None:
            self._block = parse_block(self.text)
        return self._block


class Version(NamedTuple):
    """One of several versions of a file that are merged."""

    preamble: str
    blocks: tuple[VersionBlock, ...]


class _Outline(NamedTuple):
    """The text before the blocks, and each block's partial entry, if it was read, and text."""

    preamble: str
    blocks: list[tuple[forms.PartialEntry | None, str]]


class VersionParser:
    """Parse versions of one file, with the blocks of `parse`. Text that several of them contain is read once."""

    def __init__(self) -> None:
        self._stretches: markdown.Stretches = {}

    def parse(self, data: bytes) -> Version | Unreadable:
        """Read a version of at most `MAX_FILE_BYTES`."""
        if (unreadable := _find_excess(data, MAX_FILE_BYTES)) is not None:
            return unreadable
        outline = _read_outline(data, self._stretches)
        if isinstance(outline, Unreadable):
            return outline
        return Version(outline.preamble, tuple(VersionBlock(text) for _, text in outline.blocks))


def _parse_uncached(data: bytes) -> Document | Unreadable:
    outline = _read_outline(data)
    if isinstance(outline, Unreadable):
        return outline
    complete = forms.complete_entry
    blocks = [Block(text, complete(partial, text) if partial else None) for partial, text in outline.blocks]
    return Document(outline.preamble, tuple(blocks))


def _read_outline(data: bytes, stretches: markdown.Stretches | None = None) -> _Outline | Unreadable:
    if (needed := estimate_parsed_bytes(data)) > MAX_PARSED_BYTES:
        needed_text, allowed = (f"{count >> 20} MiB" for count in (needed, MAX_PARSED_BYTES))
        reason = (
            f"Reading it would take about {needed_text} of memory, more than {allowed}: too many headings. Split it."
        )
        return Unreadable(UnreadableKind.OVER_SIZE, reason, data)
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        reason = f"Line {line} is not UTF-8 (byte {error.start}). Save the file as UTF-8."
        return Unreadable(UnreadableKind.INVALID_UTF8, reason, data)

    structure = markdown.parse_structure(text, stretches)
    conflict = find_conflict_line(text, structure)
    if conflict is not None:
        reason = f"A merge left conflict markers (line {conflict}). Resolve the conflict and remove them."
        return Unreadable(UnreadableKind.CONFLICT_MARKERS, reason, data)
    starts = structure.starts
    preamble = text[: starts[0].offset] if starts else text
    version = _SCHEMA_COMMENT.search(preamble)
    if version and version[1] not in {None, "0", "1"}:
        newer = f"The file has schema version {version[1]}."
        reason = f"{newer} This echod supports version {SCHEMA_VERSION}. Update echod."
        return Unreadable(UnreadableKind.FUTURE_SCHEMA, reason, data)

    ends = [*(start.offset for start in starts[1:]), len(text)]
    return _Outline(preamble, [(partial, text[begin:end]) for (begin, partial), end in zip(starts, ends, strict=False)])


_parse_cached = lru_cache(maxsize=_MAX_CACHED_DOCUMENTS)(_parse_uncached)


def parse_block(text: str) -> Block:
    """Read one block from its own text, with the same result as `parse` for the block in its file."""
    partial = forms.match_entry(text, 0) if HEADING.match(text) else None
    return Block(text, forms.complete_entry(partial, text) if partial else None)


def round_trips(document: Document) -> bool:
    """Return whether the document's bytes parse to an equal document."""
    reparsed = parse(document.render())
    return not isinstance(reparsed, Unreadable) and reparsed == document


def appended_blocks(before: Document, after: Document) -> tuple[Block, ...] | None:
    """Return the blocks of `after` behind those of `before`; None if anything of `before` reads differently.

    Blank lines at the end of `before` do not count, because they separate the appended text.
    """
    old = [before.preamble, *(block.text for block in before.blocks)]
    new = [after.preamble, *(block.text for block in after.blocks)]
    last = len(old) - 1
    if len(new) < len(old) or new[:last] != old[:last] or not new[last].startswith(old[last]):
        return None
    return None if new[last][len(old[last]) :].strip() else after.blocks[len(before.blocks) :]


def new_memory_file(role: str) -> bytes:
    """Return the content of a memory file without entries. The role without a name is the global memory's."""
    return f"<!-- echo-schema: v1 -->\n# {capitalize(role or 'global')} Memory\n".encode()


def count_lines(text: str) -> int:
    """Return the number of lines that a text takes in its file, including blank ones. A line ends with a newline."""
    return text.count("\n") + (bool(text) and not text.endswith("\n"))
