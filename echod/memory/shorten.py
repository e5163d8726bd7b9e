"""Shorten one entry without cutting a sentence: its layout, its statistics, its line breaks, or one of its learnings.

Every function returns the shorter block, or None where nothing can be gained or the result would not read back as the
same entry. Each is idempotent.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from itertools import groupby

from echod.lazy import lazy_pattern
from echod.memory import markdown
from echod.memory.document import count_lines, parse, parse_block
from echod.memory.edit import BodyPart, PartKind, joined_lines, learnings, split_body
from echod.memory.forms import without_recurrence
from echod.memory.model import Block, Document, Entry
from echod.memory.specificity import NameCounts, states_rule

_STATISTICS = lazy_pattern(
    r"\b(?:metrics?|statistics|stats|counts?|figures|timeline|numbers|totals|tally|duration)\b", re.IGNORECASE
)
_GENERIC_HEADING = lazy_pattern(
    r"(?:(?:key|main|other|more|new|the|core|important) )*"
    r"(?:learnings?|lessons?(?: learned)?|insights?|takeaways?|findings?|notes?|details?|patterns?|observations?)",
    re.IGNORECASE,
)
_HEADING_LEVEL = lazy_pattern(r" {0,3}(#{1,6})")
_NUMBER_CELL = lazy_pattern(r"[~<>=+\-\u2212\u00b1]*\s*[0-9][0-9.,:/ ]*+\s*+(?:(?:%|[a-zA-Z]{1,7})\s*+)?(?:\([^)]*\))?")
_PLACEHOLDER = lazy_pattern(
    r"[\W_]*(?:none|n/?a|nothing|null|tbd|todo|empty|not applicable|no (?:findings?|entries|issues?|echoes)(?: yet)?"
    r"|(?:nothing|none) (?:yet|so far|to report|here))?[\W_]*",
    re.IGNORECASE,
)
_COMMENT = lazy_pattern(r"<!--.*?(?:-->|\Z)", re.DOTALL)
_MAX_HEADING_WORDS = 6  # words of a heading that announces figures, not a statement about them
_MIN_TABLE_ROWS = 4  # head, rule, two rows


def tidy_layout(block: Block) -> Block | None:
    """Return the block without separators, repeated blank lines, and blank lines between list items."""
    return _rebuild(block, _tidy(split_body(block.body)))


def without_statistics(block: Block) -> Block | None:
    """Return the block without sections and tables of figures, if it contains learnings beside them.

    A line in such a section that states a rule stays.
    """
    parts = split_body(block.body)
    kept: list[BodyPart] = []
    level = 0  # of the heading of the section of figures that is being left out; 0 outside of one
    for part in parts:
        if part.kind is PartKind.HEADING:
            own = _heading_level(part)
            if not level or own <= level:
                level = own if is_statistics_heading(part) else 0
            if level:
                continue
        elif part.kind is PartKind.LEARNING:
            if level and not states_rule(part.words):
                continue
            part.lines = _without_number_tables(part.lines)
            if not part.lines:
                continue
        kept.append(part)
    if not learnings(kept):
        return None
    if [part.lines for part in kept] == [part.lines for part in split_body(block.body)]:
        return None
    return _rebuild(block, _tidy(kept))


def condense(block: Block) -> Block | None:
    """Return the block as its heading, its metadata, and one line for each learning, whole.

    Code, tables and quotations stay below their learning. Metadata that repeats the heading or is empty is left
    out, and so is a heading that only announces learnings.
    """
    parts = [part for part in split_body(block.body) if part.kind not in {PartKind.BLANK, PartKind.SEPARATOR}]
    parts = [part for part in parts if not (part.kind is PartKind.HEADING and _is_generic_heading(part))]
    count = len(learnings(parts))
    lines: list[str] = []
    previous: BodyPart | None = None
    for part in parts:
        if part.kind is PartKind.LEARNING:
            new = joined_lines(part)
            if count > 1 and not part.is_item and _may_become_item(new):
                new[0] = f"- {new[0].lstrip()}"
            elif previous is not None and not part.is_item:
                new = ["", *new]
        else:
            new = list(part.lines)
            if previous is not None and part.kind is not PartKind.INTRODUCTION:
                new = ["", *new] if lines and lines[-1] else new
        lines += new
        previous = part
    return _rebuild(block, "\n".join(lines), drop_metadata=True)


def without_gap(block: Block) -> Block | None:
    """Return the block without the blank lines at its end, if a heading below it still begins another entry."""
    entry = block.entry
    if entry is None:
        return None
    newline = "\r\n" if block.text.partition("\n")[0].endswith("\r") else "\n"
    result = parse_block(block.text.rstrip() + newline)
    if not _is_shorter(result, block) or not _is_same_entry(entry, result, ()):
        return None
    below = parse(f"{result.text}## Inscribed \u2014 Next (2026-01-01)\n".encode())
    return result if isinstance(below, Document) and [b.text for b in below.blocks][:1] == [result.text] else None


def without_learnings(block: Block, removed: Collection[int]) -> Block | None:
    """Return the block without the learnings at these positions among its learnings; some must stay."""
    parts = split_body(block.body)
    kept: list[BodyPart] = []
    position = -1
    for part in parts:
        if part.kind is PartKind.LEARNING:
            position += 1
            if position in removed:
                continue
        kept.append(part)
    if not learnings(kept):
        return None
    return _rebuild(block, _tidy(_without_empty_sections(kept)))


def entry_learnings(block: Block) -> tuple[str, ...]:
    """Return the learnings of a block as written, in order."""
    return tuple(part.text for part in learnings(split_body(block.body)))


def has_content(block: Block) -> bool:
    """Return whether an entry has content: a learning, or a title that names a thing or states a rule."""
    texts = (_COMMENT.sub("", part.words) for part in learnings(split_body(block.body)))
    if any(not _PLACEHOLDER.fullmatch(text) for text in texts):
        return True
    title = block.entry.title if block.entry else ""
    return not NameCounts([title]).judge(title).is_routine


def _rebuild(block: Block, body: str, *, drop_metadata: bool = False) -> Block | None:
    """Return the block with this body, if it is shorter and otherwise the same entry."""
    entry = block.entry
    if entry is None:
        return None
    text = block.text
    newline = "\r\n" if text.partition("\n")[0].endswith("\r") else "\n"
    head, dropped = _head(text[: entry.body.start], entry) if drop_metadata else (text[: entry.body.start], frozenset())
    body = body.strip("\n")
    result = parse_block(head + body.replace("\n", newline) + _tail(text, entry, newline))
    if not _is_shorter(result, block) or not _is_same_entry(entry, result, dropped):
        return None
    return result


def _tail(text: str, entry: Entry, newline: str) -> str:
    """Return the text behind the body: one blank line where there was any, without separators."""
    tail = text[entry.body.end :]
    if not tail:
        return ""
    breaks = tail.count("\n")
    return newline + (newline if breaks > 1 else "")


def _is_shorter(result: Block, block: Block) -> bool:
    return count_lines(result.text) < count_lines(block.text)


def _is_same_entry(entry: Entry, result: Block, dropped: Collection[str]) -> bool:
    new = result.entry
    return (
        new is not None
        and (new.form, new.layer, new.title, new.kind, new.heading_date, new.source, new.confidence)
        == (entry.form, entry.layer, entry.title, entry.kind, entry.heading_date, entry.source, entry.confidence)
        and [(field.name, field.value) for field in new.fields if field.name not in dropped]
        == [(field.name, field.value) for field in entry.fields if field.name not in dropped]
        and markdown.parse_structure(result.text).closing is None
        and not result.text[len(result.text.rstrip()) :].strip("\r\n")
    )


def _head(head: str, entry: Entry) -> tuple[str, frozenset[str]]:
    """Return heading and metadata without blank lines, and without fields that say nothing; and their names."""
    dropped = {field.name for field in entry.fields if _says_nothing(field.name, field.value, entry)}
    lines = []
    for line in head.split("\n"):
        name = re.match(r"[ \t]*(?:[-*+][ \t]+)?\*\*([A-Za-z_ ]+)(?:\*\*[ \t]*:|:\*\*)", line)
        if line.strip() and not (name and name[1].strip().lower() in dropped):
            lines.append(line)
    return "\n".join(lines) + "\n", frozenset(dropped)


def _says_nothing(name: str, value: str, entry: Entry) -> bool:
    if name == "verified":
        return value.strip() == (entry.heading_date.isoformat() if entry.heading_date else None)
    return name in {"supersedes", "evidence"} and value.strip().lower() in {"none", "n/a", "-", ""}


def _tidy(parts: Sequence[BodyPart]) -> str:
    """Return the body with these parts and no more layout than Markdown needs."""
    lines: list[str] = []
    previous: BodyPart | None = None
    pending_blank = False
    for part in parts:
        if part.kind in {PartKind.BLANK, PartKind.SEPARATOR}:
            pending_blank = True
            continue
        between_items = previous is not None and previous.is_item and part.is_item
        if pending_blank and previous is not None and not (between_items and not previous.has_attachment):
            lines.append("")
        lines += _without_repeated_blanks(part)
        previous, pending_blank = part, False
    return "\n".join(lines)


def _without_repeated_blanks(part: BodyPart) -> list[str]:
    if part.has_attachment:
        return part.lines
    return [line for index, line in enumerate(part.lines) if line.strip() or (index and part.lines[index - 1].strip())]


def _without_empty_sections(parts: Sequence[BodyPart]) -> list[BodyPart]:
    """Return the parts without headings and introductions that nothing follows."""
    kept: list[BodyPart] = []
    following: BodyPart | None = None
    for part in reversed(parts):
        if part.kind in {PartKind.BLANK, PartKind.SEPARATOR}:
            kept.append(part)
            continue
        if part.kind is PartKind.INTRODUCTION and not (following and following.is_item):
            continue
        if part.kind is PartKind.HEADING and (
            following is None
            or (following.kind is PartKind.HEADING and _heading_level(following) <= _heading_level(part))
        ):
            continue
        kept.append(part)
        following = part
    return kept[::-1]


def _heading_level(part: BodyPart) -> int:
    match = _HEADING_LEVEL.match(part.lines[0])
    return len(match[1]) if match else 0


def _heading_words(part: BodyPart) -> str:
    return " ".join(part.lines[0].strip().strip("#").replace("*", "").split()).rstrip(":")


def is_statistics_heading(part: BodyPart) -> bool:
    """Return whether a heading announces figures."""
    words = _heading_words(part)
    return _STATISTICS.search(words) is not None and len(words.split()) <= _MAX_HEADING_WORDS


def _is_generic_heading(part: BodyPart) -> bool:
    return _GENERIC_HEADING.fullmatch(_heading_words(part)) is not None


def _without_number_tables(lines: Sequence[str]) -> list[str]:
    """Return the lines of a learning without the tables of figures below it."""
    kept: list[str] = []
    for is_table, run in groupby(lines, key=lambda line: line.lstrip().startswith("|")):
        table = list(run)
        if not (is_table and _is_number_table(table)):
            kept += table
    while kept and not kept[-1].strip():
        kept.pop()
    return kept


def _is_number_table(lines: Sequence[str]) -> bool:
    """Return whether the lines are only a table whose cells, except for the first of each row, are numbers."""
    if len(lines) < _MIN_TABLE_ROWS or not all(line.lstrip().startswith("|") for line in lines if line.strip()):
        return False
    rows = [[cell.strip() for cell in line.strip().strip("|").split("|")] for line in lines[2:] if line.strip()]
    cells = [cell for row in rows for cell in row[1:] if cell]
    return bool(cells) and all(_NUMBER_CELL.fullmatch(cell) for cell in cells)


def _may_become_item(lines: Sequence[str]) -> bool:
    return len(lines) == 1 and not lines[0].lstrip().startswith(("#", "|", ">", "<", "`" * 3, "~" * 3, "**Source"))


def without_list_marks(text: str) -> list[str]:
    """Return the words of an entry, without the marks that condensing adds and without a remark on recurrence."""
    lines = (without_recurrence(line) for line in text.split("\n"))
    return [word for line in lines for word in line.split() if word != "-"]
