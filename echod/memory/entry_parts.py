"""Split the body of an entry into its parts: learnings, sections, introductions, and the layout between them.

A learning is a list item or a paragraph with everything that belongs to it: continuation lines, nested items, and the
code blocks, tables and quotations below it. The lines of all parts in order are the lines of the body.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from itertools import pairwise

_ITEM = re.compile(r"( {0,3})([-*+]|\d{1,9}[.)])[ \t]+(?=\S)")
_NESTED_ITEM = re.compile(r"[ \t]*(?:[-*+]|\d{1,9}[.)])[ \t]+(?=\S)")
_HEADING = re.compile(r" {0,3}#{1,6}(?:[ \t]|$)")
_FENCE = re.compile(r"[ \t]*(```+|~~~+)")
_SEPARATOR = re.compile(r" {0,3}([-*_])(?:[ \t]*\1){2,}[ \t]*")
_FIELD = re.compile(r"\*\*(?:category|domain|source|tags|confidence)\*\*:", re.IGNORECASE)
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
