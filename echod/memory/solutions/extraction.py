"""Find the problem, the cause and the solution in an entry, where its writer labelled them.

A label is a heading, a bold lead or a word with a colon at the start of a line or sentence: `### Root cause`,
`**Fix**: ...`, `Symptom: ...`. Nothing is guessed from text without labels. The user is asked instead.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import StrEnum
from typing import NamedTuple

from echod.memory.model import Block


class SolutionPart(StrEnum):
    """The parts of a solution that an entry may have."""

    SYMPTOM = "symptom"
    ROOT_CAUSE = "root_cause"
    SOLUTION = "solution"
    PREVENTION = "prevention"


class SolutionParts(NamedTuple):
    """The texts of the parts; "" for a missing one."""

    symptom: str = ""
    root_cause: str = ""
    solution: str = ""
    prevention: str = ""


_LABELS = {
    SolutionPart.SYMPTOM: ("symptoms", "symptom", "problem", "issue", "error"),
    SolutionPart.ROOT_CAUSE: ("root cause", "root causes", "cause", "why", "reason"),
    SolutionPart.SOLUTION: ("solution", "solution summary", "fix", "resolution", "remedy", "workaround"),
    SolutionPart.PREVENTION: ("prevention", "prevent", "how to prevent it"),
}
_PART_OF = {label: part for part, labels in _LABELS.items() for label in labels}
_NAMES = "|".join(sorted((label.replace(" ", "[ _-]") for label in _PART_OF), key=len, reverse=True))
_PREFIX = r"[ \t]{0,3}(?:(?:[-*+]|\d{1,3}[.)])[ \t]+)?"
_LABEL = re.compile(
    rf"{_PREFIX}(?:#{{2,6}}[ \t]+(?:\*\*)?(?P<heading>{_NAMES})(?:\*\*)?:?[ \t#]*$"
    rf"|(?:\*\*|__)?(?P<lead>{_NAMES})(?:(?:\*\*|__)[ \t]*:|:(?:\*\*|__)|:)(?P<text>.*)$)",
    re.IGNORECASE,
)
_OTHER_PART = re.compile(rf"{_PREFIX}(?:#{{1,6}}[ \t]|\*\*[^*\n]{{1,60}}(?:\*\*[ \t]*:|:\*\*))")
_NEW_SENTENCE = re.compile(rf"(?<=[.;!?])[ \t]+(?=(?:\*\*|__)?(?:{_NAMES})(?:\*\*|__)?:)", re.IGNORECASE)
_FENCE = re.compile(r"[ \t]{0,3}(?:```|~~~)")
_MAX_LINE = 10_000


def extract_parts(block: Block) -> SolutionParts:
    """Return the parts that an entry has. Of repeated labels the texts are joined."""
    parts = _collect(block.body)
    for field in block.entry.fields if block.entry else ():
        part = _PART_OF.get(field.name.replace("_", " ").replace("-", " "))
        if part is not None:
            parts.setdefault(part, []).append(field.value)
    return _to_parts(parts)


def extract_parts_of_text(text: str) -> SolutionParts:
    """Return the parts of a text that the user edited."""
    return _to_parts(_collect(text))


def _to_parts(parts: dict[SolutionPart, list[str]]) -> SolutionParts:
    return SolutionParts(*("\n".join(_dedented(parts.get(part, []))).strip() for part in SolutionPart))


def _collect(text: str) -> dict[SolutionPart, list[str]]:
    parts: dict[SolutionPart, list[str]] = {}
    current: SolutionPart | None = None
    in_fence = False
    for line in _lines(text):
        if _FENCE.match(line):
            in_fence = not in_fence
        label = None if in_fence or len(line) > _MAX_LINE else _LABEL.match(line)
        if label is not None:
            current = _PART_OF[re.sub(r"[_-]", " ", label["heading"] or label["lead"]).lower()]
            parts.setdefault(current, []).append((label["text"] or "").strip())
        elif not in_fence and len(line) <= _MAX_LINE and _OTHER_PART.match(line):
            current = None
        elif current is not None:
            parts[current].append(line)
    return parts


def _lines(text: str) -> Iterator[str]:
    in_fence = False
    for line in text.replace("\r\n", "\n").split("\n"):
        if _FENCE.match(line):
            in_fence = not in_fence
        if in_fence or len(line) > _MAX_LINE:
            yield line
        else:
            yield from _NEW_SENTENCE.split(line)


def _dedented(lines: list[str]) -> Iterator[str]:
    """Yield lines without the indent that they share as lines of a list item."""
    indents = [len(line) - len(line.lstrip()) for line in lines if line.strip()]
    shared = min((indent for indent in indents if indent), default=0)
    for line in lines:
        indent = len(line) - len(line.lstrip())
        yield line[min(indent, shared) :].rstrip()
