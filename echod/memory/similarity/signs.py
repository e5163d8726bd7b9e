"""Find the small things that tell two texts apart: single letters, signs in code, options, iteration marks.

`fold` and `tokenize` make texts comparable by removing case and signs. The differences that this loses are here:
server A and server B, UTC+2 and UTC-2, `*` and `**`, C and C++, `==` and `===`, `-v` and `-V`, `%Y` and
`%y`. Emphasis, punctuation and the marks of lists, quotations and headings do not count.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from echod.memory.text import normalize_characters

_CODE_SPAN = re.compile(r"(?<!`)(`{1,2})(?!`)(?P<code>[^`\n]{1,400})\1(?!`)")
_EMPHASIS = re.compile(
    r"(?<![\w*/.\\])(?P<marks>\*{1,3})(?=[^\s*])(?P<text>[^*\n]{1,400})(?<=[^\s*/.])(?P=marks)(?![\w*/])"
)
_LINE_MARKS = re.compile(r"^[ \t]*(?:>[ \t]?)*(?:#{1,6}[ \t]+|(?:[-*+\u2022]|\d{1,9}[.)])[ \t]+)*", re.MULTILINE)
_FENCE = re.compile(r"^[ \t]*(?:`{3,}|~{3,})[^\n]*$", re.MULTILINE)
_TABLE_LINE = re.compile(r"^[ \t]*\|[^\n]*$", re.MULTILINE)
_HTML_COMMENT = re.compile(r"<!--|-->")
# Signs of programs and of mathematics, in runs. A colon, a full stop or a hyphen alone is punctuation.
_SIGN_RUN = re.compile(
    r"[=!<>]=+|=[~>]|<=>|[*&|^~%@\\]+|[+*/%&|^-]=|\+\++|--(?=\W|$)|\?\.|\?\?|::|:=|\.{2,3}(?=\S)|->|<-|<<|>>|=~|\$(?=[\w{(])"
    r"|(?<=[A-Za-z])#(?![\w#])|(?<=[A-Za-z0-9])\+(?=[\s.,;:)]|$)|\+(?=\d)|(?<=\s)[+/<>](?=\s)|[\u00b1\u00d7\u00f7\u2260\u2264\u2265\u2248\u2192\u2190]"
)
_CODE_SIGN = re.compile(
    r"[=!<>*&|^~%@\\+?$#]+|--+|::|\.{2,}|(?<=\W)-(?=\W)|\[\]|\{\}|(?<![\w)])_+(?=[a-z])|(?<=[a-z])_+(?!\w)"
)
_OPTION = re.compile(r"(?<![\w-])--?[A-Za-z][A-Za-z0-9-]{0,40}")
_LETTER = re.compile(r"(?<![\w'\u2019.@/-])(?P<letter>[^\W\d_])(?![\w'\u2019@-]|\.[^\W\d_])")
_ESCAPED_LETTER = re.compile(r"[%\\][A-Za-z]")
_ITERATION_MARK = re.compile("\\w?[\u3005\u303b\u309d\u309e\u30fd\u30fe\u3003\u0e46\u0ec6\u17d7\ua9cf]")
_SIGNED = re.compile(r"(?<=[A-Za-z])[\u2212-](?=\d{1,2}(?:\b|:))")  # UTC-2
_ARTICLES = frozenset("aioueyzwvsckàèéìòóùıøåæиівскуояаёйыوб")
"""Words of one letter, in lower case, in the languages that have them (`a`, `y`, `и`)."""

_SIGN_SPELLINGS = {"\u2264": "<=", "\u2265": ">=", "\u2260": "!=", "\u2192": "->", "\u2190": "<-", "\u2248": "~"}


def extract_signs(text: str) -> Iterator[str]:
    """Yield every sign and single letter of a text that must not differ, in no particular order."""
    visible, _ = normalize_characters(text)
    prose = _FENCE.sub("", visible)
    for span in _CODE_SPAN.finditer(prose):
        yield from _signs_in_code(span["code"])
    prose = _LINE_MARKS.sub("", _TABLE_LINE.sub("", _HTML_COMMENT.sub("", _CODE_SPAN.sub(" \u2063 ", prose))))
    prose = _EMPHASIS.sub(lambda match: match["text"], prose)
    for sign in _SIGN_RUN.finditer(prose):
        yield _SIGN_SPELLINGS.get(sign[0], sign[0])
    yield from (option[0] for option in _OPTION.finditer(prose))
    yield from (mark[0] for mark in _ITERATION_MARK.finditer(visible))
    yield from ("minus" for _ in _SIGNED.finditer(prose))
    yield from _letters(prose)


def _signs_in_code(code: str) -> Iterator[str]:
    options = [option[0] for option in _OPTION.finditer(code)]
    yield from options
    bare = _OPTION.sub(" ", code)
    yield from (sign[0] for sign in _CODE_SIGN.finditer(bare))
    yield from (f"code {letter['letter']}" for letter in _LETTER.finditer(bare))
    yield from (f"code {letter[0]}" for letter in _ESCAPED_LETTER.finditer(bare))


def _letters(prose: str) -> Iterator[str]:
    """Yield the letters that are names. A capital within a sentence is one, a small letter unless it is a word."""
    for line in prose.split("\n"):
        shouted = line.isupper()
        for match in _LETTER.finditer(line):
            letter = match["letter"]
            before = line[: match.start()].rstrip()
            if letter.isupper() and not shouted:
                starts_sentence = not before or before.endswith((".", "!", "?", ":", "\u2014", "\u2013"))
                follows = line[match.end() : match.end() + 2].strip()
                if letter == "I" or (letter.lower() in _ARTICLES and starts_sentence and follows[:1].islower()):
                    continue
                yield letter.casefold()
            elif letter.casefold() not in _ARTICLES or (letter == "a" and not line[match.end() :].strip(" .,;:!?)")):
                yield letter.casefold()
