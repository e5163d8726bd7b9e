"""Turns what agents write instead of headings into headings: list items and groups of labels that are learnings.

Three habits: a list of which every item is a learning with its metadata below it; learnings one after the other that
each begin with the same label; several metadata values on one line. What comes out are lines as `sections` reads them;
no word is added or taken away.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from echod.memory.findings.outline import Place, headings, indent_of, is_rule, list_offset, places
from echod.memory.findings.text import TELLING, read_field
from echod.memory.findings.titles import read_title

_ITEM_HEADING = "######"
_LEADERS = frozenset({"layer", "learning", "title"})
_BETWEEN_FIELDS = re.compile(r"(?<!\s)\s++[|\u00b7\u2022]\s++(?=(?:\*\*|__)?[A-Za-z])")


def unfolded(lines: Sequence[str]) -> list[str]:
    """The lines with a heading above every learning that had none."""
    apart = _one_field_a_line(lines)
    lifted = _lifted_items(apart, places(apart))
    return _headed_groups(lifted, places(lifted))


def _one_field_a_line(lines: Sequence[str]) -> list[str]:
    found: list[str] = []
    for line in lines:
        parts = _BETWEEN_FIELDS.split(line) if "|" in line or "\u00b7" in line or "\u2022" in line else [line]
        found += parts if len(parts) > 1 and all(map(read_field, parts)) else [line]
    return found


def _lifted_items(lines: Sequence[str], where: Sequence[Place]) -> list[str]:
    found: list[str] = []
    index = 0
    while index < len(lines):
        offset = list_offset(lines[index]) if where[index] is Place.TEXT else None
        content = lines[index][offset or 0 :]
        if offset is None or not _heads_a_learning(content, lines, where, index):
            found.append(lines[index])
            index += 1
            continue
        found.append(f"{_ITEM_HEADING} {content}")
        index += 1
        while index < len(lines) and (where[index] is not Place.TEXT or not lines[index].strip()):
            found.append(lines[index][min(offset, indent_of(lines[index])) :])
            index += 1
    return found


def _heads_a_learning(content: str, lines: Sequence[str], where: Sequence[Place], index: int) -> bool:
    title = read_title(content)
    if title.dated and title.typed:
        return True
    below = index + 1
    if below == len(lines) or where[below] is not Place.NESTED or read_field(lines[index]):
        return False
    field = read_field(lines[below].lstrip())
    return field is not None and field.name in TELLING and field.marked


def _headed_groups(lines: list[str], where: Sequence[Place]) -> list[str]:
    """With an empty heading above each group of labels, if the groups are all that keeps the learnings apart."""
    if headings(lines, where):
        return lines
    leaders = [
        (index, field.name)
        for index, line in enumerate(lines)
        if where[index] is Place.TEXT and (field := read_field(line)) and _is_first_of_its_kind(lines, index)
    ]
    first = next((name for _, name in leaders if name in _LEADERS), None)
    starts = {index for index, name in leaders if name == first}
    if first is None or len(starts) == 1:
        return lines
    found: list[str] = []
    for index, line in enumerate(lines):
        found += [_ITEM_HEADING, line] if index in starts else [line]
    return found


def _is_first_of_its_kind(lines: Sequence[str], index: int) -> bool:
    return index == 0 or not lines[index - 1].strip() or is_rule(lines[index - 1])
