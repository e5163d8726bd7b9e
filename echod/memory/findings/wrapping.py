"""What may stand around a whole findings file: a fence or a pair of tags that holds all of it, and front matter.

Both are habits of writers, not parts of any learning.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from echod.memory.findings.chatter import is_chatter
from echod.memory.findings.outline import closes, fence_of, read_atx
from echod.memory.findings.text import plain, read_field

_KEY = re.compile(r"(?P<key>[A-Za-z][A-Za-z0-9_ -]{0,39}):(?: ++(?P<value>.*)|$)")
_TAG = re.compile(r"<([a-z][a-z_-]*)>")
_FRONT_MATTER_LIMIT = 60  # lines


def unwrapped(lines: list[str]) -> list[str]:
    """The lines inside a pair of tags or a ```` ```markdown ```` fence that holds all findings; else all lines."""
    said = [index for index, line in enumerate(lines) if line.strip()]
    tag = _TAG.fullmatch(lines[said[0]].strip()) if said else None
    if tag and lines[said[-1]].strip() == f"</{tag[1]}>":
        return lines[said[0] + 1 : said[-1]]
    opening = next((index for index in said if fence_of(lines[index])), None)
    if opening is None:
        return lines
    fence, info = fence_of(lines[opening]) or ("", "")
    end = next((index for index in range(opening + 1, len(lines)) if closes(lines[index], fence)), None)
    if info.casefold() not in {"md", "markdown"} or end is None:
        return lines
    if not _is_all_chatter(lines[:opening]) or not _is_all_chatter(lines[end + 1 :]):
        return lines
    inside = lines[opening + 1 : end]
    first = next((line for line in inside if line.strip()), "")
    return inside if read_atx(first) or first.strip() == "---" or first.lstrip().startswith("<!--") else lines


def front_matter(lines: list[str]) -> tuple[list[str], tuple[tuple[str, str], ...]]:
    """The lines below the front matter, and what it says as names and values in order."""
    start = next((index for index, line in enumerate(lines) if line.strip()), None)
    if start is None or lines[start].rstrip() != "---":
        return lines, ()
    limit = min(len(lines), start + _FRONT_MATTER_LIMIT)
    end = next((index for index in range(start + 1, limit) if lines[index].rstrip() == "---"), None)
    if end is None:
        return lines, ()
    fields: list[tuple[str, str]] = []
    for line in lines[start + 1 : end]:
        key = _KEY.fullmatch(plain(line))
        item = re.fullmatch(r"\s+(?:- +)?(.*)|- +(.*)", line)
        if key:
            field = read_field(line)
            name = field.name if field and field.name != "learning" else re.sub(r"[ -]+", "_", key["key"].casefold())
            fields.append((name, (key["value"] or "").strip().strip("\"'")))
        elif item and fields:
            name, value = fields[-1]
            fields[-1] = (name, f"{value}, {(item[1] or item[2]).strip()}" if value else (item[1] or item[2]).strip())
        elif line.strip():
            return lines, ()
    return lines[end + 1 :], tuple(field for field in fields if field[1])


def _is_all_chatter(lines: Sequence[str]) -> bool:
    paragraphs = "\n".join(lines).split("\n\n")
    return all(not paragraph.strip() or is_chatter(paragraph) for paragraph in paragraphs)
