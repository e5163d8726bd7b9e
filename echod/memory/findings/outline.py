"""Classify the lines of a loosely written Markdown text: headings, code, comments, list items.

Made for findings, which no program checks. A bold line or an underlined one may be a heading, a fence may be indented
as far as its writer liked, and a fence or comment that is never closed must not swallow the learnings after it. Memory
files have stricter rules (`memory.markdown`, which reads a whole text by offsets). Only the thematic break is the same
in both. This module looks at one line at a time; `sections` decides which lines belong together.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from enum import Enum, auto
from typing import NamedTuple

from echod.memory import markdown
from echod.memory.findings.text import normalize_spaces, read_field, read_title

BOLD_LEVEL = 7
"""The level of a bold line that serves as a heading: below every real one."""

_MAX_INDENT = 3  # spaces; a block that is indented further is code
_MIN_FENCE_LENGTH = 3
_ATX = re.compile(r" {0,3}(?P<marks>#{1,6})(?![#])")
_BOLD = re.compile(r" {0,3}(?P<marks>\*\*|__)(?P<text>[^*_\s](?:[^*]*[^*\s])?)(?P=marks)[ ]*:?[ ]*")
_SETEXT_UNDERLINE = re.compile(r" {0,3}(?P<mark>=|-)(?P=mark){2,}[ ]*")
_FENCE = re.compile(r"(?P<indent> *)(?:[-*+] +|\d{1,3}[.)] +)?(?P<fence>`{3,}+(?=[^`]*$)|~{3,}+)(?P<info>.*)")
_BULLET = re.compile(r"(?P<marker> *(?:[-*+\u2022]|\d{1,9}[.)])(?: {1,4}|$))")


class LineKind(Enum):
    """The surroundings of a line."""

    TEXT = auto()
    NESTED = auto()  # inside a list item
    CODE = auto()
    COMMENT = auto()


class OutlineHeading(NamedTuple):
    """A heading: the index of its line, the index after it, its level (1..7), and its text without marks."""

    line: int
    end: int
    level: int
    text: str


def classify_lines(lines: Sequence[str]) -> list[LineKind]:
    """Return the kind of each line, in linear time.

    A fence or comment that is never closed ends before the first heading that surely starts a learning and follows a
    blank line.
    """
    kinds: list[LineKind] = []
    ends = _ClosingLineIndex(lines)
    item = 0  # content offset of the open list item, 0 for none
    index = 0
    while index < len(lines):
        line = lines[index]
        fence, comment = parse_fence(line), _opens_comment(line)
        if fence or comment:
            end = ends.fence_end(index, fence[0]) if fence else ends.comment_end(index)
            if end is None:
                end = _next_learning_line(lines, index + 1)
            kinds += [LineKind.CODE if fence else LineKind.COMMENT] * (end - index)
            item = item if indent_width(line) >= item else 0
            index = end
            continue
        indent, blank = indent_width(line), not line.strip()
        if not blank and indent < item:
            item = 0
        kinds.append(LineKind.NESTED if item and not blank else LineKind.TEXT)
        if not item and indent <= _MAX_INDENT:
            item = 0 if is_thematic_break(line) else list_content_offset(line) or 0
        index += 1
    return kinds


def _opens_comment(line: str) -> bool:
    start = line.rfind("<!--")
    return start >= 0 and "-->" not in line[start:] and not line[:start].strip()


def _next_learning_line(lines: Sequence[str], start: int) -> int:
    for index in range(start, len(lines)):
        if not lines[index - 1].strip() and starts_learning(lines[index]):
            return index
    return len(lines)


class _ClosingLineIndex:
    """An index of the lines that can close a fence or comment, so that each line is read once for each kind of mark."""

    def __init__(self, lines: Sequence[str]) -> None:
        self._lines = lines
        self._comment_ends = [i for i, line in enumerate(lines) if "-->" in line]
        # For each mark, the longest run that closes a fence on this line or any later one.
        self._longest_closing: dict[str, list[int]] = {"`": [0], "~": [0]}
        for line in reversed(lines):
            mark = normalize_spaces(line).strip()
            for char, longest in self._longest_closing.items():
                length = len(mark) if len(mark) >= _MIN_FENCE_LENGTH and not mark.strip(char) else 0
                longest.append(max(length, longest[-1]))
        for longest in self._longest_closing.values():
            longest.reverse()

    def fence_end(self, index: int, fence: str) -> int | None:
        """Return the index after the line that closes a fence; None if no line does."""
        if self._longest_closing[fence[0]][index + 1] < len(fence):
            return None
        return next(i + 1 for i in range(index + 1, len(self._lines)) if closes_fence(self._lines[i], fence))

    def comment_end(self, index: int) -> int | None:
        """Return the index after the line that closes a comment; None if no line does."""
        later = bisect_right(self._comment_ends, index)
        return self._comment_ends[later] + 1 if later < len(self._comment_ends) else None


def find_headings(lines: Sequence[str], line_kinds: Sequence[LineKind]) -> list[OutlineHeading]:
    """Return every line that may be a heading: `#` marks, a single underlined line, a line all in bold."""
    headings: list[OutlineHeading] = []
    for index, line in enumerate(lines):
        if line_kinds[index] is not LineKind.TEXT:
            continue
        atx = read_atx_heading(line)
        if atx is not None:
            headings.append(OutlineHeading(index, index + 1, *atx))
            continue
        starts_paragraph = index == 0 or not lines[index - 1].strip() or (headings and headings[-1].end == index)
        if not starts_paragraph or not line.strip():
            continue
        underlined = index + 1 < len(lines) and _SETEXT_UNDERLINE.fullmatch(normalize_spaces(lines[index + 1]))
        bold = _BOLD.fullmatch(normalize_spaces(line))
        if underlined and _may_be_title(line) and (underlined["mark"] == "=" or _has_text_below(lines, index)):
            headings.append(OutlineHeading(index, index + 2, 1 if underlined["mark"] == "=" else 2, line.strip()))
        elif bold:
            text = line[bold.start("text") : bold.end("text")].strip()
            headings.append(OutlineHeading(index, index + 1, BOLD_LEVEL, text))
    return headings


def _may_be_title(line: str) -> bool:
    return (
        list_content_offset(line) is None
        and read_field(line) is None
        and not is_thematic_break(line)
        and not line.lstrip().startswith(("|", ">"))
    )


def _has_text_below(lines: Sequence[str], index: int) -> bool:
    # Below a sentence, or before the next heading, a line of hyphens is a separator.
    below = next((lines[later] for later in range(index + 2, len(lines)) if lines[later].strip()), None)
    is_sentence = lines[index].rstrip().endswith((".", "!", "?", ":", ";"))
    return not is_sentence and below is not None and read_atx_heading(below) is None


def starts_learning(line: str) -> bool:
    """Return whether the line is a heading that surely starts a learning, whatever surrounds it."""
    heading = read_atx_heading(line)
    if heading is None:
        return False
    title = read_title(heading[1])
    return title.dated or title.layer is not None or title.typed


def read_atx_heading(line: str) -> tuple[int, str] | None:
    """Return level and text of a heading line with `#` marks. `##Title` counts, `#tag` does not."""
    match = _ATX.match(normalize_spaces(line))
    if match is None:
        return None
    rest = line[match.end() :]
    tight = len(match["marks"]) > 1 and (rest[:1].isalpha() or rest[:1] == "[")
    if rest.strip() and not rest[0].isspace() and not tight:
        return None
    text = rest.strip()
    unclosed = text.rstrip("#")
    return len(match["marks"]), unclosed.rstrip() if not unclosed or unclosed[-1].isspace() else text


def is_thematic_break(line: str) -> bool:
    """Return whether the line is a thematic break."""
    text = normalize_spaces(line)
    indent = len(text) - len(text.lstrip(" "))
    return indent <= _MAX_INDENT and markdown.THEMATIC_BREAK.match(text, indent) is not None


def list_content_offset(line: str) -> int | None:
    """Return the offset of a list item's content on its first line; None for any other line."""
    match = _BULLET.match(normalize_spaces(line))
    return None if match is None else len(match["marker"])


def indent_width(line: str) -> int:
    """Return the number of leading spaces of a line (a tab counts as one)."""
    return len(line) - len(line.lstrip(" \t\u00a0"))


def parse_fence(line: str) -> tuple[str, str] | None:
    """Return the fence that a line opens (its run of marks) and its info string."""
    match = _FENCE.fullmatch(normalize_spaces(line))
    return None if match is None else (match["fence"], match["info"].strip())


def closes_fence(line: str, fence: str) -> bool:
    """Return whether the line closes this fence."""
    mark = normalize_spaces(line).strip()
    return mark.startswith(fence) and not mark.strip(fence[0])
