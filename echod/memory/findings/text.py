"""How agents write a date, a layer, a confidence or a metadata line when nobody checks them.

Values only: this module knows nothing of headings, files or what a finding is. What it cannot understand it says so
(`None`), and what it understands only in part it marks, so that the caller keeps the words it would otherwise lose.

What the heading of a finding says: date, layer, type word and title, however they are put together.

One line in, one value out. This module knows nothing of the lines around a heading.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import date
from typing import Generic, NamedTuple, TypeVar

from echod.memory.forms import CONFIDENCE_WORDS, parse_heading
from echod.memory.model import Layer

T_co = TypeVar("T_co", covariant=True)

# Spaces that editors and chat windows put where a plain space was meant; each is one character for one character,
# so offsets in the plain copy are offsets in the original.
_SPACE_TRANSLATION = str.maketrans(
    {"\u00a0": " ", "\u2007": " ", "\u202f": " ", "\u3000": " ", "\uff1a": ":", "\t": " "}
)
_QUOTES = " \t`'\"*_\u2018\u2019\u201c\u201d\u00ab\u00bb"

_MONTHS = {
    name: number
    for number, names in enumerate(
        (
            "jan january", "feb february", "mar march", "apr april", "may", "jun june", "jul july",
            "aug august", "sep sept september", "oct october", "nov november", "dec december",
        ),
        start=1,
    )
    for name in names.split()
}  # fmt: skip

_YEAR = r"(?:19|20)\d\d"
_DATE = re.compile(
    rf"""(?<![\w.])(?:
        (?P<year>{_YEAR})(?P<sep>[-/.\u2010\u2011])(?P<month>\d{{1,2}})(?P=sep)(?P<day>\d{{1,2}})
            (?:[T\ ]\d{{1,2}}:\d\d(?::\d\d(?:[.,]\d+)?)?(?:\ ?(?:Z|UTC|GMT|[+-]\d\d:?\d\d))?)?
      | (?P<compact>{_YEAR}\d{{4}})
      | (?P<d2>\d{{1,2}})(?:st|nd|rd|th)?[\ -](?P<m2>[A-Za-z]{{3,9}})\.?,?[\ -](?P<y2>{_YEAR})
      | (?P<m3>[A-Za-z]{{3,9}})\.?\ (?P<d3>\d{{1,2}})(?:st|nd|rd|th)?,?\ (?P<y3>{_YEAR})
      | (?P<y4>{_YEAR})\u5e74(?P<m4>\d{{1,2}})\u6708(?P<d4>\d{{1,2}})\u65e5
    )(?!\w)""",
    re.VERBOSE,
)

_CONFIDENCE_WORDS = {
    **CONFIDENCE_WORDS,
    "med": CONFIDENCE_WORDS["medium"],
    "moderate": CONFIDENCE_WORDS["medium"],
}
_NUMBER = re.compile(r"[~\u2248]?\s*(?P<number>\d{1,3}(?:[.,]\d+)?|[.,]\d+)\s*(?P<scale>%|/\s*\d{1,3})?")
_EMPTY_VALUES = frozenset({"", "none", "n/a", "na", "nil", "null", "nothing", "-", "\u2013", "\u2014", "no"})

_LABELS = {
    label: name
    for name, labels in {
        "layer": "layer|tier|echo layer|memory layer",
        "source": "source|sources",
        "confidence": "confidence|conf|confidence level",
        "evidence": "evidence|evidences|file|files|location|locations|seen in",
        "verified": "verified|last verified|verified on|verified at|verified date|date verified",
        "supersedes": "supersedes|replaces",
        "date": "date|found on|created on",
        "kind": "type|kind",
        "title": "title",
        "learning": "learning|the learning|lesson|lesson learned|insight|takeaway|key takeaway|description",
        "category": "category",
        "domain": "domain",
        "tags": "tags|tag|labels",
        "severity": "severity",
        "priority": "priority",
        "status": "status",
        "role": "role",
        "agent": "agent|author",
        "task": "task",
        "team": "team",
        "workflow": "workflow",
        "session": "session",
        "branch": "branch",
        "phase_tags": "phase tags|phase tag",
        "finding_id": "finding id|finding ids|id",
        "recurrence_count": "recurrence count",
        "first_seen": "first seen",
        "last_seen": "last seen",
    }.items()
    for label in labels.split("|")
}

LEARNING_LABELS = frozenset({"layer", "confidence", "evidence", "verified", "supersedes"})
"""Labels that only a learning carries; a source, a date or tags may belong to a whole file."""

_FIELD = re.compile(
    r"""(?P<indent>\ {0,3})
        (?P<bullet>[-*+\u2022\u2023\u2013]\ +|\d{1,3}[.)]\ +)?
        (?P<open>\*\*\*|\*\*|__|\*|_|`|["'\u201c\u2018])?
        (?P<label>[A-Za-z][A-Za-z _/-]{0,24}?)
        (?P<close>\*\*\*|\*\*|__|\*|_|`|["'\u201d\u2019])?
        \ *(?P<colon>:|\ [\u2014\u2013-]\ |=)
        (?P<late>\*\*\*|\*\*|__|\*(?=\ )|_(?=\ ))?
        \ *(?P<value>.*)""",
    re.VERBOSE | re.DOTALL,
)
_BOLD_FIELD = re.compile(
    r" {0,3}(?:[-*+\u2022] +)?\*\*(?P<label>[A-Za-z][A-Za-z0-9 _-]{0,38})(?::\*\*|\*\* *:) *+(?P<value>.*)"
)
# `**Layer: inscribed**`: label and value in one pair of marks.
_ALL_BOLD = re.compile(r" {0,3}(?:[-*+\u2022] +)?(\*\*|__)(?=[^*_]*:[^*_]*(\*\*|__) *$)")


@dataclass(frozen=True, slots=True)
class ParsedValue(Generic[T_co]):
    """A value that was understood; `exact` says that nothing but the value was written there."""

    value: T_co
    exact: bool


class DateMatch(NamedTuple):
    """A date in a text and where it stands (character offsets, end exclusive)."""

    value: date
    start: int
    end: int


class FieldLine(NamedTuple):
    """A line that carries metadata: the canonical name of its label, and the value as written.

    `marked` says that the label had a bullet or emphasis; a bare `Source: ...` may just as well be prose.
    """

    name: str
    value: str
    marked: bool


def normalize_spaces(text: str) -> str:
    """The text with odd spaces and wide colons made plain, character for character."""
    if text.isascii() and "\t" not in text:
        return text
    return text.translate(_SPACE_TRANSLATION)


def find_dates(text: str) -> Iterator[DateMatch]:
    """The dates in the text that exist in the calendar, in any of the usual spellings.

    `02/11/2026` is not read: which of its numbers is the month is unknown.
    """
    for match in _DATE.finditer(normalize_spaces(text)):
        found = _calendar_date(match)
        if found is not None:
            yield DateMatch(found, match.start(), match.end())


def find_date(text: str) -> DateMatch | None:
    """The first date in the text."""
    return next(find_dates(text), None)


def read_date(text: str) -> ParsedValue[date] | None:
    """The date that a metadata value states."""
    found = find_date(text)
    if found is None:
        return None
    return ParsedValue(found.value, not (text[: found.start] + text[found.end :]).strip(_QUOTES + "()[].,"))


def read_layer(text: str) -> ParsedValue[Layer] | None:
    """The layer that a metadata value names, in any casing; None for an unknown word or a choice of several."""
    words = re.findall(r"[^\W\d_]+", text.casefold())
    if not words or words[0] not in frozenset(Layer):
        return None
    if any(word in frozenset(Layer) for word in words[1:]):
        return None
    return ParsedValue(Layer(words[0]), len(words) == 1)


def read_confidence(text: str) -> ParsedValue[float] | None:
    """The confidence that a metadata value states, 0..1: a number, a percentage, a fraction, or a word."""
    value = normalize_spaces(text).strip(_QUOTES)
    word = re.match(r"[A-Za-z]+", value)
    if word and word[0].casefold() in _CONFIDENCE_WORDS:
        return ParsedValue(_CONFIDENCE_WORDS[word[0].casefold()], not value[word.end() :].strip(_QUOTES + ".,"))
    match = _NUMBER.match(value)
    if match is None:
        return None
    number = float(match["number"].replace(",", "."))
    scale = match["scale"] or ""
    if scale == "%":
        number /= 100
    elif scale and (whole := int(scale[1:])):
        number /= whole
    if not 0 <= number <= 1:
        return None
    return ParsedValue(round(number, 4), not value[match.end() :].strip(_QUOTES + ".,"))


def read_optional(text: str) -> str | None:
    """The value, or None where it says that there is none."""
    value = text.strip()
    return None if value.strip(_QUOTES + ".").casefold() in _EMPTY_VALUES else value


def read_field(line: str) -> FieldLine | None:
    """The metadata that a line carries, if its label is one we know.

    Bullets (or none), bold (or not), casing and spacing of the label are all the same; the value is as written.
    """
    all_bold = _ALL_BOLD.match(normalize_spaces(line))
    if all_bold:
        line = line[: all_bold.start(1)] + line[all_bold.end(1) : all_bold.start(2)]
    match = _FIELD.match(normalize_spaces(line))
    if match is None:
        return None
    emphasised = bool(match["open"]) and bool(match["close"] or match["late"])
    if bool(match["open"]) != emphasised or (match["colon"].strip() != ":" and not emphasised):
        return None
    label = re.sub(r"[ _-]+", " ", match["label"]).strip().casefold()
    name = _LABELS.get(label)
    if name is None:
        return None
    return FieldLine(name, line[match.start("value") :].strip(), marked=bool(match["bullet"] or emphasised or all_bold))


def read_bold_field(line: str) -> FieldLine | None:
    """Metadata under any label in bold, known or not; only where nothing else is to be expected."""
    match = _BOLD_FIELD.fullmatch(normalize_spaces(line))
    if match is None:
        return None
    name = re.sub(r"[ _-]+", "_", match["label"].strip().casefold())
    return FieldLine(name, line[match.start("value") :].strip(), marked=True)


def _calendar_date(match: re.Match[str]) -> date | None:
    if match["compact"]:
        text = match["compact"]
        parts = (text[:4], text[4:6], text[6:])
    elif match["m2"] or match["m3"]:
        month = _MONTHS.get((match["m2"] or match["m3"]).casefold())
        if month is None:
            return None
        parts = (match["y2"] or match["y3"], str(month), match["d2"] or match["d3"])
    elif match["y4"]:
        parts = (match["y4"], match["m4"], match["d4"])
    else:
        parts = (match["year"], match["month"], match["day"])
    try:
        return date(*map(int, parts))
    except ValueError:
        return None


TITLE_LIMIT = 80
"""Characters of a title that was taken from the first line of a text."""

KIND_WORDS = frozenset(
    re.findall(
        r"[^\s,][^\n,]*",
        """
        pattern, anti-pattern, antipattern, architecture, observation, decision, convention, review patterns,
        review pattern, pipeline, fix patterns, fix pattern, audit findings, audit finding, bug, gotcha, pitfall,
        lesson, learning, insight, note, warning, finding, security, performance, debugging, testing, tooling,
        workflow, process, rule, tip, discovery, problem, issue, root cause, best practice, constraint, quirk,
        regression
        """,
    )
)
"""Words before a title that say what sort of learning it is, in lower case."""

_BRACKET = re.compile(r"[\[(\u3010](?P<inner>[^\[\]()\u3010\u3011]{1,40})[\])\u3011]\s*[-:\u2013\u2014|]*\s*")
_AFTER_DATE = re.compile(r"\s*[-:\u2013\u2014|,]*\s+|\s*[-:\u2013\u2014|]+\s*|$")
_LAYER_PREFIX = re.compile(
    rf"(?P<layer>{'|'.join(Layer)})(?P<sep>\s*[\u2014\u2013]+\s*|\s+-+\s+|\s*--+\s*|\s*:\s+)", re.IGNORECASE
)
_KIND_WORD = re.compile(r"(?P<kind>[^\W\d_][\w/-]*(?: [\w/-]+){0,2}):\s")
_ORDINAL = re.compile(
    r"(?:\d{1,3}[.)]|#\d{1,3}[.):]?|(?:finding|learning|lesson|entry|echo|item) #?\d{1,3} ?[:.)\u2013\u2014-]+)\s+",
    re.IGNORECASE,
)
_EMPHASIZED = re.compile(r"(\*\*\*|\*\*|__|\*|_|`)(?P<inner>(?:(?!\1).)+)\1")
_MAX_PREFIXES = 6  # what may stand before a title: number, date, layer, type, in any order


@dataclass(frozen=True, slots=True)
class ParsedTitle:
    """A heading taken apart.

    `dated` says that the date stood in brackets, as in the canonical form; `typed` that it names a type of learning.
    """

    text: str
    kind: str | None = None
    layer: Layer | None = None
    date: date | None = None
    dated: bool = False
    typed: bool = False


def read_title(heading: str) -> ParsedTitle:
    """Take a heading apart; what is neither date, layer, type word nor decoration is the title."""
    title = ParsedTitle(_without_emphasis(" ".join(normalize_spaces(heading).split())))
    for _ in range(_MAX_PREFIXES):
        title = _without_prefix(title)
    title = _without_trailing_date(title)
    word = _KIND_WORD.match(title.text)
    typed = title.kind is not None or bool(word and word["kind"].casefold() in KIND_WORDS)
    kind, name = canonical_title(_without_emphasis(f"{title.kind}: {title.text}" if title.kind else title.text))
    return replace(title, kind=kind, text=name, typed=typed)


def canonical_title(text: str) -> tuple[str | None, str]:
    """Type word and title exactly as a memory file's reader will find them again in a heading with this text."""
    heading = parse_heading(f"### [1970-01-01] {_without_closing_marks(text)}")
    return (heading.kind, heading.title) if heading else (None, text)


def first_line_title(line: str) -> ParsedTitle:
    """The title that a text without a heading gets from its first line, shortened at a word."""
    bare = re.sub(r"^\s*(?:[-*+\u2022>#]+\s+|\d{1,3}[.)]\s+)+", "", normalize_spaces(line)).strip()
    title = read_title(bare)
    text = title.text
    if len(text) > TITLE_LIMIT:
        cut = text.rfind(" ", TITLE_LIMIT // 2, TITLE_LIMIT)
        text = text[: cut if cut > 0 else TITLE_LIMIT].rstrip(" ,;:-") + "\u2026"
    return replace(title, text=text.rstrip(" :"))


def _without_prefix(title: ParsedTitle) -> ParsedTitle:
    text = title.text
    if ordinal := _ORDINAL.match(text):
        return replace(title, text=text[ordinal.end() :])
    bracket = _BRACKET.match(text)
    if (
        bracket
        and (found := find_date(bracket["inner"]))
        and title.date is None
        and _is_only_date(bracket["inner"], found)
    ):
        return replace(title, text=text[bracket.end() :], date=found.value, dated=bracket[0][0] == "[")
    if bracket and title.layer is None and bracket["inner"].strip().casefold() in frozenset(Layer):
        layer = Layer(bracket["inner"].strip().casefold())
        return replace(title, text=text[bracket.end() :], layer=layer)
    if bracket and title.kind is None and bracket["inner"].strip().casefold() in KIND_WORDS:
        return replace(title, text=text[bracket.end() :], kind=bracket["inner"].strip())
    found = find_date(text)
    if found and found.start == 0 and title.date is None and (gap := _AFTER_DATE.match(text, found.end)):
        return replace(title, text=text[gap.end() :], date=found.value)
    layer_word = _LAYER_PREFIX.match(text)
    if layer_word and title.layer is None and _is_layer_prefix(layer_word, text):
        return replace(title, text=text[layer_word.end() :], layer=Layer(layer_word["layer"].casefold()))
    return title


def _is_layer_prefix(match: re.Match[str], text: str) -> bool:
    # "Notes: ..." and "Observations - ..." are headings anyone may write; with a date they are an entry's.
    ambiguous = match["layer"].casefold() in {Layer.NOTES, Layer.OBSERVATIONS}
    return not ambiguous or (":" not in match["sep"] and find_date(text) is not None)


def _without_trailing_date(title: ParsedTitle) -> ParsedTitle:
    """Without the date at the end, or in parentheses anywhere; a date that belongs to a sentence stays."""
    if title.date is not None:
        return title
    for found in find_dates(title.text):
        before, after = title.text[: found.start].rstrip(), title.text[found.end :].lstrip()
        in_parentheses = before.endswith(("(", "[")) and after.startswith((")", "]"))
        at_end = before.endswith(("-", "\u2013", "\u2014", "|", ",")) and not after.strip(".")
        if in_parentheses or at_end:
            head, tail = before.rstrip(" [("), after.lstrip(" )].")
            head = head if tail else head.rstrip(" -\u2013\u2014|,")
            return replace(title, text=f"{head} {tail}".strip(), date=found.value)
    return title


def _without_closing_marks(text: str) -> str:
    end = len(text)
    while end:
        words = end
        while words and text[words - 1].isspace():
            words -= 1
        marks = words
        while marks and text[marks - 1] == "#":
            marks -= 1
        if marks == words or (marks and not text[marks - 1].isspace()):
            return text[:words]
        end = marks
    return ""


def _is_only_date(text: str, found: DateMatch) -> bool:
    return not (text[: found.start] + text[found.end :]).strip(" .,")


def _without_emphasis(text: str) -> str:
    match = _EMPHASIZED.fullmatch(text)
    return match["inner"].strip() if match else text
