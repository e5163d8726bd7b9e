"""Cut a findings file into sections, one for each learning or group of learnings.

Only structure and names decide. In reading order:

- The envelope of a file is removed: a fence or a pair of tags that holds all of it, and front matter. Both are habits
  of writers, not parts of any learning.
- Some agents write no headings. `with_headings` adds them where every item of a list is a learning with its metadata
  below it, and where consecutive learnings each begin with the same label. It also splits lines with several metadata
  values. No word is added or removed.
- `split_sections` decides which heading starts a learning, which only groups others, and which is content.
- Boilerplate is text around findings ("Here are my findings:", "Let me know if ..."). Dropping a learning is worse than
  keeping a greeting. A paragraph is boilerplate only if every sentence of it, from its first word to its last, is one
  of a few known phrases made of filler words, and nothing in it looks like a fact.

`fields` reads the lines of a section.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import NamedTuple

from echod.lazy import lazy_pattern
from echod.memory.findings.nothing import is_report_heading
from echod.memory.findings.records import (
    BOLD_LEVEL,
    LineKind,
    OutlineHeading,
    classify_lines,
    closes_fence,
    find_headings,
    indent_width,
    is_thematic_break,
    list_content_offset,
    parse_fence,
    read_atx_heading,
)
from echod.memory.findings.text import (
    LEARNING_LABELS,
    NO_TITLE,
    ParsedTitle,
    find_date,
    read_field,
    read_optional,
    read_title,
)
from echod.memory.text import find_front_matter

_FILLER_WORD = (
    r"(?:i|i've|we|you|my|your|the|our|a|an|some|all|any|this|that|these|those|it|its|and|or|with|from|of|for|to|in|on|"
    r"into|at|as|by|about|above|below|key|main|new|further|other|more|else|me|now|here|requested|required|recommended|"
    r"asked|proper|correct|given|found|made|have|had|were|was|are|is|be|been|will|during|while|after|across|today|"
    r"session|sessions|task|tasks|code|codebase|repository|repo|project|work|workflow|review|reviews|reviewing|audit|"
    r"analysis|investigation|changes|plan|format|file|files|echo|echoes|memory|team|run|agent|agents|reviewer|worker|"
    r"planner|auditor|finding|findings|learning|learnings|lessons|learned|learnt|entries|results|observations|notes|"
    r"summary|pull|request|implementation|next|future|discovered|identified|collected|gathered|worth|remembering|"
    r"keeping|saving|storing|reporting|noticed|noted|questions|anything|something|need|needed|want|like|would|if|"
    r"there|help|branch|commit|commits|diff|patterns|insights|i'd|persist|share|record|report|save|store|consolidate|consolidated|orchestrator|changed|changes|details|adjustments|clarification|so|far|again)"
)
_FILLERS = rf"(?:[ ,-]+{_FILLER_WORD}){{0,16}}"
_FINDINGS_NOUN = r"(?:findings?|learnings?|lessons|entries|echoes|results|observations|notes|memories)"
_INTERJECTION = lazy_pattern(
    r"(?:sure(?: thing)?|certainly|of course|okay|ok|great|absolutely|all done|done|perfect|understood|got it)\b[ ,!-]*"
)
_BOILERPLATE = (
    rf"(?:here(?:'s| is| are)|these are|below(?: is| are)|see below for){_FILLERS} {_FINDINGS_NOUN}{_FILLERS}",
    rf"here(?:'s| is) what (?:i|we) (?:have )?(?:found|learned|learnt|noticed|discovered){_FILLERS}",
    rf"(?:my|the|our) {_FINDINGS_NOUN}(?: (?:are|follow|from){_FILLERS})?",
    rf"the following (?:are |is )?{_FINDINGS_NOUN}{_FILLERS}",
    rf"{_FINDINGS_NOUN} (?:below|follow|from{_FILLERS})",
    (
        rf"i(?:'ve| have|'ll| will| am|'m)?(?: now)? (?:completed?|finished|done|reviewed|written|write|wrote|"
        rf"recorded|recording|documented|documenting|compiled|summari[sz]ed|persisted|saved){_FILLERS}"
    ),
    rf"(?:please )?let me know{_FILLERS}",
    rf"(?:please )?(?:feel free|don't hesitate) to (?:ask|reach out|contact me|let me know){_FILLERS}",
    rf"(?:i |we )?hope (?:this|that|these|it) helps?{_FILLERS}",
    rf"(?:i am |i'm |i'd be )?happy to (?:help|elaborate|clarify|expand|answer|discuss|continue|adjust){_FILLERS}",
    rf"(?:that's|that is|this is|those are|these are) (?:all|everything|it){_FILLERS}",
    rf"(?:no|end of) (?:more |further |additional |new )?{_FINDINGS_NOUN}(?: yet| to report| this time| found)?",
    r"no echoes yet",
    r"(?:many )?(?:thanks|thank you)(?: very much| so much)?",
    rf"would you like me to (?:continue|elaborate|expand|save|store|write){_FILLERS}",
    rf"(?:these|they) will be (?:stored|saved|persisted|echoed|recorded){_FILLERS}",
)  # fmt: skip

_MAX_BOILERPLATE_LENGTH = 400  # characters; no greeting is longer
# Words of a claim; a sentence with one of them may be a learning.
_ASSERTION_WORDS = lazy_pattern(
    r"\b(?:must|should|always|never|not|no|avoid|use|uses|because|needs|requires|since|when|found|that|which|is|are|was|"
    r"were|has|causes?|fails?|and|but|so)\b"
)
_TASK_COMPLETED = lazy_pattern(r"i(?:'ve| have)(?: now)? (?:completed|finished) (?:the|my|a) [a-z' -]{1,60}")
_FACT_CHARACTERS = lazy_pattern(r"[\d`/\\<>=(){}\[\]$@#|]|\w_\w|\w\.\w")

_GENERIC_WORDS = frozenset(
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
# Headings of the parts of one learning.
_PART_HEADINGS = frozenset(
    re.findall(
        r"[^\s,][^\n,]*",
        """
        why, how, what, evidence, details, detail, example, examples, context, background, rationale, reason, reasons,
        impact, fix, solution, root cause, cause, symptom, symptoms, code, before, after, metadata, key learnings,
        key learning, review metrics, arc metrics, metrics, references, reference, learning, how to apply,
        why it matters, what happened, problem, explanation, description, consequences, trade-offs, alternatives,
        usage, snippet, guidance, when to apply, when to use, when this applies, why this matters,
        why this works, related, prevention,
        what didn't work, what did not work, what worked, see also, links, resources, problem statement,
        solution details,
        implementation, verification, how to verify, testing, tests, scope, applies to, environment, steps,
        steps to reproduce,
        reproduction, expected, actual, expected behavior, actual behavior, investigation, diagnosis,
        resolution, workaround, result,
        results, outcome, lesson, lessons, recommendation, rule, pattern, anti-pattern, good, bad, do,
        don't, decision, options,
        status, history, notes, notes for agents, caveats, limitations, key insight, takeaway, takeaways,
        key takeaways, follow-up,
        related issues, related documents, related learnings, affected files, files, timeline,
        metrics and figures, summary, tl;dr,
        the problem, the fix, the solution, the rule, the cause, the lesson, working solution,
        cross-references, further reading
        """,
    )
)

# Headings of the places in a report where an agent may have nothing to report.
_OPTIONAL_HEADINGS = frozenset(
    {
        "next steps", "next step", "follow-ups", "follow-up", "open questions", "questions", "blockers",
        "open issues", "remaining work", "todo", "todos", "issues", "concerns", "risks", "warnings",
    }
)  # fmt: skip

_KINDS_OF_FINDINGS = frozenset({"issues", "concerns", "risks", "warnings"})
# Names in the front matter of a document about one learning.
_DOCUMENT_FIELDS = frozenset(
    re.findall(
        r"\S+",
        """
        category problem_type root_cause symptoms symptom component severity applies_when layer confidence
        evidence module
        resolution_type tags verified track type kind
        """,
    )
)
_NUMBERED_FINDING = lazy_pattern(
    r"(?:[A-Z]{1,4}-?)?\d{1,3}[.):]|#\d|(?:finding|issue|learning|lesson) #?\d|\[(?:P\d|[A-Z]+-\d)", re.IGNORECASE
)
_ANNOUNCEMENT = lazy_pattern(
    r"\b(?:findings|learnings|issues|problems|review|report|audit|lessons learned|retrospective|observations|"
    r"takeaways|results|"
    r"session notes|code review)\b",
    re.IGNORECASE,
)
_ENVELOPE_TAG = lazy_pattern(r"<([a-z][a-z_-]*)>")
_ITEM_HEADING = "######"
_LEADING_LABELS = frozenset({"layer", "learning", "title"})
_FIELD_SEPARATOR = lazy_pattern(r"(?<!\s)\s++[|\u00b7\u2022]\s++(?=(?:\*\*|__)?[A-Za-z])")


def strip_envelope(lines: list[str]) -> list[str]:
    """Return the lines inside a pair of tags or a ```` ```markdown ```` fence that holds all findings, or all lines."""
    nonblank = [index for index, line in enumerate(lines) if line.strip()]
    tag = _ENVELOPE_TAG.fullmatch(lines[nonblank[0]].strip()) if nonblank else None
    if tag and lines[nonblank[-1]].strip() == f"</{tag[1]}>":
        return lines[nonblank[0] + 1 : nonblank[-1]]
    opening = next((index for index in nonblank if parse_fence(lines[index])), None)
    if opening is None:
        return lines
    fence, info = parse_fence(lines[opening]) or ("", "")
    end = next((index for index in range(opening + 1, len(lines)) if closes_fence(lines[index], fence)), None)
    if info.casefold() not in {"md", "markdown"} or end is None:
        return lines
    if not _is_all_boilerplate(lines[:opening]) or not _is_all_boilerplate(lines[end + 1 :]):
        return lines
    inside = lines[opening + 1 : end]
    first = next((line for line in inside if line.strip()), "")
    return inside if read_atx_heading(first) or first.strip() == "---" or first.lstrip().startswith("<!--") else lines


def split_front_matter(lines: list[str]) -> tuple[list[str], tuple[tuple[str, str], ...]]:
    """Return the lines below the front matter, and its names and values in order."""
    found = find_front_matter(lines)
    if found is None:
        return lines, ()
    fields: list[tuple[str, str]] = []
    for key, value in found.fields:
        field = read_field(f"{key}: {value}")
        name = field.name if field and field.name != "learning" else re.sub(r"[ -]+", "_", key.casefold())
        fields.append((name, value))
    return lines[found.end :], tuple(fields)


def find_document_title(
    lines: Sequence[str], fields: Sequence[tuple[str, str]], agent_words: frozenset[str]
) -> DocumentTitle | None:
    """Return the title of a document with front matter that is one learning, its sections included; None if it is not.

    It is one if its front matter or its only heading of the highest level names the learning, and no heading below is a
    learning of its own by its form, date or metadata.
    """
    if not fields:
        return None
    line_kinds = classify_lines(lines)
    candidates = _heading_candidates(lines, line_kinds, agent_words)
    top = [candidate for candidate in candidates if candidate.parent is None]
    heading = top[0] if len(top) == 1 and top[0].heading.level == 1 else None
    below = [candidate for candidate in candidates if candidate is not heading]
    if any(candidate.strong or _NUMBERED_FINDING.match(candidate.heading.text) for candidate in below):
        return None
    stated = next((value for name, value in fields if name in {"title", "name"}), "")
    titles = [title for title in (heading.heading.text if heading else "", stated) if title]
    if any(is_announcement(title) or is_generic_title(title, agent_words) for title in titles):
        return None
    if not stated and not (heading and {name for name, _ in fields} & _DOCUMENT_FIELDS):
        return None
    if not _is_prelude(lines[: heading.heading.line] if heading else ()):
        return None
    return DocumentTitle(titles[0], heading.heading.end if heading else 0)


def _is_prelude(lines: Sequence[str]) -> bool:
    return all(not line.strip() or line.lstrip().startswith("<!--") for line in lines)


def _is_all_boilerplate(lines: Sequence[str]) -> bool:
    paragraphs = "\n".join(lines).split("\n\n")
    return all(not paragraph.strip() or is_boilerplate(paragraph) for paragraph in paragraphs)


def with_headings(lines: Sequence[str]) -> list[str]:
    """Return the lines with a heading above every learning that had none."""
    split_lines = _split_inline_fields(lines)
    with_item_headings = _with_item_headings(split_lines, classify_lines(split_lines))
    return _with_group_headings(with_item_headings, classify_lines(with_item_headings))


def _split_inline_fields(lines: Sequence[str]) -> list[str]:
    result: list[str] = []
    for line in lines:
        parts = _FIELD_SEPARATOR.split(line) if "|" in line or "\u00b7" in line or "\u2022" in line else [line]
        result += parts if len(parts) > 1 and all(map(read_field, parts)) else [line]
    return result


def _with_item_headings(lines: Sequence[str], line_kinds: Sequence[LineKind]) -> list[str]:
    result: list[str] = []
    index = 0
    while index < len(lines):
        offset = list_content_offset(lines[index]) if line_kinds[index] is LineKind.TEXT else None
        content = lines[index][offset or 0 :]
        if offset is None or not _is_learning_item(content, lines, line_kinds, index):
            result.append(lines[index])
            index += 1
            continue
        result.append(f"{_ITEM_HEADING} {content}")
        index += 1
        while index < len(lines) and (line_kinds[index] is not LineKind.TEXT or not lines[index].strip()):
            result.append(lines[index][min(offset, indent_width(lines[index])) :])
            index += 1
    return result


def _is_learning_item(content: str, lines: Sequence[str], line_kinds: Sequence[LineKind], index: int) -> bool:
    if "[" in content:  # a date in brackets, as few items have
        title = read_title(content)
        if title.dated and title.typed:
            return True
    below = index + 1
    if below == len(lines) or line_kinds[below] is not LineKind.NESTED or read_field(lines[index]):
        return False
    field = read_field(lines[below].lstrip())
    return field is not None and field.name in LEARNING_LABELS and field.marked


def _with_group_headings(lines: list[str], line_kinds: Sequence[LineKind]) -> list[str]:
    """Add an empty heading above each group of labels, if only the groups separate the learnings."""
    if find_headings(lines, line_kinds):
        return lines
    leaders = [
        (index, field.name)
        for index, line in enumerate(lines)
        if line_kinds[index] is LineKind.TEXT and (field := read_field(line)) and _starts_paragraph(lines, index)
    ]
    first = next((name for _, name in leaders if name in _LEADING_LABELS), None)
    starts = {index for index, name in leaders if name == first}
    if first is None or len(starts) == 1:
        return lines
    result: list[str] = []
    for index, line in enumerate(lines):
        result += [_ITEM_HEADING, line] if index in starts else [line]
    return result


def _starts_paragraph(lines: Sequence[str], index: int) -> bool:
    return index == 0 or not lines[index - 1].strip() or is_thematic_break(lines[index - 1])


class DocumentTitle(NamedTuple):
    """The title of a document that is one learning, and the index of the first line below it."""

    text: str
    end: int


class FindingsSection(NamedTuple):
    """Lines that belong together, and the heading above them (None before the first heading).

    `groups` are the enclosing sections whose headings only group others, outermost first, as indices into the list of
    sections.
    """

    title: ParsedTitle
    generic: bool
    lines: tuple[str, ...]
    line_kinds: tuple[LineKind, ...]
    container: bool
    groups: tuple[int, ...]


class _HeadingCandidate(NamedTuple):
    heading: OutlineHeading
    title: ParsedTitle
    generic: bool
    part: bool
    parent: int | None
    certain: bool  # it has a learning's metadata or date, regardless of the headings above it
    empty: bool  # it has no text of its own before the next heading

    @property
    def strong(self) -> bool:
        return self.certain or self.title.typed or self.title.layer is not None


def split_sections(lines: Sequence[str], agent_words: frozenset[str]) -> list[FindingsSection]:
    """Cut the lines into sections; every line except the headings that start one is in exactly one of them.

    `agent_words` (lower case) name the writer, and so mean nothing in a heading.
    """
    line_kinds = classify_lines(lines)
    candidates = _heading_candidates(lines, line_kinds, agent_words)
    starts, containers = _select_starts(candidates)
    first = candidates[starts[0]].heading.line if starts else len(lines)
    sections = [
        FindingsSection(NO_TITLE, True, tuple(lines[:first]), tuple(line_kinds[:first]), bool(starts), ())  # noqa: FBT003
    ]
    section_index: dict[int, int] = {}
    for position, index in enumerate(starts):
        candidate = candidates[index]
        end = candidates[starts[position + 1]].heading.line if position + 1 < len(starts) else len(lines)
        groups: list[int] = []
        parent = candidate.parent
        while parent is not None:
            if parent in containers:
                groups.insert(0, section_index[parent])
            parent = candidates[parent].parent
        section_index[index] = len(sections)
        own = slice(candidate.heading.end, end)
        own_lines, own_kinds, is_container = tuple(lines[own]), tuple(line_kinds[own]), index in containers
        section = FindingsSection(candidate.title, candidate.generic, own_lines, own_kinds, is_container, (0, *groups))
        sections.append(section)
    return sections


def _heading_candidates(
    lines: Sequence[str], line_kinds: Sequence[LineKind], agent_words: frozenset[str]
) -> list[_HeadingCandidate]:
    candidates: list[_HeadingCandidate] = []
    open_headings: list[int] = []
    all_headings = find_headings(lines, line_kinds)
    for number, heading in enumerate(all_headings):
        end = all_headings[number + 1].line if number + 1 < len(all_headings) else len(lines)
        own = [line for line in lines[heading.end : end] if line.strip() and not is_thematic_break(line)]
        field = read_field(own[0]) if own else None
        has_learning_label = field is not None and field.name in LEARNING_LABELS
        title = read_title(heading.text)
        generic = not (title.layer or title.typed) and (
            is_generic_title(title.text, agent_words) or is_findings_heading(title.text)
        )
        if generic and title.date is None and (day := find_date(title.text)):
            title = replace(title, date=day.value)
        certain = has_learning_label or (title.dated and not generic)
        if heading.level == BOLD_LEVEL and not (certain or title.typed or title.layer):
            continue
        while open_headings and candidates[open_headings[-1]].heading.level >= heading.level:
            open_headings.pop()
        part = title.text.casefold().strip(" :?.") in _PART_HEADINGS
        parent = open_headings[-1] if open_headings else None
        open_headings.append(len(candidates))
        empty = not own or all(is_boilerplate(line) for line in own)
        candidates.append(_HeadingCandidate(heading, title, generic, part, parent, certain, empty))
    return candidates


def _select_starts(candidates: Sequence[_HeadingCandidate]) -> tuple[list[int], frozenset[int]]:
    """Return which candidates start a section, and which of these may only group the sections below them."""
    children: dict[int | None, list[_HeadingCandidate]] = {}
    has_strong_descendant: set[int] = set()
    for candidate in candidates:
        children.setdefault(candidate.parent, []).append(candidate)
        ancestor = candidate.parent if candidate.strong else None
        while ancestor is not None and ancestor not in has_strong_descendant:
            has_strong_descendant.add(ancestor)
            ancestor = candidates[ancestor].parent
    only_root = len(children.get(None, ())) == 1
    starts: list[int] = []
    containers: set[int] = set()
    follows_learning = False
    for index, candidate in enumerate(candidates):
        in_group = candidate.parent is None or candidate.parent in containers
        if not (candidate.certain or (in_group and not (candidate.part and follows_learning))):
            continue
        starts.append(index)
        below = children.get(index, [])
        grouping = 2 * sum(child.part for child in below) < len(below)
        weak = not candidate.strong
        title_of_file = only_root and candidate.heading.level == 1
        if below and (
            (candidate.generic and not candidate.certain)
            or (weak and index in has_strong_descendant)
            or (weak and grouping and (candidate.empty or title_of_file))
        ):
            containers.add(index)
        else:
            follows_learning = True
    return starts, frozenset(containers)


def is_generic_title(title: str, agent_words: frozenset[str]) -> bool:
    """Return whether a heading only announces findings, or names their writer."""
    words = re.findall(r"[^\W_]+(?:'s)?", title.casefold().replace("\u2019", "'"))
    if not all(word in _GENERIC_WORDS or word in agent_words or word.isdigit() for word in words):
        return False
    return not words or not _GENERIC_WORDS.isdisjoint(words) or agent_words.issubset(words)


def is_findings_heading(title: str) -> bool:
    """Return whether a heading names a kind of findings (`Critical issues`) and no learning."""
    bare = title.casefold().strip(" :?.")
    return is_report_heading(title) and (bare not in _OPTIONAL_HEADINGS or bare in _KINDS_OF_FINDINGS)


def is_announcement(title: str) -> bool:
    """Return whether the title of a file announces several findings (`Review of the payment client`)."""
    return _ANNOUNCEMENT.search(title) is not None


def is_plain_heading(title: str) -> bool:
    """Return whether a heading has no word that its findings should keep."""
    return all(word in _GENERIC_WORDS or word.isdigit() for word in re.findall(r"[^\W_]+", title.casefold()))


def is_empty_section(title: str, text: str) -> bool:
    """Return whether a section reports only that there is nothing to report, like `## Next steps` above `None.`."""
    return title.casefold().strip(" :?.") in _OPTIONAL_HEADINGS and read_optional(text.strip("-+\u2022 \n")) is None


def is_boilerplate(paragraph: str) -> bool:
    """Return whether a paragraph only announces findings, closes them, or offers help."""
    text = " ".join(paragraph.split()).casefold().replace("\u2019", "'").strip("*_ ")
    if not text or len(text) > _MAX_BOILERPLATE_LENGTH or _FACT_CHARACTERS.search(text):
        return False
    sentences = [part for part in re.split(r"[.!?:;\u2026]+(?:\s+|$)", text) if part.strip(" -\u2013\u2014*_")]
    return bool(sentences) and all(_is_boilerplate_sentence(sentence) for sentence in sentences)


@cache
def _boilerplate_patterns() -> tuple[re.Pattern[str], ...]:
    """Compile the patterns on first use, since that takes as long as loading a dozen modules."""
    return tuple(map(re.compile, _BOILERPLATE))


def _is_boilerplate_sentence(sentence: str) -> bool:
    bare = sentence.strip(" -\u2013\u2014*_,")
    greeting = _INTERJECTION.match(bare)
    rest = bare[greeting.end() :] if greeting else bare
    if not rest or any(pattern.fullmatch(rest) for pattern in _boilerplate_patterns()):
        return True
    return _TASK_COMPLETED.fullmatch(rest) is not None and _ASSERTION_WORDS.search(rest) is None
