"""Turn text into comparable words, and find the small signs that tell two texts apart.

Numbers and their units get one spelling: `30 seconds`, `30s` and `thirty seconds` are the same number.

`fold` and `tokenize` make texts comparable by removing case and signs. The differences that this loses are here:
server A and server B, UTC+2 and UTC-2, `*` and `**`, C and C++, `==` and `===`, `-v` and `-V`, `%Y` and
`%y`. Emphasis, punctuation and the marks of lists, quotations and headings do not count.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

from echod.memory.text import normalize_characters

# Scripts that put no spaces between words; their runs are compared in overlapping pairs of characters.
_UNSPACED = (
    "\u3005-\u3007\u303b"
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
)
# Signs of vowels and tones, which belong to the letter before them and to the word.
_COMBINING = (
    "\u0300-\u036f\u0483-\u0487\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a\u064b-\u065f\u0670\u06d6-\u06dc"
    "\u0711\u0730-\u074a\u07a6-\u07b0\u0900-\u0903\u093a-\u094f\u0951-\u0957\u0962\u0963\u0981-\u0983\u09bc-\u09cd\u09d7"
    "\u0a01-\u0a03\u0a3c-\u0a51\u0a70\u0a71\u0a81-\u0a83\u0abc-\u0acd\u0b01-\u0b03\u0b3c-\u0b57\u0b82\u0bbe-\u0bcd\u0bd7"
    "\u0c00-\u0c04\u0c3e-\u0c56\u0c81-\u0c83\u0cbc-\u0cd6\u0d00-\u0d03\u0d3b-\u0d4d\u0d57\u0d82\u0d83\u0dca-\u0ddf\u135d-\u135f"
)
_LETTER = rf"(?:[^\W{_UNSPACED}]|[{_COMBINING}])"
_WORD = re.compile(rf"[{_UNSPACED}]+|{_LETTER}+(?:'{_LETTER}+)*")
UNSPACED_RUN = re.compile(f"[{_UNSPACED}]+")
"""A run of characters of scripts that put no spaces between words."""

_SUFFIXES = ("ing", "ed", "es", "s")
_MIN_STEM_LENGTH = 3  # letters that a word keeps
_LAST_SPACED_CODEPOINT = 0x0DFF

_UNITS = {
    unit: names.split()[0]
    for names in (
        "ns nanosecond nanoseconds", "us \u03bcs microsecond microseconds", "ms msec millisecond milliseconds",
        "s sec secs second seconds", "min mins minute minutes", "h hr hrs hour hours", "d day days", "week weeks",
        "month months", "year years", "b byte bytes", "kb kilobyte kilobytes", "kib kibibyte kibibytes",
        "mb megabyte megabytes", "mib mebibyte mebibytes", "gb gigabyte gigabytes", "gib gibibyte gibibytes",
        "tb terabyte terabytes", "tib tebibyte tebibytes", "px pixel pixels", "% percent", "x times",
    )
    for unit in names.split()
}  # fmt: skip
_NUMBER_WORDS = {
    "zero": "0", "two": "2", "three": "3", "four": "4", "five": "5", "six": "6", "seven": "7", "eight": "8",
    "nine": "9", "ten": "10", "eleven": "11", "twelve": "12", "thirteen": "13", "fourteen": "14", "fifteen": "15",
    "sixteen": "16", "seventeen": "17", "eighteen": "18", "nineteen": "19", "twenty": "20", "thirty": "30",
    "forty": "40", "fifty": "50", "sixty": "60", "seventy": "70", "eighty": "80", "ninety": "90", "dozen": "12",
    "hundred": "100", "thousand": "1000", "million": "1000000", "billion": "1000000000",
    "trillion": "1000000000000", "once": "1x", "twice": "2x", "thrice": "3x", "double": "2x", "triple": "3x",
    "half": "1/2", "quarter": "1/4",
}  # fmt: skip
_EACH_WORDS = ("every", "each", "per")
_UNIT = rf"(?:{'|'.join(sorted(_UNITS.keys() - {'%'}, key=len, reverse=True))})(?![^\W_])"
# A following word that is not a unit is left out: it may be a number itself (`twenty-five`, `5 million`).
_NUMBER = re.compile(
    rf"(?P<sign>(?<![\w)\]-])-(?=\d))?(?P<digits>\d+(?:[.,]\d+)*)"
    rf"(?:(?P<attached>[^\W\d_]+|%)|[ -](?P<loose>{_UNIT}|%))?"
    rf"|\b(?P<word>{'|'.join(_NUMBER_WORDS)})s?\b(?:[ -](?P<counted>{_UNIT}|%))?"
    rf"|\b(?:{'|'.join(_EACH_WORDS)})[ ](?P<each>{_UNIT})"
)
_THOUSANDS = re.compile(r",(?=\d{3}(?!\d))")


def fold(text: str) -> str:
    """Return the text in one case and width and without invisible characters; apostrophes are straight."""
    visible, _ = normalize_characters(text)
    return unicodedata.normalize("NFKC", visible).casefold().replace("\u2019", "'")


def tokenize(folded: str) -> list[str]:
    """Return the words of a folded text in order; contractions with `not` are two words."""
    tokens: list[str] = []
    for match in _WORD.finditer(folded):
        word = match[0].strip("_") or match[0]
        if len(word) > 1 and is_unspaced(word):
            tokens += [word[at : at + 2] for at in range(len(word) - 1)]
        elif word.endswith("n't"):
            tokens += [{"ca": "can", "wo": "will", "sha": "shall"}.get(word[:-3], word[:-3]), "not"]
        elif word.startswith("n'"):  # French: n'utilisez plus
            tokens += ["ne", word[2:]]
        elif word == "cannot":
            tokens += ["can", "not"]
        else:
            tokens.append(word.removesuffix("'s"))
    return tokens


def is_unspaced(word: str) -> bool:
    """Return whether a word is of a script that puts no spaces between words."""
    return bool(word) and ord(word[0]) > _LAST_SPACED_CODEPOINT and UNSPACED_RUN.fullmatch(word) is not None


def stem(word: str) -> str:
    """Return a word without the commonest English endings, so that `awaits` and `awaited` agree."""
    if not word.isascii():
        return word
    for suffix in _SUFFIXES:
        if word.endswith(suffix) and len(word) - len(suffix) >= _MIN_STEM_LENGTH and not word.endswith("ss"):
            word = word[: -len(suffix)]
            break
    return word[:-1] if word.endswith("e") and len(word) > _MIN_STEM_LENGTH else word


def jaccard(one: frozenset[str], other: frozenset[str]) -> float:
    """Return the shared part of two sets, 0..1; two empty sets are equal."""
    shared = len(one & other)
    union = len(one) + len(other) - shared
    return shared / union if union else 1.0


def find_numbers(folded: str) -> Iterator[str]:
    """Yield the numbers of a folded text in order, each with its unit if it has one; `every minute` is one of them."""
    return (_canonical_number(match) for match in _NUMBER.finditer(folded))


def normalize_numbers(folded: str) -> str:
    """Return the folded text with every number in its one spelling."""
    return _NUMBER.sub(_canonical_number, folded)


def _canonical_number(match: re.Match[str]) -> str:
    unit = match["attached"] or match["loose"] or match["counted"] or match["each"] or ""
    unit = _UNITS.get(unit, unit)
    if match["each"]:
        return f"1{unit}"
    number = (
        _NUMBER_WORDS[match["word"]] if match["word"] else (match["sign"] or "") + _THOUSANDS.sub("", match["digits"])
    )
    return number + unit


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
_SIGNS_LETTER = re.compile(r"(?<![\w'\u2019.@/-])(?P<letter>[^\W\d_])(?![\w'\u2019@-]|\.[^\W\d_])")
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
    yield from (f"code {letter['letter']}" for letter in _SIGNS_LETTER.finditer(bare))
    yield from (f"code {letter[0]}" for letter in _ESCAPED_LETTER.finditer(bare))


def _letters(prose: str) -> Iterator[str]:
    """Yield the letters that are names. A capital within a sentence is one, a small letter unless it is a word."""
    for line in prose.split("\n"):
        shouted = line.isupper()
        for match in _SIGNS_LETTER.finditer(line):
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
