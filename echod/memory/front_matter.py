"""Find the front matter of a text: the YAML between two lines of hyphens at its start.

A heading in front matter is a comment or a part of a value, so it starts no entry. A line of hyphens at the start of a
file may also be a thematic break. Only lines that can all be YAML, the first of them a name with a colon, are front
matter. Only the last function reads YAML, the others read lines, where a value may have any of its forms.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import NamedTuple

from echod.lazy_imports import lazy_imports
from echod.memory.text import LazyPattern

with lazy_imports(__name__):
    import yaml

_MAX_FRONT_MATTER = 64 * 1024
_MAX_LINES = 200
_MAX_LINE_LENGTH = 10_000
_DELIMITER = "---"
_END = frozenset({"---", "..."})
_NAME = LazyPattern(r"(?P<name>[\"']?[A-Za-z][A-Za-z0-9_. -]{0,39}[\"']?):(?:[ \t]++(?P<value>.*)|$)")
_OTHER = LazyPattern(r"[ \t]+\S|- ?(?![*_])|#|[}\]]|$")
_SCHEMA = LazyPattern(r"[ \t]{0,3}<!--[ \t]*echo-schema:[^>]{0,40}-->[ \t]*")
_BLOCK_VALUE = LazyPattern(r"[|>][+-]?\d?[ \t]*(?:#.*)?")


class FrontMatter(NamedTuple):
    """The index of the first line below the front matter, and its names and values in order, each on one line."""

    end: int
    fields: tuple[tuple[str, str], ...]


def find_front_matter(lines: Sequence[str]) -> FrontMatter | None:
    """Return the front matter of a text; None without any. Blank lines and the schema comment may be before it."""
    start = next(
        (i for i, line in enumerate(lines[:_MAX_LINES]) if line.strip() and not _SCHEMA.compiled.fullmatch(line)), None
    )
    if start is None or lines[start].rstrip() != _DELIMITER:
        return None
    limit = min(len(lines), start + _MAX_LINES)
    end = next((index for index in range(start + 1, limit) if lines[index].rstrip() in _END), None)
    body = lines[start + 1 : end]
    if end is None or not all(_is_yaml(line) for line in body):
        return None
    first = next((line for line in body if line.strip() and not line.startswith("#")), "")
    if not _NAME.compiled.fullmatch(first.rstrip()):
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
    return _NAME.compiled.fullmatch(line.rstrip()) is not None or _OTHER.compiled.match(line.rstrip()) is not None


def _fields(lines: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield names and values; the lines of a list are joined by commas, those of a text by blanks."""
    name, values, separator = "", list[str](), ", "
    for line in lines:
        match = _NAME.compiled.fullmatch(line.rstrip())
        if match is None:
            piece = line.strip().removeprefix("- ").strip()
            if piece and piece != "-":
                values.append(_unquoted(piece))
            continue
        if values:
            yield name, separator.join(values)
        name = match["name"].strip("\"'")
        value = (match["value"] or "").strip()
        separator = " " if _BLOCK_VALUE.compiled.fullmatch(value) else ", "
        values = [] if not value or _BLOCK_VALUE.compiled.fullmatch(value) else [_unquoted(value)]
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
