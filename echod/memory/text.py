"""Characters and words of any text, and its front matter: undo obfuscation, adapt words, find the YAML at the top.

Obfuscation is text that looks one way to a reader and another way to a program. `redact` and `prompt_injection` undo it
first, so that an invisible character inside a word deceives neither.

A heading in front matter is a comment or a part of a value, so it starts no entry. A line of hyphens at the start of a
file may also be a thematic break. Only lines that can all be YAML, the first of them a name with a colon, are front
matter. Only the last function reads YAML, the others read lines, where a value may have any of its forms.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import NamedTuple

from echod.lazy import lazy_imports, lazy_pattern

with lazy_imports(__name__):
    import yaml


# Soft hyphen, joiners, zero-width, bidi controls, variation selectors, byte order mark, tag characters.
_INVISIBLE = (
    "\u00ad\u034f\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u206f\ufe00-\ufe0f\ufeff"
    "\U000e0000-\U000e007f\U000e0100-\U000e01ef"
)
_FULLWIDTH = "\uff01-\uff5e"
_FULLWIDTH_OFFSET = 0xFEE0
_OBFUSCATED = lazy_pattern(f"[{_INVISIBLE}{_FULLWIDTH}]+")
_DASH = "\u2014"  # part of the heading of nearly every entry, in text that is otherwise ASCII
# Three emoji flags (a black flag, then tag letters, then the tag that ends them) are the one legitimate use of tags.
_FLAG = lazy_pattern("\U0001f3f4[\U000e0061-\U000e007a]{1,8}\U000e007f")
_TAGS = lazy_pattern("[\U000e0001-\U000e007f]")
_BIDI_OVERRIDE = lazy_pattern("[\u202d\u202e]")
# Many emoji and scripts have single joiners. A run of invisible characters is a message.
_INVISIBLE_RUN = lazy_pattern("[\u200b\u200c\u200d\u2060-\u2064\ufeff]{4}|[\U000e0100-\U000e01ef]{2}")


PATH_GROUP = r"(?:\((?:[\w.@~+-]{1,60}|\.{1,3})\)|\[\[?[\w.@~+-]{1,60}\]?\]|\{[\w.@~+-]{1,60}\})"
"""A part of a path in brackets, as in `app/(shop)/[id]/page.tsx`: a pattern for route groups and parameters."""


def normalize_characters(text: str) -> tuple[str, Sequence[int] | None]:
    """Return the text without invisible characters and with fullwidth forms as ASCII.

    The second value maps each character to its position in the original; None where the text is unchanged.
    """
    if text.replace(_DASH, "").isascii() or _OBFUSCATED.search(text) is None:
        return text, None
    pieces: list[str] = []
    origin: list[int] = []
    position_done = 0
    for trick in _OBFUSCATED.finditer(text):
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
    if _BIDI_OVERRIDE.search(text) or _INVISIBLE_RUN.search(text):
        return True
    return _TAGS.search(text) is not None and _TAGS.search(_FLAG.sub("", text)) is not None


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


_MAX_FRONT_MATTER = 64 * 1024
_MAX_LINES = 200
_MAX_LINE_LENGTH = 10_000
_DELIMITER = "---"
_END = frozenset({"---", "..."})
_NAME = lazy_pattern(r"(?P<name>[\"']?[A-Za-z][A-Za-z0-9_. -]{0,39}[\"']?):(?:[ \t]++(?P<value>.*)|$)")
_OTHER = lazy_pattern(r"[ \t]+\S|- ?(?![*_])|#|[}\]]|$")
_SCHEMA = lazy_pattern(r"[ \t]{0,3}<!--[ \t]*echo-schema:[^>]{0,40}-->[ \t]*")
_BLOCK_VALUE = lazy_pattern(r"[|>][+-]?\d?[ \t]*(?:#.*)?")


class FrontMatter(NamedTuple):
    """The index of the first line below the front matter, and its names and values in order, each on one line."""

    end: int
    fields: tuple[tuple[str, str], ...]


def find_front_matter(lines: Sequence[str]) -> FrontMatter | None:
    """Return the front matter of a text; None without any. Blank lines and the schema comment may be before it."""
    start = next((i for i, line in enumerate(lines[:_MAX_LINES]) if line.strip() and not _SCHEMA.fullmatch(line)), None)
    if start is None or lines[start].rstrip() != _DELIMITER:
        return None
    limit = min(len(lines), start + _MAX_LINES)
    end = next((index for index in range(start + 1, limit) if lines[index].rstrip() in _END), None)
    body = lines[start + 1 : end]
    if end is None or not all(_is_yaml(line) for line in body):
        return None
    first = next((line for line in body if line.strip() and not line.startswith("#")), "")
    if not _NAME.fullmatch(first.rstrip()):
        return None
    return FrontMatter(end + 1, tuple(_fields(body)))


def front_matter_end(text: str, start: int) -> int:
    """Return the offset below the front matter that begins at `start`; `start` without any."""
    if _DELIMITER not in text[start : start + _MAX_LINE_LENGTH]:
        return start
    lines = list(islice(_lines(text, start), _MAX_LINES * 2))
    found = find_front_matter([line.rstrip("\r\n") for line in lines])
    return start if found is None else start + sum(map(len, lines[: found.end]))


def _lines(text: str, start: int) -> Iterator[str]:
    while start < len(text):
        end = text.find("\n", start) + 1 or len(text)
        yield text[start:end]
        start = end


def _is_yaml(line: str) -> bool:
    if len(line) > _MAX_LINE_LENGTH:
        return False
    return _NAME.fullmatch(line.rstrip()) is not None or _OTHER.match(line.rstrip()) is not None


def _fields(lines: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield names and values; the lines of a list are joined by commas, those of a text by blanks."""
    name, values, separator = "", list[str](), ", "
    for line in lines:
        match = _NAME.fullmatch(line.rstrip())
        if match is None:
            piece = line.strip().removeprefix("- ").strip()
            if piece and piece != "-":
                values.append(_unquoted(piece))
            continue
        if values:
            yield name, separator.join(values)
        name = match["name"].strip("\"'")
        value = (match["value"] or "").strip()
        separator = " " if _BLOCK_VALUE.fullmatch(value) else ", "
        values = [] if not value or _BLOCK_VALUE.fullmatch(value) else [_unquoted(value)]
    if values:
        yield name, separator.join(values)


def _unquoted(value: str) -> str:
    return value[1:-1] if len(value) > 1 and value[0] == value[-1] and value[0] in "\"'" else value


def load_yaml_fields(front: str) -> Mapping[str, object] | None:
    """Return the values of front matter, as YAML without its delimiters; None if it is not a mapping."""
    if len(front) > _MAX_FRONT_MATTER:
        return None
    try:
        loaded = yaml.load(front, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # noqa: S506  both are safe
    except (yaml.YAMLError, ValueError, RecursionError):  # ValueError: a date that the calendar does not have
        return None
    if not isinstance(loaded, dict):
        return None
    return {str(name): value for name, value in loaded.items()}
