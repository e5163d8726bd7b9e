r"""The two files that lead to the archives: ARCHIVE.md, a table with a row each, and EPHEMERAL.md, the last summaries.

Both are edited by line and by entry. The text of other programs and of the user stays where it is.

An entry of EPHEMERAL.md, and what separates two of them, `\n---\n\n`:

    ## Session abc123 — 2026-03-06 10:30:00 UTC
    **Duration**: ~30m | **Messages**: 5 | **Archive**: conversation-001.md
    **Summary**: text
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from echod.lazy import lazy_pattern
from echod.memory.conversation.model import archive_name, one_line

if TYPE_CHECKING:
    from echod.memory.conversation.archive import ArchiveHeader  # takes long to load

INDEX_TITLE = "# Conversation Archive"
_TABLE_HEADER = "| # | Date | Session | Topics | Messages | Duration |"
_TABLE_RULE = "|---|------|---------|--------|----------|----------|"
INDEX_START = f"{INDEX_TITLE}\n\n{_TABLE_HEADER}\n{_TABLE_RULE}\n"

DEFAULT_ENTRIES, MIN_ENTRIES, MAX_ENTRIES = 5, 1, 50
"""How many entries EPHEMERAL.md keeps."""

_NO_TOPICS = "\u2014"
_ROW = lazy_pattern(r"^\|[ \t]*(\d{1,10})[ \t]*\|.*$", re.MULTILINE)
_SEPARATOR = "\n---\n\n"
_SPLIT = lazy_pattern(r"(?:\A|\n)[ \t]*---[ \t]*\r?\n(?=\s*## )")
_POINTER = lazy_pattern(r"\*\*Archive\*\*:[ \t]*(conversation-\d{1,10}\.md)")
_ENTRY_HEADING = lazy_pattern(r"^## Session (?P<id>.*?) \u2014 (?P<date>.+)$", re.MULTILINE)
_FACTS = lazy_pattern(
    r"\*\*Duration\*\*:(?P<duration>[^|\n*]{0,200})\|[ \t]{0,20}\*\*Messages\*\*:[ \t]{0,20}(?P<messages>\d{1,20})"
)
_SUMMARY_LINE = lazy_pattern(r"\*\*Summary\*\*:[ \t]*(?P<text>.*)")


class Window(NamedTuple):
    """EPHEMERAL.md after a change, and the entries that left it."""

    text: str
    evicted: tuple[str, ...] = ()


class EntryFacts(NamedTuple):
    """The facts in an entry of EPHEMERAL.md; "" where it lacks one."""

    session_id: str = ""
    date: str = ""
    duration: str = ""
    messages: str = ""
    summary: str = ""
    archive: str = ""


# ARCHIVE.md


def render_row(header: ArchiveHeader) -> str:
    """Return the row of an archive."""
    topics = ", ".join(map(_cell, header.topics)) or _NO_TOPICS
    cells = (
        f"{header.log:03}", header.date[:10], _cell(header.session_id), topics, str(header.message_count),
        _cell(header.duration),
    )  # fmt: skip
    return f"| {' | '.join(cells)} |"


def _cell(text: str) -> str:
    return one_line(text).replace("\\", "\\\\").replace("|", "\\|")


def set_row(index: str, header: ArchiveHeader) -> str:
    """Return ARCHIVE.md with the row of an archive, in place of an earlier one of that number."""
    row = render_row(header)
    if not index.strip():
        return f"{INDEX_START}{row}\n"
    for match in _ROW.finditer(index):
        if int(match[1]) == header.log:
            return index[: match.start()] + row + index[match.end() :]
    return f"{index}{'' if index.endswith(chr(10)) else chr(10)}{row}\n"


def find_row(index: str, number: int) -> str | None:
    """Return the row with a number, or None."""
    return next((match[0] for match in _ROW.finditer(index) if int(match[1]) == number), None)


def remove_row(index: str, number: int) -> str:
    """Return ARCHIVE.md without the rows of a number."""
    lines = index.splitlines(keepends=True)
    return "".join(line for line in lines if not ((row := _ROW.match(line)) and int(row[1]) == number))


def row_numbers(index: str) -> tuple[int, ...]:
    """Return the numbers of all rows."""
    return tuple(int(match[1]) for match in _ROW.finditer(index))


def rebuild_index(index: str, headers: Iterable[ArchiveHeader]) -> str:
    """Return ARCHIVE.md with exactly one row for each archive, in order. Lines outside of the table stay below it."""
    table = {INDEX_TITLE, _TABLE_HEADER, _TABLE_RULE}
    others = [line for line in index.splitlines() if line.strip() not in table and not _ROW.match(line)]
    rows = "".join(f"{render_row(header)}\n" for header in sorted(headers, key=lambda header: header.log))
    kept = "\n".join(others).strip("\n")
    return f"{INDEX_START}{rows}" + (f"\n{kept}\n" if kept else "")


# EPHEMERAL.md


def render_entry(header: ArchiveHeader, summary: str, *, archive: int | None = None) -> str:
    """Return the entry of a session. `archive` is the number to point to, if it is another than the header's."""
    date = header.date.replace("T", " ").replace("Z", " UTC")
    name = archive_name(header.log if archive is None else archive)
    return (
        f"## Session {one_line(header.session_id)} \u2014 {date}\n"
        f"**Duration**: ~{header.duration} | **Messages**: {header.message_count} | **Archive**: {name}\n"
        f"**Summary**: {one_line(summary)}".rstrip()
        + "\n"
    )


def split_entries(window: str) -> tuple[str, ...]:
    """Return the entries of EPHEMERAL.md, without what separates them."""
    return tuple(entry.strip() for entry in _SPLIT.split(window.replace("\r\n", "\n")) if entry.strip())


def put_entry(window: str, entry: str, limit: int) -> Window:
    """Return EPHEMERAL.md with an entry at its end and at most `limit` entries. One of the same archive is replaced."""
    archive = entry_archive(entry)
    if archive and any(entry_archive(known) == archive for known in split_entries(window)):
        window = remove_entry(window, archive)
    kept = window.rstrip()
    text = f"{kept}{_SEPARATOR}{entry}" if kept else entry
    return trim_window(text, limit)


def trim_window(window: str, limit: int) -> Window:
    """Return EPHEMERAL.md with its last `limit` entries. It does not change if it has no more."""
    entries = split_entries(window)
    if len(entries) <= limit:
        return Window(window)
    return Window(_SEPARATOR.join(entries[-limit:]) + "\n", entries[:-limit])


def remove_entry(window: str, archive: str) -> str:
    """Return EPHEMERAL.md without the entries that point to an archive, given by its file name."""
    entries = split_entries(window)
    kept = [entry for entry in entries if entry_archive(entry) != archive]
    if len(kept) == len(entries):
        return window
    return _SEPARATOR.join(kept) + "\n" if kept else ""


def entry_archive(entry: str) -> str:
    """Return the name of the archive that an entry points to; "" if it names none."""
    match = _POINTER.search(entry)
    return match[1] if match else ""


def read_entry(entry: str) -> EntryFacts:
    """Return the facts in an entry. Each may be missing."""
    heading, facts, summary = _ENTRY_HEADING.search(entry), _FACTS.search(entry), _SUMMARY_LINE.search(entry)
    return EntryFacts(
        session_id=heading["id"] if heading else "",
        date=heading["date"].strip() if heading else "",
        duration=facts["duration"].strip(" \t").removeprefix("~") if facts else "",
        messages=facts["messages"] if facts else "",
        summary=summary["text"] if summary else "",
        archive=entry_archive(entry),
    )
