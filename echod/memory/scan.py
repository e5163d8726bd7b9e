"""Where the blocks of a memory file begin: the part of CommonMark that decides whether a `#` starts a heading.

A line of code, of a comment, of a list item or of a quotation is content, however much it looks like a heading.
Knowing that takes CommonMark's containers (list items, quotations) and its leaves that go over several lines
(fenced code, HTML, paragraphs); what the text inside them means does not matter here.

One deviation: a fence or comment at the left margin that is never closed ends before the next entry heading that
follows a blank line, because else one careless agent would swallow the rest of the file.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from dataclasses import dataclass

from echod.memory import forms

HEADING = re.compile(r" {0,3}#{2,3}(?=[ \t\r\n]|\Z)")
"""A line that is a heading of level 2 or 3 where it is not content."""

_DEPTH_LIMIT = 100  # nested containers; nobody nests deeper, and without a limit hostile input costs quadratic time

_ATX = re.compile(r"#{1,6}(?:[ \r\n]|\Z)")
_SETEXT = re.compile(r"(?:=++|-++) *+[\r\n]*+\Z")
_BREAK = re.compile(r"(?:(?:\* *+){3,}+|(?:- *+){3,}+|(?:_ *+){3,}+)[\r\n]*+\Z")
_ITEM = re.compile(r"([-+*]|([0-9]{1,9})[.)])( ++|(?=[\r\n])|\Z)")
_PLAIN_ITEM = re.compile(r"- {1,4}(?=[A-Za-z(\"'\[]|\*\*?[A-Za-z]|`[^`])")
_FENCE = re.compile(r"(?P<run>`{3,}+)[^`]*+\Z|(?P<tildes>~{3,}+)")
_FENCE_CLOSE = re.compile(r" {0,3}(`{3,}+|~{3,}+)[ \t\r]*+(?:\n|\Z)")
_FENCE_CLOSE_LINE = re.compile(r"^ {0,3}(`{3,}+|~{3,}+)[ \t\r]*+$", re.MULTILINE)
_SPACES = re.compile(r" *+")
_CONFLICT_START = re.compile(r"^<{7}(?=[ \r\n]|\Z)", re.MULTILINE)
_CONFLICT_END = re.compile(r"^>{7}(?=[ \r\n]|\Z)", re.MULTILINE)

_SPECIAL = frozenset("\n\r\t #>-+*_=`~<0123456789")
"""What a line that is not plain text can begin with."""

_QUOTE = -1

_INDENT_LIMIT = 3  # columns; what stands further in is indented code

_TAGS = (
    "address|article|aside|base|basefont|blockquote|body|caption|center|col|colgroup|dd|details|dialog|dir|div|dl|dt|"
    "fieldset|figcaption|figure|footer|form|frame|frameset|h1|h2|h3|h4|h5|h6|head|header|hr|html|iframe|legend|li|"
    "link|main|menu|menuitem|nav|noframes|ol|optgroup|option|p|param|search|section|summary|table|tbody|td|tfoot|th|"
    "thead|title|tr|track|ul"
)
_VALUE = r"(?:[^\"'=<>`\x00-\x20]++|'[^']*+'|\"[^\"]*+\")"
_ATTRIBUTE = rf"(?:[ \t]++[A-Za-z_:][A-Za-z0-9:._-]*+(?:[ \t]*+=[ \t]*+{_VALUE})?+)"


@dataclass(frozen=True, slots=True)
class _Html:
    """A kind of HTML block: how it begins, and what its last line holds (None: a blank line ends it)."""

    begins: re.Pattern[str]
    ends: re.Pattern[str] | None
    closing: str | None = None


@dataclass(frozen=True, slots=True)
class _Fence:
    mark: str
    length: int

    def closed_by(self, text: str, position: int) -> bool:
        close = _FENCE_CLOSE.match(text, position)
        return close is not None and close[1][0] == self.mark and len(close[1]) >= self.length


class _Paragraph:
    """The leaf that lazy lines continue."""


_PARAGRAPH = _Paragraph()
_Leaf = _Html | _Fence | _Paragraph | None

_HTML = (
    _Html(
        re.compile(r"<(?:script|pre|style|textarea)(?=[ \t\r\n>]|\Z)", re.IGNORECASE),
        re.compile(r"</(?:script|pre|style|textarea)>", re.IGNORECASE),
        "</pre>",
    ),
    _Html(re.compile(r"<!--"), re.compile(r"-->"), "-->"),
    _Html(re.compile(r"<\?"), re.compile(r"\?>"), "?>"),
    _Html(re.compile(r"<![A-Za-z]"), re.compile(r">"), ">"),
    _Html(re.compile(r"<!\[CDATA\["), re.compile(r"\]\]>"), "]]>"),
    _Html(re.compile(rf"</?(?:{_TAGS})(?=[ \t\r\n]|/?>|\Z)", re.IGNORECASE), None),
)
# Any other complete tag alone on its line; it cannot interrupt a paragraph.
_OTHER_TAG = _Html(
    re.compile(rf"(?:<[A-Za-z][A-Za-z0-9-]*+{_ATTRIBUTE}*+[ \t]*+/?>|</[A-Za-z][A-Za-z0-9-]*+[ \t]*+>)[ \t\r\n]*+\Z"),
    None,
)


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


def conflict_line(text: str, found: Structure) -> int | None:
    """The number (from 1) of the line where a merge conflict begins, or None.

    A start and an end marker count unless both stand in fenced code: there they are an example.
    """
    starts = [match.start() for match in _CONFLICT_START.finditer(text)]
    ends = [match.start() for match in _CONFLICT_END.finditer(text)] if starts else []
    if not ends:
        return None
    fence_starts = [start for start, _ in found.fences]

    def fenced(offset: int) -> bool:
        fence = bisect_right(fence_starts, offset) - 1
        return fence >= 0 and offset < found.fences[fence][1]

    last_end = ends[-1]
    last_open_end = max((offset for offset in ends if not fenced(offset)), default=-1)
    for start in starts:
        if start < (last_open_end if fenced(start) else last_end):
            return text.count("\n", 0, start) + 1
    return None


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
        self._closers: dict[str, tuple[list[int], list[int]]] | None = None
        self._last_ends: dict[re.Pattern[str], int] = {}

    def run(self) -> None:
        text = self._text
        find = text.find
        position = 1 if text.startswith("\ufeff") else 0
        while position < len(text):
            end = find("\n", position) + 1 or len(text)
            first = text[position]
            # Three kinds of line make up nearly all of a real file; the general case costs five times as much.
            if first not in _SPECIAL:
                if self._leaf is not _PARAGRAPH:
                    self._containers = []
                    self._leaf = _PARAGRAPH
            elif first == "\n" and not self._containers:
                self._leaf = None
            elif first == "-" and (item := _PLAIN_ITEM.match(text, position)):
                self._containers = [item.end() - position]
                self._leaf = _PARAGRAPH
                self._item_is_empty = False
            else:
                self._read_line(text[position:end], position)
                leaf = self._leaf
                if isinstance(leaf, _Fence | _Html) and not self._containers:
                    end = self._skip(leaf, position, end)
                    self._leaf = None
            position = end

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
            if not all_matched or self._leaf is _PARAGRAPH or (isinstance(self._leaf, _Html) and not self._leaf.ends):
                self._leaf = None
            self._item_is_empty = False
            return
        if all_matched and isinstance(self._leaf, _Fence):
            if self._leaf.closed_by(line, position):
                self._leaf = None
            return
        if all_matched and isinstance(self._leaf, _Html):
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
            if in_paragraph and mark in "=-" and _SETEXT.match(line, first):
                self._leaf = None
                return
            opened, leaf = self._leaf_at(line, first, in_paragraph or may_be_lazy)
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
            elif item := _ITEM.match(line, first):
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

    def _leaf_at(self, line: str, first: int, in_paragraph: bool) -> tuple[bool, _Leaf]:
        """Whether a leaf block begins here, and what of it stays open after this line."""
        mark = line[first]
        if mark == "#":
            return _ATX.match(line, first) is not None, None
        if mark in "`~":
            fence = _FENCE.match(line, first)
            return (True, _Fence(mark, fence.end(fence.lastgroup or 0) - first)) if fence else (False, None)
        if mark in "*-_":
            return _BREAK.match(line, first) is not None, None
        if mark == "<":
            for kind in _HTML if in_paragraph else (*_HTML, _OTHER_TAG):
                if kind.begins.match(line, first):
                    return True, None if kind.ends and kind.ends.search(line, first) else kind
        return False, None

    def _heading(self, offset: int) -> None:
        heading = HEADING.match(self._text, offset)
        if heading:
            shape = forms.recognise(self._text, offset)
            if shape or not heading[0].endswith("###"):
                self.starts.append(Start(offset, shape))

    def _skip(self, leaf: _Fence | _Html, begin: int, position: int) -> int:
        """The offset behind the fence or HTML block at the left margin that begins at `begin`."""
        text = self._text
        ends = leaf.ends if isinstance(leaf, _Html) else None
        closed = self._is_closed(leaf, position)
        after_blank = False
        found = False
        while position < len(text) and not found:
            end = text.find("\n", position) + 1 or len(text)
            if after_blank and not closed and HEADING.match(text, position) and forms.recognise(text, position):
                break
            after_blank = not text[position:end].strip(" \t\r\n")
            if isinstance(leaf, _Fence):
                found = text[position] in " `~" and leaf.closed_by(text, position)
            elif ends is None:
                found = after_blank
            else:
                found = ends.search(text, position, end) is not None
            position = end
        else:
            if not closed:
                self.closing = leaf.mark * leaf.length if isinstance(leaf, _Fence) else leaf.closing
        if isinstance(leaf, _Fence):
            self.fences.append((begin, position))
        return position

    def _is_closed(self, leaf: _Fence | _Html, position: int) -> bool:
        """Whether the line that closes `leaf` stands anywhere from `position` on. Looked up, never searched twice."""
        if isinstance(leaf, _Fence):
            offsets, longest_from = self._fence_closers()[leaf.mark]
            index = bisect_left(offsets, position)
            return index < len(offsets) and longest_from[index] >= leaf.length
        if leaf.ends:
            if leaf.ends not in self._last_ends:
                last = -1
                for match in leaf.ends.finditer(self._text):
                    last = match.start()
                self._last_ends[leaf.ends] = last
            return self._last_ends[leaf.ends] >= position
        return True

    def _fence_closers(self) -> dict[str, tuple[list[int], list[int]]]:
        """For each mark the offsets of all lines that could close a fence, and the longest run from each on."""
        if self._closers is None:
            closers: dict[str, tuple[list[int], list[int]]] = {"`": ([], []), "~": ([], [])}
            for match in _FENCE_CLOSE_LINE.finditer(self._text):
                offsets, lengths = closers[match[1][0]]
                offsets.append(match.start())
                lengths.append(len(match[1]))
            for _, lengths in closers.values():
                for index in range(len(lengths) - 2, -1, -1):
                    lengths[index] = max(lengths[index], lengths[index + 1])
            self._closers = closers
        return self._closers


def _after_spaces(line: str, position: int) -> int:
    match = _SPACES.match(line, position)
    return match.end() if match else position
