"""Read single values and lines as agents write them: dates, layers, labels, titles.

One value or line in, one value out. This module has no notion of files or findings. A value that it cannot understand
becomes None. One that it understands only in part is marked as inexact, so that the caller keeps the words it would
otherwise lose.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import date
from typing import Generic, NamedTuple, TypeVar

from echod.lazy import lazy_pattern
from echod.memory.forms import CONFIDENCE_WORDS, parse_heading
from echod.memory.model import Layer

T_co = TypeVar("T_co", covariant=True)

# Spaces that editors and chat windows write instead of a plain space. Each is replaced by one character, so offsets in
# the plain copy are offsets in the original.
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
_DATE = lazy_pattern(
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

_CONFIDENCE_WORDS = CONFIDENCE_WORDS | {"med": 0.75, "moderate": 0.75}
_NUMBER = lazy_pattern(r"[~\u2248]?\s*(?P<number>\d{1,3}(?:[.,]\d+)?|[.,]\d+)\s*(?P<scale>%|/\s*\d{1,3})?")
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

_FIELD = lazy_pattern(
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
_BOLD_FIELD = lazy_pattern(
    r" {0,3}(?:[-*+\u2022] +)?\*\*(?P<label>[A-Za-z][A-Za-z0-9 _-]{0,38})(?::\*\*|\*\* *:) *+(?P<value>.*)"
)
# `**Layer: inscribed**`: label and value in one pair of marks.
_ALL_BOLD = lazy_pattern(r" {0,3}(?:[-*+\u2022] +)?(\*\*|__)(?=[^*_]*:[^*_]*(\*\*|__) *$)")

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
"""Words before a title that name the type of a learning, in lower case."""

_BRACKET = lazy_pattern(r"[\[(\u3010](?P<inner>[^\[\]()\u3010\u3011]{1,40})[\])\u3011]\s*[-:\u2013\u2014|]*\s*")
_AFTER_DATE = lazy_pattern(r"\s*[-:\u2013\u2014|,]*\s+|\s*[-:\u2013\u2014|]+\s*|$")
_LAYER_PREFIX = lazy_pattern(
    rf"(?P<layer>{'|'.join(Layer)})(?P<sep>\s*[\u2014\u2013]+\s*|\s+-+\s+|\s*--+\s*|\s*:\s+)", re.IGNORECASE
)
_KIND_WORD = lazy_pattern(r"(?P<kind>[^\W\d_][\w/-]*(?: [\w/-]+){0,2}):\s")
_ORDINAL = lazy_pattern(
    r"(?:\d{1,3}[.)]|#\d{1,3}[.):]?|(?:finding|learning|lesson|entry|echo|item) #?\d{1,3} ?[:.)\u2013\u2014-]+)\s+",
    re.IGNORECASE,
)
_EMPHASIZED = lazy_pattern(r"(\*\*\*|\*\*|__|\*|_|`)(?P<inner>(?:(?!\1).)+)\1")
_MAX_PREFIXES = 6  # before a title: number, date, layer, type, in any order


@dataclass(frozen=True, slots=True)
class ParsedValue(Generic[T_co]):
    """A value that was understood; `exact` means that the text contained nothing else."""

    value: T_co
    exact: bool


class DateMatch(NamedTuple):
    """A date in a text and its position (character offsets, end exclusive)."""

    value: date
    start: int
    end: int


class FieldLine(NamedTuple):
    """A line that carries metadata: the canonical name of its label, and the value as written.

    `marked` means that the label had a bullet or emphasis; a bare `Source: ...` may just as well be prose.
    """

    name: str
    value: str
    marked: bool


@dataclass(frozen=True, slots=True)
class ParsedTitle:
    """A heading taken apart.

    `dated` means that the date was in brackets, as in the canonical form; `typed` that it names a type of learning.
    """

    text: str
    kind: str | None = None
    layer: Layer | None = None
    date: date | None = None
    dated: bool = False
    typed: bool = False


NO_TITLE = ParsedTitle("")


def normalize_spaces(text: str) -> str:
    """Return the text with unusual spaces and wide colons made plain, character for character."""
    if text.isascii() and "\t" not in text:
        return text
    return text.translate(_SPACE_TRANSLATION)


def find_dates(text: str) -> Iterator[DateMatch]:
    """Yield the dates in the text that exist in the calendar, in any of the usual spellings.

    `02/11/2026` is not read: it is unknown which of its numbers is the month.
    """
    for match in _DATE.finditer(normalize_spaces(text)):
        value = _calendar_date(match)
        if value is not None:
            yield DateMatch(value, match.start(), match.end())


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


def find_date(text: str) -> DateMatch | None:
    """Return the first date in the text."""
    return next(find_dates(text), None)


def read_date(text: str) -> ParsedValue[date] | None:
    """Return the date that a metadata value states."""
    match = find_date(text)
    if match is None:
        return None
    return ParsedValue(match.value, not (text[: match.start] + text[match.end :]).strip(_QUOTES + "()[].,"))


def read_layer(text: str) -> ParsedValue[Layer] | None:
    """Return the layer that a metadata value names, in any case; None for an unknown word or a choice of several."""
    words = re.findall(r"[^\W\d_]+", text.casefold())
    if not words or words[0] not in frozenset(Layer):
        return None
    if any(word in frozenset(Layer) for word in words[1:]):
        return None
    return ParsedValue(Layer(words[0]), len(words) == 1)


def read_confidence(text: str) -> ParsedValue[float] | None:
    """Return the confidence that a metadata value states, 0..1: a number, a percentage, a fraction, or a word."""
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
    """Return the value, or None for a word that means "none"."""
    value = text.strip()
    return None if value.strip(_QUOTES + ".").casefold() in _EMPTY_VALUES else value


def read_field(line: str) -> FieldLine | None:
    """Return the metadata that a line carries, if its label is a known one.

    Bullets (or none), bold (or not), case and spacing of the label make no difference; the value is as written.
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
    """Return the metadata under any label in bold, known or not, for places where nothing else is expected."""
    match = _BOLD_FIELD.fullmatch(normalize_spaces(line))
    if match is None:
        return None
    name = re.sub(r"[ _-]+", "_", match["label"].strip().casefold())
    return FieldLine(name, line[match.start("value") :].strip(), marked=True)


def read_title(heading: str) -> ParsedTitle:
    """Take a heading apart; the title is everything that is not date, layer, type word or decoration."""
    title = ParsedTitle(_without_emphasis(" ".join(normalize_spaces(heading).split())))
    for _ in range(_MAX_PREFIXES):
        shorter = _without_prefix(title)
        if shorter is title:
            break
        title = shorter
    title = _without_trailing_date(title)
    word = _KIND_WORD.match(title.text)
    typed = title.kind is not None or bool(word and word["kind"].casefold() in KIND_WORDS)
    kind, name = canonical_title(_without_emphasis(f"{title.kind}: {title.text}" if title.kind else title.text))
    return replace(title, kind=kind, text=name, typed=typed)


def canonical_title(text: str) -> tuple[str | None, str]:
    """Return type word and title exactly as a memory file's reader finds them in a heading with this text."""
    heading = parse_heading(f"### [1970-01-01] {_without_closing_marks(text)}")
    return (heading.kind, heading.title) if heading else (None, text)


def first_line_title(line: str) -> ParsedTitle:
    """Return the title that a text without a heading gets from its first line, shortened at a word."""
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
    if bracket and (day := find_date(bracket["inner"])) and title.date is None and _is_only_date(bracket["inner"], day):
        return replace(title, text=text[bracket.end() :], date=day.value, dated=bracket[0][0] == "[")
    if bracket and title.layer is None and bracket["inner"].strip().casefold() in frozenset(Layer):
        layer = Layer(bracket["inner"].strip().casefold())
        return replace(title, text=text[bracket.end() :], layer=layer)
    if bracket and title.kind is None and bracket["inner"].strip().casefold() in KIND_WORDS:
        return replace(title, text=text[bracket.end() :], kind=bracket["inner"].strip())
    day = find_date(text)
    if day and day.start == 0 and title.date is None and (gap := _AFTER_DATE.match(text, day.end)):
        return replace(title, text=text[gap.end() :], date=day.value)
    layer_word = _LAYER_PREFIX.match(text)
    if layer_word and title.layer is None and _is_layer_prefix(layer_word, text):
        return replace(title, text=text[layer_word.end() :], layer=Layer(layer_word["layer"].casefold()))
    return title


def _is_layer_prefix(match: re.Match[str], text: str) -> bool:
    # "Notes: ..." and "Observations - ..." are ordinary headings too; with a date they are an entry's.
    ambiguous = match["layer"].casefold() in {Layer.NOTES, Layer.OBSERVATIONS}
    return not ambiguous or (":" not in match["sep"] and find_date(text) is not None)


def _is_only_date(text: str, match: DateMatch) -> bool:
    return not (text[: match.start] + text[match.end :]).strip(" .,")


def _without_trailing_date(title: ParsedTitle) -> ParsedTitle:
    """Remove the date at the end, or in parentheses anywhere; a date that belongs to a sentence stays."""
    if title.date is not None:
        return title
    for match in find_dates(title.text):
        before, after = title.text[: match.start].rstrip(), title.text[match.end :].lstrip()
        in_parentheses = before.endswith(("(", "[")) and after.startswith((")", "]"))
        at_end = before.endswith(("-", "\u2013", "\u2014", "|", ",")) and not after.strip(".")
        if in_parentheses or at_end:
            head, tail = before.rstrip(" [("), after.lstrip(" )].")
            head = head if tail else head.rstrip(" -\u2013\u2014|,")
            return replace(title, text=f"{head} {tail}".strip(), date=match.value)
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


def _without_emphasis(text: str) -> str:
    match = _EMPHASIZED.fullmatch(text)
    return match["inner"].strip() if match else text
