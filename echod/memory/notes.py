"""Write the user's notes as entries of the notes form, and find notes that a file has already.

    ## Notes — title (2026-11-20)
    **Source**: user:remember
    - The text of the note.

Any text, with headings, fences or lines that look like metadata, reads back as this one entry.
"""

from __future__ import annotations

import re
import textwrap
import unicodedata
from datetime import date
from typing import NamedTuple

from echod.memory.compose import (
    append_entries,
    close_open_blocks,
    collapse_whitespace,
    detect_newline,
    learning_layouts,
)
from echod.memory.document import parse
from echod.memory.merge import appended_blocks
from echod.memory.model import Document, Layer, Unreadable
from echod.memory.redact import redact
from echod.memory.words import without_full_stop

_NOTE_SOURCE = "user:remember"

_MAX_TITLE_LENGTH = 60
_INDENTS = (2, 4)  # a fence indented by four cannot close one at the margin
_DATE_MARK = re.compile(r"\((\d{4}-\d{2}-\d{2})\)")
_LEADING_MARKS = re.compile(r"(?:\s++|[#>*+-]++\s++)*+")
_CLOSING_MARKS = re.compile(r"(?:^|\s)#+$")
_SENTENCE_END = re.compile(r"(?<=[.!?])\s|\n")
_INVISIBLE_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Co", "Cn"})


class Note(NamedTuple):
    """A note, ready to be written.

    Attributes:
        title: one line.
        text: the text itself.
        redacted: a secret was removed.
    """

    title: str
    text: str
    redacted: bool


class UnwritableNote(NamedTuple):
    """A note that cannot be written; `reason` is a sentence without its full stop."""

    reason: str


def create_note(text: str, title: str | None) -> Note | None:
    """Return the user's text as a note; None if it contains no visible text.

    Args:
        text: the text as typed.
        title: the title; None for the beginning of the text.
    """
    visible = _visible_text(text)
    clean = redact(close_open_blocks(visible)).text
    if not clean:
        return None
    redacted_title = redact(_heading_title(_visible_text(title)) if title and title.strip() else _derive_title(clean))
    return Note(
        redacted_title.text or "Untitled", clean, clean != close_open_blocks(visible) or bool(redacted_title.spans)
    )


def with_note(document: Document, note: Note, day: date) -> Document | UnwritableNote:
    """Return the file with the note at its end. Everything before it reads as it did."""
    newline = detect_newline(document)
    for indent in _INDENTS:
        for text in _note_layouts(note, day, indent):
            after = parse(append_entries(document, [text.replace("\n", newline)]))
            if isinstance(after, Unreadable):
                return UnwritableNote(without_full_stop(after.reason))
            if _is_appended(document, after, note, day):
                return after
    return UnwritableNote("a code block or comment that is never closed in this file would swallow the note")


def find_same_note(document: Document, note: Note) -> int | None:
    """Return the position of an entry of the layer notes with the same text, regardless of title and date."""
    note_text = _comparison_text(note.text)
    for position, block in enumerate(document.blocks):
        if block.entry and block.entry.layer is Layer.NOTES and _comparison_text(block.body) == note_text:
            return position
    return None


def _note_layouts(note: Note, day: date, indent: int) -> list[str]:
    head = f"## Notes \u2014 {note.title} ({day.isoformat()})\n**Source**: {_NOTE_SOURCE}\n"
    return [head + "\n".join(lines) + "\n" for lines in learning_layouts(note.text, indent)]


def _is_appended(before: Document, after: Document, note: Note, day: date) -> bool:
    """Return whether the file reads as before, with this note as one entry at its end."""
    appended = appended_blocks(before, after)
    if appended is None or len(appended) != 1 or (entry := appended[0].entry) is None:
        return False
    entry_values = (
        collapse_whitespace(entry.full_title),
        entry.layer,
        entry.heading_date,
        entry.source,
        _comparison_text(appended[0].body),
    )
    return entry_values == (note.title, Layer.NOTES, day, _NOTE_SOURCE, _comparison_text(note.text))


def _comparison_text(text: str) -> str:
    """Return the text for comparison: on one line, without leading bullets."""
    return collapse_whitespace(text).lstrip("- ").casefold()


def _derive_title(text: str) -> str:
    lead = next((part for part in _SENTENCE_END.split(text) if _heading_title(part)), "")
    return textwrap.shorten(_heading_title(lead).rstrip(".:;,"), _MAX_TITLE_LENGTH, placeholder="...")


def _heading_title(text: str) -> str:
    """Return one line that fits into a heading. Readers take the first of two dates in a heading as the date."""
    return _CLOSING_MARKS.sub("", collapse_whitespace(_DATE_MARK.sub(r"\1", _LEADING_MARKS.sub("", text, count=1))))


def _visible_text(text: str) -> str:
    """Return the text with plain line ends and without invisible characters."""
    unified = text.replace("\r\n", "\n").replace("\r", "\n")
    return "".join(c for c in unified if c in "\n\t" or unicodedata.category(c) not in _INVISIBLE_CATEGORIES)
