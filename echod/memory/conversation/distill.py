"""Analyse a curated MEMORY.md, suggest how to shorten it, and move its heavy sections to topic files.

Headings in fenced code are no headings. Text is moved, never removed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import date
from typing import NamedTuple

from echod.lazy import lazy_pattern
from echod.memory.text import find_enclosed, pluralize

MAX_LINES, MAX_CHARACTERS = 200, 25_000
"""The host loads so many lines and characters of a MEMORY.md, whichever is reached first."""

START_LINES, ADVICE_LINES = 140, 170
HEAVY_LINES = 30
NOTICE_SHARE, WARNING_SHARE, FULL_SHARE = 0.7, 0.9, 1.0
"""Shares of the budget from which MEMORY.md is reported: once as a notice, then as a warning, then for review."""

_HEADING = lazy_pattern(r"#{1,2} +(?P<title>\S.*)")
_FENCE = lazy_pattern(r" {0,3}(`{3,}|~{3,})")
_MONTH = lazy_pattern(r"\b(20\d\d)-(0[1-9]|1[0-2])(?!\d)")
_MIN_DUPLICATE_LENGTH = 20
_SHOWN_DUPLICATES = 3
_NOT_SLUG = lazy_pattern(r"[^a-z0-9]+")
_RESERVED = frozenset({"memory", "ephemeral", "archive", "conversations"})


class MemorySection(NamedTuple):
    """A section: its title, the line of its heading (from 1), and its lines with the heading."""

    title: str
    line: int
    lines: tuple[str, ...]

    @property
    def is_empty(self) -> bool:
        """True if nothing but comments follows the heading."""
        text, pieces, end = "\n".join(self.lines[1:]), [], 0
        for start, close in find_enclosed(text, "<!--", "-->"):
            pieces.append(text[end : start - len("<!--")])
            end = close + len("-->")
        return not "".join((*pieces, text[end:])).strip()


class MemoryAnalysis(NamedTuple):
    """The size of a MEMORY.md, its sections, and the suggestions to shorten it."""

    lines: int
    characters: int
    sections: tuple[MemorySection, ...]
    suggestions: tuple[str, ...]

    @property
    def share(self) -> float:
        """The share of the budget that is used: of lines or of characters, whichever is more."""
        return max(self.lines / MAX_LINES, self.characters / MAX_CHARACTERS)


class Distillation(NamedTuple):
    """MEMORY.md without its heavy sections, and the new text of each topic file by name."""

    memory: str
    topics: Mapping[str, str]
    moved: tuple[str, ...]


def pressure_of(share: float) -> str:
    """Return how full MEMORY.md is: `none`, `notice`, `warning` or `full`."""
    if share >= FULL_SHARE:
        return "full"
    if share >= WARNING_SHARE:
        return "warning"
    return "notice" if share >= NOTICE_SHARE else "none"


def analyse_memory(text: str, today: date) -> MemoryAnalysis:
    """Return the size of a MEMORY.md and what could be shortened in it."""
    lines = text.splitlines()
    sections = find_sections(text)
    suggestions = tuple(_suggestions(lines, sections, today)) if _needs_attention(lines, text) else ()
    return MemoryAnalysis(len(lines), len(text), sections, suggestions)


def _needs_attention(lines: list[str], text: str) -> bool:
    return len(lines) >= START_LINES or len(text) / MAX_CHARACTERS >= NOTICE_SHARE


def find_sections(text: str) -> tuple[MemorySection, ...]:
    """Return the sections of level 1 and 2 in order."""
    lines = text.splitlines()
    starts = list(_heading_lines(lines))
    ends = [*(number for number, _ in starts[1:]), len(lines)]
    return tuple(
        MemorySection(title, number + 1, tuple(lines[number:end]))
        for (number, title), end in zip(starts, ends, strict=False)
    )


def _heading_lines(lines: Iterable[str]) -> Iterator[tuple[int, str]]:
    fence = ""
    for number, line in enumerate(lines):
        mark = _FENCE.match(line)
        if mark and not fence:
            fence = mark[1]
        elif mark and mark[1].startswith(fence[0] * len(fence)) and not line.strip().strip(fence[0]):
            fence = ""
        elif not fence and (heading := _HEADING.fullmatch(line.rstrip())):
            yield number, heading["title"].strip()


def _suggestions(lines: list[str], sections: Iterable[MemorySection], today: date) -> Iterator[str]:
    for section in sections:
        if len(section.lines) > HEAVY_LINES:
            size = f"{len(section.lines)} lines"
            yield f'Section "{section.title}" is {size} \u2014 consider moving details to a topic file'
    if pairs := find_duplicate_lines(lines):
        shown = ", ".join(f"{first}/{second}" for first, second in pairs[:_SHOWN_DUPLICATES])
        yield f"{pluralize(len(pairs), 'duplicate line')} (lines {shown}) \u2014 consider keeping one of each"
    if stale := sum(_is_stale(line, today) for line in lines):
        yield f"{pluralize(stale, 'line')} with dates more than a month old \u2014 consider checking or removing"
    for section in sections:
        if section.is_empty and section.lines[0].startswith("## "):
            yield f'Section "{section.title}" is empty \u2014 consider removing it'
    if len(lines) > ADVICE_LINES:
        yield "MEMORY.md is near its limit \u2014 keep confirmed facts and move details to topic files"


def find_duplicate_lines(lines: Iterable[str]) -> tuple[tuple[int, int], ...]:
    """Return the numbers of each later line with its first equal one. Case, punctuation and spacing do not count."""
    first: dict[str, int] = {}
    pairs: dict[str, tuple[int, int]] = {}
    for number, line in enumerate(lines, start=1):
        key = " ".join("".join(c for c in line.lower() if c.isalnum() or c.isspace()).split())
        if len(key.encode()) < _MIN_DUPLICATE_LENGTH:
            continue
        if key in first:
            pairs.setdefault(key, (first[key], number))
        else:
            first[key] = number
    return tuple(pairs.values())


def months_between(earlier: date, later: date) -> int:
    """Return the number of calendar months from one day to another."""
    return (later.year - earlier.year) * 12 + later.month - earlier.month


def _is_stale(line: str, today: date) -> bool:
    match = _MONTH.search(line)
    return match is not None and months_between(date(int(match[1]), int(match[2]), 1), today) > 1


def distill_memory(text: str, topic_files: Mapping[str, str]) -> Distillation:
    """Move every heavy section to a topic file, and leave its heading with a reference.

    `topic_files` are the present topic files by name. A section is added to the end of a file that has its name.
    """
    lines = text.splitlines(keepends=True)
    topics: dict[str, str] = {}
    kept: list[str] = []
    moved: list[str] = []
    done = 0
    for section in find_sections(text):
        if len(section.lines) <= HEAVY_LINES or section.is_empty:
            continue
        start, end = section.line - 1, section.line - 1 + len(section.lines)
        name = topic_file_name(section.title)
        known = topics.get(name, topic_files.get(name, ""))
        content = "".join(lines[start:end]).strip("\n")
        topics[name] = f"{known.rstrip()}\n\n{content}\n" if known.strip() else f"{content}\n"
        heading = lines[start].rstrip("\r\n")
        trailing = "\n" if end < len(lines) else ""
        kept += [*lines[done:start], f"{heading}\n\nSee memory/{name} for details.\n{trailing}"]
        done = end
        moved.append(section.title)
    return Distillation("".join([*kept, *lines[done:]]), topics, tuple(moved))


def topic_file_name(title: str) -> str:
    """Return the name of the topic file of a section."""
    slug = _NOT_SLUG.sub("-", title.lower()).strip("-")[:60].strip("-") or "notes"
    return f"{slug}-notes.md" if slug in _RESERVED else f"{slug}.md"
