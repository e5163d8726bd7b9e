"""Find the blocks of a memory file: the part of CommonMark that decides whether a `#` starts a heading.

A line of code, of a comment, of a list item or of a quotation is content, even if it looks like a heading. To recognise
it takes CommonMark's containers (list items, quotations) and its leaves of several lines (fenced code, HTML,
paragraphs). The meaning of the text inside them does not matter here.

One deviation: a fence or comment at the left margin that is never closed ends before the next entry heading that
follows a blank line. Otherwise one careless agent would swallow the rest of the file.

Everything takes linear time, because a memory file may have lines of megabytes that were made to be slow to parse. All
patterns are linear in the line, and the ends of fences and comments are indexed once. Otherwise a file of nothing but
opened fences would be read to its end once for each of them.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from typing import NamedTuple

from echod.lazy import lazy_pattern
from echod.memory import forms
from echod.memory.text import front_matter_end

HEADING = lazy_pattern(r" {0,3}#{2,3}(?=[ \t\r\n]|\Z)")
"""A heading of level 2 or 3, where the line is not content of something else."""

# A heading of any level, from its first mark on.
_ATX_HEADING = lazy_pattern(r"#{1,6}(?:[ \t\r\n]|\Z)")
_SETEXT_UNDERLINE = lazy_pattern(
    r"(?:=++|-++) *+[\r\n]*+\Z"
)  # the underline that makes a heading of the paragraph above

THEMATIC_BREAK = lazy_pattern(r"(?:(?:\* *+){3,}+|(?:- *+){3,}+|(?:_ *+){3,}+)[\r\n]*+\Z")
"""A thematic break (`---`)."""

# The marker of a list item. Groups: marker, its number, the spaces behind it.
_LIST_ITEM = lazy_pattern(r"([-+*]|([0-9]{1,9})[.)])( ++|(?=[\r\n])|\Z)")
# A list item with a paragraph, like most lines of memory files.
_PLAIN_LIST_ITEM = lazy_pattern(r"- {1,4}(?=[A-Za-z(\"'\[]|\*\*?[A-Za-z]|`[^`])")
_BOLD_TEXT = lazy_pattern(r"\*\*[A-Za-z]")  # text that begins in bold, like metadata; neither a list item nor a break
_FENCE = lazy_pattern(r"`{3,}+(?=[^`]*+\Z)|~{3,}+")  # the marks that open fenced code
# A line that closes fenced code, if its marks are of the right kind and number.
_FENCE_END = lazy_pattern(r" {0,3}(`{3,}+|~{3,}+)[ \t\r]*+(?:\n|\Z)")
_FENCE_ENDS = lazy_pattern(r"^ {0,3}(`{3,}+|~{3,}+)[ \t\r]*+$", re.MULTILINE)  # all such lines of a text

_BLOCK_TAGS = (
    "address|article|aside|base|basefont|blockquote|body|caption|center|col|colgroup|dd|details|dialog|dir|div|dl|dt|"
    "fieldset|figcaption|figure|footer|form|frame|frameset|h1|h2|h3|h4|h5|h6|head|header|hr|html|iframe|legend|li|"
    "link|main|menu|menuitem|nav|noframes|ol|optgroup|option|p|param|search|section|summary|table|tbody|td|tfoot|th|"
    "thead|title|tr|track|ul"
)
_NAME = r"[A-Za-z][A-Za-z0-9-]*+"
_VALUE = r"(?:[^\"'=<>`\x00-\x20]++|'[^']*+'|\"[^\"]*+\")"
_ATTRIBUTE = rf"(?:[ \t]++[A-Za-z_:][A-Za-z0-9:._-]*+(?:[ \t]*+=[ \t]*+{_VALUE})?+)"
# The first characters of lines that are not plain text.
_SPECIAL = frozenset("\n\r\t #>-+*_=`~<0123456789")
_QUOTE = -1
_MAX_INDENT = 3  # columns; lines indented further are code
_MAX_DEPTH = 100  # nested containers; real files nest less, and without a limit hostile input costs quadratic time
_SPACES = lazy_pattern(r" *+")
# A heading and the lines up to the next one, if each is plain text, an item or blank, as in most entries. They open
# nothing that could last beyond that heading, so they need not be read one by one.
_PLAIN_STRETCH = lazy_pattern(
    r"[^\n]*+\n(?:(?:[^\n\r\t #>\-+*_=`~<0-9]|\*\*[A-Za-z]|" + _PLAIN_LIST_ITEM.pattern + r"|(?=\n))[^\n]*+\n)*+"
    r"(?=#{1,6}(?:[ \t\r\n]|\Z)|\Z)"
)

_START_MARKS, _END_MARKS = "<" * 7, ">" * 7
_START = lazy_pattern(rf"^{_START_MARKS}(?=[ \r\n]|\Z)", re.MULTILINE)
_END = lazy_pattern(rf"^{_END_MARKS}(?=[ \r\n]|\Z)", re.MULTILINE)


class BlockStart(NamedTuple):
    """The offset of a heading that begins a block, and the partial entry if it begins one."""

    offset: int
    partial: forms.PartialEntry | None


Stretches = dict[str, bool]
"""Whether a heading begins a block, by its text and the plain text up to the next heading."""


class Structure(NamedTuple):
    """The blocks at the left margin of a text; offsets are characters."""

    starts: tuple[BlockStart, ...]  # the headings that begin blocks
    fences: tuple[tuple[int, int], ...]  # start and end of every stretch of fenced code
    # The line that would close the fence or comment in which the text ends; None where none is open.
    closing: str | None


def parse_structure(text: str, stretches: Stretches | None = None) -> Structure:
    """Read the block structure of a whole file, in time linear in its length.

    With `stretches` no partial entries are read. Each stretch in it is not read again, and new ones are added.
    """
    scanner = _Scanner(text, stretches)
    scanner.run()
    return Structure(tuple(scanner.starts), tuple(scanner.fences), scanner.closing)


def find_conflict_line(text: str, structure: Structure) -> int | None:
    """Return the number (from 1) of the line where a merge conflict begins, or None.

    A start marker with an end marker below it counts, unless both are in fenced code and so an example. One of them
    alone in fenced code counts, because a conflict can begin or end in the middle of a fence.
    """
    if _START_MARKS not in text or _END_MARKS not in text:
        return None
    starts = [marker.start() for marker in _START.finditer(text)]
    ends = [marker.start() for marker in _END.finditer(text)]
    if not starts or not ends:
        return None
    fence_starts = [begin for begin, _ in structure.fences]

    def fenced(offset: int) -> bool:
        fence = bisect_right(fence_starts, offset) - 1
        return fence >= 0 and offset < structure.fences[fence][1]

    last_end = ends[-1]
    last_open_end = max((offset for offset in ends if not fenced(offset)), default=-1)
    for start in starts:
        if start < (last_open_end if fenced(start) else last_end):
            return text.count("\n", 0, start) + 1
    return None


class _Fence(NamedTuple):
    """Fenced code that is open."""

    mark: str
    length: int

    @property
    def closing(self) -> str:
        return self.mark * self.length

    def ends_at(self, text: str, position: int) -> bool:
        end = _FENCE_END.match(text, position)
        return end is not None and end[1].startswith(self.closing)


class _HtmlBlockKind(NamedTuple):
    """A kind of HTML block: its start, the pattern in its last line (None: a blank line ends it), and an example."""

    start_pattern: re.Pattern[str]
    end_pattern: re.Pattern[str] | None = None
    closing: str | None = None


_HTML_BLOCKS = (
    _HtmlBlockKind(
        lazy_pattern(r"<(?:script|pre|style|textarea)(?=[ \t\r\n>]|\Z)", re.IGNORECASE),
        lazy_pattern(r"</(?:script|pre|style|textarea)>", re.IGNORECASE),
        "</pre>",
    ),
    _HtmlBlockKind(lazy_pattern(r"<!--"), lazy_pattern(r"-->"), "-->"),
    _HtmlBlockKind(lazy_pattern(r"<\?"), lazy_pattern(r"\?>"), "?>"),
    _HtmlBlockKind(lazy_pattern(r"<![A-Za-z]"), lazy_pattern(r">"), ">"),
    _HtmlBlockKind(lazy_pattern(r"<!\[CDATA\["), lazy_pattern(r"\]\]>"), "]]>"),
    _HtmlBlockKind(lazy_pattern(rf"</?(?:{_BLOCK_TAGS})(?=[ \t\r\n]|/?>|\Z)", re.IGNORECASE)),
)

# Any other complete tag, alone on its line. Unlike the others it cannot interrupt a paragraph.
_OTHER_HTML_TAG = _HtmlBlockKind(lazy_pattern(rf"(?:<{_NAME}{_ATTRIBUTE}*+[ \t]*+/?>|</{_NAME}[ \t]*+>)[ \t\r\n]*+\Z"))


class _BlockEndIndex:
    """All lines of a text that can close a fence or an HTML block."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._fences: dict[str, tuple[list[int], list[int]]] = {}
        self._last_ends: dict[re.Pattern[str], int] = {}

    def is_closed_after(self, leaf: _Fence | _HtmlBlockKind, position: int) -> bool:
        """Return whether any line from `position` on closes `leaf`."""
        if isinstance(leaf, _Fence):
            offsets, longest_from = self._fence_ends(leaf.mark)
            index = bisect_left(offsets, position)
            return index < len(offsets) and longest_from[index] >= leaf.length
        return leaf.end_pattern is None or self._last_end(leaf.end_pattern) >= position

    def _fence_ends(self, mark: str) -> tuple[list[int], list[int]]:
        """Return the offsets of all lines that could close a fence of this mark, and the longest run from each on."""
        if not self._fences:
            self._fences = {"`": ([], []), "~": ([], [])}
            for line in _FENCE_ENDS.finditer(self._text):
                offsets, lengths = self._fences[line[1][0]]
                offsets.append(line.start())
                lengths.append(len(line[1]))
            for _, lengths in self._fences.values():
                for index in range(len(lengths) - 2, -1, -1):
                    lengths[index] = max(lengths[index], lengths[index + 1])
        return self._fences[mark]

    def _last_end(self, pattern: re.Pattern[str]) -> int:
        if pattern not in self._last_ends:
            self._last_ends[pattern] = max((end.start() for end in pattern.finditer(self._text)), default=-1)
        return self._last_ends[pattern]


class _Paragraph:
    """The leaf that lazy lines continue."""


_PARAGRAPH = _Paragraph()
_Leaf = _HtmlBlockKind | _Fence | _Paragraph | None


class _Scanner:
    """One pass over a text, line by line. `_containers` and `_leaf` are what the next line may continue.

    A container is the number of columns by which the content of a list item is indented, or `_QUOTE`.
    """

    def __init__(self, text: str, stretches: Stretches | None) -> None:
        self.starts: list[BlockStart] = []
        self.fences: list[tuple[int, int]] = []
        self.closing: str | None = None
        self._text = text
        self._containers: list[int] = []
        self._leaf: _Leaf = None
        self._item_is_empty = False
        self._block_ends = _BlockEndIndex(text)
        self._stretches = stretches

    def run(self) -> None:
        text = self._text
        position = front_matter_end(text, 1 if text.startswith("\ufeff") else 0)
        while position < len(text):
            end = text.find("\n", position) + 1 or len(text)
            first = text[position]
            # Nearly all lines of a real file are of four kinds. The general case costs five times as much.
            if first not in _SPECIAL or (first == "*" and _BOLD_TEXT.match(text, position)):
                if self._leaf is not _PARAGRAPH:
                    self._containers = []
                    self._leaf = _PARAGRAPH
            elif first == "-" and (item := _PLAIN_LIST_ITEM.match(text, position)):
                self._containers = [item.end() - position]
                self._leaf = _PARAGRAPH
                self._item_is_empty = False
            elif first == "#" and _ATX_HEADING.match(text, position):
                self._containers = []
                self._leaf = None
                end = self._read_stretch(position, end)
            elif first == "\n" and (not self._containers or self._is_in_plain_item()):
                self._leaf = None
            else:
                self._read_line(text[position:end], position)
                leaf = self._leaf
                if isinstance(leaf, _Fence | _HtmlBlockKind) and not self._containers:
                    end = self._skip_leaf(leaf, position, end)
                    self._leaf = None
            position = end

    def _is_in_plain_item(self) -> bool:
        return self._leaf is _PARAGRAPH and len(self._containers) == 1 and self._containers[0] != _QUOTE

    def _read_line(self, line: str, offset: int) -> None:
        """Apply CommonMark's step for one line: continue containers, then the open leaf, then open new blocks."""
        if "\t" in line:
            line = line.expandtabs(4)  # keeps columns, and avoids partly consumed tabs
        end = len(line.rstrip("\r\n"))
        matched, position = self._continue_containers(line, end)
        all_matched = matched == len(self._containers)
        first = _after_spaces(line, position)
        if first >= end:
            del self._containers[matched:]
            ended_by_blank = isinstance(self._leaf, _HtmlBlockKind) and not self._leaf.end_pattern
            if not all_matched or self._leaf is _PARAGRAPH or ended_by_blank:
                self._leaf = None
            self._item_is_empty = False
            return
        if all_matched and isinstance(self._leaf, _Fence):
            if self._leaf.ends_at(line, position):
                self._leaf = None
            return
        if all_matched and isinstance(self._leaf, _HtmlBlockKind):
            if self._leaf.end_pattern and self._leaf.end_pattern.search(line, position):
                self._leaf = None
            return
        self._item_is_empty = False
        self._open_blocks(line, position, end, matched, offset)

    def _continue_containers(self, line: str, end: int) -> tuple[int, int]:
        """Return how many of the open containers this line continues, and the position of their content in it."""
        position = 0
        last = len(self._containers) - 1
        for depth, container in enumerate(self._containers):
            first = _after_spaces(line, position)
            if container == _QUOTE:
                if first >= end or first - position > _MAX_INDENT or line[first] != ">":
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
            if first >= end:  # a container was opened and is still empty
                self._containers, self._leaf = stack, None
                self._item_is_empty = stack[-1] != _QUOTE
                return
            if first - position > _MAX_INDENT:
                break
            mark = line[first]
            if mark not in _SPECIAL:
                break
            if in_paragraph and mark in "=-" and _SETEXT_UNDERLINE.match(line, first):
                self._leaf = None
                return
            opened, leaf = self._open_leaf(line, first, in_paragraph=in_paragraph or may_be_lazy)
            if opened:
                if mark == "#" and not stack:
                    self._record_heading(offset)
                self._containers, self._leaf = stack, leaf
                return
            if len(stack) >= _MAX_DEPTH:
                break
            if mark == ">":
                stack.append(_QUOTE)
                position = first + 2 if line.startswith(" ", first + 1) else first + 1
            elif item := _LIST_ITEM.match(line, first):
                empty = item.end() >= end
                if in_paragraph and (empty or item[2] not in {None, "1"}):
                    break
                # Content that begins five columns or more behind the marker is indented code behind one space.
                content = item.end(1) + 1 if empty or len(item[3]) > _MAX_INDENT + 1 else item.end()
                stack.append(content - position)
                position = end if empty else content
            else:
                break
            in_paragraph = may_be_lazy = False
        if may_be_lazy:
            return
        self._containers = stack
        self._leaf = _PARAGRAPH if in_paragraph or first - position <= _MAX_INDENT else None

    def _open_leaf(self, line: str, first: int, *, in_paragraph: bool) -> tuple[bool, _Leaf]:
        """Return whether a leaf block begins here, and which leaf stays open after this line."""
        mark = line[first]
        if mark == "#":
            return _ATX_HEADING.match(line, first) is not None, None
        if mark in "`~":
            fence = _FENCE.match(line, first)
            return (True, _Fence(mark, len(fence[0]))) if fence else (False, None)
        if mark in "*-_":
            return THEMATIC_BREAK.match(line, first) is not None, None
        if mark == "<":
            for kind in _HTML_BLOCKS if in_paragraph else (*_HTML_BLOCKS, _OTHER_HTML_TAG):
                if kind.start_pattern.match(line, first):
                    return True, None if kind.end_pattern and kind.end_pattern.search(line, first) else kind
        return False, None

    def _read_stretch(self, position: int, line_end: int) -> int:
        """Record the heading at `position`, and return the offset behind it and the plain text below it."""
        text, stretches = self._text, self._stretches
        if stretches is None:
            self._record_heading(position)
            plain = _PLAIN_STRETCH.match(text, position)
            return plain.end() if plain else line_end
        length = len(text)
        while True:
            end = text.find("\n#", position) + 1 or length
            stretch = text[position:end]
            known = stretches.get(stretch)
            if known is None or (end < length and not _ATX_HEADING.match(text, end)):
                break
            if known:
                self.starts.append(BlockStart(position, None))
            if end == length:
                return end
            position = end
            line_end = text.find("\n", position) + 1 or length
        begins_block = self._record_heading(position)
        if not _PLAIN_STRETCH.match(text, position):
            return line_end
        # The head of an entry ends before the next heading, so this depends on nothing behind the stretch.
        stretches[stretch] = begins_block
        return end

    def _record_heading(self, offset: int) -> bool:
        """Return whether the heading at `offset` begins a block, which is then recorded."""
        heading = HEADING.match(self._text, offset)
        if heading is None:
            return False
        partial = None
        is_section = heading[0].endswith("###")  # belongs to the block above, unless it begins an entry
        if self._stretches is None:
            partial = forms.match_entry(self._text, offset)
            begins_block = partial is not None or not is_section
        else:
            begins_block = not is_section or forms.begins_entry(self._text, offset)
        if begins_block:
            self.starts.append(BlockStart(offset, partial))
        return begins_block

    def _skip_leaf(self, leaf: _Fence | _HtmlBlockKind, begin: int, position: int) -> int:
        """Return the offset behind the fence or HTML block at the left margin that begins at `begin`."""
        text = self._text
        end_pattern = leaf.end_pattern if isinstance(leaf, _HtmlBlockKind) else None
        # An unclosed leaf ends before the next entry. This is the one deviation from CommonMark.
        closed = self._block_ends.is_closed_after(leaf, position)
        after_blank = False
        is_ended = False
        while position < len(text) and not is_ended:
            end = text.find("\n", position) + 1 or len(text)
            if after_blank and not closed and HEADING.match(text, position) and forms.match_entry(text, position):
                break
            after_blank = not text[position:end].strip(" \t\r\n")
            if isinstance(leaf, _Fence):
                is_ended = text[position] in " `~" and leaf.ends_at(text, position)
            elif end_pattern is None:
                is_ended = after_blank
            else:
                is_ended = end_pattern.search(text, position, end) is not None
            position = end
        else:
            if not closed:
                self.closing = leaf.closing
        if isinstance(leaf, _Fence):
            self.fences.append((begin, position))
        return position


def _after_spaces(line: str, position: int) -> int:
    match = _SPACES.match(line, position)
    return match.end() if match else position
