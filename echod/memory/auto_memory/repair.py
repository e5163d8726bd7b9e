"""Plan the repair of an index: its pointers and their order, and nothing else.

A pointer to a file of nearly the same name is corrected, and any other dead pointer is removed. Files without a pointer
get one. Only an index that the host cuts is sorted, the newest first and what is superseded last. Text that follows a
pointer moves with it. No other line is changed, and no other file.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from echod.lazy import lazy_pattern
from echod.memory.auto_memory.checks import superseded_names
from echod.memory.auto_memory.notes import (
    MemoryDirectory,
    NoteFile,
    dead_pointers,
    existing_names,
    find_pointers,
    load_index,
    named_files,
    similar_file,
    unnamed_notes,
)
from echod.memory.redact import redact
from echod.memory.text import pluralize

_ITEM_START = lazy_pattern(r"(?:[-*+]|\d{1,9}[.)])\s")
_HEADING = lazy_pattern(r"(#{1,6})\s")
_UNMOVABLE = lazy_pattern(r"^ {0,3}(?:```|~~~|<!--)", re.MULTILINE)
_MANY_LOST = 3
"""So many dead pointers, if they are half of all, mean that files were lost. Then nothing else is repaired."""

_RESTORE_FIRST = "restore them first"


class IndexRepair(NamedTuple):
    """The index as it should be. `changes` are sentences, `left` what was not repaired, and why.

    `only_order`: it has the same lines as before, so the time of the file stays.
    """

    data: bytes
    changes: tuple[str, ...]
    left: tuple[str, ...]
    only_order: bool


def plan_repair(directory: MemoryDirectory) -> IndexRepair | None:
    """Return the repair of an index; None if there is nothing to repair, or the index is not UTF-8."""
    index = directory.index_file
    if index is not None and index.text is None:
        return None
    before = "" if index is None else index.data.decode("utf-8")
    newline = "\r\n" if "\r\n" in before else "\n"
    lines = [line.rstrip("\r") for line in before.split("\n")]
    if lines[-1] == "":
        lines.pop()
    old_lines = list(lines)
    changes: list[str] = []
    left: list[str] = []
    lines = _repair_dead(directory, lines, changes, left)
    if not any(reason.endswith(_RESTORE_FIRST) for reason in left):
        lines = _add_missing(directory, lines, changes)
        lines = _sort_if_cut(directory, lines, changes)
    if not changes:
        return None if not left else IndexRepair(before.encode(), (), tuple(left), only_order=True)
    data = "".join(f"{line}{newline}" for line in lines).encode()
    return IndexRepair(data, tuple(changes), tuple(left), only_order=sorted(lines) == sorted(old_lines))


def _repair_dead(directory: MemoryDirectory, lines: Sequence[str], changes: list[str], left: list[str]) -> list[str]:
    pointers = find_pointers("\n".join(lines))
    existing = existing_names(directory)
    dead = dead_pointers(directory, pointers)
    lost = {pointer.target for pointer in dead if similar_file(pointer.target, existing) is None}
    many_lost = len(lost) >= _MANY_LOST and 2 * len(lost) >= len({pointer.target for pointer in pointers})
    removed: set[int] = set()
    new = list(lines)
    for pointer in dead:
        near = similar_file(pointer.target, existing)
        if near is not None:
            new[pointer.line - 1] = _with_target(new[pointer.line - 1], pointer.target, near)
            changes.append(f"line {pointer.line}: name {near} instead of {pointer.target}")
        elif many_lost:
            left.append(f"line {pointer.line} stays: {pointer.target} is one of many lost files; {_RESTORE_FIRST}")
        elif _is_alone(pointer.line, [other.line for other in pointers], lines):
            removed.add(pointer.line)
            changes.append(f"line {pointer.line}: remove the pointer to {pointer.target}, which does not exist")
        else:
            left.append(f"line {pointer.line} stays, because it has more than the pointer to {pointer.target}")
    return [line for number, line in enumerate(new, start=1) if number not in removed]


def _with_target(line: str, old: str, new: str) -> str:
    written = f"<{new}>" if re.search(r"[\s()]", new) else new
    for form in (f"]({old})", f"](<{old}>)", f"](./{old})", f"]({old.replace(' ', '%20')})"):
        if form in line:
            return line.replace(form, f"]({written})", 1)
    return line


def _is_alone(line: int, pointer_lines: Sequence[int], lines: Sequence[str]) -> bool:
    """Return whether a line has one pointer, and no text below it belongs to it."""
    below = lines[line] if line < len(lines) else ""
    return pointer_lines.count(line) == 1 and not (below.strip() and below[0].isspace())


def _add_missing(directory: MemoryDirectory, lines: Sequence[str], changes: list[str]) -> list[str]:
    missing = [note for note in unnamed_notes(directory, named_files("\n".join(lines))) if note.text is not None]
    if not missing:
        return list(lines)
    missing.sort(key=lambda note: -note.changed_at)
    end = len(lines)
    while end and not lines[end - 1].strip():
        end -= 1
    changes += [f"add a pointer to {note.name}" for note in missing]
    return [*lines[:end], *map(pointer_line, missing), *lines[end:]]


def pointer_line(note: NoteFile) -> str:
    """Return a line of the index for a file, without secrets."""
    title = redact(re.sub(r"[\[\]\n]", " ", note.title)).text.strip() or note.name
    target = f"<{note.name}>" if re.search(r"[\s()]", note.name) else note.name
    hook = redact(note.value("description")).text
    return f"- [{title}]({target}) \u2014 {hook}" if hook else f"- [{title}]({target})"


def _sort_if_cut(directory: MemoryDirectory, lines: Sequence[str], changes: list[str]) -> list[str]:
    """Sort the pointers of an index that the host cuts, if that brings newer ones into what it loads."""
    text = "\n".join(lines)
    if not load_index(text).over or _UNMOVABLE.search(text):
        return list(lines)
    rank = _ranker(directory)
    for arrange in (_sort_items, _sort_sections):
        if _loads_in_order(lines, rank):
            break
        lines = arrange(lines, rank)
    if sorted(lines) == sorted(text.split("\n")) and list(lines) != text.split("\n"):
        moved = sum(1 for old, new in zip(text.split("\n"), lines, strict=True) if old != new)
        changes.append(f"move {pluralize(moved, 'line')}, so that the newest pointers are in the part that is loaded")
        return list(lines)
    return text.split("\n")


_Rank = Callable[[Sequence[str]], tuple[int, float]]


def _ranker(directory: MemoryDirectory) -> _Rank:
    """Return a function that ranks lines of an index by the best file they name; the lowest comes first."""
    superseded = superseded_names(directory.notes)
    ranks = {note.name: (int(note.name in superseded), -note.changed_at) for note in directory.notes}

    def rank(lines: Sequence[str]) -> tuple[int, float]:
        targets = [pointer.target for pointer in find_pointers("\n".join(lines))]
        return min((ranks[target] for target in targets if target in ranks), default=(2, 0.0))

    return rank


def _loads_in_order(lines: Sequence[str], rank: _Rank) -> bool:
    """Return whether no pointer that is cut off ranks before one that is loaded."""
    text = "\n".join(lines)
    loaded = load_index(text)
    numbers = dict.fromkeys(pointer.line for pointer in find_pointers(text))
    inside = [rank([lines[number - 1]]) for number in numbers if loaded.loads(number)]
    outside = [rank([lines[number - 1]]) for number in numbers if not loaded.loads(number)]
    return not inside or not outside or max(inside) <= min(outside)


def _sort_items(lines: Sequence[str], rank: _Rank) -> list[str]:
    """Sort the items of each section. Text above the first item of a section stays there."""
    result: list[str] = []
    for section in _split(lines, lambda line: _HEADING.match(line) is not None):
        groups = list(_split(section, lambda line: _ITEM_START.match(line) is not None))
        head = groups.pop(0) if groups and not _ITEM_START.match(groups[0][0]) else []
        tail: list[str] = []
        while groups and groups[-1] and not groups[-1][-1].strip():
            tail.insert(0, groups[-1].pop())
        result += [*head, *(line for group in sorted(groups, key=rank) for line in group), *tail]
    return result


def _sort_sections(lines: Sequence[str], rank: _Rank) -> list[str]:
    """Sort the sections of the highest level below the title by the best pointer in each."""
    levels = [len(match[1]) for line in lines[1:] if (match := _HEADING.match(line))]
    if not levels:
        return list(lines)
    top = min(levels)
    first, *sections = _split(lines, lambda line: (m := _HEADING.match(line)) is not None and len(m[1]) == top)
    if _HEADING.match(first[0]) and len(first[0].split()[0]) == top:
        first, sections = [], [first, *sections]
    return [*first, *(line for section in sorted(sections, key=rank) for line in section)]


def _split(lines: Sequence[str], begins: Callable[[str], bool]) -> Iterator[list[str]]:
    """Yield runs of lines; each but perhaps the first begins with a line for which `begins` is true."""
    run: list[str] = []
    for line in lines:
        if begins(line) and run:
            yield run
            run = []
        run.append(line)
    if run:
        yield run
