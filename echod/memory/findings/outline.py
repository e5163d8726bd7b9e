"""Which lines of a loosely written Markdown text are headings, and which lie inside something else.

Made for findings, which nobody checks: a bold line or an underlined one may be a heading, and a fence or comment that
is never closed must not swallow the learnings after it. (Memory files have their own, stricter rules.) This module
looks at one line at a time; what belongs together is told in `sections`.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from enum import Enum, auto
from typing import NamedTuple

from echod.memory.findings.text import plain, read_field, read_title

BOLD_LEVEL = 7  # A bold line that serves as a heading lies below every real one.

_MARGIN = 3  # spaces before a block that do not make it code
_FENCE_MARKS = 3
_ATX = re.compile(r" {0,3}(?P<marks>#{1,6})(?![#])")
_BOLD = re.compile(r" {0,3}(?P<marks>\*\*|__)(?P<text>[^*_\s](?:[^*]*[^*\s])?)(?P=marks)[ ]*:?[ ]*")
_UNDERLINE = re.compile(r" {0,3}(?P<mark>=|-)(?P=mark){2,}[ ]*")
_FENCE = re.compile(r"(?P<indent> *)(?:[-*+] +|\d{1,3}[.)] +)?(?P<fence>`{3,}+(?=[^`]*$)|~{3,}+)(?P<info>.*)")
_BULLET = re.compile(r"(?P<marker> *(?:[-*+\u2022]|\d{1,9}[.)])(?: {1,4}|$))")
_RULE = re.compile(r" {0,3}(?:(?:- *){3,}|(?:\* *){3,}|(?:_ *){3,})")


class Place(Enum):
    """Where a line lies."""

    TEXT = auto()
    NESTED = auto()  # inside a list item
    CODE = auto()
    COMMENT = auto()


class Heading(NamedTuple):
    """A heading: the index of its line, the index after it, its level (1..7), and its text without marks."""

    line: int
    after: int
    level: int
    text: str


def is_rule(line: str) -> bool:
    """Whether the line is a thematic break."""
    return _RULE.fullmatch(plain(line)) is not None


def list_offset(line: str) -> int | None:
    """Where the content of a list item begins on its first line; None for any other line."""
    match = _BULLET.match(plain(line))
    return None if match is None else len(match["marker"])


def indent_of(line: str) -> int:
    """How many leading spaces a line has (a tab counts as one)."""
    return len(line) - len(line.lstrip(" \t\u00a0"))


def fence_of(line: str) -> tuple[str, str] | None:
    """The fence that a line opens (its run of marks) and its info string."""
    match = _FENCE.fullmatch(plain(line))
    return None if match is None else (match["fence"], match["info"].strip())


def closes(line: str, fence: str) -> bool:
    """Whether the line closes this fence."""
    mark = plain(line).strip()
    return mark.startswith(fence) and not mark.strip(fence[0])


def places(lines: Sequence[str]) -> list[Place]:
    """Where each line lies, in linear time.

    A fence or comment that is never closed ends before the first heading that surely starts a learning and follows a
    blank line.
    """
    found: list[Place] = []
    ends = _Ends(lines)
    item = 0  # content offset of the open list item, 0 for none
    index = 0
    while index < len(lines):
        line = lines[index]
        fence, comment = fence_of(line), _opens_comment(line)
        if fence or comment:
            end = ends.of_fence(index, fence[0]) if fence else ends.of_comment(index)
            if end is None:
                end = _until_learning(lines, index + 1)
            found += [Place.CODE if fence else Place.COMMENT] * (end - index)
            item = item if indent_of(line) >= item else 0
            index = end
            continue
        indent, blank = indent_of(line), not line.strip()
        if not blank and indent < item:
            item = 0
        found.append(Place.NESTED if item and not blank else Place.TEXT)
        if not item and indent <= _MARGIN:
            item = 0 if is_rule(line) else list_offset(line) or 0
        index += 1
    return found


def headings(lines: Sequence[str], where: Sequence[Place]) -> list[Heading]:
    """Everything that may be a heading: `#` marks, a single line underlined, a line all in bold."""
    found: list[Heading] = []
    for index, line in enumerate(lines):
        if where[index] is not Place.TEXT:
            continue
        atx = read_atx(line)
        if atx is not None:
            found.append(Heading(index, index + 1, *atx))
            continue
        alone = index == 0 or not lines[index - 1].strip() or (found and found[-1].after == index)
        if not alone or not line.strip():
            continue
        underlined = index + 1 < len(lines) and _UNDERLINE.fullmatch(plain(lines[index + 1]))
        bold = _BOLD.fullmatch(plain(line))
        if underlined and _may_be_title(line) and (underlined["mark"] == "=" or _heads_something(lines, index)):
            found.append(Heading(index, index + 2, 1 if underlined["mark"] == "=" else 2, line.strip()))
        elif bold:
            found.append(Heading(index, index + 1, BOLD_LEVEL, line[bold.start("text") : bold.end("text")].strip()))
    return found


def starts_learning(line: str) -> bool:
    """Whether the line is a heading that surely starts a learning, whatever stands around it."""
    heading = read_atx(line)
    if heading is None:
        return False
    title = read_title(heading[1])
    return title.dated or title.layer is not None or title.typed


def read_atx(line: str) -> tuple[int, str] | None:
    """Level and text of a heading line with `#` marks; `##Title` without a space counts, `#tag` does not."""
    match = _ATX.match(plain(line))
    if match is None:
        return None
    rest = line[match.end() :]
    tight = len(match["marks"]) > 1 and (rest[:1].isalpha() or rest[:1] == "[")
    if rest.strip() and not rest[0].isspace() and not tight:
        return None
    text = rest.strip()
    unclosed = text.rstrip("#")
    return len(match["marks"]), unclosed.rstrip() if not unclosed or unclosed[-1].isspace() else text


def _may_be_title(line: str) -> bool:
    return (
        list_offset(line) is None
        and read_field(line) is None
        and not is_rule(line)
        and not line.lstrip().startswith(("|", ">"))
    )


def _heads_something(lines: Sequence[str], index: int) -> bool:
    # Below a sentence, or before the next heading, a line of hyphens was meant to separate.
    below = next((lines[later] for later in range(index + 2, len(lines)) if lines[later].strip()), None)
    return (
        below is not None and read_atx(below) is None and not lines[index].rstrip().endswith((".", "!", "?", ":", ";"))
    )


def _opens_comment(line: str) -> bool:
    start = line.rfind("<!--")
    return start >= 0 and "-->" not in line[start:] and not line[:start].strip()


def _until_learning(lines: Sequence[str], start: int) -> int:
    for index in range(start, len(lines)):
        if not lines[index - 1].strip() and starts_learning(lines[index]):
            return index
    return len(lines)


class _Ends:
    """Finds the line after the end of a fence or comment; lines are looked at once for each kind of mark."""

    def __init__(self, lines: Sequence[str]) -> None:
        self._lines = lines
        self._comment_ends = [i for i, line in enumerate(lines) if "-->" in line]
        # For each mark, the longest run that closes a fence on this line or any later one.
        self._longest: dict[str, list[int]] = {"`": [0], "~": [0]}
        for line in reversed(lines):
            mark = plain(line).strip()
            for char, longest in self._longest.items():
                length = len(mark) if len(mark) >= _FENCE_MARKS and not mark.strip(char) else 0
                longest.append(max(length, longest[-1]))
        for longest in self._longest.values():
            longest.reverse()

    def of_fence(self, index: int, fence: str) -> int | None:
        if self._longest[fence[0]][index + 1] < len(fence):
            return None
        return next(i + 1 for i in range(index + 1, len(self._lines)) if closes(self._lines[i], fence))

    def of_comment(self, index: int) -> int | None:
        later = bisect_right(self._comment_ends, index)
        return self._comment_ends[later] + 1 if later < len(self._comment_ends) else None
