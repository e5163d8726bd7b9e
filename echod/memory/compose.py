"""Write findings and the user's notes as entries, and append them to a file without changing a byte of it.

Every written text, whatever headings, fences or lines like metadata it holds, reads back as exactly one entry with the
same values. A finding's learning is the last bullet of the entry, and everything in it is indented, so that it remains
content. The form of new entries depends on the file: its own form if all its entries have the same, else the bullet
form. Notes have a form of their own:

    ## Notes — title (2026-11-20)
    **Source**: user:remember
    - The text of the note.
"""

from __future__ import annotations

import textwrap
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import date
from typing import NamedTuple

from echod.lazy import lazy_pattern
from echod.memory import markdown
from echod.memory.document import appended_blocks, parse
from echod.memory.findings import Finding
from echod.memory.findings.text import canonical_title
from echod.memory.forms import parse_source
from echod.memory.model import Block, Document, Entry, Form, Layer, Unreadable, full_title
from echod.memory.redact import redact
from echod.memory.text import without_full_stop

_LAYER_FORMS = frozenset({Form.LAYER_HEADING, Form.OBSERVATION, Form.NOTES})
_INDENT = 2
_DEEP_INDENT = 4  # a fence indented this far cannot close one at the margin
_NO_VALUE = "none"
_SEPARATOR = lazy_pattern(r"[ \t]*([-*_])(?:[ \t]*\1){2,}[ \t]*")

Metadata = Sequence[tuple[str, str]]


class ComposeError(ValueError):
    """A finding that cannot be written as one entry. Expected never to happen; keeping it beats writing it wrongly."""


def detect_form(document: Document) -> Form:
    """Return the form of new entries in this file: `BULLET` unless all its entries have another one.

    The forms with the layer in the heading count as one, because real files mix them.
    """
    forms = {block.entry.form for block in document.blocks if block.entry}
    if forms and forms <= _LAYER_FORMS:
        return Form.LAYER_HEADING
    return Form.WRITER if forms == {Form.WRITER} else Form.BULLET


def with_entries(document: Document, findings: Sequence[Finding], form: Form | None = None) -> Document | Unreadable:
    """Return the document with an entry for each finding at its end. Everything before them reads as it did.

    `Unreadable` is returned where the file would be too large to be read again, and `ComposeError` is raised where it
    cannot take one of the findings. The default form is that of `detect_form`.
    """
    form, newline = form or detect_form(document), detect_newline(document)
    for indent in (_INDENT, _DEEP_INDENT):
        texts = [compose_entry(finding, form, newline, indent) for finding in findings]
        after = parse(append_entries(document, texts))
        if isinstance(after, Unreadable):
            return after
        appended = appended_blocks(document, after)
        if appended is not None and len(appended) == len(findings) and all(block.entry for block in appended):
            return after
    raise ComposeError("A code block or comment that is never closed in this file would swallow the new entries.")


def compose_entry(finding: Finding, form: Form, newline: str, indent: int = _INDENT) -> str:
    """Return the text of a new entry of a redacted finding, ending with one newline.

    A form with the layer in the heading counts as all of them. `indent` are the spaces before the lines of the
    learning; 4 keep a fence in it from closing one outside. `ComposeError` is raised where no layout of it reads back.
    """
    finding = normalize_finding(finding)
    bodies = list(learning_layouts(finding.text, indent))
    layouts = [(head, body) for head in _head_layouts(finding, form) for body in bodies]  # the most readable first
    candidates = [("\n".join([*head, *body, ""]), " ".join(body).split()) for head, body in layouts]
    for reads_back in (_reads_back_equal, _reads_back_as_entry):
        for text, learning in candidates:
            block = _parse_single_block(text)
            if block and block.entry and reads_back(block, block.entry, finding, learning):
                return text.replace("\n", newline)
    raise ComposeError(f"The finding {finding.key} cannot be written as one entry.")


def _head_layouts(finding: Finding, form: Form) -> Iterator[list[str]]:
    title = full_title(finding.kind, finding.title)
    day = finding.heading_date.isoformat()
    if form in _LAYER_FORMS:
        heading = f"## {finding.layer.value.title()} \u2014 {title} ({day})"
        fields = [(name, value) for name, value in _metadata_fields(finding) if name != "layer" and value != _NO_VALUE]
        source = finding.source if "`" in finding.source else f"`{finding.source}`"
        shown = [(name, source if name == "source" else value) for name, value in fields]
        yield [heading, "", *(f"**{name.title()}**: {value}" for name, value in shown), ""]
        yield [heading, "", *_bullet_lines(shown)]
    marks = "##" if form is Form.WRITER else "###"
    yield [f"{marks} [{day}] {title}", *_bullet_lines(_metadata_fields(finding))]


def _metadata_fields(finding: Finding) -> Metadata:
    evidence = [("evidence", finding.evidence)] if finding.evidence else []
    # Unknown fields are read as metadata only if a known one follows.
    return [
        ("layer", finding.layer.value),
        ("source", finding.source),
        ("confidence", f"{finding.confidence:.4f}".rstrip("0").ljust(3, "0")),
        *evidence,
        *finding.fields,
        ("verified", finding.verified.isoformat()),
        ("supersedes", finding.supersedes or _NO_VALUE),
    ]


def _bullet_lines(metadata: Metadata) -> list[str]:
    return [f"- **{name}**: {value}" for name, value in metadata]


def _parse_single_block(text: str) -> Block | None:
    document = parse(text.encode())
    if isinstance(document, Unreadable) or document.preamble or len(document.blocks) != 1:
        return None
    return document.blocks[0]


def _reads_back_equal(block: Block, entry: Entry, finding: Finding, learning: list[str]) -> bool:
    """Return whether every value of the finding reads back, and no metadata that it does not have."""
    expected_names = [name for name, _ in _metadata_fields(finding)]
    parsed_fields = {field.name: field.value for field in reversed(entry.fields)}
    return (
        _reads_back_as_entry(block, entry, finding, learning)
        and entry.verified == finding.verified
        and entry.confidence == round(finding.confidence, 4)
        and entry.source == parse_source(finding.source)
        and entry.evidence == finding.evidence
        and entry.supersedes == finding.supersedes
        and parsed_fields.keys() <= set(expected_names)
        and all(parsed_fields.get(name) == value for name, value in finding.fields if expected_names.count(name) == 1)
    )


def _reads_back_as_entry(block: Block, entry: Entry, finding: Finding, learning: list[str]) -> bool:
    """Return whether the least requirement holds: the entry's layer, date and title, and all words of the learning."""
    expected = (full_title(finding.kind, finding.title), finding.layer, finding.heading_date, learning)
    return (entry.full_title, entry.layer, entry.heading_date, block.body.split()) == expected


def learning_layouts(text: str, indent: int) -> Iterator[list[str]]:
    """Yield the layouts of a learning as the last bullet of an entry, the most readable first.

    No fence or comment in the text is open (`close_open_blocks`).
    """
    if not text:
        yield []
        return
    first, *rest = text.split("\n")
    margin = " " * indent
    nested = [margin + line if line.strip() else "" for line in rest]
    if first.startswith(("- ", "* ", "+ ")) and indent == _INDENT:
        yield [first, *(line if line.strip() else "" for line in rest)]
    yield [f"-{margin[1:]}{first}", *nested]
    # A learning that looks like a metadata line begins on its own line.
    yield ["-", margin + first, *nested]


def normalize_finding(finding: Finding) -> Finding:
    """Return the finding as it will be written: each value on one line, no fence or comment left open."""
    kind, title = canonical_title(collapse_whitespace(full_title(finding.kind, finding.title)))
    return replace(
        finding,
        kind=kind,
        title=title,
        source=collapse_whitespace(finding.source),
        evidence=collapse_whitespace(finding.evidence or "") or None,
        supersedes=collapse_whitespace(finding.supersedes or "") or None,
        fields=tuple((name, collapse_whitespace(value)) for name, value in finding.fields if value.strip()),
        text=close_open_blocks(finding.text),
    )


def close_open_blocks(text: str) -> str:
    """Return a learning without surrounding blank lines and separators, with every fence and comment in it closed."""
    text = text.replace("\r\n", "\n").replace("\r", "\n").rstrip()
    closing = markdown.parse_structure(text).closing
    lines = [*text.split("\n"), *([closing] if closing else [])]
    # A separator at the end belongs to the file, not to the learning.
    while lines and (not lines[-1].strip() or _SEPARATOR.fullmatch(lines[-1])):
        lines.pop()
    first = next((index for index, line in enumerate(lines) if line.strip()), 0)
    return "\n".join(lines[first:]).rstrip()


def collapse_whitespace(text: str) -> str:
    """Return the text on one line, with runs of white space collapsed."""
    return " ".join(text.split())


def append_entries(document: Document, texts: Sequence[str]) -> bytes:
    """Return the file's bytes with these entries at the end, a blank line before each. Every earlier byte stays."""
    data = document.render().decode()
    if not texts:
        return data.encode()
    newline = detect_newline(document)
    if data.strip("\ufeff \t\r\n"):
        if not data.endswith("\n"):
            data += newline
        if data.rstrip("\n").rpartition("\n")[2].strip(" \t\r") and not data.endswith(("\n\n", "\n\r\n")):
            data += newline
    return (data + newline.join(texts)).encode()


def detect_newline(document: Document) -> str:
    """Return the line ending of the majority of the file's lines."""
    data = document.render()
    windows = data.count(b"\r\n")
    return "\r\n" if windows * 2 > data.count(b"\n") else "\n"


_NOTE_SOURCE = "user:remember"
_MAX_TITLE_LENGTH = 60
_DATE_MARK = lazy_pattern(r"\((\d{4}-\d{2}-\d{2})\)")
_LEADING_MARKS = lazy_pattern(r"(?:\s++|[#>*+-]++\s++)*+")
_CLOSING_MARKS = lazy_pattern(r"(?:^|\s)#+$")
_SENTENCE_END = lazy_pattern(r"(?<=[.!?])\s|\n")
_INVISIBLE_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Co", "Cn"})


class Note(NamedTuple):
    """A note, ready to be written."""

    title: str  # one line
    text: str
    redacted: bool  # a secret was removed


class UnwritableNote(NamedTuple):
    """A note that cannot be written; `reason` is a sentence without its full stop."""

    reason: str


class AlreadyNoted(UnwritableNote):
    """The file contains the same note."""


def create_note(text: str, title: str | None) -> Note | None:
    """Return the text that the user typed as a note; None if it contains no visible text.

    Without a title, the beginning of the text is the title.
    """
    closed = close_open_blocks(_visible_text(text))
    clean = redact(closed).text
    if not clean:
        return None
    heading = redact(_heading_title(_visible_text(title)) if title and title.strip() else _derive_title(clean))
    return Note(heading.text or "Untitled", clean, clean != closed or bool(heading.spans))


def with_note(document: Document, note: Note, day: date) -> Document | UnwritableNote:
    """Return the file with the note at its end. Everything before it reads as it did."""
    newline = detect_newline(document)
    for indent in (_INDENT, _DEEP_INDENT):
        for text in _note_layouts(note, day, indent):
            after = parse(append_entries(document, [text.replace("\n", newline)]))
            if isinstance(after, Unreadable):
                return UnwritableNote(without_full_stop(after.reason))
            if _is_appended(document, after, note, day):
                return after
    return UnwritableNote("a code block or comment that is never closed in this file would swallow the note")


def find_same_note(document: Document, note: Note) -> int | None:
    """Return the position of an entry of the layer notes with the same text, regardless of title and date."""
    text = _comparison_text(note.text)
    notes = ((i, b) for i, b in enumerate(document.blocks) if b.entry and b.entry.layer is Layer.NOTES)
    return next((i for i, block in notes if _comparison_text(block.body) == text), None)


def _note_layouts(note: Note, day: date, indent: int) -> list[str]:
    head = f"## Notes \u2014 {note.title} ({day.isoformat()})\n**Source**: {_NOTE_SOURCE}\n"
    return [head + "\n".join(lines) + "\n" for lines in learning_layouts(note.text, indent)]


def _is_appended(before: Document, after: Document, note: Note, day: date) -> bool:
    """Return whether the file reads as before, with this note as one entry at its end."""
    appended = appended_blocks(before, after)
    if appended is None or len(appended) != 1 or (entry := appended[0].entry) is None:
        return False
    title, body = collapse_whitespace(entry.full_title), _comparison_text(appended[0].body)
    found = (title, entry.layer, entry.heading_date, entry.source, body)
    return found == (note.title, Layer.NOTES, day, _NOTE_SOURCE, _comparison_text(note.text))


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
