"""Cuts a findings file into sections: which heading starts a learning, which only groups others, which is content.

Decides by structure and names alone; what the lines of a section say is read elsewhere (`findings`).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from echod.memory.findings.chatter import is_chatter
from echod.memory.findings.outline import BOLD_LEVEL, Heading, Place, headings, is_rule, places
from echod.memory.findings.text import TELLING, find_date, read_field, read_optional
from echod.memory.findings.titles import Title, read_title

_EMPTY = Title("")

_GENERIC = frozenset(
    re.findall(
        r"\S+",
        """
        finding findings learning learnings lesson lessons learned learnt notes note key new session sessions review
        reviewer worker workers planner auditor orchestrator audit agent agents echo echoes memory memories results
        result observations patterns report output my the of from for and in this task work plan main list entries
        entry insights takeaways discoveries to persist persisted all other others additional misc team by agent's
        what i we inscribed traced etched summary overview introduction conclusion conclusions recommendations
        """,
    )
)
_PARTS = frozenset(
    re.findall(
        r"[^\s,][^\n,]*",
        """
        why, how, what, evidence, details, detail, example, examples, context, background, rationale, reason, reasons,
        impact, fix, solution, root cause, cause, symptom, symptoms, code, before, after, metadata, key learnings,
        key learning, review metrics, arc metrics, metrics, references, reference, learning, how to apply,
        why it matters, what happened, problem, explanation, description, consequences, trade-offs, alternatives,
        usage, snippet
        """,
    )
)
"""Headings of the parts of one learning."""

_ASKING = frozenset(
    {
        "next steps", "next step", "follow-ups", "follow-up", "open questions", "questions", "blockers",
        "open issues", "remaining work", "todo", "todos", "issues", "concerns", "risks", "warnings",
    }
)  # fmt: skip
"""Headings of the places in a report where an agent may have nothing to say."""


@dataclass(frozen=True, slots=True)
class Section:
    """Lines that belong together, and the heading above them (None before the first heading).

    `groups` are the headings of the sections around it that only group others, outermost first, as indices into the
    list of sections.
    """

    title: Title
    generic: bool
    lines: tuple[str, ...]
    where: tuple[Place, ...]
    container: bool
    groups: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class _Candidate:
    heading: Heading
    title: Title
    generic: bool
    part: bool
    parent: int | None
    certain: bool
    """It carries a learning's metadata or date, whatever is above it."""
    bare: bool
    """No text of its own stands before the next heading."""

    @property
    def strong(self) -> bool:
        return self.certain or self.title.typed or self.title.layer is not None


def split(lines: Sequence[str], own_names: frozenset[str]) -> list[Section]:
    """Cut the lines into sections; every line but a starting heading's lies in exactly one of them.

    Args:
        lines: the file's lines without line ends.
        own_names: words (lower case) that name the writer, and so say nothing in a heading.
    """
    where = places(lines)
    candidates = _candidates(lines, where, own_names)
    starts, containers = _starting(candidates)
    first = candidates[starts[0]].heading.line if starts else len(lines)
    sections = [
        Section(
            title=_EMPTY,
            generic=True,
            lines=tuple(lines[:first]),
            where=tuple(where[:first]),
            container=bool(starts),
            groups=(),
        )
    ]
    place_of: dict[int, int] = {}
    for position, index in enumerate(starts):
        one = candidates[index]
        end = candidates[starts[position + 1]].heading.line if position + 1 < len(starts) else len(lines)
        groups: list[int] = []
        above = one.parent
        while above is not None:
            if above in containers:
                groups.insert(0, place_of[above])
            above = candidates[above].parent
        place_of[index] = len(sections)
        own = slice(one.heading.after, end)
        sections.append(
            Section(one.title, one.generic, tuple(lines[own]), tuple(where[own]), index in containers, (0, *groups))
        )
    return sections


def is_generic(title: str, own_names: frozenset[str]) -> bool:
    """Whether a heading says no more than that findings follow, or whose they are."""
    words = re.findall(r"[^\W_]+(?:'s)?", title.casefold().replace("\u2019", "'"))
    if not all(word in _GENERIC or word in own_names or word.isdigit() for word in words):
        return False
    return not words or not _GENERIC.isdisjoint(words) or own_names.issubset(words)


def is_empty_place(title: str, text: str) -> bool:
    """Whether a section only says that there is nothing to say, as `## Next steps` above `None.` does."""
    return title.casefold().strip(" :?.") in _ASKING and read_optional(text.strip("-+\u2022 \n")) is None


def _candidates(lines: Sequence[str], where: Sequence[Place], own_names: frozenset[str]) -> list[_Candidate]:
    found: list[_Candidate] = []
    above: list[int] = []
    all_headings = headings(lines, where)
    for number, heading in enumerate(all_headings):
        end = all_headings[number + 1].line if number + 1 < len(all_headings) else len(lines)
        own = [line for line in lines[heading.after : end] if line.strip() and not is_rule(line)]
        field = read_field(own[0]) if own else None
        telling = field is not None and field.name in TELLING
        title = read_title(heading.text)
        generic = not (title.layer or title.typed) and is_generic(title.text, own_names)
        if generic and title.date is None and (day := find_date(title.text)):
            title = replace(title, date=day.value)
        certain = telling or (title.dated and not generic)
        if heading.level == BOLD_LEVEL and not (certain or title.typed or title.layer):
            continue
        while above and found[above[-1]].heading.level >= heading.level:
            above.pop()
        part = title.text.casefold().strip(" :?.") in _PARTS
        parent = above[-1] if above else None
        above.append(len(found))
        bare = not own or all(is_chatter(line) for line in own)
        found.append(_Candidate(heading, title, generic, part, parent, certain, bare))
    return found


def _starting(candidates: Sequence[_Candidate]) -> tuple[list[int], frozenset[int]]:
    """Which candidates start a section, and which of these may only group the sections below them."""
    children: dict[int | None, list[_Candidate]] = {}
    above_strong: set[int] = set()
    for one in candidates:
        children.setdefault(one.parent, []).append(one)
        above = one.parent if one.strong else None
        while above is not None and above not in above_strong:
            above_strong.add(above)
            above = candidates[above].parent
    only_root = len(children.get(None, ())) == 1
    starts: list[int] = []
    containers: set[int] = set()
    learning_above = False
    for index, one in enumerate(candidates):
        in_group = one.parent is None or one.parent in containers
        if not (one.certain or (in_group and not (one.part and learning_above))):
            continue
        starts.append(index)
        below = children.get(index, [])
        grouping = bool(below) and not all(child.part for child in below)
        weak = not one.strong
        title_of_file = only_root and one.heading.level == 1
        if below and (
            (one.generic and not one.certain)
            or (weak and index in above_strong)
            or (weak and grouping and (one.bare or title_of_file))
        ):
            containers.add(index)
        else:
            learning_above = True
    return starts, frozenset(containers)
