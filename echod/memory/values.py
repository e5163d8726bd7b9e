"""What the words of the metadata mean: layers, dates, confidences, sources. Each says None for what it does not know.

A value is read from its beginning and may be followed by prose (`HIGH (5 agents, all completed)`). The `*_token`
functions say which characters carry the meaning, so that an edit replaces those and keeps the prose.
"""

from __future__ import annotations

import re
from datetime import date

from echod.memory.layers import Layer
from echod.memory.model import Span

CONFIDENCE_WORDS = {"high": 0.9, "medium": 0.75, "low": 0.4}

_LAYERS = {layer.value: layer for layer in Layer}
_LONGEST_NUMBER = 400  # characters; the smallest float written out has 326, and longer ones take long to read

# Possessive throughout: a value may be a hostile line of megabytes. ASCII: dates and numbers have no other digits.
_MARKS = r"[`*_\"' \t]*+"
_WORD = re.compile(rf"{_MARKS}([A-Za-z]++)(?![\w|/])(?![ \t]*+[|/])", re.ASCII)
_NUMBER = re.compile(rf"{_MARKS}((?:[0-9]++(?:\.[0-9]++)?+|\.[0-9]++)%?+)(?![\w%,./]++(?<=\w))", re.ASCII)
_DAY = re.compile(
    rf"{_MARKS}(([0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}})(?:T[0-9]{{2}}:[0-9]{{2}}[0-9:.]*+(?:Z|[+-][0-9:]{{4,5}})?)?+)(?![\w-])",
    re.ASCII,
)
_NOTHING = re.compile(
    r"[`*_\"'(]*+(?:none|n/?a|nothing|null|[-\u2013\u2014])?+[`*_\"').]*+(?:\s*+\(.*)?", re.IGNORECASE | re.DOTALL
)
_CODE = re.compile(r"`([^`\n]+)`")


def layer(value: str) -> Layer | None:
    """The layer that `value` names, in any case; None for an unknown word and for a choice (`etched | notes`)."""
    word = _WORD.match(value)
    return _LAYERS.get(word[1].lower()) if word else None


def layer_token(value: str) -> Span | None:
    """Where in `value` the layer's word stands."""
    word = _WORD.match(value)
    return Span(*word.span(1)) if word and word[1].lower() in _LAYERS else None


def confidence(value: str) -> float | None:
    """0..1 from a number, a percentage or a word; None where it is neither or out of range."""
    number = _NUMBER.match(value)
    if number:
        if len(number[1]) > _LONGEST_NUMBER:
            return None
        amount = float(number[1].rstrip("%")) / (100 if number[1].endswith("%") else 1)
        return amount if 0 <= amount <= 1 else None
    word = _WORD.match(value)
    return CONFIDENCE_WORDS.get(word[1].lower()) if word else None


def confidence_token(value: str) -> Span | None:
    """Where in `value` the number or word stands; None where there is nothing to keep the rest of."""
    token = _NUMBER.match(value) or _WORD.match(value)
    return Span(*token.span(1)) if token and confidence(value) is not None else None


def day(value: str) -> date | None:
    """The date at the beginning of `value`; None where there is none or the calendar does not have it."""
    found = _DAY.match(value)
    return _calendar(found[2]) if found else None


def day_token(value: str) -> Span | None:
    """Where in `value` the date (with a time of day, if any) stands."""
    found = _DAY.match(value)
    return Span(*found.span(1)) if found and _calendar(found[2]) else None


def calendar_day(found: re.Match[str] | None) -> date | None:
    """The date in the first group of a match; None where the calendar does not have it."""
    return _calendar(found[1]) if found else None


def source(value: str) -> str | None:
    """Who says so: what stands in back quotes at the beginning, else all of it."""
    code = _CODE.match(value)
    return (code[1] if code else value).strip() or None


def title_or_none(value: str) -> str | None:
    """A title as written; None where the field is empty or says that there is none."""
    return None if _NOTHING.fullmatch(value) else value


def _calendar(text: str) -> date | None:
    try:
        return date.fromisoformat(text)
    except ValueError:
        return None
