"""Separate the metadata of a section from the learning, in whatever order the lines were written.

`StatedFields` hands out the metadata of one finding. A value that was understood is removed. One that was understood
only in part, or not at all, stays as a note, so that its words survive.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, TypeVar

from echod.lazy import lazy_pattern
from echod.memory.findings.records import LineKind, indent_width, is_thematic_break, list_content_offset
from echod.memory.findings.sections import is_boilerplate
from echod.memory.findings.text import (
    FieldLine,
    ParsedValue,
    normalize_spaces,
    read_bold_field,
    read_confidence,
    read_date,
    read_field,
    read_layer,
)

_SCHEMA = lazy_pattern(r"\s*<!--\s*echo-schema:.*-->\s*")
# One label with one word of value describes the run; a longer comment may be a learning.
_LABEL_COMMENT = lazy_pattern(
    r"\s*<!--\s*(?:agent|author|role|team|session|workflow)\s*[:=]\s*[\w.-]+\s*-->\s*", re.IGNORECASE
)
_LEARNING = "learning"
_METADATA_NAMES = frozenset({"layer", "source", "confidence", "evidence", "verified", "supersedes", "date"})
# Labels that count without bullet or emphasis, at the head or the foot of a section.
_UNMARKED_LABELS = _METADATA_NAMES | {"tags", "category", "domain", _LEARNING}
_MAX_SHORT_VALUE = 60  # characters; a longer "Status: ..." in a list is a sentence of the learning

ClassifiedLine = tuple[str, LineKind]

T = TypeVar("T")
FieldPairs = Sequence[tuple[str, str]]

_VALUE_READERS: Mapping[str, Callable[[str], ParsedValue[object] | None]] = {
    "layer": read_layer,
    "confidence": read_confidence,
    "verified": read_date,
    "date": read_date,
}
_RESERVED_NAMES = _METADATA_NAMES | {"kind", "title"}


class ExtractedFields(NamedTuple):
    """The metadata of a section as names and values in order, and all other lines."""

    fields: tuple[tuple[str, str], ...]
    body_lines: tuple[ClassifiedLine, ...]


def extract_fields(lines: Sequence[str], line_kinds: Sequence[LineKind], *, is_group: bool = False) -> ExtractedFields:
    """Separate metadata from learning. Values that continue in indented or listed lines are joined to one line.

    In a section that only groups others, any short value under a bold label is metadata.
    """
    fields: list[tuple[str, str]] = []
    rest: list[ClassifiedLine] = []
    footer_start = _footer_start(lines, line_kinds)
    at_head = True
    index = 0
    while index < len(lines):
        line, line_kind = lines[index], line_kinds[index]
        field = read_field(line) if line_kind is LineKind.TEXT else None
        if field is None and is_group and at_head and line_kind is LineKind.TEXT:
            field = read_bold_field(line)
        if field is None or not _is_metadata(field, line, at_edge=at_head or index >= footer_start):
            at_head = at_head and (not line.strip() or _SCHEMA.fullmatch(line) is not None)
            rest.append((line, line_kind))
            index += 1
        elif field.name == _LEARNING:
            if field.value:
                rest.append((line[: list_content_offset(line) or 0] + field.value, line_kind))
            at_head = False
            index += 1
        else:
            index, value = _read_multiline_value(lines, line_kinds, index, field)
            if value:
                fields.append((field.name, value))
    return ExtractedFields(tuple(fields), tuple(rest))


def _is_metadata(field: FieldLine, line: str, *, at_edge: bool) -> bool:
    if not field.marked:
        return at_edge and field.name in _UNMARKED_LABELS
    if field.name in _UNMARKED_LABELS:
        return True
    emphasised = re.search(r"[*_`]", line[: line.find(":")].lstrip(" *-+")) is not None
    return len(field.value) <= _MAX_SHORT_VALUE and (at_edge or emphasised)


def _footer_start(lines: Sequence[str], line_kinds: Sequence[LineKind]) -> int:
    """Return the index at which the run of metadata lines at the end of a section begins."""
    start = len(lines)
    for index in range(len(lines) - 1, -1, -1):
        if line_kinds[index] is LineKind.TEXT and read_field(lines[index]):
            start = index
        elif lines[index].strip():
            return start if start == len(lines) or index < start - 1 else len(lines)
    return start


def _read_multiline_value(
    lines: Sequence[str], line_kinds: Sequence[LineKind], index: int, field: FieldLine
) -> tuple[int, str]:
    """Return the index after a field with all of its lines, and its value on one line."""
    value = field.value
    index += 1
    while index < len(lines) and line_kinds[index] is LineKind.NESTED and lines[index].strip():
        value = _joined(value, lines[index])
        index += 1
    if value or (index < len(lines) and line_kinds[index] is not LineKind.TEXT):
        return index, value
    # "**Evidence**:" alone, and its values in a list below it.
    after = index
    while after < len(lines) and line_kinds[after] is LineKind.TEXT and not lines[after].strip():
        after += 1
    while after < len(lines) and _is_plain_item(lines[after], line_kinds[after]):
        value = _joined(value, lines[after])
        after += 1
    return (after, value) if value else (index, value)


def _is_plain_item(line: str, line_kind: LineKind) -> bool:
    return (
        line_kind is LineKind.TEXT
        and list_content_offset(line) is not None
        and not is_thematic_break(line)
        and read_field(line) is None
    )


def _joined(value: str, line: str) -> str:
    offset = list_content_offset(line)
    piece = line[offset or 0 :].strip()
    if not value:
        return piece
    return f"{value}; {piece}" if offset is not None else f"{value} {piece}"


def learning_text(lines: Sequence[ClassifiedLine], *, strip_leading: bool) -> str:
    """Return the learning in the lines of `extract_fields`, without boilerplate or separators at its ends.

    A bullet that holds the whole learning is removed. Boilerplate before the learning is removed only if
    `strip_leading`.
    Text right below the heading of a learning always counts as content.
    """
    body = _trimmed([line for line in lines if not is_metadata_comment(line)])
    while strip_leading:
        size = next((index for index, line in enumerate(body) if not _is_prose(line)), len(body))
        if not size or not _is_boilerplate_paragraph(body[:size]):
            break
        body = _trimmed(body[size:])
    while (size := _last_paragraph_size(body)) and _is_boilerplate_paragraph(body[-size:]):
        body = _trimmed(body[:-size])
    return "\n".join(_dedented(body)).rstrip()


def is_metadata_comment(line: ClassifiedLine) -> bool:
    """Return whether a line is a comment that describes the file or the run, not the learning."""
    text, line_kind = line
    if line_kind in {LineKind.CODE, LineKind.NESTED}:
        return _SCHEMA.fullmatch(text) is not None
    return (_SCHEMA.fullmatch(text) or _LABEL_COMMENT.fullmatch(text)) is not None


def _trimmed(lines: Sequence[ClassifiedLine]) -> list[ClassifiedLine]:
    """Return the lines without blank lines and separators at both ends."""
    body = list(lines)
    while body and _is_blank_or_break(body[-1]):
        body.pop()
    first = next((index for index, line in enumerate(body) if not _is_blank_or_break(line)), 0)
    return body[first:]


def _is_blank_or_break(line: ClassifiedLine) -> bool:
    return line[1] is LineKind.TEXT and (not line[0].strip() or is_thematic_break(line[0]))


def _is_prose(line: ClassifiedLine) -> bool:
    return line[1] is LineKind.TEXT and not _is_blank_or_break(line) and list_content_offset(line[0]) is None


def _last_paragraph_size(lines: Sequence[ClassifiedLine]) -> int:
    size = next((number for number, line in enumerate(reversed(lines)) if not _is_prose(line)), len(lines))
    # A last line that continues a list item without a blank line is a part of that item.
    return size if size == len(lines) or _is_blank_or_break(lines[-size - 1]) else 0


def _is_boilerplate_paragraph(lines: Sequence[ClassifiedLine]) -> bool:
    return is_boilerplate("\n".join(text for text, _ in lines))


def _dedented(lines: Sequence[ClassifiedLine]) -> list[str]:
    if not lines:
        return []
    offset = list_content_offset(lines[0][0])
    one_bullet = (
        offset is not None
        and normalize_spaces(lines[0][0]).lstrip()[0] in "-*+\u2022"
        and all(line_kind is not LineKind.TEXT or not text.strip() for text, line_kind in lines[1:])
    )
    texts = [text for text, _ in lines]
    if one_bullet and offset is not None:
        return [texts[0][offset:], *(text[min(offset, indent_width(text)) :] for text in texts[1:])]
    common = min(indent_width(text) for text in texts if text.strip())
    return [text[common:] for text in texts]


class StatedFields:
    """The fields of one finding: its own first, then those of the groups around it for names that it does not have."""

    def __init__(self, own: FieldPairs, inherited: FieldPairs) -> None:
        own_names = {name for name, _ in own}
        known = [field for field in inherited if field[0] in own_names]
        notes = [(f"{name}_note", value) for name, value in known if not _is_exact(name, value)]
        defaults = [field for field in inherited if field[0] not in own_names]
        self._fields = list(dict.fromkeys([*own, *defaults, *notes]))

    def pop(self, name: str) -> str | None:
        """Remove a name and return its value; several pieces of evidence are joined."""
        values = [value for field, value in self._fields if field == name]
        if not values:
            return None
        if name == "evidence":
            self._fields = [field for field in self._fields if field[0] != name]
            return "; ".join(values)
        self._fields.remove((name, values[0]))
        return values[0]

    def pop_if(self, name: str, accepts: Callable[[str], bool]) -> str | None:
        """Remove a name and return its value if the value is acceptable; otherwise the field stays."""
        value = next((value for field, value in self._fields if field == name), None)
        return self.pop(name) if value is not None and accepts(value) else None

    def pop_value(self, name: str, read: Callable[[str], ParsedValue[T] | None], known: T | None = None) -> T | None:
        """Return the meaning of this name's value, unless it is known already; words beside it stay as a note."""
        value = next((value for field, value in self._fields if field == name), None)
        parsed = None if value is None else read(value)
        if value is None or parsed is None or (known is not None and parsed.value != known):
            return known
        if parsed.exact:
            self.pop(name)
        return known if known is not None else parsed.value

    def remaining(self) -> tuple[tuple[str, str], ...]:
        """Return all other fields in order; a reserved name that is still present is renamed to a note."""
        return tuple((f"{name}_note" if name in _RESERVED_NAMES else name, value) for name, value in self._fields)


def _is_exact(name: str, value: str) -> bool:
    """Return whether the value contains only what its name promises, so that a nearer one replaces it entirely."""
    read = _VALUE_READERS.get(name)
    parsed = read(value) if read else None
    return parsed is not None and parsed.exact
