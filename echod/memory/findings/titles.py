"""What the heading of a finding says: date, layer, type word and title, however they are put together.

One line in, one value out. This module knows nothing of the lines around a heading.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from datetime import date

from echod.memory.findings.text import FoundDate, find_date, find_dates, plain
from echod.memory.forms import read_heading
from echod.memory.layers import Layer

TITLE_LIMIT = 80
"""Characters of a title that was taken from the first line of a text."""

KINDS = frozenset(
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
_LEADING_DATE = re.compile(r"\s*[-:\u2013\u2014|,]*\s+|\s*[-:\u2013\u2014|]+\s*|$")
_LAYER = re.compile(
    rf"(?P<layer>{'|'.join(Layer)})(?P<sep>\s*[\u2014\u2013]+\s*|\s+-+\s+|\s*--+\s*|\s*:\s+)", re.IGNORECASE
)
_KIND_WORD = re.compile(r"(?P<kind>[^\W\d_][\w/-]*(?: [\w/-]+){0,2}):\s")
_ORDINAL = re.compile(
    r"(?:\d{1,3}[.)]|#\d{1,3}[.):]?|(?:finding|learning|lesson|entry|echo|item) #?\d{1,3} ?[:.)\u2013\u2014-]+)\s+",
    re.IGNORECASE,
)
_WRAPPED = re.compile(r"(\*\*\*|\*\*|__|\*|_|`)(?P<inner>(?:(?!\1).)+)\1")
_PREFIXES = 6  # what may stand before a title: number, date, layer, type, in any order


@dataclass(frozen=True, slots=True)
class Title:
    """A heading taken apart.

    `dated` says that the date stood in brackets, as in the canonical form; `typed` that it names a type of learning.
    """

    text: str
    kind: str | None = None
    layer: Layer | None = None
    date: date | None = None
    dated: bool = False
    typed: bool = False


def read_title(heading: str) -> Title:
    """Take a heading apart; what is neither date, layer, type word nor decoration is the title."""
    title = Title(_unwrapped(" ".join(plain(heading).split())))
    for _ in range(_PREFIXES):
        title = _without_prefix(title)
    title = _without_trailing_date(title)
    word = _KIND_WORD.match(title.text)
    typed = title.kind is not None or bool(word and word["kind"].casefold() in KINDS)
    kind, name = canonical_title(_unwrapped(f"{title.kind}: {title.text}" if title.kind else title.text))
    return replace(title, kind=kind, text=name, typed=typed)


def canonical_title(text: str) -> tuple[str | None, str]:
    """Type word and title exactly as a memory file's reader will find them again in a heading with this text."""
    heading = read_heading(f"### [1970-01-01] {_without_closing_marks(text)}")
    return (heading.kind, heading.title) if heading else (None, text)


def first_line_title(line: str) -> Title:
    """The title that a text without a heading gets from its first line, shortened at a word."""
    bare = re.sub(r"^\s*(?:[-*+\u2022>#]+\s+|\d{1,3}[.)]\s+)+", "", plain(line)).strip()
    title = read_title(bare)
    text = title.text
    if len(text) > TITLE_LIMIT:
        cut = text.rfind(" ", TITLE_LIMIT // 2, TITLE_LIMIT)
        text = text[: cut if cut > 0 else TITLE_LIMIT].rstrip(" ,;:-") + "\u2026"
    return replace(title, text=text.rstrip(" :"))


def _without_prefix(title: Title) -> Title:
    text = title.text
    if ordinal := _ORDINAL.match(text):
        return replace(title, text=text[ordinal.end() :])
    bracket = _BRACKET.match(text)
    if bracket and (found := find_date(bracket["inner"])) and title.date is None and _is_all(bracket["inner"], found):
        return replace(title, text=text[bracket.end() :], date=found.value, dated=bracket[0][0] == "[")
    if bracket and title.layer is None and bracket["inner"].strip().casefold() in frozenset(Layer):
        layer = Layer(bracket["inner"].strip().casefold())
        return replace(title, text=text[bracket.end() :], layer=layer)
    if bracket and title.kind is None and bracket["inner"].strip().casefold() in KINDS:
        return replace(title, text=text[bracket.end() :], kind=bracket["inner"].strip())
    found = find_date(text)
    if found and found.start == 0 and title.date is None and (gap := _LEADING_DATE.match(text, found.end)):
        return replace(title, text=text[gap.end() :], date=found.value)
    layer_word = _LAYER.match(text)
    if layer_word and title.layer is None and _names_a_layer(layer_word, text):
        return replace(title, text=text[layer_word.end() :], layer=Layer(layer_word["layer"].casefold()))
    return title


def _names_a_layer(match: re.Match[str], text: str) -> bool:
    # "Notes: ..." and "Observations - ..." are headings anyone may write; with a date they are an entry's.
    everyday = match["layer"].casefold() in {Layer.NOTES, Layer.OBSERVATIONS}
    return not everyday or (":" not in match["sep"] and find_date(text) is not None)


def _without_trailing_date(title: Title) -> Title:
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


def _is_all(text: str, found: FoundDate) -> bool:
    return not (text[: found.start] + text[found.end :]).strip(" .,")


def _unwrapped(text: str) -> str:
    match = _WRAPPED.fullmatch(text)
    return match["inner"].strip() if match else text
