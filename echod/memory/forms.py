"""How entries look in the field: from a heading and the lines below it to an `Entry`.

Five forms have been seen (docs/formats.md has an example of each):

- bullet: `### [2026-02-11] Pattern: title`, metadata in bullets, the learning is the last bullet;
- layer heading: `## Inscribed — title (2026-02-11)`, metadata as `**Source**: ...` lines, body below;
- observation: `## Observations — Task: subject (2026-02-11)`, metadata partly in bullets;
- notes: `## Notes — title (2026-02-11)`;
- writer: `## title`, the layer only in a `- **layer**: ...` bullet.

Whatever could as well be a person's own section is not an entry, because entries may be pruned. Nothing here looks
at a whole file, and nothing knows whether a line is a heading or an example of one; that is `scan`'s work.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date

from echod.memory import values
from echod.memory.fields import TELLING, Head, late_fields, read_head
from echod.memory.layers import Layer
from echod.memory.model import Entry, Form, Span

_MARKS = re.compile(r" {0,3}(###?)[ \t]*")
# Dashes of every kind and number; a single ASCII hyphen counts only beside a space, because "Notes-taking" is a word.
_DASH = r"(?:[ \t]*(?:[\u2010-\u2015\u2212]|--)[\u2010-\u2015\u2212-]*|[ \t]+-|-(?=[ \t]))[ \t]*"
_LAYER_WORD = re.compile(rf"(etched|notes|inscribed|observations|traced){_DASH}", re.IGNORECASE)
_BRACKET_DATE = re.compile(r"\[([0-9]{4}-[0-9]{2}-[0-9]{2})\][ \t]*")
_BRACKET_ID = re.compile(r"\[[A-Z][A-Z0-9]*(?:-[A-Z0-9]+)+\](?!\()")
_DATE_IN_PARENTHESES = re.compile(r"\(([0-9]{4}-[0-9]{2}-[0-9]{2})\)")
_KIND = re.compile(r"([^\W\d_][\w/-]*(?: (?:patterns|findings))?):[ \t]+(?=\S)", re.IGNORECASE)
_TASK = re.compile(r"(Task):[ \t]*", re.IGNORECASE)
_SPACE = " \t\r\n"
_SEPARATOR_OR_BLANK = re.compile(r"[ \t\r\n]*+(?:([-*_])(?:[ \t]*+\1){2,}+[ \t\r\n]*+)?")


@dataclass(frozen=True, slots=True)
class Heading:
    """What a heading says.

    Attributes:
        form: the form that the entry has, if it is one.
        layer_word: where in the line the layer's word stands, in the forms that have it there.
        title: the heading without layer word, type word, date and marks.
        kind: the word before the title.
        day: the date.
        certain: the heading alone makes an entry; otherwise the head below it has to confirm that.
    """

    form: Form
    layer_word: Span | None
    title: str
    kind: str | None
    day: date | None
    certain: bool


@dataclass(frozen=True, slots=True)
class Shape:
    """A recognised entry whose end is not known yet."""

    heading: Heading
    head: Head


def recognise(text: str, start: int) -> Shape | None:
    """The entry whose heading line begins at `start`, or None where that heading does not begin one.

    The caller has made sure that the line is a heading and not, say, a line of a code block.
    """
    line_end = text.find("\n", start) + 1 or len(text)
    heading = read_heading(text[start:line_end])
    if heading is None:
        return None
    head = read_head(text, start, line_end)
    return Shape(heading, head) if heading.certain or _confirms(head, heading.form) else None


def read_heading(line: str) -> Heading | None:
    """What a heading line of level 2 or 3 says, or None where it cannot begin an entry."""
    marks = _MARKS.match(line)
    if marks is None:
        return None
    content = _without_closing_marks(line[marks.end() :].rstrip(_SPACE))
    if marks[1] == "###":
        return _bullet_heading(content)
    word = _LAYER_WORD.match(content)
    if word is None:
        return _writer_heading(content)
    layer_word = Span(marks.end(), marks.end() + word.end(1))
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
    body = _body(text, shape.head.end)
    fields = shape.head.fields + late_fields(text, body)
    said = {field.name: field.value for field in reversed(fields)}  # of repeated names the first counts
    word = heading.layer_word
    # Promotion as practised in the field rewrites the heading and forgets the bullet, so the heading is newer.
    layer = text[word.start : word.end] if word else said.get("layer", "")
    return Entry(
        form=heading.form,
        layer=values.layer(layer),
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
    if not content.endswith("#"):
        return content
    opened = content.rstrip("#")
    return content if opened and opened[-1] not in " \t" else opened.rstrip(" \t")


def _confirms(head: Head, form: Form) -> bool:
    """Whether the head makes an entry of a heading that alone could be a person's own section."""
    if form is Form.BULLET and head.has_telling_bullet:
        return True
    if form in {Form.BULLET, Form.WRITER}:
        return any(field.name == "layer" for field in head.fields)
    return any(field.name in TELLING for field in head.fields)


def _body(text: str, head_end: int) -> Span:
    """The learning, without blank lines and separators around it."""
    end = _end_of_learning(text, head_end)
    if end <= head_end:
        return Span(head_end, head_end)
    first_character = end - len(text[head_end:end].lstrip(_SPACE))
    return Span(max(text.rfind("\n", head_end, first_character) + 1, head_end), end)


def _end_of_learning(text: str, head_end: int) -> int:
    end = len(text.rstrip(_SPACE))
    if end <= head_end or text[end - 1] not in "-*_":
        return end
    last_line = end = len(text)
    while last_line > head_end:
        last_line = max(text.rfind("\n", head_end, end - 1) + 1, head_end)
        if not _SEPARATOR_OR_BLANK.fullmatch(text, last_line, end):
            return last_line + len(text[last_line:end].rstrip(_SPACE))
        end = last_line
    return head_end
