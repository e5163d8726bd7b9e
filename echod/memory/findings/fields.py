"""Takes the metadata out of a section's lines and leaves the learning, whatever order they were written in.

Hands out the metadata that a finding states, and keeps account of what nobody understood.

A value that is understood is taken; one that is understood in part, or not at all, stays as a note, so that its words
survive.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, TypeVar

from echod.memory.findings.outline import Place, indent_of, is_rule, list_offset
from echod.memory.findings.sections import is_chatter
from echod.memory.findings.text import (
    FieldLine,
    Reading,
    plain,
    read_bold_field,
    read_confidence,
    read_date,
    read_field,
    read_layer,
)

_SCHEMA = re.compile(r"\s*<!--\s*echo-schema:.*-->\s*")
# One label with one word of value tells about the run; a comment that says more may be a learning.
_LABEL_COMMENT = re.compile(
    r"\s*<!--\s*(?:agent|author|role|team|session|workflow)\s*[:=]\s*[\w.-]+\s*-->\s*", re.IGNORECASE
)
_LEARNING = "learning"
_METADATA_NAMES = frozenset({"layer", "source", "confidence", "evidence", "verified", "supersedes", "date"})
_BARE = _METADATA_NAMES | {"tags", "category", "domain", _LEARNING}
"""Labels that count without bullet or emphasis, at the head or the foot of a section."""

_SHORT = 60  # characters; a longer "Status: ..." in a list is a sentence of the learning

Line = tuple[str, Place]


class Gleaned(NamedTuple):
    """The metadata of a section as names and values in order, and the lines that are none."""

    fields: tuple[tuple[str, str], ...]
    lines: tuple[Line, ...]


def glean(lines: Sequence[str], where: Sequence[Place], *, about_many: bool = False) -> Gleaned:
    """Separate metadata from learning. Values that go on in indented or listed lines are joined to one line.

    Args:
        lines: the section's lines.
        where: where each of them lies.
        about_many: whether the section only groups others; then any short value under a bold label is metadata.
    """
    fields: list[tuple[str, str]] = []
    rest: list[Line] = []
    foot = _foot(lines, where)
    at_head = True
    index = 0
    while index < len(lines):
        line, place = lines[index], where[index]
        field = read_field(line) if place is Place.TEXT else None
        if field is None and about_many and at_head and place is Place.TEXT:
            field = read_bold_field(line)
        if field is None or not _counts(field, line, at_edge=at_head or index >= foot):
            at_head = at_head and (not line.strip() or _SCHEMA.fullmatch(line) is not None)
            rest.append((line, place))
            index += 1
        elif field.name == _LEARNING:
            if field.value:
                rest.append((_without_label(line, field), place))
            at_head = False
            index += 1
        else:
            index, value = _whole_value(lines, where, index, field)
            if value:
                fields.append((field.name, value))
    return Gleaned(tuple(fields), tuple(rest))


def own_text(lines: Sequence[Line], *, opening: bool) -> str:
    """The learning in these lines: no chatter or separators at its ends, not in a bullet if one holds all of it.

    Args:
        lines: what `glean` left.
        opening: whether chatter may also stand before it; below the heading of a learning it may not.
    """
    kept = _trimmed([line for line in lines if not _is_label(line)])
    while opening and (size := _first_paragraph(kept)) and _says_nothing(kept[:size]):
        kept = _trimmed(kept[size:])
    while (size := _last_paragraph(kept)) and _says_nothing(kept[-size:]):
        kept = _trimmed(kept[:-size])
    return "\n".join(_dedented(kept)).rstrip()


def _is_label(line: Line) -> bool:
    text, place = line
    if place in {Place.CODE, Place.NESTED}:
        return _SCHEMA.fullmatch(text) is not None
    return (_SCHEMA.fullmatch(text) or _LABEL_COMMENT.fullmatch(text)) is not None


def _counts(field: FieldLine, line: str, *, at_edge: bool) -> bool:
    if not field.marked:
        return at_edge and field.name in _BARE
    if field.name in _BARE:
        return True
    emphasised = re.search(r"[*_`]", line[: line.find(":")].lstrip(" *-+")) is not None
    return len(field.value) <= _SHORT and (at_edge or emphasised)


def _foot(lines: Sequence[str], where: Sequence[Place]) -> int:
    """Where the run of metadata lines at the end of a section begins."""
    start = len(lines)
    for index in range(len(lines) - 1, -1, -1):
        if where[index] is Place.TEXT and read_field(lines[index]):
            start = index
        elif lines[index].strip():
            return start if start == len(lines) or index < start - 1 else len(lines)
    return start


def _whole_value(lines: Sequence[str], where: Sequence[Place], index: int, field: FieldLine) -> tuple[int, str]:
    """The index after a field with all that belongs to it, and its value on one line."""
    value = field.value
    index += 1
    while index < len(lines) and where[index] is Place.NESTED and lines[index].strip():
        value = _joined(value, lines[index])
        index += 1
    if value or (index < len(lines) and where[index] is not Place.TEXT):
        return index, value
    # "**Evidence**:" alone, and what it introduces in a list below it.
    after = index
    while after < len(lines) and where[after] is Place.TEXT and not lines[after].strip():
        after += 1
    while after < len(lines) and _is_plain_item(lines[after], where[after]):
        value = _joined(value, lines[after])
        after += 1
    return (after, value) if value else (index, value)


def _is_plain_item(line: str, place: Place) -> bool:
    return place is Place.TEXT and list_offset(line) is not None and not is_rule(line) and read_field(line) is None


def _joined(value: str, line: str) -> str:
    offset = list_offset(line)
    piece = line[offset or 0 :].strip()
    if not value:
        return piece
    return f"{value}; {piece}" if offset is not None else f"{value} {piece}"


def _without_label(line: str, field: FieldLine) -> str:
    return line[: list_offset(line) or 0] + field.value


def _trimmed(lines: Sequence[Line]) -> list[Line]:
    """Without blank lines and separators at both ends."""
    kept = list(lines)
    while kept and _is_gap(kept[-1]):
        kept.pop()
    first = next((index for index, line in enumerate(kept) if not _is_gap(line)), 0)
    return kept[first:]


def _is_gap(line: Line) -> bool:
    return line[1] is Place.TEXT and (not line[0].strip() or is_rule(line[0]))


def _is_prose(line: Line) -> bool:
    return line[1] is Place.TEXT and not _is_gap(line) and list_offset(line[0]) is None


def _first_paragraph(lines: Sequence[Line]) -> int:
    return next((index for index, line in enumerate(lines) if not _is_prose(line)), len(lines))


def _last_paragraph(lines: Sequence[Line]) -> int:
    size = next((number for number, line in enumerate(reversed(lines)) if not _is_prose(line)), len(lines))
    # A last line that goes on from a list item without a blank line is a part of that item.
    return size if size == len(lines) or _is_gap(lines[-size - 1]) else 0


def _says_nothing(lines: Sequence[Line]) -> bool:
    return is_chatter("\n".join(text for text, _ in lines))


def _dedented(lines: Sequence[Line]) -> list[str]:
    if not lines:
        return []
    offset = list_offset(lines[0][0])
    one_bullet = (
        offset is not None
        and plain(lines[0][0]).lstrip()[0] in "-*+\u2022"
        and all(place is not Place.TEXT or not text.strip() for text, place in lines[1:])
    )
    texts = [text for text, _ in lines]
    if one_bullet and offset is not None:
        return [texts[0][offset:], *(text[min(offset, indent_of(text)) :] for text in texts[1:])]
    common = min(indent_of(text) for text in texts if text.strip())
    return [text[common:] for text in texts]


T = TypeVar("T")
Fields = Sequence[tuple[str, str]]

_READERS: Mapping[str, Callable[[str], Reading[object] | None]] = {
    "layer": read_layer,
    "confidence": read_confidence,
    "verified": read_date,
    "date": read_date,
}
_RESERVED_NAMES = frozenset(
    {"layer", "source", "confidence", "evidence", "verified", "supersedes", "date", "kind", "title"}
)


class Said:
    """The fields of one finding: its own first, and those of the groups around it for what it does not say."""

    def __init__(self, own: Fields, inherited: Fields) -> None:
        stated = {name for name, _ in own}
        overruled = [
            (f"{name}_note", value) for name, value in inherited if name in stated and not _is_plain(name, value)
        ]
        missing = [field for field in inherited if field[0] not in stated]
        self._fields = list(dict.fromkeys([*own, *missing, *overruled]))

    def take(self, name: str) -> str | None:
        """The value of this name, no longer counted as unread; several pieces of evidence are joined."""
        values = [value for field, value in self._fields if field == name]
        if not values:
            return None
        if name == "evidence":
            self._fields = [field for field in self._fields if field[0] != name]
            return "; ".join(values)
        self._fields.remove((name, values[0]))
        return values[0]

    def take_if(self, name: str, accepts: Callable[[str], bool]) -> str | None:
        """The value of this name if it is acceptable; else it stays."""
        value = next((value for field, value in self._fields if field == name), None)
        return self.take(name) if value is not None and accepts(value) else None

    def take_read(self, name: str, read: Callable[[str], Reading[T] | None], known: T | None = None) -> T | None:
        """What the value of this name means, unless it is known already; words beside the meaning stay as a note."""
        value = next((value for field, value in self._fields if field == name), None)
        reading = None if value is None else read(value)
        if value is None or reading is None or (known is not None and reading.value != known):
            return known
        if reading.whole:
            self.take(name)
        return known if known is not None else reading.value

    def rest(self) -> tuple[tuple[str, str], ...]:
        """Everything that was not taken, in order; a core field that is left over is called a note."""
        return tuple((f"{name}_note" if name in _RESERVED_NAMES else name, value) for name, value in self._fields)


def _is_plain(name: str, value: str) -> bool:
    """Whether the value says nothing but what its name promises, so that a nearer one replaces it entirely."""
    read = _READERS.get(name)
    reading = read(value) if read else None
    return reading is not None and reading.whole
