"""Change one metadata value of an entry, and no other byte.

Every function returns the same block where the entry has the value already, else a block that differs only in that
value. Prose after a value stays (`HIGH (four reviews)` becomes `0.95 (four reviews)`). A missing field is added where
its form has it, in the style of its neighbours and with the block's own line ending.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from decimal import Decimal

from echod.memory import forms
from echod.memory.document import parse_block
from echod.memory.model import Block, Entry, Field, Form, Layer, Span
from echod.memory.recurrence import Recurrence, without_recurrence

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
