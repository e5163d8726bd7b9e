"""Read findings that were written as data: rows of a table, JSON, YAML.

A record becomes a title, fields and text. A list counts as a list of findings only if every record has a value under
one of the names that learnings have (`title`, `issue`, `description`, ...). Any other table or document is content. No
value is dropped: names that mean nothing here become lines of the text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from echod.memory.findings.nothing import reports_nothing
from echod.memory.findings.text import read_field

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
_LISTS = frozenset(
    [
        "findings",
        "finding",
        "issues",
        "learnings",
        "lessons",
        "entries",
        "results",
        "observations",
        "items",
        "patterns",
        "insights",
        "problems",
        "memories",
        "echoes",
        "notes",
        "data",
        "records",
        "bugs",
        "recommendations",
        "takeaways",
    ]
)
_MAX_YAML = 100_000  # characters; its reader is slow
_MAX_ROWS = 5_000
_ALIAS = re.compile(r"(?m)(?:^|[\s\[{,:-])[&*][A-Za-z0-9]")
_YAML_START = re.compile(
    r"(?:---[ \t]*+\n)?+(?:#[^\n]*+\n|[ \t\r]*+\n)*+"
    r"(?:- {1,8}[A-Za-z][\w -]{0,40}:(?: |\n)|[a-z][\w ]{0,40}:[ \t]{0,8}\n)"
)
_CELL = re.compile(r"(?<!\\)\|")
_RULE = re.compile(r"[ \t]*+\|?+[ \t]*+:?+-++:?+[ \t]*+(?:\|[ \t]*+:?+-++:?+[ \t]*+)*+\|?+[ \t]*+")


class FindingRecord(NamedTuple):
    """A finding that was written as data. Without a title, the first line of the text is the title."""

    title: str | None
    fields: tuple[tuple[str, str], ...]
    text: str


def read_document(text: str) -> tuple[FindingRecord, ...] | None:
    """Return the findings in a JSON or YAML document; None if it is none or not a list of findings."""
    bare = text.strip()
    if bare[:1] in {"[", "{"}:
        try:
            return _findings(json.loads(bare))
        except (ValueError, RecursionError):
            lines = [line for line in bare.split("\n") if line.strip()]
            return _read_json_lines(lines) if len(lines) > 1 else None
    if len(bare) > _MAX_YAML or not _YAML_START.match(bare) or _ALIAS.search(bare):
        return None
    import yaml  # noqa: PLC0415 - nearly no findings are YAML, and loading it delays every command

    try:
        # The loader in C reads ten times as fast. Both construct nothing but plain values.
        return _findings(yaml.load(bare, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)))  # noqa: S506
    except (yaml.YAMLError, ValueError, RecursionError):
        return None


def _read_json_lines(lines: Sequence[str]) -> tuple[FindingRecord, ...] | None:
    try:
        return _findings([json.loads(line) for line in lines])
    except (ValueError, RecursionError):
        return None


def _findings(value: object) -> tuple[FindingRecord, ...] | None:
    if isinstance(value, dict):
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
        return _records([value]) if _is_finding(value) else None
    return _records(value) if isinstance(value, list) else None


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
    return any(name in names and isinstance(value_of(value, name), str) for name in (*_TITLES, *_TEXTS))


def value_of(mapping: Mapping[object, object], name: str) -> object:
    """Return the value of a name, however the name is spelled."""
    return next((value for key, value in mapping.items() if _name(key) == name), None)


def _name(key: object) -> str:
    spaced = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", str(key))
    return re.sub(r"[\s_*`-]+", " ", spaced).strip().casefold()


def _record(values: Mapping[str, object]) -> FindingRecord:
    """Return the record of names and values, in this order: title, fields, the text, everything else."""
    remaining = {name: text for name, value in values.items() if (text := _plain(value))}
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


def read_table(lines: Sequence[str]) -> tuple[FindingRecord, ...] | None:
    """Return the findings in the rows of a table; None if its columns are not those of findings."""
    if len(lines) < 3 or len(lines) > _MAX_ROWS or not _RULE.fullmatch(lines[1]):  # noqa: PLR2004 - head, rule, one row
        return None
    names = [_name(cell.strip("*_` ")) for cell in _cells(lines[0])]
    if len(set(names)) < len(names) or not any(name in {*_TITLES, *_TEXTS} for name in names):
        return None
    records = []
    for line in lines[2:]:
        cells = _cells(line)
        if len(cells) > len(names):
            return None
        row = {name: cell for name, cell in zip(names, cells, strict=False) if cell and name}
        kept = {name: cell for name, cell in row.items() if not (name in _NUMBERS and cell.strip(". ").isdigit())}
        values = [cell for name, cell in kept.items() if name in {*_TITLES, *_TEXTS}]
        if not values or all(map(reports_nothing, values)):
            continue
        records.append(_record(kept))
    return tuple(records)


def _cells(line: str) -> list[str]:
    return [cell.strip().replace("\\|", "|") for cell in _CELL.split(line.strip().removeprefix("|").removesuffix("|"))]
