"""Read entries: from a heading and the lines below it to an `Entry`.

Real files have five forms (docs/formats.md has an example of each):

- bullet: `### [2026-02-11] Pattern: title`, metadata in bullets, the learning is the last bullet;
- layer heading: `## Inscribed — title (2026-02-11)`, metadata as `**Source**: ...` lines, body below;
- observation: `## Observations — Task: subject (2026-02-11)`, metadata partly in bullets;
- notes: `## Notes — title (2026-02-11)`;
- writer: `## title`, the layer only in a `- **layer**: ...` bullet.

A section that could be the user's own is not an entry, because entries may be pruned. This module sees one entry at a
time. `markdown` decides whether a line is a heading or an example of one.

The *head* of an entry is the run of metadata lines (`- **confidence**: 0.85`, `**Source**: user:remember`) right below
its heading. It may contain blank lines, and the indented lines of a bullet belong to that bullet's value. It ends at
the first line of any other kind, and only known metadata names belong to it, so that a bold lead in the learning (`-
**Retry**: three times`) is never read as metadata.

A value is read from its beginning and may be followed by prose (`HIGH (5 agents, all completed)`). The `*_token`
functions return the characters that carry the meaning, so that an edit replaces those and keeps the prose. Values that
are not understood are None.

How often the same task was reported is a remark behind the source:

    - **source**: `rune-review-7/ward` (5 times in 3 workflows, 2026-03-02 to 2026-03-17)

The remark is prose to other readers of these files. It is no part of the source, so the id of the entry stays.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date
from typing import NamedTuple

from echod.lazy import lazy_pattern
from echod.memory.model import HIGH_CONFIDENCE, Entry, Field, Form, Layer, Span

_DAY = r"[0-9]{4}-[0-9]{2}-[0-9]{2}"
_REMARK = lazy_pattern(
    rf"(?<![ \t])[ \t]*\(([0-9]{{1,9}}) times in ([0-9]{{1,9}}) workflows?, ({_DAY}) to ({_DAY})\)[ \t]*\Z", re.ASCII
)


class Recurrence(NamedTuple):
    """How often something was reported, in how many workflows at least, and from when to when."""

    times: int
    workflows: int
    first: date
    last: date

    def __str__(self) -> str:
        """Return the remark for a source line."""
        workflows = f"{self.workflows} workflow{'' if self.workflows == 1 else 's'}"
        return f"({self.times} times in {workflows}, {self.first.isoformat()} to {self.last.isoformat()})"


def find_recurrence(value: str) -> Recurrence | None:
    """Return the recurrence in the value of a source line; None without a remark, and for impossible dates."""
    match = _REMARK.search(value)
    if match is None:
        return None
    try:
        first, last = (date.fromisoformat(text) for text in match.group(3, 4))
    except ValueError:
        return None
    return Recurrence(int(match[1]), int(match[2]), first, last)


def without_recurrence(value: str) -> str:
    """Return the value of a source line without the remark."""
    return _REMARK.sub("", value) if value.endswith(")") or value.rstrip().endswith(")") else value


def add_recurrences(parts: Sequence[tuple[str, Recurrence]]) -> Recurrence:
    """Return the sum of several reports, each with the workflow of its source.

    The workflows behind an earlier sum are unknown, except for the one that is named. So another workflow only adds to
    a sum if it came on a later day: too few workflows rather than too many.
    """
    recurrences = [recurrence for _, recurrence in parts]
    named = {workflow for workflow, _ in parts}
    sums = {workflow: recurrence for workflow, recurrence in parts if recurrence.times > 1}
    known = max((recurrence.workflows for recurrence in sums.values()), default=0)
    summed_until = max((recurrence.last for recurrence in sums.values()), default=date.min)
    later = {workflow for workflow, recurrence in parts if recurrence.first > summed_until} - sums.keys()
    return Recurrence(
        times=sum(recurrence.times for recurrence in recurrences),
        workflows=max(len(named), known + len(later)),
        first=min(recurrence.first for recurrence in recurrences),
        last=max(recurrence.last for recurrence in recurrences),
    )


# Names that only entries have.
_IDENTIFYING_FIELDS = frozenset({
    "layer", "source", "confidence", "evidence", "verified", "supersedes",
    "finding_id", "finding_ids", "recurrence_count", "first_seen", "last_seen", "phase_tags",
})  # fmt: skip

# All names that writers of memory files use.
_KNOWN_FIELDS = _IDENTIFYING_FIELDS | frozenset({
    "date", "tags", "category", "domain", "role", "type", "status",
    "superseded_by", "promoted_to", "promoted_from", "promoted_date", "metrics_snapshot",
})  # fmt: skip

# Groups: indent, bullet, name, value.
_METADATA_LINE = lazy_pattern(
    r"( {0,3})([-*+](?: {1,4}|\t))?"
    r"\*\*([A-Za-z][A-Za-z0-9_ -]{0,39})(?:\*\*[ \t]*:|:\*\*)[ \t]*([^\n]*)"
)

# The original reader of these files accepts these three, unbulleted, anywhere above the next heading.
_BODY_FIELD = lazy_pattern(r"^\*\*(category|domain|source)\*\*:[ \t]*([^\n]*)", re.MULTILINE | re.IGNORECASE)
_BODY_FIELD_HINT = lazy_pattern(r"\*\*(?:[cC]ategory|CATEGORY|[dD]omain|DOMAIN|[sS]ource|SOURCE)\*\*:")
_BODY_FIELDS_END = lazy_pattern(r"^ {0,3}(?:#{1,6}[ \t]|```|~~~|<!--)", re.MULTILINE)
_BLANK_LINE = lazy_pattern(r"[ \t\r]*(?:\n|\Z)")
_INDENT = lazy_pattern(r"[ \t]*")

CONFIDENCE_WORDS = {"high": HIGH_CONFIDENCE, "medium": 0.75, "low": 0.4}
"""The confidence of each word."""

_LAYERS = {layer.value: layer for layer in Layer}
_MAX_NUMBER_LENGTH = 400  # characters; the smallest float in full has 326, and longer numbers are slow to parse
# All repetitions are possessive, because a value may be a hostile line of megabytes. Dates and numbers are ASCII.
_LEADING_MARKS = r"[`*_\"' \t]*+"
_WORD = lazy_pattern(rf"{_LEADING_MARKS}([A-Za-z]++)(?![\w|/])(?![ \t]*+[|/])", re.ASCII)
_NUMBER = lazy_pattern(rf"{_LEADING_MARKS}((?:[0-9]++(?:\.[0-9]++)?+|\.[0-9]++)%?+)(?![\w%,./]++(?<=\w))", re.ASCII)
_DATE = lazy_pattern(
    rf"{_LEADING_MARKS}(([0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}})(?:T[0-9]{{2}}:[0-9]{{2}}[0-9:.]*+(?:Z|[+-][0-9:]{{4,5}})?)?+)(?![\w-])",
    re.ASCII,
)
_NONE_VALUE = lazy_pattern(
    r"[`*_\"'(]*+(?:none|n/?a|nothing|null|[-\u2013\u2014])?+[`*_\"').]*+(?:\s*+\(.*)?", re.IGNORECASE | re.DOTALL
)
_CODE = lazy_pattern(r"`([^`\n]+)`")
_HEADING_MARKS = lazy_pattern(r" {0,3}(###?)[ \t]*")
# Dashes of every kind and number. A single ASCII hyphen needs a space beside it, because "Notes-taking" is a word.
_DASH = r"(?:[ \t]*(?:[\u2010-\u2015\u2212]|--)[\u2010-\u2015\u2212-]*|[ \t]+-|-(?=[ \t]))[ \t]*"
# The heading and the first line of nearly every entry in the bullet form.
_CLEAR_ENTRY = lazy_pattern(
    r"### \[[0-9]{4}-[0-9]{2}-[0-9]{2}\][^\n]*+\n- \*\*(?:layer|source|confidence|evidence|verified)\*\*:"
)
_LAYER_WORD = lazy_pattern(rf"(etched|notes|inscribed|observations|traced){_DASH}", re.IGNORECASE)
_BRACKET_DATE = lazy_pattern(r"\[([0-9]{4}-[0-9]{2}-[0-9]{2})\][ \t]*")
_BRACKET_ID = lazy_pattern(r"\[[A-Z][A-Z0-9]*(?:-[A-Z0-9]+)+\](?!\()")
_DATE_IN_PARENTHESES = lazy_pattern(r"\(([0-9]{4}-[0-9]{2}-[0-9]{2})\)")
_KIND = lazy_pattern(r"([^\W\d_][\w/-]*(?: (?:patterns|findings))?):[ \t]+(?=\S)", re.IGNORECASE)
_TASK = lazy_pattern(r"(Task):[ \t]*", re.IGNORECASE)
_SPACE = " \t\r\n"
_SEPARATOR_OR_BLANK = lazy_pattern(r"[ \t\r\n]*+(?:([-*_])(?:[ \t]*+\1){2,}+[ \t\r\n]*+)?")


class EntryHeading(NamedTuple):
    """The parts of a heading."""

    form: Form  # the form that the entry has, if it is one
    layer_word: Span | None  # the position of the layer's word in the line, in the forms that have it there
    title: str  # the heading without layer word, type word, date and marks
    kind: str | None  # the word before the title
    day: date | None
    is_conclusive: bool  # the heading alone makes an entry; otherwise the head below it has to confirm that


class MetadataBlock(NamedTuple):
    """The metadata right below a heading. Offsets count from the start of the heading's line."""

    fields: tuple[Field, ...]  # the metadata lines in file order
    end: int  # the end of the head; without fields, where it would begin
    has_identifying_bullet: bool  # a bullet in it has one of the names in `_IDENTIFYING_FIELDS`


class PartialEntry(NamedTuple):
    """A recognised entry before its end is known."""

    heading: EntryHeading
    metadata: MetadataBlock


def begins_entry(text: str, start: int) -> bool:
    """Return whether `match_entry` finds an entry, usually without reading it."""
    return _CLEAR_ENTRY.match(text, start) is not None or match_entry(text, start) is not None


def match_entry(text: str, start: int) -> PartialEntry | None:
    """Return the entry whose heading line begins at `start`, or None where that heading does not begin one.

    The caller has checked that the line is a heading and not, for example, a line of a code block.
    """
    line_end = text.find("\n", start) + 1 or len(text)
    heading = parse_heading(text[start:line_end])
    if heading is None:
        return None
    metadata = _parse_metadata_block(text, start, line_end)
    return PartialEntry(heading, metadata) if heading.is_conclusive or _confirms_entry(metadata, heading.form) else None


def complete_entry(partial: PartialEntry, text: str) -> Entry:
    """Return the entry of a block with this text. `partial` was recognised at the start of the text."""
    heading = partial.heading
    body = _body_span(text, partial.metadata.end)
    fields = partial.metadata.fields + _body_fields(text, body)
    values = {field.name: field.value for field in reversed(fields)}  # the first of repeated names counts
    word = heading.layer_word
    # Manual promotion changes the heading and often not the bullet, so the heading is newer.
    layer = text[word.start : word.end] if word else values.get("layer", "")
    return Entry(
        form=heading.form,
        layer=_parse_layer(layer),
        title=heading.title,
        kind=heading.kind,
        heading_date=heading.day or _parse_date(values.get("date", "")),
        verified=_parse_date(values.get("verified", "")),
        confidence=_parse_confidence(values.get("confidence", "")),
        source=parse_source(values.get("source", "")),
        evidence=values.get("evidence") or None,
        supersedes=_title_or_none(values.get("supersedes", "")),
        body=body,
        fields=fields,
    )


def _confirms_entry(metadata: MetadataBlock, form: Form) -> bool:
    """Return whether the head makes an entry of a heading that alone could be the user's own section."""
    if form is Form.BULLET and metadata.has_identifying_bullet:
        return True
    if form in {Form.BULLET, Form.WRITER}:
        return any(field.name == "layer" for field in metadata.fields)
    return any(field.name in _IDENTIFYING_FIELDS for field in metadata.fields)


def _body_span(text: str, metadata_end: int) -> Span:
    """Return the span of the learning, without blank lines and separators around it."""
    end = _end_of_learning(text, metadata_end)
    if end <= metadata_end:
        return Span(metadata_end, metadata_end)
    first_character = end - len(text[metadata_end:end].lstrip(_SPACE))
    return Span(max(text.rfind("\n", metadata_end, first_character) + 1, metadata_end), end)


def _end_of_learning(text: str, metadata_end: int) -> int:
    end = len(text.rstrip(_SPACE))
    if end <= metadata_end or text[end - 1] not in "-*_":
        return end
    last_line = end = len(text)
    while last_line > metadata_end:
        last_line = max(text.rfind("\n", metadata_end, end - 1) + 1, metadata_end)
        if not _SEPARATOR_OR_BLANK.fullmatch(text, last_line, end):
            return last_line + len(text[last_line:end].rstrip(_SPACE))
        end = last_line
    return metadata_end


def parse_heading(line: str) -> EntryHeading | None:
    """Return the parts of a heading line of level 2 or 3, or None where it cannot begin an entry."""
    marks = _HEADING_MARKS.match(line)
    if marks is None:
        return None
    content = _strip_closing_marks(line[marks.end() :].rstrip(_SPACE))
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
    return EntryHeading(form, layer_word, title, task[1] if task else None, _date_from_match(day), day is not None)


def _bullet_heading(content: str) -> EntryHeading | None:
    bracket = _BRACKET_DATE.match(content)
    if bracket:
        kind, title = _split_kind(content[bracket.end() :])
        return EntryHeading(Form.BULLET, None, title, kind, _date_from_match(bracket), is_conclusive=False)
    if _BRACKET_ID.match(content):
        return EntryHeading(Form.BULLET, None, content, None, None, is_conclusive=False)
    return None


def _writer_heading(content: str) -> EntryHeading:
    bracket = _BRACKET_DATE.match(content)
    if bracket:
        kind, title = _split_kind(content[bracket.end() :])
        return EntryHeading(Form.WRITER, None, title, kind, _date_from_match(bracket), is_conclusive=False)
    day = _DATE_IN_PARENTHESES.match(content, max(0, len(content) - len("(2026-02-11)")))
    title = content[: day.start()].rstrip(" \t") if day else content
    return EntryHeading(Form.WRITER, None, title, None, _date_from_match(day), is_conclusive=False)


def _split_kind(title: str) -> tuple[str | None, str]:
    kind = _KIND.match(title)
    return (kind[1], title[kind.end() :]) if kind else (None, title)


def _strip_closing_marks(content: str) -> str:
    if not content.endswith("#"):
        return content
    unclosed = content.rstrip("#")
    return content if unclosed and unclosed[-1] not in " \t" else unclosed.rstrip(" \t")


def _parse_metadata_block(text: str, start: int, position: int) -> MetadataBlock:
    """Return the head of the entry whose heading line begins at `start` and ends before `position`.

    An unknown name is skipped where it looks like a field (one lower-case word in a bullet) and a known one follows. At
    the end of the run it belongs to the learning.
    """
    fields: list[Field] = []
    unknown_fields: list[Field] = []
    metadata_end = position
    has_identifying_bullet = False
    column = 0  # of the last bullet's content; lines indented that far belong to it
    length = len(text)
    while position < length:
        line = _METADATA_LINE.match(text, position)
        if line and not 0 < column <= len(line[1]):
            indent, bullet, written_name, value = line.groups()
            begin = line.start(4) - start
            value = value.rstrip(" \t\r")
            name = written_name.rstrip().lower()
            field = Field(name, value, Span(begin, begin + len(value)))
            column = len((indent + bullet).expandtabs(4)) if bullet else 0
            position = min(line.end() + 1, length)
            if name in _KNOWN_FIELDS:
                has_identifying_bullet = has_identifying_bullet or (bool(bullet) and name in _IDENTIFYING_FIELDS)
                if unknown_fields:
                    fields += unknown_fields
                    unknown_fields.clear()
                fields.append(field)
                metadata_end = position
            elif bullet and written_name.islower() and " " not in written_name:
                unknown_fields.append(field)
            else:
                break
        elif text[position] not in " \t\r\n":
            break
        elif blank := _BLANK_LINE.match(text, position):
            position = blank.end()
        elif column and _indentation(text, position) >= column:
            position = _end_of_indented(text, position, column)
            run = unknown_fields or fields
            run[-1] = _extend_field(run[-1], text, start, position)
            metadata_end = metadata_end if unknown_fields else position
        else:
            break
    return MetadataBlock(tuple(fields), metadata_end - start, has_identifying_bullet)


def _end_of_indented(text: str, position: int, column: int) -> int:
    """Return the end of the lines from `position` that are indented at least to `column`, blank lines included."""
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


def _extend_field(field: Field, text: str, start: int, end: int) -> Field:
    begin = field.span.start
    value = text[start + begin : end].rstrip(" \t\r\n")
    return Field(field.name, value, Span(begin, begin + len(value)))


def _body_fields(text: str, body: Span) -> tuple[Field, ...]:
    """Return the fields in the learning itself, above its first section: source, category, domain."""
    if text.find("**", body.start, body.end) < 0 or not _BODY_FIELD_HINT.search(text, body.start, body.end):
        return ()
    end = _BODY_FIELDS_END.search(text, body.start, body.end)
    fields = []
    for line in _BODY_FIELD.finditer(text, body.start, end.start() if end else body.end):
        value = line[2].rstrip(" \t\r")
        fields.append(Field(line[1].lower(), value, Span(line.start(2), line.start(2) + len(value))))
    return tuple(fields)


def _parse_layer(value: str) -> Layer | None:
    """Return the layer named by `value`, in any case; None for an unknown word and for a choice (`etched | notes`)."""
    if value in _LAYERS:
        return _LAYERS[value]
    word = _WORD.match(value)
    return _LAYERS.get(word[1].lower()) if word else None


def layer_token(value: str) -> Span | None:
    """Return the position of the layer's word in `value`."""
    word = _WORD.match(value)
    return Span(*word.span(1)) if word and word[1].lower() in _LAYERS else None


def _parse_confidence(value: str) -> float | None:
    """Return 0..1 from a number, a percentage or a word; None for anything else and out of range."""
    number = _NUMBER.match(value)
    if number:
        if len(number[1]) > _MAX_NUMBER_LENGTH:
            return None
        amount = float(number[1].rstrip("%")) / (100 if number[1].endswith("%") else 1)
        return amount if 0 <= amount <= 1 else None
    word = _WORD.match(value)
    return CONFIDENCE_WORDS.get(word[1].lower()) if word else None


def confidence_token(value: str) -> Span | None:
    """Return the position of the number or word in `value`; None where `value` is not a confidence."""
    token = _NUMBER.match(value) or _WORD.match(value)
    return Span(*token.span(1)) if token and _parse_confidence(value) is not None else None


def _parse_date(value: str) -> date | None:
    """Return the date at the beginning of `value`; None without one or if the calendar does not have it."""
    match = _DATE.match(value) if value else None
    return _date_or_none(match[2]) if match else None


def date_token(value: str) -> Span | None:
    """Return the position in `value` of the date (with a time of day, if any)."""
    match = _DATE.match(value)
    return Span(*match.span(1)) if match and _date_or_none(match[2]) else None


def _date_from_match(match: re.Match[str] | None) -> date | None:
    """Return the date in the first group of a match; None if the calendar does not have it."""
    return _date_or_none(match[1]) if match else None


def _date_or_none(text: str) -> date | None:
    try:
        return date.fromisoformat(text)
    except ValueError:
        return None


def parse_source(value: str) -> str | None:
    """Return the source: the text in back quotes at the beginning, else all of the value but a remark on recurrence."""
    code = _CODE.match(value)
    return (code[1] if code else without_recurrence(value)).strip() or None


def _title_or_none(value: str) -> str | None:
    """Return a title as written; None where the field is empty or means "none"."""
    return None if not value or _NONE_VALUE.fullmatch(value) else value
