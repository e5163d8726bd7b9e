"""What one line of Markdown can begin or end, as the CommonMark specification defines it.

Patterns and small values for `scan`, which applies them line by line. All of them take time linear in the line:
a memory file may hold lines of megabytes that were written to be slow to read.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

HEADING = re.compile(r" {0,3}#{2,3}(?=[ \t\r\n]|\Z)")
"""A heading of level 2 or 3, where the line is not content of something else."""

ATX = re.compile(r"#{1,6}(?:[ \t\r\n]|\Z)")
"""A heading of any level, from its first mark on."""

SETEXT = re.compile(r"(?:=++|-++) *+[\r\n]*+\Z")
"""The underline that makes a heading of the paragraph above."""

BREAK = re.compile(r"(?:(?:\* *+){3,}+|(?:- *+){3,}+|(?:_ *+){3,}+)[\r\n]*+\Z")
"""A thematic break (`---`)."""

ITEM = re.compile(r"([-+*]|([0-9]{1,9})[.)])( ++|(?=[\r\n])|\Z)")
"""The marker of a list item. Groups: marker, its number, the spaces behind it."""

PLAIN_ITEM = re.compile(r"- {1,4}(?=[A-Za-z(\"'\[]|\*\*?[A-Za-z]|`[^`])")
"""A list item that holds a paragraph, as most lines of memory files do."""

BOLD_TEXT = re.compile(r"\*\*[A-Za-z]")
"""Text that begins in bold, as metadata does; neither a list item nor a break."""

FENCE = re.compile(r"`{3,}+(?=[^`]*+\Z)|~{3,}+")
"""The marks that open fenced code."""

FENCE_END = re.compile(r" {0,3}(`{3,}+|~{3,}+)[ \t\r]*+(?:\n|\Z)")
"""A line that closes fenced code, if its marks are of the right kind and number."""

FENCE_ENDS = re.compile(r"^ {0,3}(`{3,}+|~{3,}+)[ \t\r]*+$", re.MULTILINE)
"""All such lines of a text."""

_TAGS = (
    "address|article|aside|base|basefont|blockquote|body|caption|center|col|colgroup|dd|details|dialog|dir|div|dl|dt|"
    "fieldset|figcaption|figure|footer|form|frame|frameset|h1|h2|h3|h4|h5|h6|head|header|hr|html|iframe|legend|li|"
    "link|main|menu|menuitem|nav|noframes|ol|optgroup|option|p|param|search|section|summary|table|tbody|td|tfoot|th|"
    "thead|title|tr|track|ul"
)
_NAME = r"[A-Za-z][A-Za-z0-9-]*+"
_VALUE = r"(?:[^\"'=<>`\x00-\x20]++|'[^']*+'|\"[^\"]*+\")"
_ATTRIBUTE = rf"(?:[ \t]++[A-Za-z_:][A-Za-z0-9:._-]*+(?:[ \t]*+=[ \t]*+{_VALUE})?+)"


@dataclass(frozen=True, slots=True)
class Fence:
    """Fenced code that is open."""

    mark: str
    length: int

    @property
    def closing(self) -> str:
        """The line that closes it."""
        return self.mark * self.length

    def ends_at(self, text: str, position: int) -> bool:
        """Whether the line that begins at `position` closes it."""
        end = FENCE_END.match(text, position)
        return end is not None and end[1].startswith(self.closing)


@dataclass(frozen=True, slots=True)
class Html:
    """A kind of HTML block: how it begins, what its last line holds (None: a blank line ends it), and an example."""

    begins: re.Pattern[str]
    ends: re.Pattern[str] | None = None
    closing: str | None = None


HTML = (
    Html(
        re.compile(r"<(?:script|pre|style|textarea)(?=[ \t\r\n>]|\Z)", re.IGNORECASE),
        re.compile(r"</(?:script|pre|style|textarea)>", re.IGNORECASE),
        "</pre>",
    ),
    Html(re.compile(r"<!--"), re.compile(r"-->"), "-->"),
    Html(re.compile(r"<\?"), re.compile(r"\?>"), "?>"),
    Html(re.compile(r"<![A-Za-z]"), re.compile(r">"), ">"),
    Html(re.compile(r"<!\[CDATA\["), re.compile(r"\]\]>"), "]]>"),
    Html(re.compile(rf"</?(?:{_TAGS})(?=[ \t\r\n]|/?>|\Z)", re.IGNORECASE)),
)

OTHER_TAG = Html(re.compile(rf"(?:<{_NAME}{_ATTRIBUTE}*+[ \t]*+/?>|</{_NAME}[ \t]*+>)[ \t\r\n]*+\Z"))
"""Any other complete tag, alone on its line. Unlike the others it cannot interrupt a paragraph."""
