"""Where the blocks of a memory file begin: the part of CommonMark that decides whether a `#` starts a heading.

A line of code, of a comment, of a list item or of a quotation is content, however much it looks like a heading.
Knowing that takes CommonMark's containers (list items, quotations) and its leaves that go over several lines
(fenced code, HTML, paragraphs); what the text inside them means does not matter here.

One deviation: a fence or comment at the left margin that is never closed ends before the next entry heading that
follows a blank line, because else one careless agent would swallow the rest of the file.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from echod.memory import forms
from echod.memory.commonmark import (
    ATX,
    BOLD_TEXT,
    BREAK,
    FENCE,
    HEADING,
    HTML,
    ITEM,
    OTHER_TAG,
    PLAIN_ITEM,
    SETEXT,
    Fence,
    Html,
)
from echod.memory.endings import Endings

_SPECIAL = frozenset("\n\r\t #>-+*_=`~<0123456789")
"""What a line that is not plain text can begin with."""

_QUOTE = -1
_INDENT_LIMIT = 3  # columns; what stands further in is indented code
_DEPTH_LIMIT = 100  # nested containers; nobody nests deeper, and without a limit hostile input costs quadratic time
_SPACES = re.compile(r" *+")


class _Paragraph:
    """The leaf that lazy lines continue."""


_PARAGRAPH = _Paragraph()
_Leaf = Html | Fence | _Paragraph | None


@dataclass(frozen=True, slots=True)
class Start:
    """The offset of a heading that begins a block, and the entry's shape where it begins one."""

    offset: int
    shape: forms.Shape | None


@dataclass(frozen=True, slots=True)
class Structure:
    """What there is at the left margin of a text; offsets are characters.

    Attributes:
        starts: the headings that begin blocks.
        fences: begin and end of every stretch of fenced code.
        closing: the line that would close the fence or comment in which the text ends; None where none is open.
    """

    starts: tuple[Start, ...]
    fences: tuple[tuple[int, int], ...]
    closing: str | None


def structure(text: str) -> Structure:
    """Read the block structure of a whole file, in time linear in its length."""
    scanner = _Scanner(text)
    scanner.run()
    return Structure(tuple(scanner.starts), tuple(scanner.fences), scanner.closing)


class _Scanner:
    """One pass over a text, line by line. `_containers` and `_leaf` say what the next line may continue.

    A container is the number of columns by which the content of a list item is indented, or `_QUOTE`.
    """

    def __init__(self, text: str) -> None:
        self.starts: list[Start] = []
        self.fences: list[tuple[int, int]] = []
        self.closing: str | None = None
        self._text = text
        self._containers: list[int] = []
        self._leaf: _Leaf = None
        self._item_is_empty = False
        self._endings = Endings(text)

    def run(self) -> None:
        text = self._text
        position = 1 if text.startswith("\ufeff") else 0
        while position < len(text):
            end = text.find("\n", position) + 1 or len(text)
            first = text[position]
            # Four kinds of line make up nearly all of a real file; the general case costs five times as much.
            if first not in _SPECIAL or (first == "*" and BOLD_TEXT.match(text, position)):
                if self._leaf is not _PARAGRAPH:
                    self._containers = []
                    self._leaf = _PARAGRAPH
            elif first == "-" and (item := PLAIN_ITEM.match(text, position)):
                self._containers = [item.end() - position]
                self._leaf = _PARAGRAPH
                self._item_is_empty = False
            elif first == "#" and ATX.match(text, position):
                self._containers = []
                self._leaf = None
                self._heading(position)
            elif first == "\n" and (not self._containers or self._in_plain_item()):
                self._leaf = None
            else:
                self._read_line(text[position:end], position)
                leaf = self._leaf
                if isinstance(leaf, Fence | Html) and not self._containers:
                    end = self._skip(leaf, position, end)
                    self._leaf = None
            position = end

    def _in_plain_item(self) -> bool:
        return self._leaf is _PARAGRAPH and len(self._containers) == 1 and self._containers[0] != _QUOTE

    def _read_line(self, line: str, offset: int) -> None:
        """CommonMark's step for one line: continue containers, then the open leaf, then open what begins here."""
        if "\t" in line:
            line = line.expandtabs(4)  # leaves columns what they are, and spares us half-consumed tabs
        end = len(line.rstrip("\r\n"))
        matched, position = self._continue_containers(line, end)
        all_matched = matched == len(self._containers)
        first = _after_spaces(line, position)
        if first >= end:
            del self._containers[matched:]
            if not all_matched or self._leaf is _PARAGRAPH or (isinstance(self._leaf, Html) and not self._leaf.ends):
                self._leaf = None
            self._item_is_empty = False
            return
        if all_matched and isinstance(self._leaf, Fence):
            if self._leaf.ends_at(line, position):
                self._leaf = None
            return
        if all_matched and isinstance(self._leaf, Html):
            if self._leaf.ends and self._leaf.ends.search(line, position):
                self._leaf = None
            return
        self._item_is_empty = False
        self._open_blocks(line, position, end, matched, offset)

    def _continue_containers(self, line: str, end: int) -> tuple[int, int]:
        """How many of the open containers this line continues, and where their content begins in it."""
        position = 0
        last = len(self._containers) - 1
        for depth, container in enumerate(self._containers):
            first = _after_spaces(line, position)
            if container == _QUOTE:
                if first >= end or first - position > _INDENT_LIMIT or line[first] != ">":
                    return depth, position
                position = first + 2 if line.startswith(" ", first + 1) else first + 1
            elif first >= end:
                if depth == last and self._item_is_empty:
                    return depth, position
            elif first - position >= container:
                position += container
            else:
                return depth, position
        return last + 1, position

    def _open_blocks(self, line: str, position: int, end: int, matched: int, offset: int) -> None:
        stack = self._containers[:matched]
        in_paragraph = self._leaf is _PARAGRAPH and matched == len(self._containers)
        may_be_lazy = self._leaf is _PARAGRAPH and not in_paragraph
        while True:
            first = _after_spaces(line, position)
            if first >= end:  # a container was opened, with nothing in it yet
                self._containers, self._leaf = stack, None
                self._item_is_empty = stack[-1] != _QUOTE
                return
            if first - position > _INDENT_LIMIT:
                break
            mark = line[first]
            if mark not in _SPECIAL:
                break
            if in_paragraph and mark in "=-" and SETEXT.match(line, first):
                self._leaf = None
                return
            opened, leaf = self._leaf_at(line, first, in_paragraph=in_paragraph or may_be_lazy)
            if opened:
                if mark == "#" and not stack:
                    self._heading(offset)
                self._containers, self._leaf = stack, leaf
                return
            if len(stack) >= _DEPTH_LIMIT:
                break
            if mark == ">":
                stack.append(_QUOTE)
                position = first + 2 if line.startswith(" ", first + 1) else first + 1
            elif item := ITEM.match(line, first):
                empty = item.end() >= end
                if in_paragraph and (empty or item[2] not in {None, "1"}):
                    break
                # Content that begins five columns or more behind the marker is indented code behind one space.
                content = item.end(1) + 1 if empty or len(item[3]) > _INDENT_LIMIT + 1 else item.end()
                stack.append(content - position)
                position = end if empty else content
            else:
                break
            in_paragraph = may_be_lazy = False
        if may_be_lazy:
            return
        self._containers = stack
        self._leaf = _PARAGRAPH if in_paragraph or first - position <= _INDENT_LIMIT else None

    def _leaf_at(self, line: str, first: int, *, in_paragraph: bool) -> tuple[bool, _Leaf]:
        """Whether a leaf block begins here, and what of it stays open after this line."""
        mark = line[first]
        if mark == "#":
            return ATX.match(line, first) is not None, None
        if mark in "`~":
            fence = FENCE.match(line, first)
            return (True, Fence(mark, len(fence[0]))) if fence else (False, None)
        if mark in "*-_":
            return BREAK.match(line, first) is not None, None
        if mark == "<":
            for kind in HTML if in_paragraph else (*HTML, OTHER_TAG):
                if kind.begins.match(line, first):
                    return True, None if kind.ends and kind.ends.search(line, first) else kind
        return False, None

    def _heading(self, offset: int) -> None:
        heading = HEADING.match(self._text, offset)
        if heading:
            shape = forms.recognise(self._text, offset)
            if shape or not heading[0].endswith("###"):  # a section that is no entry belongs to the block above
                self.starts.append(Start(offset, shape))

    def _skip(self, leaf: Fence | Html, begin: int, position: int) -> int:
        """The offset behind the fence or HTML block at the left margin that begins at `begin`."""
        text = self._text
        ends = leaf.ends if isinstance(leaf, Html) else None
        # What is never closed ends before the next entry: the one deviation from CommonMark.
        closed = self._endings.closes(leaf, position)
        after_blank = False
        found = False
        while position < len(text) and not found:
            end = text.find("\n", position) + 1 or len(text)
            if after_blank and not closed and HEADING.match(text, position) and forms.recognise(text, position):
                break
            after_blank = not text[position:end].strip(" \t\r\n")
            if isinstance(leaf, Fence):
                found = text[position] in " `~" and leaf.ends_at(text, position)
            elif ends is None:
                found = after_blank
            else:
                found = ends.search(text, position, end) is not None
            position = end
        else:
            if not closed:
                self.closing = leaf.closing
        if isinstance(leaf, Fence):
            self.fences.append((begin, position))
        return position


def _after_spaces(line: str, position: int) -> int:
    match = _SPACES.match(line, position)
    return match.end() if match else position
