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

from echod.memory.alignment import content
from echod.memory.compose import append_entries, closed_text, learning_lines, newline_of, one_line
from echod.memory.document import parse
from echod.memory.model import Block, Document, Layer, Unreadable
from echod.memory.redact import redact

SOURCE = "user:remember"

_TITLE_CHARACTERS = 60
_INDENTS = (2, 4)  # a fence indented by four closes none that was opened at the margin
_DATE_MARK = re.compile(r"\((\d{4}-\d{2}-\d{2})\)")
_LEAD = re.compile(r"(?:\s++|[#>*+-]++\s++)*+")
_CLOSING_MARKS = re.compile(r"(?:^|\s)#+$")
_SENTENCE_END = re.compile(r"(?<=[.!?])\s|\n")
_UNSEEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn"})


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


class Unwritable(NamedTuple):
    """Why a note cannot be written: a sentence without its full stop."""

    reason: str


def note_of(text: str, title: str | None) -> Note | None:
    """A person's words as a note; None where nothing is left of them.

    Args:
        text: what was typed.
        title: None: the beginning of the text.
    """
    seen = _seen(text)
    clean = redact(closed_text(seen)).text
    if not clean:
        return None
    named = redact(_title(_seen(title)) if title and title.strip() else _title_from(clean))
    return Note(named.text or "Untitled", clean, clean != closed_text(seen) or bool(named.spans))


def with_note(document: Document, note: Note, day: date) -> Document | Unwritable:
    """The file with the note at its end; all that was in it reads as before."""
    newline = newline_of(document)
    for indent in _INDENTS:
        for text in _texts(note, day, indent):
            after = parse(append_entries(document, [text.replace("\n", newline)]))
            if isinstance(after, Unreadable):
                return Unwritable(after.reason.rstrip("."))
            if _continues(document, after, note, day):
                return after
    return Unwritable("a code block or comment that is never closed in this file would swallow it")


def same_note(document: Document, note: Note) -> int | None:
    """The position of an entry of the layer notes that says the same, whatever its title and date."""
    wanted = _words(note.text)
    for position, block in enumerate(document.blocks):
        if block.entry and block.entry.layer is Layer.NOTES and _words(_body(block)) == wanted:
            return position
    return None


def _texts(note: Note, day: date, indent: int) -> list[str]:
    head = f"## Notes \u2014 {note.title} ({day.isoformat()})\n**Source**: {SOURCE}\n"
    return [head + "\n".join(lines) + "\n" for lines in learning_lines(note.text, indent)]


def _continues(before: Document, after: Document, note: Note, day: date) -> bool:
    """Whether the file reads as before, with this note as one entry behind it."""
    old = [content(block) for block in before.blocks]
    if len(after.blocks) != len(old) + 1 or [content(block) for block in after.blocks[:-1]] != old:
        return False
    entry = after.blocks[-1].entry
    if entry is None or before.preamble.rstrip() != after.preamble.rstrip():
        return False
    title = f"{entry.kind}: {entry.title}" if entry.kind else entry.title
    said = (one_line(title), entry.layer, entry.heading_date, entry.source, _words(_body(after.blocks[-1])))
    return said == (note.title, Layer.NOTES, day, SOURCE, _words(note.text))


def _body(block: Block) -> str:
    assert block.entry is not None  # noqa: S101  only asked of entries
    return block.text[block.entry.body.start : block.entry.body.end]


def _words(text: str) -> str:
    """The text as it is compared: on one line, without the bullets that it begins with."""
    return one_line(text).lstrip("- ").casefold()


def _title_from(text: str) -> str:
    lead = next((part for part in _SENTENCE_END.split(text) if _title(part)), "")
    return textwrap.shorten(_title(lead).rstrip(".:;,"), _TITLE_CHARACTERS, placeholder="...")


def _title(text: str) -> str:
    """One line that can stand in a heading: of two dates in a heading, readers take the first."""
    return _CLOSING_MARKS.sub("", one_line(_DATE_MARK.sub(r"\1", _LEAD.sub("", text, count=1))))


def _seen(text: str) -> str:
    """The text with plain line ends and without characters that nobody sees."""
    unified = text.replace("\r\n", "\n").replace("\r", "\n")
    return "".join(c for c in unified if c in "\n\t" or unicodedata.category(c) not in _UNSEEN)
