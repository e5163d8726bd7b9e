"""Characters and words of any text: undo obfuscation, and adapt words for sentences.

Obfuscation is text that looks one way to a reader and another way to a program. `redact` and `prompt_injection` undo it
first, so that an invisible character inside a word deceives neither.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cached_property


class LazyPattern:
    """A regular expression that few texts need. It is compiled at its first use, since that takes up to a millisecond.

    For the patterns of modules that short commands import.
    """

    def __init__(self, source: str, flags: re.RegexFlag = re.NOFLAG) -> None:
        self._source, self._flags = source, flags

    @cached_property
    def compiled(self) -> re.Pattern[str]:
        """The compiled expression."""
        return re.compile(self._source, self._flags)


# Soft hyphen, joiners, zero-width, bidi controls, variation selectors, byte order mark, tag characters.
_INVISIBLE = (
    "\u00ad\u034f\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u206f\ufe00-\ufe0f\ufeff"
    "\U000e0000-\U000e007f\U000e0100-\U000e01ef"
)
_FULLWIDTH = "\uff01-\uff5e"
_FULLWIDTH_OFFSET = 0xFEE0
_OBFUSCATED = LazyPattern(f"[{_INVISIBLE}{_FULLWIDTH}]+")
_DASH = "\u2014"  # part of the heading of nearly every entry, in text that is otherwise ASCII
# Three emoji flags (a black flag, then tag letters, then the tag that ends them) are the one legitimate use of tags.
_FLAG = LazyPattern("\U0001f3f4[\U000e0061-\U000e007a]{1,8}\U000e007f")
_TAGS = LazyPattern("[\U000e0001-\U000e007f]")
_BIDI_OVERRIDE = LazyPattern("[\u202d\u202e]")
# Many emoji and scripts have single joiners. A run of invisible characters is a message.
_INVISIBLE_RUN = LazyPattern("[\u200b\u200c\u200d\u2060-\u2064\ufeff]{4}|[\U000e0100-\U000e01ef]{2}")


PATH_GROUP = r"(?:\((?:[\w.@~+-]{1,60}|\.{1,3})\)|\[\[?[\w.@~+-]{1,60}\]?\]|\{[\w.@~+-]{1,60}\})"
"""A part of a path in brackets, as in `app/(shop)/[id]/page.tsx`: a pattern for route groups and parameters."""


def normalize_characters(text: str) -> tuple[str, Sequence[int] | None]:
    """Return the text without invisible characters and with fullwidth forms as ASCII.

    The second value maps each character to its position in the original; None where the text is unchanged.
    """
    if text.replace(_DASH, "").isascii() or _OBFUSCATED.compiled.search(text) is None:
        return text, None
    pieces: list[str] = []
    origin: list[int] = []
    position_done = 0
    for trick in _OBFUSCATED.compiled.finditer(text):
        pieces.append(text[position_done : trick.start()])
        origin.extend(range(position_done, trick.start()))
        for position in range(trick.start(), trick.end()):
            code = ord(text[position]) - _FULLWIDTH_OFFSET
            if ord("!") <= code <= ord("~"):
                pieces.append(chr(code))
                origin.append(position)
        position_done = trick.end()
    pieces.append(text[position_done:])
    origin.extend(range(position_done, len(text)))
    return "".join(pieces), origin


def hides_text(text: str) -> bool:
    """Return whether a text has characters whose only use is to carry or reorder text invisible to the user."""
    if text.isascii():
        return False
    if _BIDI_OVERRIDE.compiled.search(text) or _INVISIBLE_RUN.compiled.search(text):
        return True
    return _TAGS.compiled.search(text) is not None and _TAGS.compiled.search(_FLAG.compiled.sub("", text)) is not None


def find_enclosed(text: str, opening: str, closing: str) -> Iterator[tuple[int, int]]:
    """Yield where the texts between two marks begin and end.

    An opening without an end is skipped. The time is linear in the text, unlike that of an expression.
    """
    end = 0
    while (start := text.find(opening, end)) >= 0:
        start += len(opening)
        close = text.find(closing, start)
        if close < 0:
            return
        yield start, close
        end = close + len(closing)


def capitalize(text: str) -> str:
    """Return the text with its first letter in upper case. Unlike `str.capitalize`, the rest stays as it is."""
    return f"{text[:1].upper()}{text[1:]}"


def without_full_stop(sentence: str) -> str:
    """Return a sentence without the full stop at its end, to be continued in another sentence."""
    return sentence.rstrip(".")


def pluralize(number: int, noun: str, plural: str | None = None) -> str:
    """Return a number with its noun, as `1 entry` or `2 entries`. The default plural has an s."""
    return f"{number} {noun if number == 1 else plural or noun + 's'}"
