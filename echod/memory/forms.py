"""How entries look in the field: from a heading and the lines below it to an `Entry`.

Five forms have been seen (docs/formats.md has an example of each):

- bullet: `### [2026-02-11] Pattern: title`, metadata in bullets, the learning is the last bullet;
- layer heading: `## Inscribed — title (2026-02-11)`, metadata as `**Source**: ...` lines, body below;
- observation: `## Observations — Task: subject (2026-02-11)`, metadata partly in bullets;
- notes: `## Notes — title (2026-02-11)`;
- writer: `## title`, the layer only in a `- **layer**: ...` bullet.

Whatever could as well be a person's own section is not an entry, because entries may be pruned. Nothing here looks
at a whole file, and nothing knows whether a line is a heading or an example of one; that is `scan`'s work.

Metadata lines: `- **confidence**: 0.85`, `**Source**: user:remember`, and which lines below a heading they are.

The *head* of an entry is the run of metadata lines right below its heading. Blank lines may stand in it, and the
indented lines of a bullet belong to that bullet's value. It ends at the first line of any other kind, and only
names that are known to be metadata belong to it, so that a bold lead in the learning (`- **Retry**: three times`)
is never read as metadata. This module knows nothing of headings and layers.

What the words of the metadata mean: layers, dates, confidences, sources. Each says None for what it does not know.

A value is read from its beginning and may be followed by prose (`HIGH (5 agents, all completed)`). The `*_token`
functions say which characters carry the meaning, so that an edit replaces those and keeps the prose.
"""

from __future__ import annotations

import re
from datetime import date
from typing import NamedTuple

from echod.memory.model import Entry, Field, Form, Layer, Span

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


class Head(NamedTuple):
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


CONFIDENCE_WORDS = {"high": 0.9, "medium": 0.75, "low": 0.4}

_LAYERS = {layer.value: layer for layer in Layer}
_LONGEST_NUMBER = 400  # characters; the smallest float written out has 326, and longer ones take long to read

# Possessive throughout: a value may be a hostile line of megabytes. ASCII: dates and numbers have no other digits.
_LEADING_MARKS = r"[`*_\"' \t]*+"
_WORD = re.compile(rf"{_LEADING_MARKS}([A-Za-z]++)(?![\w|/])(?![ \t]*+[|/])", re.ASCII)
_NUMBER = re.compile(rf"{_LEADING_MARKS}((?:[0-9]++(?:\.[0-9]++)?+|\.[0-9]++)%?+)(?![\w%,./]++(?<=\w))", re.ASCII)
_DAY = re.compile(
    rf"{_LEADING_MARKS}(([0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}})(?:T[0-9]{{2}}:[0-9]{{2}}[0-9:.]*+(?:Z|[+-][0-9:]{{4,5}})?)?+)(?![\w-])",
    re.ASCII,
)
_NOTHING = re.compile(
    r"[`*_\"'(]*+(?:none|n/?a|nothing|null|[-\u2013\u2014])?+[`*_\"').]*+(?:\s*+\(.*)?", re.IGNORECASE | re.DOTALL
)
_CODE = re.compile(r"`([^`\n]+)`")


def parse_layer(value: str) -> Layer | None:
    """The layer that `value` names, in any case; None for an unknown word and for a choice (`etched | notes`)."""
    word = _WORD.match(value)
    return _LAYERS.get(word[1].lower()) if word else None


def layer_token(value: str) -> Span | None:
    """Where in `value` the layer's word stands."""
    word = _WORD.match(value)
    return Span(*word.span(1)) if word and word[1].lower() in _LAYERS else None


def parse_confidence(value: str) -> float | None:
    """0..1 from a number, a percentage or a word; None where it is neither or out of range."""
    number = _NUMBER.match(value)
    if number:
        if len(number[1]) > _LONGEST_NUMBER:
            return None
        amount = float(number[1].rstrip("%")) / (100 if number[1].endswith("%") else 1)
        return amount if 0 <= amount <= 1 else None
    word = _WORD.match(value)
    return CONFIDENCE_WORDS.get(word[1].lower()) if word else None


def confidence_token(value: str) -> Span | None:
    """Where in `value` the number or word stands; None where there is nothing to keep the rest of."""
    token = _NUMBER.match(value) or _WORD.match(value)
    return Span(*token.span(1)) if token and parse_confidence(value) is not None else None


def parse_day(value: str) -> date | None:
    """The date at the beginning of `value`; None where there is none or the calendar does not have it."""
    found = _DAY.match(value)
    return _calendar(found[2]) if found else None


def day_token(value: str) -> Span | None:
    """Where in `value` the date (with a time of day, if any) stands."""
    found = _DAY.match(value)
    return Span(*found.span(1)) if found and _calendar(found[2]) else None


def calendar_day(found: re.Match[str] | None) -> date | None:
    """The date in the first group of a match; None where the calendar does not have it."""
    return _calendar(found[1]) if found else None


def parse_source(value: str) -> str | None:
    """Who says so: what stands in back quotes at the beginning, else all of it."""
    code = _CODE.match(value)
    return (code[1] if code else value).strip() or None


def title_or_none(value: str) -> str | None:
    """A title as written; None where the field is empty or says that there is none."""
    return None if _NOTHING.fullmatch(value) else value


def _calendar(text: str) -> date | None:
    try:
        return date.fromisoformat(text)
    except ValueError:
        return None


_HEADING_MARKS = re.compile(r" {0,3}(###?)[ \t]*")
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


class Heading(NamedTuple):
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


class Shape(NamedTuple):
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
    marks = _HEADING_MARKS.match(line)
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
    return Heading(form, layer_word, title, task[1] if task else None, calendar_day(day), day is not None)


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
        layer=parse_layer(layer),
        title=heading.title,
        kind=heading.kind,
        heading_date=heading.day or parse_day(said.get("date", "")),
        verified=parse_day(said.get("verified", "")),
        confidence=parse_confidence(said.get("confidence", "")),
        source=parse_source(said.get("source", "")),
        evidence=said.get("evidence") or None,
        supersedes=title_or_none(said.get("supersedes", "")),
        body=body,
        fields=fields,
    )


def _bullet_heading(content: str) -> Heading | None:
    bracket = _BRACKET_DATE.match(content)
    if bracket:
        kind, title = _split_kind(content[bracket.end() :])
        return Heading(Form.BULLET, None, title, kind, calendar_day(bracket), certain=False)
    if _BRACKET_ID.match(content):
        return Heading(Form.BULLET, None, content, None, None, certain=False)
    return None


def _writer_heading(content: str) -> Heading:
    bracket = _BRACKET_DATE.match(content)
    if bracket:
        kind, title = _split_kind(content[bracket.end() :])
        return Heading(Form.WRITER, None, title, kind, calendar_day(bracket), certain=False)
    day = _DATE_IN_PARENTHESES.match(content, max(0, len(content) - len("(2026-02-11)")))
    title = content[: day.start()].rstrip(" \t") if day else content
    return Heading(Form.WRITER, None, title, None, calendar_day(day), certain=False)


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
