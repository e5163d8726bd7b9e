"""How entries look in the field: from a heading and the lines below it to an `Entry`.

Five forms have been seen (docs/formats.md has an example of each):

- bullet: `### [2026-02-11] Pattern: title`, metadata in bullets, the learning is the last bullet;
- layer heading: `## Inscribed — title (2026-02-11)`, metadata as `**Source**: ...` lines, body below;
- observation: `## Observations — Task: subject (2026-02-11)`, metadata partly in bullets;
- notes: `## Notes — title (2026-02-11)`;
- writer: `## title`, the layer only in a `- **layer**: ...` bullet.

The *head* of an entry is the run of metadata lines right below its heading; blank lines and the indented lines of
a metadata bullet may stand in it. It ends at the first line of any other kind, so that a bold lead in the
learning (`- **Retry**: three times`) is never read as metadata. Nothing here looks at a whole file.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date

from echod.memory import values
from echod.memory.model import Entry, Field, Form, Layer, Span

# What a heading in one of the forms begins with. Dashes of every kind and number; a single ASCII hyphen counts only
# beside a space, because "Notes-taking" is a word.
_DASH = r"(?:[ \t]*(?:[\u2010-\u2015\u2212]|--)[\u2010-\u2015\u2212-]*|[ \t]+-|-(?=[ \t]))[ \t]*"
_LAYER_WORD = re.compile(rf"(etched|notes|inscribed|observations|traced){_DASH}", re.IGNORECASE)
_BRACKET_DATE = re.compile(r"\[([0-9]{4}-[0-9]{2}-[0-9]{2})\][ \t]*")
_BRACKET_ID = re.compile(r"\[[A-Z][A-Z0-9]*(?:-[A-Z0-9]+)+\](?!\()")
_DATE_IN_PARENTHESES = re.compile(r"\(([0-9]{4}-[0-9]{2}-[0-9]{2})\)")
_KIND = re.compile(r"([^\W\d_][\w/-]*(?: (?:patterns|findings))?):[ \t]+(?=\S)", re.IGNORECASE)
_TASK = re.compile(r"(Task):[ \t]*", re.IGNORECASE)

_METADATA_LINE = re.compile(
    r"(?P<indent> {0,3})(?P<bullet>[-*+](?: {1,4}|\t))?"
    r"\*\*(?P<name>[A-Za-z][A-Za-z0-9_ -]{0,39})(?:\*\*[ \t]*:|:\*\*)[ \t]*(?P<value>[^\n]*)"
)
_BLANK_LINE = re.compile(r"[ \t\r]*(?:\n|\Z)")
_INDENT = re.compile(r"[ \t]*")
_SEPARATOR_OR_BLANK = re.compile(r"[ \t\r\n]*+(?:([-*_])(?:[ \t]*+\1){2,}+[ \t\r\n]*+)?")

# Names that say by themselves that the lines above them are an entry.
_TELLING = frozenset({
    "layer", "source", "confidence", "evidence", "verified", "supersedes",
    "finding_id", "finding_ids", "recurrence_count", "first_seen", "last_seen", "phase_tags",
})  # fmt: skip
_KNOWN = _TELLING | frozenset({
    "date", "tags", "category", "domain", "role", "type", "status",
    "superseded_by", "promoted_to", "promoted_from", "promoted_date", "metrics_snapshot",
})  # fmt: skip
# Other readers of these files accept these anywhere before the next heading, and writers rely on it.
_LATE_FIELD = re.compile(r"^\*\*(category|domain|source)\*\*:[ \t]*([^\n]*)", re.MULTILINE | re.IGNORECASE)
_LATE_HINT = re.compile(r"\*\*(?:[cC]ategory|CATEGORY|[dD]omain|DOMAIN|[sS]ource|SOURCE)\*\*:")
_LATE_END = re.compile(r"^ {0,3}(?:#{1,6}[ \t]|```|~~~|<!--)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Heading:
    """What the heading alone says."""

    form: Form
    layer_word: Span | None
    title: str
    kind: str | None
    day: date | None
    certain: bool
    """The heading alone makes an entry; otherwise the head has to confirm it."""


@dataclass(frozen=True, slots=True)
class Shape:
    """A recognised entry before its end is known: heading and head, offsets counted from the heading line."""

    heading: Heading
    fields: tuple[Field, ...]
    head_end: int


def recognise(text: str, start: int) -> Shape | None:
    """The entry whose heading line begins at `start`, or None where that heading does not begin one.

    The caller has made sure that the line is a heading and not, say, a line of a code block.
    """
    line_end = text.find("\n", start)
    line_end = len(text) if line_end < 0 else line_end
    heading = read_heading(text[start:line_end])
    if heading is None:
        return None
    fields, head_end = _read_head(text, start, min(line_end + 1, len(text)))
    if heading.certain or _confirms(heading.form, fields, text, start):
        return Shape(heading, fields, head_end)
    return None


def read_heading(line: str) -> Heading | None:
    """What a heading line of level 2 or 3 says, or None where it cannot begin an entry."""
    marks = len(line) - len(line.lstrip(" "))
    section = line.startswith("###", marks)
    content_start = marks + len("###" if section else "##")
    content = line[content_start:]
    content_start += len(content) - len(content.lstrip(" \t"))
    content = _without_closing_marks(content.strip(" \t\r"))
    if section:
        return _bullet_heading(content)
    word = _LAYER_WORD.match(content)
    if word is None:
        return _writer_heading(content)
    layer_word = Span(content_start, content_start + word.end(1))
    day = _DATE_IN_PARENTHESES.search(content, word.end())
    title = content[word.end() : day.start() if day else None].strip(" \t")
    form = Form.NOTES if word[1].lower() == Layer.NOTES else Form.LAYER_HEADING
    task = _TASK.match(title)
    if task:
        form, title = Form.OBSERVATION, title[task.end() :]
    return Heading(form, layer_word, title, task[1] if task else None, values.calendar_day(day), day is not None)


def finish(shape: Shape, text: str) -> Entry:
    """The entry of a block whose whole text is now known. `shape` was recognised at the start of that text."""
    heading = shape.heading
    body = _body(text, shape.head_end)
    fields = shape.fields
    if body.end > body.start and _LATE_HINT.search(text, body.start, body.end):
        fields += _late_fields(text, body)
    said: dict[str, str] = {}
    for field in fields:
        said.setdefault(field.name, field.value)
    if heading.layer_word:
        layer = values.layer(text[heading.layer_word.start : heading.layer_word.end])
    else:
        layer = values.layer(said.get("layer", ""))
    return Entry(
        form=heading.form,
        layer=layer,
        title=heading.title,
        kind=heading.kind,
        heading_date=heading.day or values.day(said.get("date", "")),
        verified=values.day(said.get("verified", "")),
        confidence=values.confidence(said.get("confidence", "")),
        source=values.source(said.get("source", "")),
        evidence=said.get("evidence") or None,
        supersedes=values.title_or_none(said.get("supersedes", "")),
        body=body,
        fields=fields,
    )


def _bullet_heading(content: str) -> Heading | None:
    bracket = _BRACKET_DATE.match(content)
    if bracket:
        kind, title = _split_kind(content[bracket.end() :])
        return Heading(Form.BULLET, None, title, kind, values.calendar_day(bracket), certain=False)
    if _BRACKET_ID.match(content):
        return Heading(Form.BULLET, None, content, None, None, certain=False)
    return None


def _writer_heading(content: str) -> Heading:
    bracket = _BRACKET_DATE.match(content)
    if bracket:
        kind, title = _split_kind(content[bracket.end() :])
        return Heading(Form.WRITER, None, title, kind, values.calendar_day(bracket), certain=False)
    day = _DATE_IN_PARENTHESES.match(content, max(0, len(content) - len("(2026-02-11)")))
    title = content[: day.start()].rstrip(" \t") if day else content
    return Heading(Form.WRITER, None, title, None, values.calendar_day(day), certain=False)


def _split_kind(title: str) -> tuple[str | None, str]:
    kind = _KIND.match(title)
    return (kind[1], title[kind.end() :]) if kind else (None, title)


def _without_closing_marks(content: str) -> str:
    opened = content.rstrip("#")
    if len(opened) == len(content) or (opened and opened[-1] not in " \t"):
        return content
    return opened.rstrip(" \t")


def _read_head(text: str, start: int, position: int) -> tuple[tuple[Field, ...], int]:
    """The metadata fields from `position` on, and where the head ends, both counted from `start`.

    A name that is not known is passed over where it looks like a field (one lower-case word in a bullet) and a known
    one follows; at the end of the run it belongs to the learning.
    """
    fields: list[Field] = []
    passed: list[Field] = []
    head_end = position
    content_column = 0  # where the content of the last bullet begins; lines indented that far belong to it
    while position < len(text):
        line = _METADATA_LINE.match(text, position)
        if line and not 0 < content_column <= len(line["indent"]):
            name = line["name"].rstrip().lower()
            value = line["value"].rstrip(" \t\r")
            begin = line.start("value") - start
            field = Field(name, value, Span(begin, begin + len(value)))
            content_column = len((line["indent"] + line["bullet"]).expandtabs(4)) if line["bullet"] else 0
            position = min(line.end() + 1, len(text))
            if name in _KNOWN:
                fields += [*passed, field]
                passed.clear()
                head_end = position
            elif content_column and line["name"].islower() and " " not in name:
                passed.append(field)
            else:
                break
        elif blank := _BLANK_LINE.match(text, position):
            position = blank.end()
        elif content_column and _indentation(text, position) >= content_column:
            position = _end_of_indented(text, position, content_column)
            run = passed or fields
            run[-1] = _continued(run[-1], text, start, position)
            head_end = head_end if passed else position
        else:
            break
    return tuple(fields), head_end - start


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


def _confirms(form: Form, fields: tuple[Field, ...], text: str, start: int) -> bool:
    """Whether the head makes an entry of a heading that alone could be a person's own section."""
    if form is Form.WRITER:
        return any(field.name == "layer" for field in fields)
    telling = [field for field in fields if field.name in _TELLING]
    if form is Form.BULLET:
        return any(field.name == "layer" or _is_bullet(text, start, field) for field in telling)
    return bool(telling)


def _is_bullet(text: str, start: int, field: Field) -> bool:
    line_start = text.rfind("\n", start, start + field.span.start) + 1
    return not text[line_start : line_start + 5].lstrip(" ").startswith("**")


def _late_fields(text: str, body: Span) -> tuple[Field, ...]:
    end = _LATE_END.search(text, body.start, body.end)
    found = []
    for line in _LATE_FIELD.finditer(text, body.start, end.start() if end else body.end):
        value = line[2].rstrip(" \t\r")
        found.append(Field(line[1].lower(), value, Span(line.start(2), line.start(2) + len(value))))
    return tuple(found)


def _body(text: str, head_end: int) -> Span:
    """The learning, without blank lines and separators around it."""
    start = head_end
    while start < len(text) and (blank := _BLANK_LINE.match(text, start)):
        start = blank.end()
    end = len(text)
    while end > start:
        last_line = max(text.rfind("\n", start, end - 1) + 1, start)
        if not _SEPARATOR_OR_BLANK.fullmatch(text, last_line, end):
            return Span(start, last_line + len(text[last_line:end].rstrip(" \t\r\n")))
        end = last_line
    return Span(head_end, head_end)
