"""What a person asked to remember, as an entry of the notes form; and whether it stands in a file already.

    ## Notes — title (2026-11-20)
    **Source**: user:remember
    - What is to be remembered.

Whatever the text holds, headings, fences, lines that look like metadata, it reads back as this one entry.
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
_INDENTS = (2, 4)  # a fence indented by four closes none that was opened at the margin
_DATE_MARK = re.compile(r"\((\d{4}-\d{2}-\d{2})\)")
_LEADING_MARKS = re.compile(r"(?:\s++|[#>*+-]++\s++)*+")
_CLOSING_MARKS = re.compile(r"(?:^|\s)#+$")
_SENTENCE_END = re.compile(r"(?<=[.!?])\s|\n")
_INVISIBLE_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Co", "Cn"})


class Note(NamedTuple):
    """What is to be remembered, fit to be written.

    Attributes:
        title: one line.
        text: the text itself.
        redacted: whether a secret was taken out.
    """

    title: str
    text: str
    redacted: bool


class UnwritableNote(NamedTuple):
    """Why a note cannot be written: a sentence without its full stop."""

    reason: str


def create_note(text: str, title: str | None) -> Note | None:
    """A person's words as a note; None where nothing is left of them.

    Args:
        text: what was typed.
        title: None: the beginning of the text.
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
    """The file with the note at its end; all that was in it reads as before."""
    newline = detect_newline(document)
    for indent in _INDENTS:
        for text in _note_layouts(note, day, indent):
            after = parse(append_entries(document, [text.replace("\n", newline)]))
            if isinstance(after, Unreadable):
                return UnwritableNote(without_full_stop(after.reason))
            if _is_appended(document, after, note, day):
                return after
    return UnwritableNote("a code block or comment that is never closed in this file would swallow it")


def find_same_note(document: Document, note: Note) -> int | None:
    """The position of an entry of the layer notes that says the same, whatever its title and date."""
    note_text = _comparison_text(note.text)
    for position, block in enumerate(document.blocks):
        if block.entry and block.entry.layer is Layer.NOTES and _comparison_text(block.body) == note_text:
            return position
    return None


def _note_layouts(note: Note, day: date, indent: int) -> list[str]:
    head = f"## Notes \u2014 {note.title} ({day.isoformat()})\n**Source**: {_NOTE_SOURCE}\n"
    return [head + "\n".join(lines) + "\n" for lines in learning_layouts(note.text, indent)]


def _is_appended(before: Document, after: Document, note: Note, day: date) -> bool:
    """Whether the file reads as before, with this note as one entry behind it."""
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
    """The text as it is compared: on one line, without the bullets that it begins with."""
    return collapse_whitespace(text).lstrip("- ").casefold()


def _derive_title(text: str) -> str:
    lead = next((part for part in _SENTENCE_END.split(text) if _heading_title(part)), "")
    return textwrap.shorten(_heading_title(lead).rstrip(".:;,"), _MAX_TITLE_LENGTH, placeholder="...")


def _heading_title(text: str) -> str:
    """One line that can stand in a heading: of two dates in a heading, readers take the first."""
    return _CLOSING_MARKS.sub("", collapse_whitespace(_DATE_MARK.sub(r"\1", _LEADING_MARKS.sub("", text, count=1))))


def _visible_text(text: str) -> str:
    """The text with plain line ends and without characters that nobody sees."""
    unified = text.replace("\r\n", "\n").replace("\r", "\n")
    return "".join(c for c in unified if c in "\n\t" or unicodedata.category(c) not in _INVISIBLE_CATEGORIES)
