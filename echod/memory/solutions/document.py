"""Read and write solutions: Markdown with front matter that people and two conventions of tools understand.

Remembrance, the convention of the workflow plugins, has the eight categories and `symptom`, `root_cause`,
`solution_summary`, `verified_by` and `echo_ref`. The compound-engineering convention has `problem_type`, `component`,
`severity` and `symptoms`. A solution that echod writes has the fields of both. One that is read needs those of one.

A label is a heading, a bold lead or a word with a colon at the start of a line or sentence: `### Root cause`,
`**Fix**: ...`, `Symptom: ...`. Nothing is guessed from text without labels. The user is asked instead.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import date
from enum import StrEnum
from types import NoneType
from typing import Final, NamedTuple

from echod.lazy import lazy_pattern
from echod.memory.compose import close_open_blocks, collapse_whitespace
from echod.memory.model import Block, SolutionCategory
from echod.memory.text import find_front_matter, load_yaml_fields

MAX_TAGS: Final = 8
MAX_SUMMARY: Final = 300
"""Characters of a summary in the front matter."""

_DELIMITER: Final = "---"


class VerifiedBy(StrEnum):
    """Who confirmed a solution. `HUMAN` needs a confirmation that the user typed at a terminal."""

    HUMAN = "human"
    AGENT = "agent"


class SolutionConfidence(StrEnum):
    """The confidence of a solution."""

    HIGH = "high"
    MEDIUM = "medium"


class _CompoundFields(NamedTuple):
    """The fields of the compound-engineering convention that follow from the category."""

    problem_type: str
    component: str
    resolution_type: str


_COMPOUND: Final[Mapping[SolutionCategory, _CompoundFields]] = {
    SolutionCategory.BUILD_ERRORS: _CompoundFields("build_error", "tooling", "code_fix"),
    SolutionCategory.TEST_FAILURES: _CompoundFields("test_failure", "testing_framework", "test_fix"),
    SolutionCategory.RUNTIME_ERRORS: _CompoundFields("runtime_error", "service_layer", "code_fix"),
    SolutionCategory.CONFIGURATION: _CompoundFields("integration_issue", "infrastructure", "config_change"),
    SolutionCategory.PERFORMANCE: _CompoundFields("performance_issue", "service_layer", "code_fix"),
    SolutionCategory.SECURITY: _CompoundFields("security_issue", "authentication", "code_fix"),
    SolutionCategory.ARCHITECTURE: _CompoundFields("architecture_pattern", "service_layer", "code_fix"),
    SolutionCategory.TOOLING: _CompoundFields("workflow_issue", "development_workflow", "workflow_improvement"),
}
_REQUIRED: Final = (
    "title", "category", "tags", "date", "symptom", "root_cause", "solution_summary", "confidence", "verified_by",
)  # fmt: skip
_COMPOUND_REQUIRED: Final = ("title", "date", "module", "problem_type", "component", "severity")


class Solution(NamedTuple):
    """A solution to write. The texts may have several lines; the front matter has them in one."""

    title: str
    category: SolutionCategory
    tags: tuple[str, ...]
    day: date
    symptom: str
    root_cause: str
    solution: str
    prevention: str
    confidence: SolutionConfidence
    verified_by: VerifiedBy
    echo_ref: str
    affected_files: tuple[str, ...] = ()
    related: tuple[str, ...] = ()
    """Paths of other solutions, from the root of the project."""


class SolutionDocument(NamedTuple):
    """A solution as its file has it. Missing values are empty.

    Attributes:
        category: as the front matter has it; the compound-engineering convention has others than the eight.
        line: the line of the heading in the file, from 1.
        body: the text below the front matter.
        problems: why a reader of its convention would reject it, as sentences without a full stop.
    """

    title: str
    category: str
    tags: tuple[str, ...]
    date: str
    symptom: str
    root_cause: str
    solution_summary: str
    confidence: str
    verified_by: str
    echo_ref: str
    superseded_by: str
    related: tuple[str, ...]
    affected_files: tuple[str, ...]
    line: int
    body: str
    problems: tuple[str, ...] = ()


class UnreadableSolution(NamedTuple):
    """A file whose front matter cannot be understood. `reason` is a sentence for the user."""

    reason: str


def render_solution(solution: Solution) -> bytes:
    """Return the file of a solution."""
    compound = _COMPOUND[solution.category]
    front: list[tuple[str, str]] = [
        ("title", _quoted(solution.title)),
        ("category", solution.category.value),
        ("tags", _flow_list(solution.tags)),
        ("date", solution.day.isoformat()),
        ("symptom", _quoted(solution.symptom)),
        ("root_cause", _quoted(solution.root_cause)),
        ("solution_summary", _quoted(summarize(solution.solution))),
        ("confidence", solution.confidence.value),
        ("verified_by", solution.verified_by.value),
        ("requires_human_approval", "true" if solution.category is SolutionCategory.SECURITY else "false"),
        ("echo_ref", _quoted(solution.echo_ref)),
        ("affected_files", _flow_list(solution.affected_files)),
        ("related_echoes", _flow_list(solution.related)),
        ("module", _quoted(_module(solution.affected_files))),
        ("problem_type", compound.problem_type),
        ("component", compound.component),
        ("severity", "medium"),
        ("symptoms", _flow_list([summarize(solution.symptom)])),
        ("resolution_type", compound.resolution_type),
    ]
    lines = [_DELIMITER, *(f"{name}: {value}" for name, value in front if value != "[]"), _DELIMITER, ""]
    return ("\n".join(lines) + "\n".join(_body_lines(solution))).encode()


def _body_lines(solution: Solution) -> Iterator[str]:
    yield f"\n# {collapse_whitespace(solution.title)}\n"
    for heading, text in (
        ("Symptom", solution.symptom),
        ("Root Cause", solution.root_cause),
        ("Solution", solution.solution),
        ("Prevention", solution.prevention),
    ):
        if text.strip():
            yield f"## {heading}\n\n{close_open_blocks(text.strip())}\n"
    yield "## References\n"
    yield f"- Echo source: {solution.echo_ref.partition('#')[0]} (the front matter has the whole reference)"
    for file in solution.affected_files:
        yield f"- Evidence: `{file}`"
    for path in solution.related:
        yield f"- Related: {path}"
    yield ""


def summarize(text: str) -> str:
    """Return the beginning of a text in one line, cut at a word."""
    line = collapse_whitespace(text)
    if len(line) <= MAX_SUMMARY:
        return line
    return line[: MAX_SUMMARY - 3].rsplit(" ", 1)[0] + "..."


def _module(files: tuple[str, ...]) -> str:
    if not files:
        return "project"
    path = files[0].partition(":")[0]
    return path.rpartition("/")[0] or path


def _quoted(text: str) -> str:
    """Return a text as a YAML value. JSON's quotes are YAML's, and no character is left that YAML would reject."""
    plain = "".join(character if character.isprintable() else " " for character in text)
    return json.dumps(collapse_whitespace(plain), ensure_ascii=False)


def _flow_list(items: Iterable[str]) -> str:
    return f"[{', '.join(map(_quoted, items))}]"


def read_solution(data: bytes) -> SolutionDocument | UnreadableSolution | None:
    """Read a file of `docs/solutions/`. None if it has no front matter, so that it is an essay and no solution."""
    try:
        text = data.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError:
        return UnreadableSolution("It is not UTF-8, so it is not read.")
    lines = text.split("\n")
    if lines[0].rstrip() != _DELIMITER:
        return None
    end = next((index for index, line in enumerate(lines[1:], 1) if line.rstrip() == _DELIMITER), None)
    if end is None:
        # A single line of hyphens above prose is a thematic break.
        return UnreadableSolution("Its front matter has no end.") if ":" in "".join(lines[1:2]) else None
    front = "\n".join(lines[1:end])
    values = load_yaml_fields(front)
    problems: list[str] = []
    if values is None:
        found = find_front_matter(lines)
        if found is None:
            return UnreadableSolution("Its front matter is not YAML, so no program can read it.")
        problems.append("the front matter is not valid YAML, so most programs do not find the document")
        values = dict(found.fields)
    body = "\n".join(lines[end + 1 :])
    heading = next((n for n, line in enumerate(lines[end + 1 :], end + 2) if line.startswith("# ")), end + 2)
    problems += _missing_fields(values)
    return SolutionDocument(
        title=_text(values, "title") or lines[heading - 1].removeprefix("# ").strip(),
        category=_text(values, "category"),
        tags=_texts(values, "tags"),
        date=_text(values, "date"),
        symptom=_text(values, "symptom") or "; ".join(_texts(values, "symptoms")),
        root_cause=_text(values, "root_cause"),
        solution_summary=_text(values, "solution_summary"),
        confidence=_text(values, "confidence"),
        verified_by=_text(values, "verified_by"),
        echo_ref=_text(values, "echo_ref"),
        superseded_by=_text(values, "superseded_by"),
        related=_texts(values, "related_echoes"),
        affected_files=_texts(values, "affected_files"),
        line=heading,
        body=body.strip("\n"),
        problems=tuple(problems),
    )


def _text(values: Mapping[str, object], name: str) -> str:
    value = values.get(name)
    if isinstance(value, date):
        return value.isoformat()
    if value is None or isinstance(value, list | dict):
        return ""
    return collapse_whitespace(str(value))


def _texts(values: Mapping[str, object], name: str) -> tuple[str, ...]:
    value = values.get(name)
    if isinstance(value, str):
        return tuple(filter(None, (piece.strip(" \"'") for piece in value.strip("[]").split(","))))
    if not isinstance(value, list):
        return ()
    return tuple(collapse_whitespace(str(item)) for item in value if not isinstance(item, list | dict | NoneType))


def _missing_fields(values: Mapping[str, object]) -> Iterator[str]:
    """Yield a phrase for each field that the document's own convention requires and that is missing or wrong."""
    own = any(name in values for name in ("symptom", "verified_by", "echo_ref")) or "problem_type" not in values
    own &= any(name in values for name in ("symptom", "verified_by", "echo_ref", "solution_summary"))
    missing = [name for name in (_REQUIRED if own else _COMPOUND_REQUIRED) if values.get(name) in (None, "", [])]
    if missing:
        yield f"the front matter has no {', '.join(missing)}"
    if not own:
        return
    for name, enum in (
        ("category", SolutionCategory),
        ("confidence", SolutionConfidence),
        ("verified_by", VerifiedBy),
    ):
        if (value := _text(values, name)) and value not in set(enum):
            yield f"{name} is {value}, which is none of {', '.join(enum)}"
    if _text(values, "category") == SolutionCategory.SECURITY and _text(values, "verified_by") != VerifiedBy.HUMAN:
        yield "it is about security and was not verified by a human"


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
_LABEL = lazy_pattern(
    rf"{_PREFIX}(?:#{{2,6}}[ \t]+(?:\*\*)?(?P<heading>{_NAMES})(?:\*\*)?:?[ \t#]*$"
    rf"|(?:\*\*|__)?(?P<lead>{_NAMES})(?:(?:\*\*|__)[ \t]*:|:(?:\*\*|__)|:)(?P<text>.*)$)",
    re.IGNORECASE,
)
_OTHER_PART = lazy_pattern(rf"{_PREFIX}(?:#{{1,6}}[ \t]|\*\*[^*\n]{{1,60}}(?:\*\*[ \t]*:|:\*\*))")
_NEW_SENTENCE = lazy_pattern(rf"(?<=[.;!?])[ \t]+(?=(?:\*\*|__)?(?:{_NAMES})(?:\*\*|__)?:)", re.IGNORECASE)
_FENCE = lazy_pattern(r"[ \t]{0,3}(?:```|~~~)")
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
