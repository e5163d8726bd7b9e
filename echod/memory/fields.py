"""Metadata lines: `- **confidence**: 0.85`, `**Source**: user:remember`, and which lines below a heading they are.

The *head* of an entry is the run of metadata lines right below its heading. Blank lines may stand in it, and the
indented lines of a bullet belong to that bullet's value. It ends at the first line of any other kind, and only
names that are known to be metadata belong to it, so that a bold lead in the learning (`- **Retry**: three times`)
is never read as metadata. This module knows nothing of headings and layers.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from echod.memory.model import Field, Span

TELLING = frozenset({
    "layer", "source", "confidence", "evidence", "verified", "supersedes",
    "finding_id", "finding_ids", "recurrence_count", "first_seen", "last_seen", "phase_tags",
})  # fmt: skip
"""Names that say by themselves that what they describe is an entry."""

KNOWN = TELLING | frozenset({
    "date", "tags", "category", "domain", "role", "type", "status",
    "superseded_by", "promoted_to", "promoted_from", "promoted_date", "metrics_snapshot",
})  # fmt: skip
"""All names that writers of memory files use."""

METADATA_LINE = re.compile(
    r"( {0,3})([-*+](?: {1,4}|\t))?"
    r"\*\*([A-Za-z][A-Za-z0-9_ -]{0,39})(?:\*\*[ \t]*:|:\*\*)[ \t]*([^\n]*)"
)
"""Groups: indent, bullet, name, value."""

# The reader that these files were first written for finds these three, unbulleted, anywhere above the next heading.
_LATE_FIELD = re.compile(r"^\*\*(category|domain|source)\*\*:[ \t]*([^\n]*)", re.MULTILINE | re.IGNORECASE)
_LATE_HINT = re.compile(r"\*\*(?:[cC]ategory|CATEGORY|[dD]omain|DOMAIN|[sS]ource|SOURCE)\*\*:")
_LATE_END = re.compile(r"^ {0,3}(?:#{1,6}[ \t]|```|~~~|<!--)", re.MULTILINE)

_BLANK_LINE = re.compile(r"[ \t\r]*(?:\n|\Z)")
_INDENT = re.compile(r"[ \t]*")


@dataclass(frozen=True, slots=True)
class Head:
    """The metadata right below a heading. Offsets count from the heading's line.

    Attributes:
        fields: the metadata lines in file order.
        end: where the head ends; without fields, where it would begin.
        has_telling_bullet: whether a bullet in it has one of the names in `TELLING`.
    """

    fields: tuple[Field, ...]
    end: int
    has_telling_bullet: bool


def read_head(text: str, start: int, position: int) -> Head:
    """The head of the entry whose heading line begins at `start` and ends before `position`.

    A name that is not known is passed over where it looks like a field (one lower-case word in a bullet) and a known
    one follows; at the end of the run it belongs to the learning.
    """
    fields: list[Field] = []
    passed: list[Field] = []
    head_end = position
    has_telling_bullet = False
    column = 0  # where the content of the last bullet begins; lines indented that far belong to it
    while position < len(text):
        line = METADATA_LINE.match(text, position)
        if line and not 0 < column <= len(line[1]):
            indent, bullet, name, value = line.groups()
            begin = line.start(4) - start
            value = value.rstrip(" \t\r")
            field = Field(name.rstrip().lower(), value, Span(begin, begin + len(value)))
            column = len((indent + bullet).expandtabs(4)) if bullet else 0
            position = min(line.end() + 1, len(text))
            if field.name in KNOWN:
                has_telling_bullet |= bool(bullet) and field.name in TELLING
                fields += [*passed, field]
                passed.clear()
                head_end = position
            elif bullet and name.islower() and " " not in name:
                passed.append(field)
            else:
                break
        elif text[position] not in " \t\r\n":
            break
        elif blank := _BLANK_LINE.match(text, position):
            position = blank.end()
        elif column and _indentation(text, position) >= column:
            position = _end_of_indented(text, position, column)
            run = passed or fields
            run[-1] = _continued(run[-1], text, start, position)
            head_end = head_end if passed else position
        else:
            break
    return Head(tuple(fields), head_end - start, has_telling_bullet)


def late_fields(text: str, body: Span) -> tuple[Field, ...]:
    """The fields that stand in the learning itself, above its first section: source, category, domain."""
    if not _LATE_HINT.search(text, body.start, body.end):
        return ()
    end = _LATE_END.search(text, body.start, body.end)
    found = []
    for line in _LATE_FIELD.finditer(text, body.start, end.start() if end else body.end):
        value = line[2].rstrip(" \t\r")
        found.append(Field(line[1].lower(), value, Span(line.start(2), line.start(2) + len(value))))
    return tuple(found)


def _end_of_indented(text: str, position: int, column: int) -> int:
    """The end of the lines from `position` on that are indented at least to `column`; blank lines may lie between."""
    end = position
    while position < len(text):
        blank = _BLANK_LINE.match(text, position)
        if blank:
            position = blank.end()
            continue
        if _indentation(text, position) < column:
            break
        end = position = text.find("\n", position) + 1 or len(text)
    return end


def _indentation(text: str, position: int) -> int:
    indent = _INDENT.match(text, position)
    return len(indent[0].expandtabs(4)) if indent else 0


def _continued(field: Field, text: str, start: int, end: int) -> Field:
    begin = field.span.start
    value = text[start + begin : end].rstrip(" \t\r\n")
    return Field(field.name, value, Span(begin, begin + len(value)))
