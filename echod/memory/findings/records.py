"""Read findings that were written as data: rows of a table, JSON, YAML.

A record becomes a title, fields and text. A list counts as a list of findings only if every record has a value under
one of the names that learnings have (`title`, `issue`, `description`, ...). Any other table or document is content. No
value is dropped: names that mean nothing here become lines of the text.

Made for findings, which no program checks. A bold line or an underlined one may be a heading, a fence may be indented
as far as its writer liked, and a fence or comment that is never closed must not swallow the learnings after it. Memory
files have stricter rules (`memory.markdown`, which reads a whole text by offsets). Only the thematic break is the same
in both. This module looks at one line at a time; `sections` decides which lines belong together.
"""

from __future__ import annotations

import html
import json
import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import Enum, auto
from typing import NamedTuple

from echod.lazy import lazy_imports, lazy_pattern
from echod.memory import markdown
from echod.memory.findings.nothing import reports_nothing
from echod.memory.findings.text import normalize_spaces, read_field, read_title

with lazy_imports(__name__):
    import tomllib

    import yaml

_TITLES = (
    "title", "name", "headline", "heading", "finding", "issue", "problem", "learning", "lesson", "lesson learned",
    "pattern", "insight", "observation", "bug", "risk", "concern", "rule", "takeaway", "what", "summary", "gotcha",
    "decision", "violation",
)  # fmt: skip
_TEXTS = (
    "learning", "description", "desc", "detail", "details", "explanation", "body", "content", "text", "message", "note",
    "notes", "comment", "summary", "statement",
)  # fmt: skip
_FILES = (
    "evidence", "file", "files", "path", "paths", "location", "locations", "where", "file path", "filepath", "filename",
)  # fmt: skip
_LINES = ("line", "lines", "line number", "line numbers", "start line")
_FIELDS = frozenset(
    ["severity", "priority", "confidence", "layer", "source", "date", "verified", "supersedes", "category",
    "tags", "domain", "type", "kind", "status", "role", "agent", "id"]
)  # fmt: skip
_NUMBERS = frozenset({"#", "no", "nr", "num", "number", "id", "n"})
_NAMES = frozenset({*_TITLES, *_TEXTS, *_FILES, *_LINES, *_FIELDS, *_NUMBERS})
_LISTS = frozenset(
    ["findings", "finding", "issues", "learnings", "lessons", "entries", "results", "observations", "items", "patterns",
    "insights", "problems", "memories", "echoes", "notes", "data", "records", "bugs", "recommendations", "takeaways"]
)  # fmt: skip
_MAX_YAML = 100_000  # characters; its reader is slow
_MAX_ROWS = 5_000
_MAX_DEPTH = 3  # levels around a list of findings
_ALIAS = lazy_pattern(r"(?m)(?:^|[\s\[{,:-])[&*][A-Za-z0-9]")
_YAML_START = lazy_pattern(
    r"(?:---[ \t]*+\n)?+(?:#[^\n]*+\n|[ \t\r]*+\n)*+"
    r"(?:- {1,8}[A-Za-z][\w -]{0,40}:(?: |\n)|[A-Za-z][\w ]{0,40}:[ \t]{0,8}\n|(?<=---\n)title: )"
)
_ELEMENT = lazy_pattern(
    r"<(?P<tag>finding|learning|lesson|issue|observation|insight)\b(?P<attributes>[^<>]{0,400}+)>"
    r"(?P<text>(?:[^<]++|<(?P<child>[a-z_-]{1,30}+)>[^<]*+</(?P=child)>)*+)</(?P=tag)>"
)
_CHILD = lazy_pattern(r"<([a-z_-]{1,30})>([^<]*+)</\1>")
_ATTRIBUTE = lazy_pattern(r"(severity|file|confidence|layer|source|category|id)=[\"']([^\"']{1,200})[\"']")
_RULE = lazy_pattern(r"[ \t]*+\|?+[ \t]*+:?+-++:?+[ \t]*+(?:\|[ \t]*+:?+-++:?+[ \t]*+)*+\|?+[ \t]*+")


class FindingRecord(NamedTuple):
    """A finding that was written as data. Without a title, the first line of the text is the title."""

    title: str | None
    fields: tuple[tuple[str, str], ...]
    text: str


def read_data(text: str) -> tuple[FindingRecord, ...] | None:
    """Return the findings in JSON, YAML, TOML or elements; None if the text is none of them or no list of findings."""
    bare = text.strip()
    if bare[:1] in {"[", "{"}:
        for parse in (json.loads, _json_lines, tomllib.loads):
            found = _parsed(parse, bare)
            if found is not None:
                return found
        return None
    if bare[:1] == "<":
        return _read_elements(bare)
    if len(bare) > _MAX_YAML or not _YAML_START.match(bare) or _ALIAS.search(bare):
        return None

    try:
        # The loader in C reads ten times as fast. Both construct only plain values.
        loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
        documents = list(yaml.load_all(bare, Loader=loader))
        if len(documents) == 1:
            return _findings(documents[0])
        has_titles = all(isinstance(document, dict) and value_of(document, "title") for document in documents)
        return _findings(documents) if has_titles else None
    except (yaml.YAMLError, ValueError, RecursionError):
        return None


def _read_elements(text: str) -> tuple[FindingRecord, ...] | None:
    """Return the findings in elements named after them (`<finding>...</finding>`), if the text is nothing else."""
    records: list[FindingRecord] = []
    done = 0
    rest = ""
    for element in _ELEMENT.finditer(text):
        rest += text[done : element.start()]
        done = element.end()
        attributes = tuple(_ATTRIBUTE.findall(element["attributes"]))
        children: dict[object, object] = {_name(name): value for name, value in _CHILD.findall(element["text"])}
        if children and not _CHILD.sub("", element["text"]).strip() and _is_finding(children):
            record = _record({str(name): html.unescape(str(value)) for name, value in children.items()})
            records.append(record._replace(fields=(*attributes, *record.fields)))
        else:
            records.append(FindingRecord(None, attributes, element["text"].strip()))
    is_all = re.fullmatch(r"\s*(?:<\w{1,20}>)?\s*(?:</\w{1,20}>)?\s*", rest + text[done:])
    return tuple(record for record in records if record.text or record.title) if records and is_all else None


def _parsed(parse: Callable[[str], object], text: str) -> tuple[FindingRecord, ...] | None:
    try:
        return _findings(parse(text))
    except (ValueError, RecursionError):
        return None


def _json_lines(text: str) -> object:
    lines = [line for line in text.split("\n") if line.strip()]
    return [json.loads(line) for line in lines] if len(lines) > 1 else None


def _findings(value: object, depth: int = 0) -> tuple[FindingRecord, ...] | None:
    if isinstance(value, dict):
        value = {name: _as_list(item) if _name(name) in _LISTS else item for name, item in value.items()}
        lists = [items for name, items in value.items() if _name(name) in _LISTS and isinstance(items, list)]
        if lists:
            shared = {
                name: item for name, item in value.items() if _name(name) not in _LISTS or not isinstance(item, list)
            }
            parts = [_records(items) for items in lists]
            if any(part is None for part in parts):
                return None
            found = [record for part in parts if part for record in part]
            return tuple(record._replace(fields=(*record.fields, *_shared_fields(shared))) for record in found)
        if _is_finding(value):
            return _records([value])
        return _records(list(value.values())) if _is_map(value) else _within(value, depth)
    return _records(value) if isinstance(value, list) else None


def _is_map(value: object) -> bool:
    """Return whether a value gives each of its findings a name: `{"F1": {"title": ...}, "F2": ...}`."""
    return (
        isinstance(value, dict)
        and len(value) > 1
        and all(isinstance(item, dict) and _is_finding(item) for item in value.values())
    )


def _as_list(value: object) -> object:
    if isinstance(value, dict) and (_is_map(value) or len(value) == 1):
        items = list(value.values())
        return items if all(isinstance(item, dict) and _is_finding(item) for item in items) else value
    return value


def _within(value: Mapping[object, object], depth: int) -> tuple[FindingRecord, ...] | None:
    """Return the findings in the only nested value that has any, as in `{"result": {"findings": [...]}}`."""
    if depth == _MAX_DEPTH:
        return None
    nested = [(name, item) for name, item in value.items() if isinstance(item, dict)]
    nested += [(name, item[0]) for name, item in value.items() if isinstance(item, list) and len(item) == 1]
    found = [
        (name, records) for name, item in nested if isinstance(item, dict) and (records := _findings(item, depth + 1))
    ]
    if len(found) != 1:
        return None
    shared = {str(name): item for name, item in value.items() if name != found[0][0]}
    return tuple(record._replace(fields=(*record.fields, *_shared_fields(shared))) for record in found[0][1])


def _records(items: Sequence[object]) -> tuple[FindingRecord, ...] | None:
    if not all(isinstance(item, str) or (isinstance(item, dict) and _is_finding(item)) for item in items):
        return None
    records = [
        _record({_name(name): value for name, value in item.items()})
        if isinstance(item, dict)
        else FindingRecord(None, (), str(item))
        for item in items
    ]
    return tuple(record for record in records if record.title or record.text.strip())


def _is_finding(value: Mapping[object, object]) -> bool:
    names = {_name(name) for name in value}
    return any(name in names and isinstance(_text_of(value_of(value, name)), str) for name in (*_TITLES, *_TEXTS))


def _text_of(value: object) -> object:
    """Return the text of a value such as `{"text": ...}`, as SARIF has messages."""
    return (
        value["text"] if isinstance(value, dict) and set(value) <= {"text", "markdown"} and "text" in value else value
    )


def value_of(mapping: Mapping[object, object], name: str) -> object:
    """Return the value of a name, however the name is spelled."""
    return next((value for key, value in mapping.items() if _name(key) == name), None)


def _name(key: object) -> str:
    spaced = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", str(key))
    return re.sub(r"[\s_*`-]+", " ", spaced).strip().casefold()


def _record(values: Mapping[str, object]) -> FindingRecord:
    """Return the record of names and values, in this order: title, fields, the text, everything else."""
    remaining = {name: text for name, value in values.items() if (text := _plain(_text_of(value)))}
    title_name = next((name for name in _TITLES if name in remaining), None)
    title = remaining.pop(title_name) if title_name else None
    fields: list[tuple[str, str]] = []
    files = [remaining.pop(name) for name in _FILES if name in remaining]
    lines = next((remaining.pop(name) for name in _LINES if name in remaining), None)
    if files:
        is_path = lines is not None and len(files) == 1 and " " not in files[0]
        fields.append(("evidence", f"{files[0]}:{lines}" if is_path else "; ".join(files)))
    if lines and not (files and fields[0][1].endswith(f":{lines}")):
        remaining["line"] = lines
    for name in list(remaining):
        if name in _FIELDS:
            field = read_field(f"**{name}**: {remaining.pop(name)}")
            if field:
                fields.append((field.name, field.value))
    text_name = next((name for name in _TEXTS if name in remaining), None)
    paragraphs = [remaining.pop(text_name)] if text_name else []
    paragraphs += [f"{name.capitalize()}: {value}" for name, value in remaining.items()]
    if title and "\n" in title:
        paragraphs.insert(0, title)
        title = None
    return FindingRecord(title, tuple(fields), "\n\n".join(paragraphs))


def _shared_fields(values: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    for name, value in values.items():
        if text := _plain(value):
            yield _name(name).replace(" ", "_"), " ".join(text.split())


def _plain(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, str):
        return value.strip()
    if isinstance(value, list):
        return ", ".join(filter(None, map(_plain, value)))
    if isinstance(value, dict):
        return ", ".join(f"{key}: {_plain(item)}" for key, item in value.items())
    return str(value)


def read_rows(head: Sequence[str], rows: Sequence[Sequence[str]]) -> tuple[FindingRecord, ...] | None:
    """Return the findings in rows of values below a row of names; None unless these are names that findings have.

    Values that were not quoted and hold the separator make a row too long. The text takes what is too much.
    """
    names = [_name(cell) for cell in head]
    known = [name for name in names if name in _NAMES]
    if len(known) < 2 or len(known) * 2 < len(names):  # noqa: PLR2004 - one word may be prose
        return None
    if not rows:
        return () if len(known) == len(names) > 2 else None  # noqa: PLR2004 - a sentence may begin so
    last = max((index for index, name in enumerate(names) if name in {*_TITLES, *_TEXTS}), default=0)
    fitted = []
    for row in rows:
        extra = max(len(row) - len(names), 0)
        fitted.append([*row[:last], ", ".join(map(str.strip, row[last : last + extra + 1])), *row[last + extra + 1 :]])
    return None if any(len(row) < 2 for row in rows) else read_table_rows(names, fitted)  # noqa: PLR2004 - a sentence, not a row


def read_table_rows(head: Sequence[str], rows: Sequence[Sequence[str]]) -> tuple[FindingRecord, ...] | None:
    """Return the findings in the rows of a table; None if its columns are not those of findings."""
    names = [_name(cell) for cell in head]
    if len(rows) > _MAX_ROWS or len(set(names)) < len(names) or not any(name in {*_TITLES, *_TEXTS} for name in names):
        return None
    records = []
    for cells in rows:
        if len(cells) > len(names):
            return None
        row = {name: cell for name, cell in zip(names, cells, strict=False) if cell and name}
        kept = {name: cell for name, cell in row.items() if not (name in _NUMBERS and cell.strip(". ").isdigit())}
        values = [cell for name, cell in kept.items() if name in {*_TITLES, *_TEXTS}]
        if not values or all(map(reports_nothing, values)):
            continue
        records.append(_record(kept))
    return tuple(records)


def opens_table(lines: Sequence[str]) -> bool:
    """Return whether the first of these lines is the head of a table: cells above a rule."""
    return len(lines) > 1 and "|" in lines[0] and "|" in lines[1] and _RULE.fullmatch(lines[1]) is not None


BOLD_LEVEL = 7
"""The level of a bold line that serves as a heading: below every real one."""

_MAX_INDENT = 3  # spaces; a block that is indented further is code
_MIN_FENCE_LENGTH = 3
_ATX = lazy_pattern(r" {0,3}(?P<marks>#{1,6})(?![#])")
_BOLD = lazy_pattern(r" {0,3}(?P<marks>\*\*|__)(?P<text>[^*_\s](?:[^*]*[^*\s])?)(?P=marks)[ ]*:?[ ]*")
_SETEXT_UNDERLINE = lazy_pattern(r" {0,3}(?P<mark>=|-)(?P=mark){2,}[ ]*")
_FENCE = lazy_pattern(r"(?P<indent> *)(?:[-*+] +|\d{1,3}[.)] +)?(?P<fence>`{3,}+(?=[^`]*$)|~{3,}+)(?P<info>.*)")
_BULLET = lazy_pattern(r"(?P<marker> *(?:[-*+\u2022\u2023\u25aa\u25e6\u2013]|\d{1,9}[.)])(?: {1,4}|$))")


class LineKind(Enum):
    """The surroundings of a line."""

    TEXT = auto()
    NESTED = auto()  # inside a list item
    CODE = auto()
    COMMENT = auto()


class OutlineHeading(NamedTuple):
    """A heading: the index of its line, the index after it, its level (1..7), and its text without marks."""

    line: int
    end: int
    level: int
    text: str


def classify_lines(lines: Sequence[str]) -> list[LineKind]:
    """Return the kind of each line, in linear time.

    A fence or comment that is never closed ends before the first heading that surely starts a learning and follows a
    blank line.
    """
    kinds: list[LineKind] = []
    ends: _ClosingLineIndex | None = None  # few texts have a fence or a comment
    item = 0  # content offset of the open list item, 0 for none
    index = 0
    while index < len(lines):
        line = lines[index]
        fence, comment = parse_fence(line), _opens_comment(line)
        if fence or comment:
            ends = ends or _ClosingLineIndex(lines)
            end = ends.fence_end(index, fence[0]) if fence else ends.comment_end(index)
            if end is None:
                end = _next_learning_line(lines, index + 1)
            kinds += [LineKind.CODE if fence else LineKind.COMMENT] * (end - index)
            item = item if indent_width(line) >= item else 0
            index = end
            continue
        indent, blank = indent_width(line), not line.strip()
        if not blank and indent < item:
            item = 0
        kinds.append(LineKind.NESTED if item and not blank else LineKind.TEXT)
        if not item and indent <= _MAX_INDENT:
            item = 0 if is_thematic_break(line) else list_content_offset(line) or 0
        index += 1
    return kinds


def _opens_comment(line: str) -> bool:
    start = line.rfind("<!--")
    return start >= 0 and "-->" not in line[start:] and not line[:start].strip()


def _next_learning_line(lines: Sequence[str], start: int) -> int:
    for index in range(start, len(lines)):
        if not lines[index - 1].strip() and starts_learning(lines[index]):
            return index
    return len(lines)


class _ClosingLineIndex:
    """An index of the lines that can close a fence or comment, so that each line is read once for each kind of mark."""

    def __init__(self, lines: Sequence[str]) -> None:
        self._lines = lines
        self._comment_ends = [i for i, line in enumerate(lines) if "-->" in line]
        # For each mark, the longest run that closes a fence on this line or any later one.
        self._longest_closing: dict[str, list[int]] = {"`": [0], "~": [0]}
        for line in reversed(lines):
            mark = normalize_spaces(line).strip()
            for char, longest in self._longest_closing.items():
                length = len(mark) if len(mark) >= _MIN_FENCE_LENGTH and not mark.strip(char) else 0
                longest.append(max(length, longest[-1]))
        for longest in self._longest_closing.values():
            longest.reverse()

    def fence_end(self, index: int, fence: str) -> int | None:
        """Return the index after the line that closes a fence; None if no line does."""
        if self._longest_closing[fence[0]][index + 1] < len(fence):
            return None
        return next(i + 1 for i in range(index + 1, len(self._lines)) if closes_fence(self._lines[i], fence))

    def comment_end(self, index: int) -> int | None:
        """Return the index after the line that closes a comment; None if no line does."""
        later = bisect_right(self._comment_ends, index)
        return self._comment_ends[later] + 1 if later < len(self._comment_ends) else None


def find_headings(lines: Sequence[str], line_kinds: Sequence[LineKind]) -> list[OutlineHeading]:
    """Return every line that may be a heading: `#` marks, a single underlined line, a line all in bold."""
    headings: list[OutlineHeading] = []
    for index, line in enumerate(lines):
        if line_kinds[index] is not LineKind.TEXT:
            continue
        atx = read_atx_heading(line)
        if atx is not None:
            headings.append(OutlineHeading(index, index + 1, *atx))
            continue
        starts_paragraph = index == 0 or not lines[index - 1].strip() or (headings and headings[-1].end == index)
        if not starts_paragraph or not line.strip():
            continue
        underlined = index + 1 < len(lines) and _SETEXT_UNDERLINE.fullmatch(normalize_spaces(lines[index + 1]))
        bold = _BOLD.fullmatch(normalize_spaces(line))
        if underlined and _may_be_title(line) and (underlined["mark"] == "=" or _has_text_below(lines, index)):
            headings.append(OutlineHeading(index, index + 2, 1 if underlined["mark"] == "=" else 2, line.strip()))
        elif bold:
            text = line[bold.start("text") : bold.end("text")].strip()
            headings.append(OutlineHeading(index, index + 1, BOLD_LEVEL, text))
    return headings


def _may_be_title(line: str) -> bool:
    return (
        list_content_offset(line) is None
        and read_field(line) is None
        and not is_thematic_break(line)
        and not line.lstrip().startswith(("|", ">"))
    )


def _has_text_below(lines: Sequence[str], index: int) -> bool:
    # Below a sentence, or before the next heading, a line of hyphens is a separator.
    below = next((lines[later] for later in range(index + 2, len(lines)) if lines[later].strip()), None)
    is_sentence = lines[index].rstrip().endswith((".", "!", "?", ":", ";"))
    return not is_sentence and below is not None and read_atx_heading(below) is None


def starts_learning(line: str) -> bool:
    """Return whether the line is a heading that surely starts a learning, whatever surrounds it."""
    heading = read_atx_heading(line)
    if heading is None:
        return False
    title = read_title(heading[1])
    return title.dated or title.layer is not None or title.typed


def read_atx_heading(line: str) -> tuple[int, str] | None:
    """Return level and text of a heading line with `#` marks. `##Title` counts, `#tag` does not."""
    match = _ATX.match(normalize_spaces(line))
    if match is None:
        return None
    rest = line[match.end() :]
    tight = len(match["marks"]) > 1 and (rest[:1].isalpha() or rest[:1] == "[")
    if rest.strip() and not rest[0].isspace() and not tight:
        return None
    text = rest.strip()
    unclosed = text.rstrip("#")
    return len(match["marks"]), unclosed.rstrip() if not unclosed or unclosed[-1].isspace() else text


def is_thematic_break(line: str) -> bool:
    """Return whether the line is a thematic break."""
    text = normalize_spaces(line)
    indent = len(text) - len(text.lstrip(" "))
    return indent <= _MAX_INDENT and markdown.THEMATIC_BREAK.match(text, indent) is not None


def list_content_offset(line: str) -> int | None:
    """Return the offset of a list item's content on its first line; None for any other line."""
    match = _BULLET.match(normalize_spaces(line))
    return None if match is None else len(match["marker"])


def indent_width(line: str) -> int:
    """Return the number of leading spaces of a line (a tab counts as one)."""
    return len(line) - len(line.lstrip(" \t\u00a0"))


def parse_fence(line: str) -> tuple[str, str] | None:
    """Return the fence that a line opens (its run of marks) and its info string."""
    match = _FENCE.fullmatch(normalize_spaces(line))
    return None if match is None else (match["fence"], match["info"].strip())


def closes_fence(line: str, fence: str) -> bool:
    """Return whether the line closes this fence."""
    mark = normalize_spaces(line).strip()
    return mark.startswith(fence) and not mark.strip(fence[0])
