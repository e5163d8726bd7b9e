"""Change one metadata value of an entry, and no other byte.

Every function returns the same block where the entry has the value already, else a block that differs only in that
value. Prose after a value stays (`HIGH (four reviews)` becomes `0.95 (four reviews)`). A missing field is added where
its form has it, in the style of its neighbours and with the block's own line ending.

A learning is a list item or a paragraph with everything that belongs to it: continuation lines, nested items, and the
code blocks, tables and quotations below it. The lines of all parts in order are the lines of the body.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from enum import Enum, auto
from itertools import pairwise

from echod.lazy import lazy_pattern
from echod.memory import forms
from echod.memory.document import parse_block
from echod.memory.forms import Recurrence, without_recurrence
from echod.memory.model import Block, Entry, Field, Form, Layer, Span

# The order of the fields in all forms.
_FIELD_ORDER = ("layer", "source", "confidence", "evidence", "verified", "supersedes", "promoted_to")


def with_verified(block: Block, day: date) -> Block:
    """Return the block with `day` as the date of its entry's last verification."""
    entry = _require_entry(block)
    if entry.verified == day:
        return block
    return parse_block(_set_field(block.text, entry, "verified", day.isoformat(), forms.date_token))


def with_confidence(block: Block, confidence: float) -> Block:
    """Return the block with this confidence, 0..1. HIGH counts as 0.9, MEDIUM as 0.75, LOW as 0.4.

    Where the entry, or its form, uses words and one of them has exactly this value, the word is written. A number
    outside of 0..1 is a `ValueError`.
    """
    entry = _require_entry(block)
    if not 0 <= confidence <= 1:
        raise ValueError(f"a confidence is a number from 0 to 1, not {confidence}")
    if entry.confidence == confidence:
        return block
    existing_field = _find_field(entry, "confidence")
    token = forms.confidence_token(existing_field.value) if existing_field else None
    old = existing_field.value[token.start : token.end] if existing_field and token else ""
    words = old.isalpha() if old else entry.form is not Form.BULLET
    new_value = _format_confidence(confidence, old or "HIGH" if words else "")
    return parse_block(_set_field(block.text, entry, "confidence", new_value, forms.confidence_token))


def with_layer(block: Block, layer: Layer) -> Block:
    """Return the block in this layer, changing the heading's word and the `layer` field, each where it exists.

    The layer heading, observation and notes forms have the word in the heading, so the result can have another form.
    """
    entry = _require_entry(block)
    if entry.layer is layer:
        return block
    text = block.text
    heading = forms.parse_heading(text.partition("\n")[0])
    word = heading.layer_word if heading else None
    if word is None or _find_field(entry, "layer"):
        text = _set_field(text, entry, "layer", layer.value, forms.layer_token)
    if word:  # before every field, so that its position is still valid
        text = _replace_span(text, word, _match_case(text[word.start : word.end], layer.value))
    return parse_block(text)


def with_promoted_to(block: Block, path: str) -> Block:
    """Return the block with the path of the solution that was made of its entry."""
    entry = _require_entry(block)
    field = _find_field(entry, "promoted_to")
    if field is not None and field.value == path:
        return block
    return parse_block(_set_field(block.text, entry, "promoted_to", path, lambda value: Span(0, len(value))))


def with_source(block: Block, source: str) -> Block:
    """Return the block with this value as its source, as it would be written. The entry has a source."""
    return _with_value(block, "source", source)


def with_evidence(block: Block, evidence: str) -> Block:
    """Return the block with this value as its evidence, as it would be written. The entry has evidence."""
    return _with_value(block, "evidence", evidence)


def _with_value(block: Block, name: str, value: str) -> Block:
    field = _find_field(_require_entry(block), name)
    if field is None:
        raise ValueError(f"the entry has no {name} to change")
    return block if field.value == value else parse_block(_replace_span(block.text, field.span, value))


def with_recurrence(block: Block, recurrence: Recurrence) -> Block | None:
    """Return the block with this remark behind the source of its entry; None for an entry without a source."""
    entry = _require_entry(block)
    field = _find_field(entry, "source")
    if field is None or not field.value.strip() or "\n" in field.value:
        return None
    value = f"{without_recurrence(field.value).rstrip()} {recurrence}"
    return parse_block(_replace_span(block.text, Span(field.span.start, field.span.start + len(field.value)), value))


def _require_entry(block: Block) -> Entry:
    if block.entry is None:
        raise ValueError("an opaque block has no metadata to change")
    return block.entry


def _find_field(entry: Entry, name: str) -> Field | None:
    return next((field for field in entry.fields if field.name == name), None)


def _set_field(text: str, entry: Entry, name: str, value: str, token_of: Callable[[str], Span | None]) -> str:
    field = _find_field(entry, name)
    if field is None:
        return _add_field(text, entry, name, value)
    token = token_of(field.value)
    if token is None:  # a value that cannot be read is replaced completely
        begin = field.span.start
        before = "" if text[begin - 1].isspace() else " "
        return _replace_span(text, Span(begin, begin + len(field.value.partition("\n")[0])), before + value)
    old, rest = field.value[token.start : token.end], field.value[token.end :]
    value = _match_case(old, value)
    if rest and token_of(value + rest) != Span(0, len(value)):
        value += " "  # separates it from the text behind it
    begin = field.span.start
    return _replace_span(text, Span(begin + token.start, begin + token.end), value)


def _add_field(text: str, entry: Entry, name: str, value: str) -> str:
    """Return the text with one more metadata line."""
    has_body = entry.body.end > entry.body.start
    head = [field for field in entry.fields if not has_body or field.span.start < entry.body.start]
    if not head:
        return _add_first_field(text, entry, f"**{name.capitalize()}**: {value}")
    earlier = _FIELD_ORDER[: _FIELD_ORDER.index(name)]
    before = [field for field in head if field.name in earlier]
    neighbour = before[-1] if before else head[0]
    line_start = text.rfind("\n", 0, neighbour.span.start) + 1
    prefix, written_name = text[line_start : neighbour.span.start].split("**")[:2]
    line = f"{prefix}**{name.capitalize() if written_name[0].isupper() else name}**: {value}"
    if not before:
        return text[:line_start] + line + _line_ending(text) + text[line_start:]
    end = _line_content_end(text, neighbour.span.end)
    return text[:end] + _line_ending(text) + line + text[end:]


def _add_first_field(text: str, entry: Entry, line: str) -> str:
    """Return the text with a first metadata line below the heading, separated from the body by a blank line."""
    ending = _line_ending(text)
    heading_end = _line_content_end(text, 0)
    gap = ending if entry.form is Form.LAYER_HEADING else ""
    following = text[heading_end:].removeprefix(ending)
    separator = ending if following.partition("\n")[0].strip() else ""
    return text[:heading_end] + ending + gap + line + (ending if text[heading_end:] else "") + separator + following


def _line_ending(text: str) -> str:
    """Return the line ending of the block's heading."""
    heading, newline, _ = text.partition("\n")
    return "\r\n" if newline and heading.endswith("\r") else "\n"


def _line_content_end(text: str, position: int) -> int:
    newline = text.find("\n", position)
    if newline < 0:
        return len(text)
    return newline - 1 if newline and text[newline - 1] == "\r" else newline


def _replace_span(text: str, span: Span, new: str) -> str:
    return text[: span.start] + new + text[span.end :]


def _match_case(old: str, new: str) -> str:
    if old.isupper():
        return new.upper()
    return new.title() if old[:1].isupper() else new


def _format_confidence(confidence: float, like: str) -> str:
    """Return the word for this confidence in the case of `like` if both exist, else the number in digits."""
    for word, meaning in forms.CONFIDENCE_WORDS.items():
        if like and meaning == confidence:
            return _match_case(like, word)
    return format(Decimal(repr(abs(float(confidence)))), "f")


_ITEM = lazy_pattern(r"( {0,3})([-*+]|\d{1,9}[.)])[ \t]+(?=\S)")
_NESTED_ITEM = lazy_pattern(r"[ \t]*(?:[-*+]|\d{1,9}[.)])[ \t]+(?=\S)")
_HEADING = lazy_pattern(r" {0,3}#{1,6}(?:[ \t]|$)")
_FENCE = lazy_pattern(r"[ \t]*(```+|~~~+)")
_SEPARATOR = lazy_pattern(r" {0,3}([-*_])(?:[ \t]*\1){2,}[ \t]*")
_FIELD = lazy_pattern(r"\*\*(?:category|domain|source|tags|confidence)\*\*:", re.IGNORECASE)
_NESTED_INDENT = 2  # columns at which a line belongs to the item above


class PartKind(Enum):
    """The kinds of parts."""

    LEARNING = auto()
    INTRODUCTION = auto()  # a paragraph that ends with a colon, above a list
    HEADING = auto()
    FIELD = auto()  # a metadata line
    COMMENT = auto()
    SEPARATOR = auto()
    BLANK = auto()


@dataclass(slots=True)
class BodyPart:
    """A part: its lines as written, without line breaks."""

    kind: PartKind
    lines: list[str]
    is_item: bool = False  # it begins with a list mark
    has_attachment: bool = False  # its last lines are a code block, a table or a quotation

    @property
    def text(self) -> str:
        """The lines as one text."""
        return "\n".join(self.lines)

    @property
    def words(self) -> str:
        """The text on one line, without the list mark."""
        first = self.lines[0]
        mark = _ITEM.match(first) if self.is_item else None
        return " ".join(" ".join([first[mark.end() if mark else 0 :], *self.lines[1:]]).split())


def split_body(body: str) -> list[BodyPart]:
    """Return the parts of a body in order."""
    splitter = _Splitter()
    for line in body.replace("\r\n", "\n").split("\n"):
        splitter.add(line)
    return _with_introductions(splitter.finish())


def join_parts(parts: Iterable[BodyPart]) -> str:
    """Return the body with these parts."""
    return "\n".join(line for part in parts for line in part.lines)


def learnings(parts: Iterable[BodyPart]) -> list[BodyPart]:
    """Return the learnings among the parts."""
    return [part for part in parts if part.kind is PartKind.LEARNING]


class _Splitter:
    """Adds one line after the other."""

    def __init__(self) -> None:
        self._parts: list[BodyPart] = []
        self._blanks = 0
        self._fence = ""
        self._in_comment = False

    def finish(self) -> list[BodyPart]:
        self._flush_blanks()
        return self._parts

    def add(self, line: str) -> None:
        if self._fence:
            self._current.lines.append(line)
            fence = _FENCE.match(line)
            if fence and fence[1].startswith(self._fence) and not line.strip(" \t`~"):
                self._fence = ""
        elif self._in_comment:
            self._current.lines.append(line)
            self._in_comment = "-->" not in line
        elif not line.strip():
            self._blanks += 1
        else:
            self._add_text(line)

    @property
    def _current(self) -> BodyPart:
        return self._parts[-1]

    def _add_text(self, line: str) -> None:
        last = self._parts[-1] if self._parts else None
        learning = last if last and last.kind is PartKind.LEARNING else None
        nested = learning is not None and learning.is_item and _indentation(line) >= _NESTED_INDENT
        fence = _FENCE.match(line)
        if fence or line.lstrip().startswith(("|", ">")):
            self._fence = fence[1] if fence else ""
            if learning is not None:
                self._extend(learning, line)
            else:
                self._begin(PartKind.LEARNING, line)
            self._current.has_attachment = True
        elif nested and learning is not None:
            self._extend(learning, line)
            learning.has_attachment = False
        elif line.lstrip().startswith("<!--"):
            self._begin(PartKind.COMMENT, line)
            self._in_comment = "-->" not in line
        elif _HEADING.match(line):
            self._begin(PartKind.HEADING, line)
        elif _SEPARATOR.fullmatch(line) and not (learning and not self._blanks):
            self._begin(PartKind.SEPARATOR, line)
        elif _FIELD.match(line):
            self._begin(PartKind.FIELD, line)
        elif _ITEM.match(line):
            self._begin(PartKind.LEARNING, line, is_item=True)
        elif learning is not None and not self._blanks and not learning.has_attachment:
            self._extend(learning, line)
        else:
            self._begin(PartKind.LEARNING, line)

    def _begin(self, kind: PartKind, line: str, *, is_item: bool = False) -> None:
        self._flush_blanks()
        self._parts.append(BodyPart(kind, [line], is_item))

    def _extend(self, part: BodyPart, line: str) -> None:
        part.lines += [""] * self._blanks
        self._blanks = 0
        part.lines.append(line)

    def _flush_blanks(self) -> None:
        if self._blanks:
            self._parts.append(BodyPart(PartKind.BLANK, [""] * self._blanks))
            self._blanks = 0


def _with_introductions(parts: Sequence[BodyPart]) -> list[BodyPart]:
    """Return the parts, with the paragraphs that only announce a list marked as such."""
    content = [part for part in parts if part.kind is not PartKind.BLANK]
    for part, following in pairwise(content):
        is_paragraph = part.kind is PartKind.LEARNING and not part.is_item and not part.has_attachment
        if is_paragraph and following.is_item and part.text.rstrip().rstrip("*_").endswith(":"):
            part.kind = PartKind.INTRODUCTION
    return list(parts)


def _indentation(line: str) -> int:
    expanded = line.expandtabs(4)
    return len(expanded) - len(expanded.lstrip(" "))


def joined_lines(part: BodyPart) -> list[str]:
    """Return the lines of a learning with each of its sentences on one line. Code, tables and quotations stay.

    A wrapped line joins the line above it. Blank lines between nested items are dropped.
    """
    result: list[str] = []
    fence = ""
    may_join = False
    pending_blank = False
    for line in part.lines:
        mark = _FENCE.match(line)
        if fence or mark:
            fence = _next_fence(fence, mark, line)
            result += [""] if pending_blank and not result else []
            result.append(line)
            may_join = pending_blank = False
        elif not line.strip():
            pending_blank, may_join = True, False
        elif line.lstrip().startswith(("|", ">", "<", "#")) or _SEPARATOR.fullmatch(line) or set(line.strip()) <= {"="}:
            if pending_blank or (line.lstrip().startswith("|") and may_join):
                result.append("")
            result.append(line)
            may_join = pending_blank = False
        elif _NESTED_ITEM.match(line):
            result.append(line)
            may_join, pending_blank = True, False
        elif may_join and not result[-1].endswith(("  ", "\\")):
            result[-1] = f"{result[-1].rstrip()} {line.strip()}"
        else:
            if result:
                result.append("")
            result.append(line)
            may_join, pending_blank = not line.startswith("      "), False
    return result


def _next_fence(fence: str, mark: re.Match[str] | None, line: str) -> str:
    if not fence:
        return mark[1] if mark else ""
    return "" if mark and mark[1].startswith(fence) and not line.strip(" \t`~") else fence
