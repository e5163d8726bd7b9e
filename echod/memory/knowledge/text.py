"""The single learnings in the body of an entry: its list items and paragraphs, each on one line.

Code, tables, comments and sections of figures (`### Review Metrics`) are no learnings; nor is a paragraph that only
introduces a list. Where a body holds nothing else, they are all there is and count after all.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

_ITEM = re.compile(r"( {0,3})(?:[-*+]|\d{1,9}[.)])[ \t]+(?=\S)")
_HEADING = re.compile(r" {0,3}#{1,6}[ \t]+")
_FENCE = re.compile(r"\s*(```+|~~~+)")
_SEPARATOR = re.compile(r"\s*([-*_])(?:\s*\1){2,}\s*")
_FIGURES = re.compile(r"\b(?:metrics?|statistics|stats|figures|timeline|numbers)\b", re.IGNORECASE)
_FIELD = re.compile(r"\*\*(?:category|domain|source|tags)\*\*:", re.IGNORECASE)
_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
_DEPTH = 3  # lists in lists; what is deeper is detail
_NESTED = 2  # columns from which on a line belongs to the item above


@dataclass(slots=True)
class _Part:
    """A list item or paragraph being read: its own lines, and the lines nested in it."""

    item: bool
    figures: bool
    lines: list[str]
    nested: list[str] = field(default_factory=list)
    open: bool = True

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.lines).split())


def learnings(body: str) -> tuple[str, ...]:
    """The learnings of a body in their order. An empty body has none."""
    return _learnings(body, _DEPTH)


def _learnings(body: str, depth: int) -> tuple[str, ...]:
    parts = _parts(body)
    if depth and len(parts) == 1 and parts[0].item and any(line.strip() for line in parts[0].nested):
        # All of the learning is one bullet, as in the bullet form; what is nested in it are its learnings.
        return (parts[0].text, *_learnings(_dedented(parts[0].nested), depth - 1))
    chosen = [part for part in parts if not part.figures] or parts
    chosen = [part for at, part in enumerate(chosen) if not _introduces(part, chosen[at + 1 : at + 2])]
    return tuple(part.text for part in chosen if part.text)


def _parts(body: str) -> list[_Part]:
    parts: list[_Part] = []
    figures = False
    fence = ""
    for line in _COMMENT.sub("", body).replace("\r", "").split("\n"):
        mark = _FENCE.match(line)
        if fence:
            if mark and mark[1].startswith(fence) and not line.strip(" \t`~"):
                fence = ""
            continue
        if mark:
            fence = mark[1]
            continue
        heading = _HEADING.match(line)
        if heading:
            figures = bool(_FIGURES.search(line, heading.end()))
            if parts:
                parts[-1].open = False
                parts.append(_Part(item=False, figures=figures, lines=[]))
        elif not line.strip():
            if parts:
                parts[-1].open = False
        elif not (_SEPARATOR.fullmatch(line) or _FIELD.match(line) or line.lstrip().startswith("|")):
            _take(line, parts, figures=figures)
    return [part for part in parts if part.lines]


def _take(line: str, parts: list[_Part], *, figures: bool) -> None:
    item = _ITEM.match(line)
    last = parts[-1] if parts and parts[-1].lines else None
    indent = len(line) - len(line.lstrip(" \t"))
    if last and last.item and indent >= _NESTED:
        if item or not last.open or last.nested:
            last.nested.append(line)
            last.open = False
        else:
            last.lines.append(line.strip())
    elif item:
        parts.append(_Part(item=True, figures=figures, lines=[line[item.end() :].strip()]))
    elif last and last.open:
        last.lines.append(line.strip().removeprefix("> "))
    else:
        parts.append(_Part(item=False, figures=figures, lines=[line.strip().removeprefix("> ")]))


def _introduces(part: _Part, following: list[_Part]) -> bool:
    return not part.item and part.text.endswith(":") and bool(following) and following[0].item


def _dedented(lines: list[str]) -> str:
    margin = min(len(line) - len(line.lstrip(" ")) for line in lines if line.strip())
    return "\n".join(line[margin:] for line in lines)
